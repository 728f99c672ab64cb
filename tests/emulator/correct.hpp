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

using Ints = std::vector<int>;

/// What `launch` leaves in `count` integers that were 0.
template <class F>
void expect_everywhere(const Ints& expected, F launch, Same same = Same::figures) {
  everywhere(
      [&] {
        const DeviceArray<int> out(Ints(expected.size(), 0));
        ASSERT_RUNS(launch(out.data()));
        EXPECT_EQ(out.values(), expected);
      },
      same);
}

}  // namespace emulator
