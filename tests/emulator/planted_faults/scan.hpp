// SPDX-License-Identifier: MIT
//
// What the tests of scan's kernels share.
#pragma once

#include "correct.hpp"
#include "scan/problem.cuh"
#include "schedules.hpp"

namespace ladders::scan {

using emulator::DeviceArray;

/// Two launches of a kernel, since the first must leave words and counters as the second needs
/// them. Their elements differ, so that sums of the first are wrong in the second. `launch(in, out,
/// exchange)` is one. Whether both results are right.
template <class Launch>
auto scans_with(int count, Launch launch) {
  return [=] {
    const DeviceArray<Word> words(16), prefixes(16);
    const DeviceArray<unsigned> epoch(1), ticket(1);
    for (const unsigned first : {0u, 1u}) {
      const auto values = emulator::list_of(count, [=](int i) { return first + i % 10; });
      std::vector<unsigned> expected(values.size());
      std::partial_sum(values.begin(), values.end(), expected.begin());
      const DeviceArray<unsigned> in(values), out(values.size());
      const Exchange exchange{words, prefixes, epoch, ticket};
      if (launch(in.data(), out.data(), exchange) != cudaSuccess) return false;
      if (out.values() != expected) return false;
    }
    return true;
  };
}

}  // namespace ladders::scan
