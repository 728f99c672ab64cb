// SPDX-License-Identifier: MIT
//
// The keys and the reference of the histogram against loops on the host. Counters of few bits, and
// the totals that clusters have of them, where they overflow as often as they can. Which counters a
// sample chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "gpu.hpp"
#include "histogram/07_clusters.cuh"
#include "histogram/08_sampled.cuh"
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

// In one block for each range of bins, or in one cluster, so that counters overflow as often as
// they can, those of a word at about the same time.
template <class Blocks>
void expect_exact(const Implementation& implementation, const Case& point, bool zeroed,
                  Blocks blocks) {
  const Device device = Device::open(0);
  LaunchPlan plan = implementation.plan(point, device, implementation.kernel);
  occupancy(implementation.kernel, plan, device);  // allows it the shared memory
  Histogram problem(point, device);
  plan.grid = blocks(problem, plan);
  for (int launch = 0; launch < 2; ++launch) {  // the second one finds what the first has left
    problem.poison();
    if (zeroed) check(cudaMemset(problem.output().data, 0, problem.output().bytes), "cudaMemset");
    implementation.launch(plan, problem, nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    EXPECT_EQ(problem.compare().wrong, "");
  }
}

template <int bits, bool hot_keys, bool ranged>
void expect_exact(int64_t bins, int64_t keys, Distribution distribution) {
  SCOPED_TRACE(testing::Message() << bits << " bits, hot keys " << hot_keys << ", ranged " << ranged
                                  << ", bins " << bins << ", distribution " << distribution);
  expect_exact(stored_then_summed<bits, hot_keys, ranged>(),
               Case(ladder().axes, {bins, keys, distribution}), false,
               [](Histogram& problem, const LaunchPlan& plan) {
                 return static_cast<unsigned>(count_params<bits>(problem, plan).groups);
               });
}

template <int bits, bool hot_keys>
void expect_exact_in_cluster(int64_t cluster, int64_t bins, int64_t keys,
                             Distribution distribution) {
  SCOPED_TRACE(testing::Message() << bits << " bits, hot keys " << hot_keys << ", cluster "
                                  << cluster << ", bins " << bins << ", distribution "
                                  << distribution);
  expect_exact(in_clusters<bits, hot_keys>(),
               Case(ladder().axes, {bins, keys, distribution}).with({"cluster"}, cluster), true,
               [](Histogram&, const LaunchPlan& plan) { return plan.cluster; });
}

TEST(Gpu, NarrowCountersAreExact) {
  NEED_GPU();
  for (const Distribution d : {uniform, constant, zipf_1_5, sorted, strided, out_of_range}) {
    expect_exact<16, false, false>(64, 5 << 20, d);
    expect_exact<16, true, false>(64, 5 << 20, d);
    expect_exact<8, false, false>(128, 100'003, d);
    expect_exact<8, false, false>(5000, 1 << 20, d);
    expect_exact<8, true, false>(128, 100'003, d);
    expect_exact<4, false, false>(256, 100'003, d);
    expect_exact<4, false, false>(5000, 1 << 20, d);
    expect_exact<4, true, false>(256, 100'003, d);
    expect_exact<8, true, true>(300, 300'007, d);
    expect_exact<8, true, true>(70'001, 300'007, d);
    SCOPED_TRACE(testing::Message() << "by a sample, distribution " << d);
    expect_exact(by_sample(), Case(ladder().axes, {70'001, (1 << 20) + 7, d}), false,
                 [](Histogram&, const LaunchPlan&) { return 2; });
  }
}

// Counts keys with `sampled`, in as many blocks on every GPU, and tells whether in 8 bits.
bool counted_in_8_bits(int64_t bins, const std::vector<int>& keys, unsigned blocks = 128) {
  const Device device = Device::open(0);
  const Case c(ladder().axes, {bins, int64_t(keys.size()), uniform});
  const Implementation rung = by_sample();
  LaunchPlan plan = rung.plan(c, device, rung.kernel);
  occupancy(rung.kernel, plan, device);  // allows it the shared memory
  plan.grid = blocks;
  Histogram problem(c, device);
  check(cudaMemcpy(std::get<0>(problem.arguments()), keys.data(), keys.size() * sizeof(int),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  problem.poison();
  rung.launch(plan, problem, nullptr);
  check(cudaDeviceSynchronize(), "kernel");
  std::vector<unsigned> expected(bins);
  for (const int key : keys) ++expected[key];
  EXPECT_EQ(to_host(std::get<2>(problem.arguments()), bins), expected);
  return to_host(sampled(problem, plan).rows_are_wide, 1)[0] != 0;
}

constexpr int kSampledKeys = 1 << 20;

TEST(Gpu, ASampleTellsWhetherKeysRepeatInABlock) {
  NEED_GPU();
  const auto in_8_bits = [](int64_t bins, Distribution d) {
    return counted_in_8_bits(bins, draw(bins, kSampledKeys, d).keys);
  };
  for (const int64_t bins : {1165, 70'001}) {
    SCOPED_TRACE(bins);
    EXPECT_FALSE(in_8_bits(bins, uniform));
    EXPECT_FALSE(in_8_bits(bins, constant));
    EXPECT_FALSE(in_8_bits(bins, strided));
    EXPECT_TRUE(in_8_bits(bins, zipf));
    EXPECT_TRUE(in_8_bits(bins, zipf_1_5));
  }
}

// Short runs of equal keys do not overflow a counter, long ones are counted in registers.
TEST(Gpu, ASampleTellsHowLongRunsAre) {
  NEED_GPU();
  const auto in_8_bits = [](int run) {
    SCOPED_TRACE(run);
    const int64_t bins = kSampledKeys / run;
    return counted_in_8_bits(bins, draw(bins, kSampledKeys, sorted).keys);
  };
  for (const int run : {9, 14, 20, 900, 1200}) EXPECT_FALSE(in_8_bits(run)) << run;
  for (const int run : {28, 37, 150, 585}) EXPECT_TRUE(in_8_bits(run)) << run;
}

TEST(Gpu, ASampleLeavesOutTheMostFrequentKey) {
  NEED_GPU();
  constexpr int kBins = 1165, kHot = 500;
  std::vector<int> others = draw(kBins, kSampledKeys, uniform).keys, keys = others;
  // Warps count its runs in registers, however short.
  for (int i = 0; i < kSampledKeys; ++i)
    if (i / 256 % 2 == 0) keys[i] = kHot;
  EXPECT_FALSE(counted_in_8_bits(kBins, keys));
  // Another key's runs are not, nor are keys that repeat beside it.
  for (int i = 0; i < kSampledKeys; ++i) keys[i] = i / 256 % 2 == 0 ? kHot : i / 128 % 1000;
  EXPECT_TRUE(counted_in_8_bits(kBins, keys));
  for (int i = 0; i < kSampledKeys; ++i) keys[i] = others[i] < 700 ? kHot : others[i] % 40;
  EXPECT_TRUE(counted_in_8_bits(kBins, keys));
}

// With the fewest keys that are sampled, the last sample's neighbour is the last key.
TEST(Gpu, ASampleStaysWithinTheKeys) {
  NEED_GPU();
  for (const int count : {1, 4095, 4096, 4351, 4352, 4353, 8447, 8448, 17 * 4096 - 1, 17 * 4096 + 1,
                          17 * 4096 + 257, (1 << 18) + 511}) {
    SCOPED_TRACE(count);
    std::vector<int> keys(count);
    for (int i = 0; i < count; ++i) keys[i] = i % 40;  // many of which are in each block
    EXPECT_EQ(counted_in_8_bits(70'001, keys, 2), count >= 4096 + 256);
  }
}

TEST(Gpu, ASampleChoosesForSoManyBinsThatOnly4BitsFit) {
  NEED_GPU();
  const Device device = Device::open(0);
  constexpr int64_t kBins = 300'001;
  const Case c(ladder().axes, {kBins, 1 << 22, uniform});
  if (const std::string why = no_sample(c, device); !why.empty()) GTEST_SKIP() << why;
  EXPECT_FALSE(counted_in_8_bits(kBins, draw(kBins, 1 << 22, uniform).keys));
  EXPECT_TRUE(counted_in_8_bits(kBins, draw(kBins, 1 << 22, zipf).keys));
  EXPECT_FALSE(counted_in_8_bits(kBins, draw(kBins, 1 << 22, sorted).keys));
  EXPECT_TRUE(counted_in_8_bits(kBins, draw(kBins, 1 << 23, sorted).keys));
}

TEST(Histogram, RobustSamplesManyKeysWhereOnly4BitsFit) {
  const Ladder all = ladder();
  const auto chosen_for = [&](int64_t bins, int64_t keys) {
    return find_rung(all, "robust")->at(Case(all.axes, {bins, keys, uniform}), kH200).chosen;
  };
  EXPECT_EQ(chosen_for(57344, 1 << 28), "zeroed_meanwhile");
  EXPECT_EQ(chosen_for(229'376, 1 << 28), "hot_key");
  EXPECT_EQ(chosen_for(240'000, 1 << 22), "sampled");
  EXPECT_EQ(chosen_for(240'000, (1 << 22) - 1), "hot_key");
  EXPECT_EQ(chosen_for(458'752, 1 << 28), "sampled");
  EXPECT_EQ(chosen_for(500'000, 1 << 28), "ranges");
}

TEST(Gpu, TotalsOfClustersAreExact) {
  NEED_GPU();
  if (Device::open(0).compute_capability < 90) GTEST_SKIP() << "no clusters";
  for (const Distribution d : {uniform, constant, zipf_1_5, sorted, out_of_range}) {
    expect_exact_in_cluster<1, false>(2, 2, (1 << 20) + 3, d);
    expect_exact_in_cluster<1, true>(16, 300, 300'007, d);
    expect_exact_in_cluster<2, false>(3, 64, 1 << 20, d);
    expect_exact_in_cluster<2, true>(8, 70'001, 300'007, d);
    expect_exact_in_cluster<4, true>(4, 5000, 300'007, d);
    expect_exact_in_cluster<8, true>(8, 70'001, 300'007, d);
    expect_exact_in_cluster<16, true>(16, 1000, 300'007, d);
  }
}

}  // namespace
}  // namespace ladders::histogram
