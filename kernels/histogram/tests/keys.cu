// SPDX-License-Identifier: MIT
//
// The keys and the reference of the histogram against loops on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "gpu.hpp"
#include "histogram/problem.cuh"
#include "model/catalogue.hpp"

namespace ladders::histogram {
namespace {

struct Drawn {
  std::vector<int> keys;
  std::vector<unsigned long long> expected;
};

Drawn draw(int64_t bins, int64_t count, Distribution distribution) {
  const Case c(ladder().axes, {bins, count, distribution});
  Histogram problem(c, Device::open(0));
  const int* keys = std::get<0>(problem.arguments());
  return {to_host(keys, count), to_host(problem.expected(), bins)};
}

TEST(Gpu, HistogramReferenceAgreesWithTheHost) {
  NEED_GPU();
  for (const Distribution d : {uniform, constant, zipf, zipf_1_5, sorted, strided, out_of_range}) {
    const auto [keys, expected] = draw(1000, 99991, d);
    std::vector<unsigned long long> counted(expected.size());
    for (const int key : keys) ++counted[std::min(std::max(key, 0), 999)];
    EXPECT_EQ(counted, expected) << d;
  }
}

TEST(Gpu, KeysAreDistributedAsNamed) {
  NEED_GPU();
  constexpr int kBins = 100, kKeys = 1 << 20;
  const auto share = [](const Drawn& d, int bin) { return double(d.expected[bin]) / kKeys; };
  EXPECT_NEAR(share(draw(kBins, kKeys, uniform), 3), 0.01, 0.0005);
  EXPECT_EQ(share(draw(kBins, kKeys, constant), kBins / 2), 1);
  const Drawn skewed = draw(kBins, kKeys, zipf);
  EXPECT_NEAR(share(skewed, 0) / share(skewed, 9), 10, 0.3);
  const Drawn more_skewed = draw(kBins, kKeys, zipf_1_5);
  EXPECT_NEAR(share(more_skewed, 0) / share(more_skewed, 8), 27, 1.5);
  const Drawn apart = draw(kBins, kKeys, strided);
  EXPECT_EQ(apart.keys[0], 0);
  EXPECT_EQ(apart.keys[3], 96);
  EXPECT_EQ(apart.keys[4], 29);  // 128 is 28 the next time round
  EXPECT_NEAR(share(apart, 3), 0.01, 0.0005);
  const Drawn ordered = draw(kBins, kKeys, sorted);
  EXPECT_TRUE(std::is_sorted(ordered.keys.begin(), ordered.keys.end()));
  EXPECT_EQ(ordered.keys.back(), kBins - 1);
  const Drawn outside = draw(kBins, kKeys, out_of_range);
  EXPECT_LT(*std::min_element(outside.keys.begin(), outside.keys.end()), 0);
  EXPECT_GT(*std::max_element(outside.keys.begin(), outside.keys.end()), kBins - 1);
  EXPECT_NEAR(share(outside, 0), 0.255, 0.01);
}

}  // namespace
}  // namespace ladders::histogram
