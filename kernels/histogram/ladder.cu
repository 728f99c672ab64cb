// SPDX-License-Identifier: MIT
//
// Histogram: bins[key] counts the int keys, keys outside clamped to the first and last bin.
//
// Each key is read once, so the limit is reading DRAM, and the obstacle is the increment. Atomics
// on global memory are done in L2, one after the other where keys are equal. Atomics on shared
// memory stay on the SM, but its 227 KiB hold only 58 112 counters. A cluster of up to 16 blocks
// holds more, but then most increments cross the SM-to-SM network. Counters can be packed into
// fewer bits, but then overflows must be corrected. Or each group of blocks counts a range of the
// bins, but then each group reads all keys. Where packed counters would have 4 bits, a sample of
// the keys chooses between these two. The time includes zeroing and merging.

#include "histogram/ladder.hpp"

#include <set>

#include "histogram/01_atomics.cuh"
#include "histogram/05_stored_counters.cuh"
#include "histogram/07_clusters.cuh"
#include "histogram/08_sampled.cuh"

namespace ladders::histogram {
namespace {

// From this many keys on, `sampled` loses less than `hot_key` at the distribution that is worst for
// it. With fewer keys the sample takes longer than the overflows that it avoids. It is no
// crossover, since it compares worst cases and not two ways at one shape.
constexpr int64_t kSampleFrom = 1 << 22;

Implementation robust(const Case& c, const Device& device) {
  if (c["bins"] <= max_bins<32>(device)) {
    if (kMergeInPairsFrom.reached(c, device) && !kMergeAloneFrom.reached(c, device) &&
        device.clusters_at_once[2] > 0)
      return chosen("cluster_merge", in_clusters<32, false, 2>());
    return chosen("zeroed_meanwhile", zeroed_and_merged());
  }
  if (c["keys"] >= kSampleFrom && no_sample(c, device).empty())
    return chosen("sampled", by_sample());
  if (c["bins"] <= max_bins<4>(device)) return chosen("hot_key", packed_at<true>(c, device));
  return chosen("ranges", stored_then_summed<8, true, true>());
}

// The largest measured numbers of bins that fit on an H200 in counters of 32, 8 and 4 bits.
bool fit_32_bits(const Case& c) { return c["bins"] <= 57344; }
bool fit_8_bits(const Case& c) { return c["bins"] <= 229376; }
bool fit_4_bits(const Case& c) { return c["bins"] <= 458752; }

// What the study measures of the steps; the choice is measured on everything.
bool is_uniform(const Case& c) { return distributed_as(c, {uniform}); }
bool all_keys(const Case& c) { return c["keys"] == 1 << 28; }
bool packs(const Case& c) { return all_keys(c) && !fit_32_bits(c) && fit_4_bits(c); }
bool on_three(const Case& c) { return distributed_as(c, {uniform, constant, zipf}); }
bool on_strides(const Case& c) {
  return distributed_as(c, {uniform, strided}) && all_keys(c) && fit_32_bits(c);
}
bool on_skew_at_some(const Case& c) {
  return is_uniform(c) || (on_three(c) && (c["bins"] == 256 || c["bins"] > 400'000));
}
// Where clusters win and where they lose.
bool in_clusters_at(const Case& c) {
  const std::set<int64_t> bins = {256, 4096, 57344, 114688, 229376, 458752};
  return on_three(c) && bins.contains(c["bins"]);
}

std::vector<Rung> rungs() {
  using P = Histogram;
  return {
      // 01_atomics.cuh
      {.name = "global",
       .idea = "One atomic in L2 per key: equal keys queue up at one address.",
       .implementation = kernel<P>(global, resident<>),
       .zero_output = true,
       .target = "global_atomic_requests",
       .measured = on_skew_at_some},
      {.name = "shared",
       .idea = "One histogram per block in shared memory, merged at the end.",
       .implementation = kernel<P>(shared, resident_with_bins),
       .builds_on = "global",
       .zero_output = true,
       .target = "global_atomic_requests",
       .skip = [](const Case& c, const Device& d) { return too_large(4 * c["bins"], d); },
       .measured = [](const Case& c) { return on_three(c) && fit_32_bits(c); }},
      {.name = "distributed",
       .idea = "One histogram per cluster: more bins fit, increments cross the SM-to-SM network.",
       .implementation = kernel<P>(distributed, resident_clusters),
       .builds_on = "shared",
       .meant_for = [](const Case& c) { return on_three(c) && !fit_32_bits(c); },
       .shows = "With uniform keys, increments over the network hardly beat atomics in L2.",
       .zero_output = true,
       .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {1, 2, 3, 8, 16}}},
       .target = "distributed_requests",
       .needs = kClusters,
       .skip = [](const Case& c, const Device& d) { return too_large(part_bytes(c), d); },
       .measured = in_clusters_at},
      // 02_counters.cuh, 03_counting.cuh
      {.name = "in_flight",
       .idea = "One block per SM, four 16-byte loads per thread always in flight.",
       .implementation = merged_by_atomics<false>(),
       .builds_on = "shared",
       .zero_output = true,
       .target = "global_load_sectors_per_request",
       .skip = too_many<32>,
       .measured = on_strides},
      {.name = "spread_banks",
       .idea =
           "A bin's bank is a hash of its number: at most two or three strided keys share a bank.",
       .implementation = merged_by_atomics<true>(),
       .builds_on = "in_flight",
       .zero_output = true,
       .target = "shared_atomic_wavefronts_per_request",
       .skip = too_many<32>,
       .measured = on_strides},
      {.name = "zeroed_meanwhile",
       .idea = "Counting starts while the output is zeroed, and waits only before it merges.",
       .implementation = zeroed_and_merged(),
       .builds_on = "spread_banks",
       .skip = too_many<32>,
       .measured = on_strides},
      // 04_narrow_counters.cuh, 05_stored_counters.cuh
      {.name = "column_sums",
       .idea = "Blocks store their counters, a second kernel sums them: no atomics in L2.",
       .implementation = stored_then_summed<32>(),
       .builds_on = "spread_banks",
       .meant_for = [](const Case& c) { return is_uniform(c) && c["bins"] <= 32768; },
       .shows = "As fast without zeroing or atomics, but storing many bins takes longer.",
       .target = "global_atomic_requests",
       .skip = too_many<32>,
       .measured = [](const Case& c) { return is_uniform(c) && all_keys(c) && fit_32_bits(c); }},
      {.name = "packed",
       .idea = "Two, four or eight counters per word: more bins fit, and overflows are corrected.",
       .builds_on = "column_sums",
       .skip = too_many<4>,
       .measured = [](const Case& c) { return distributed_as(c, {uniform, constant}) && packs(c); },
       .choose = packed_at<false>},
      {.name = "hot_key",
       .idea = "Each warp counts one frequent key in registers: it causes no queues or overflows.",
       .builds_on = "packed",
       .meant_for = [](const Case& c) { return !is_uniform(c) && packs(c); },
       .target = "shared_atomic_conflicts",
       .skip = too_many<4>,
       .measured = [](const Case& c) { return on_three(c) && packs(c); },
       .choose = packed_at<true>},
      {.name = "ranges",
       .idea = "Each group of blocks counts a range of the bins, and each group reads all keys.",
       .implementation = stored_then_summed<8, true, true>(),
       .builds_on = "hot_key",
       .meant_for = [](const Case& c) { return distributed_as(c, {zipf}) && !fit_8_bits(c); },
       .measured = [](const Case& c) { return on_three(c) && !fit_8_bits(c); }},
      // 07_clusters.cuh
      {.name = "cluster_merge",
       .idea = "The blocks of a cluster sum their counters over the network before L2.",
       .builds_on = "zeroed_meanwhile",
       .shows = "Merging in clusters gains 9 % with 2^24 keys in 57344 bins, nothing with 2^28.",
       .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {2, 3, 16}}},
       .target = "global_atomic_requests",
       .needs = kClusters,
       .skip = too_many<8>,
       .measured = [](const Case& c) { return in_clusters_at(c) && fit_8_bits(c); },
       .choose = merged_in_clusters_at},
      // 06_cluster_carries.cuh, 07_clusters.cuh
      {.name = "cluster_carries",
       .idea = "Blocks hold a few bits per bin; only carries cross the network to shared totals.",
       .builds_on = "cluster_merge",
       .shows = "Faster than ranges where keys are few or all equal, slower where many and spread.",
       .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {2, 3, 16}}},
       .target = "distributed_requests",
       .needs = kClusters,
       .skip = [](const Case& c, const Device& d) { return too_large(bytes_in_clusters<1>(c), d); },
       .measured = [](const Case& c) { return in_clusters_at(c) && !fit_8_bits(c); },
       .choose = carried_at},
      // 08_sampled.cuh
      {.name = "sampled",
       .idea = "A sample of 4096 keys chooses: 4 bits per bin, or ranges where keys repeat.",
       .implementation = by_sample(),
       .builds_on = "ranges",
       .meant_for = [](const Case& c) { return is_uniform(c) && packs(c); },
       .target = "global_load_requests",
       .skip = no_sample,
       .measured = [](const Case& c) { return on_three(c) && packs(c) && !fit_8_bits(c); }},
      // ladder.cu
      {.name = "robust",
       .idea = "By shape alone: the widest counters that fit, sampled if those have 4 bits, ranges "
               "if none fit.",
       .role = Role::choice,
       .choose = robust},
  };
}

Shape shape(int64_t bins, int64_t keys, Distribution d) { return {bins, keys, d}; }

}  // namespace

Ladder ladder() {
  const std::vector<int64_t> bins = {32,    256,    4096,   16384,  32768, 57344,
                                     65536, 114688, 131072, 229376, 458752};
  std::vector<Shape> measured, small;
  for (const Distribution d : {uniform, constant, zipf, zipf_1_5, sorted, strided})
    for (const int64_t b : bins) measured.push_back({b, 1 << 28, d});
  for (const int64_t b : {256, 57344, 458752}) measured.push_back({b, 1 << 24, uniform});
  for (const int64_t b : {256, 4096, 57344, 458752}) small.push_back({b, 1 << 20, uniform});
  for (const Distribution d : {constant, zipf})
    for (const int64_t b : {256, 4096}) small.push_back({b, 1 << 20, d});
  small.push_back({4096, 1 << 20, strided});
  return {
      .name = "histogram",
      .title = "Histogram",
      .ceiling = "roof/dram_read",
      .input = "as the distribution says; zipf has exponent 1, strided keys are 32 apart",
      .axes = {{.name = "bins", .least = 1},
               {.name = "keys", .most = int64_t{1} << 40},
               kDistributionAxis},
      .measured = measured,
      .small = small,
      .tested = {shape(1, 1000, uniform), shape(32, 0, uniform), shape(33, 1, uniform),
                 shape(256, 100003, zipf), shape(257, 65537, sorted),
                 shape(1000, 99991, out_of_range), shape(4099, 50021, constant),
                 shape(16411, 1 << 18, zipf), shape(57344, 1 << 18, uniform),
                 shape(57345, 40000, strided), shape(65537, 1 << 18, uniform),
                 shape(114689, (1 << 18) + 511, constant), shape(131073, 1 << 18, zipf_1_5),
                 shape(240001, 1000, uniform), shape(262144, 4352, sorted),
                 shape(300001, 1 << 18, zipf_1_5), shape(458752, 1 << 19, sorted),
                 shape(458753, 1 << 18, zipf), shape(650001, 1 << 17, uniform)},
      .headline = {256, 1 << 28, uniform},
      .small_headline = {256, 1 << 20, uniform},
      .work =
          [](const Case& c, const Device&) {
            return Work{.bytes_read = 4. * c["keys"], .bytes_written = 4. * c["bins"]};
          },
      .problem = problem_of<Histogram>,
      .crossovers = {kMergeInPairsFrom, kMergeAloneFrom},
      .memory = [](const Case& c) { return 4. * c["keys"] + 16. * c["bins"]; },
      .rungs = joined(rungs(), peers()),
  };
}

}  // namespace ladders::histogram
