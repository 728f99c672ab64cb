// SPDX-License-Identifier: MIT
//
// What the tests of reduction's kernels share.
#pragma once

#include "correct.hpp"
#include "reduction/problem.cuh"
#include "schedules.hpp"

namespace ladders::reduction {

using emulator::DeviceArray;

/// Two launches of a kernel, since the first must leave flags and tickets as the second needs them.
/// Their elements differ, so that sums of the first are wrong in the second. `launch(in, slots,
/// result)` is one. Whether both results are right.
template <class Launch>
auto sums_with(int count, Launch launch) {
  return [=] {
    const DeviceArray<Slot<SumOfSquares>> slots(16);
    const DeviceArray<unsigned long long> result(1);
    for (const int first : {0, 1}) {
      const auto values = emulator::list_of(count, [=](int i) { return first + i % 10; });
      unsigned long long expected = 0;
      for (const int value : values) expected += SumOfSquares::map(value);
      const DeviceArray<int> in(values);
      if (launch(in.data(), slots.data(), result.data()) != cudaSuccess) return false;
      if (result.values()[0] != expected) return false;
    }
    return true;
  };
}

}  // namespace ladders::reduction
