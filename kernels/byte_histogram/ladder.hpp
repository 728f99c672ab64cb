// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "model/ladder.hpp"

namespace ladders::byte_histogram {

/// The library in peers.cu.
std::vector<Rung> peers();

/// Measured on an H200. Two loads per thread spread fewer keys over more warps.
struct Tuning {
  int64_t four_loads_from = 1 << 24;  ///< keys
};
inline constexpr Tuning kTuning;

}  // namespace ladders::byte_histogram
