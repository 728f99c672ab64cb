// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::reduction {
std::vector<Rung> peers();  ///< the library and the CPU in peers.cu

/// Numbers of elements, measured on an H200 from 2^12 to 2^30 with a cold L2. Squares of ints take
/// twice the registers.
inline constexpr struct Tuning {
  int64_t small_blocks_up_to = 1 << 20;
  int64_t two_blocks_per_sm_up_to = 1 << 23, two_blocks_per_sm_up_to_of_ints = 3 << 23;
  int64_t bulk_ring_from = 1 << 26;
} kTuning;

}  // namespace ladders::reduction
