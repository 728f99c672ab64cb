// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::scan {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Numbers of elements, measured on an H200 from 2^16 to 2^28. Small tiles keep more SMs busy; a
/// ring needs many tiles per block to stay full.
inline constexpr struct Tuning {
  int64_t small_tiles_up_to = 1 << 18;
  int64_t bulk_ring_from = 1 << 24;
} kTuning;

}  // namespace ladders::scan
