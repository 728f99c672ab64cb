// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::transpose {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Crossovers, measured on the GPU that they are named after.
struct Tuning {
  double swizzled_up_to = 0;        ///< 4-byte elements: size of both matrices / size of the L2
  double small_tiles_up_to = 0.95;  ///< likewise, of any elements
  int narrow_tiles_up_to = 32;      ///< columns of matrices with unaligned rows
};
inline constexpr Tuning kH200, kH100{.swizzled_up_to = 0.7};
inline const Tuning& tuning(const Device& device) {
  return device.name.find("H100") == std::string::npos ? kH200 : kH100;
}

}  // namespace ladders::transpose
