// SPDX-License-Identifier: MIT
//
// What tests of results share.
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
/// Blocks of so many threads that hold `count` of them.
inline unsigned blocks_for(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

using Ints = std::vector<int>;

/// f(0), f(1), ...
template <class F>
auto list_of(int count, F f) {
  std::vector<decltype(f(0))> values;
  for (int i = 0; i < count; ++i) values.push_back(f(i));
  return values;
}

/// What `launch` leaves in an array that was 0.
template <class T = int, class F>
void expect_everywhere(const std::vector<T>& expected, F launch, Same same = Same::figures) {
  everywhere(
      [&] {
        const DeviceArray<T> out(expected.size());
        ASSERT_RUNS(launch(out.data()));
        EXPECT_EQ(out.values(), expected);
      },
      same);
}
/// The same where figures depend on which thread comes first.
template <class T = int, class F>
void expect_results_everywhere(const std::vector<T>& expected, F launch) {
  expect_everywhere(expected, launch, Same::results);
}

}  // namespace emulator
