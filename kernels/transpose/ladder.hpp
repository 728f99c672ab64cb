// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::transpose {

/// The library in peers.cu.
std::vector<Rung> peers();

/// Crossovers measured on an H200.
struct Tuning {
  double small_tiles_up_to = 0.95;  ///< size of both matrices / size of the L2
  int narrow_tiles_up_to = 32;      ///< columns of matrices with unaligned rows
};
inline constexpr Tuning kTuning;

}  // namespace ladders::transpose
