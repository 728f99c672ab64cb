// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::byte_histogram {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Measured on an H200. Two loads per thread spread fewer keys over more warps.
inline constexpr struct Tuning {
  int64_t four_loads_from = 1 << 24;  ///< keys
} kTuning;

}  // namespace ladders::byte_histogram
