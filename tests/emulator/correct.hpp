// SPDX-License-Identifier: MIT
//
// What the tests of kernels with nothing wrong share: correct*_test.cpp.
#pragma once

#include <numeric>
#include <vector>

#include "support.hpp"

namespace emulator {

/// 0, 1, 2, ...
inline std::vector<int> counting(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}
inline int sum(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0);
}
/// Blocks of so many threads that hold `count` of them.
inline unsigned blocks_for(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace emulator
