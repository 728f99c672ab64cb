// SPDX-License-Identifier: MIT
//
// The keys and the reference of the histogram of bytes against loops on the host; keys that start
// anywhere; blocks with many rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "byte_histogram/02_always_reading.cuh"
#include "gpu.hpp"
#include "model/catalogue.hpp"

namespace ladders::byte_histogram {
namespace {

using Counts = std::vector<unsigned long long>;

Counts count_on_host(const std::vector<Byte>& keys, size_t first) {
  Counts counts(kByteBins);
  for (size_t i = first; i < keys.size(); ++i) ++counts[keys[i]];
  return counts;
}

Case case_of(int64_t keys, ByteDistribution distribution) {
  return Case(ladder().axes, {keys, distribution});
}

TEST(Gpu, ByteHistogramReferenceAgreesWithTheHost) {
  NEED_GPU();
  constexpr int kKeys = 1 << 18;
  for (const auto d : {bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few}) {
    ByteHistogram problem(case_of(kKeys, d), Device::open(0));
    const auto keys = to_host(std::get<0>(problem.arguments()), kKeys);
    const Counts counts = to_host(problem.expected(), kByteBins);
    EXPECT_EQ(count_on_host(keys, 0), counts) << d;
    if (d == bytes_uniform) {
      EXPECT_NEAR(double(counts[7]), kKeys / 256., 150);
    }
    if (d == bytes_constant) {
      EXPECT_EQ(counts[128], kKeys);
    }
    if (d == bytes_zipf) {
      EXPECT_NEAR(double(counts[0]) / double(counts[9]), 10, 1);
    }
    if (d == bytes_sorted) {
      EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    }
    if (d == bytes_few) {
      EXPECT_EQ(counts[0] + counts[85] + counts[170] + counts[255], kKeys);
    }
  }
}

// In so many blocks, twice: the second launch finds what the first has left.
template <class... Parameters, class... More>
void expect_exact(void (*kernel)(Parameters...), unsigned shared_bytes, unsigned blocks,
                  ByteHistogram& problem, int first, More... more) {
  const auto [keys, count, bins] = problem.arguments();
  SCOPED_TRACE(testing::Message() << blocks << " blocks, keys " << first << " to " << count);
  const LaunchPlan plan{.grid = blocks, .block = kThreads, .shared_bytes = shared_bytes};
  try {
    occupancy(reinterpret_cast<const void*>(kernel), plan, problem.device());  // allows the memory
  } catch (const DoesNotFit&) {
    return;
  }
  const Counts expected = count_on_host(to_host(keys, count), first);
  for (int launches = 0; launches < 2; ++launches) {
    problem.poison();
    if constexpr (sizeof...(more) == 0) check(cudaMemset(bins, 0, 4 * kByteBins), "cudaMemset");
    launch(plan, nullptr, kernel, keys + first, count - first, bins, more...);
    check(cudaDeviceSynchronize(), "kernel");
    const auto counted = to_host(bins, kByteBins);
    EXPECT_EQ(Counts(counted.begin(), counted.end()), expected);
  }
}

TEST(Gpu, BytesMayStartAnywhereAndBlocksGoRoundManyTimes) {
  NEED_GPU();
  for (const int64_t count : {20, 70'001, 300'013})
    for (const int first : {0, 1, 15, 16}) {
      ByteHistogram problem(case_of(count, bytes_zipf), Device::open(0));
      const auto reading = [&]<int loads, int copies>() {
        for (const unsigned blocks : {1, 3})
          expect_exact(always_reading<loads, copies, true>, Copies<copies>::kRoom, blocks, problem,
                       first, problem.arrivals());
      };
      expect_exact(bytes_vectorized, 0, 2, problem, first);
      expect_exact(lane_copies, Copies<32>::kRoom, 2, problem, first);
      reading.operator()<4, 32>();
      reading.operator()<2, 64>();
      reading.operator()<4, 64>();
      reading.operator()<8, 64>();
    }
}

}  // namespace
}  // namespace ladders::byte_histogram
