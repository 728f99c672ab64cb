// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ladders::convolution {
/// Where small tiles are faster than strips from the L1, as measured on an H200.
inline constexpr struct Tuning {
  int small_tiles_up_to_side = 9;
  int64_t small_tiles_from_pixels = 1 << 22;
} kTuning;

}  // namespace ladders::convolution
