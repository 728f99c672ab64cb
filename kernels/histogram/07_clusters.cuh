// SPDX-License-Identifier: MIT
//
// Clusters sum their blocks' counters over the SM-to-SM network. Reading neighbouring words of
// another block is about twice as fast as atomics on them.
#pragma once

#include "histogram/06_cluster_carries.cuh"

namespace ladders::histogram {
// Adds the cluster's counters and totals to the output. Each block sums a share of the words.
template <int bits>
__device__ __forceinline__ void add_cluster_to_output(const ClusterCountParams& c) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned cluster_size = cluster.num_blocks(), rank = cluster.block_rank();
  const unsigned share = ceil_div(c.words / 32, cluster_size) * 32,
                 from = min(rank * share, c.words);
  const unsigned words = min(share, c.words - from);
  const unsigned start =
      unsigned(size_t{blockIdx.x / cluster_size} * words / (gridDim.x / cluster_size)) & ~31u;
  auto* memory = dynamic_shared<unsigned char>();
  auto* counters = reinterpret_cast<unsigned*>(memory + kCountersAt<bits>);
  constexpr int kTogether = bits == 32 ? 4 : bits < 8 ? 1 : 2;
  for (unsigned i = threadIdx.x; i < words; i += kTogether * kThreads) {
    unsigned word[kTogether];
    FieldSums<bits> sums[kTogether];
#pragma unroll
    for (unsigned t = 0; t < kTogether; ++t) {
      const unsigned at = i + t * kThreads + start;
      word[t] = from + (at < words ? at : at - words);
    }
#pragma unroll(8 / kTogether)  // eight loads in flight hide the network's latency
    for (unsigned b = 0; b < cluster_size; ++b) {
      const unsigned next = rank + b < cluster_size ? rank + b : rank + b - cluster_size;
      const auto* others = b == 0 ? counters : cluster.map_shared_rank(counters, next);
#pragma unroll
      for (unsigned t = 0; t < kTogether; ++t)
        if (i + t * kThreads < words) sums[t].add(others[word[t]]);
    }
#pragma unroll
    for (unsigned t = 0; t < kTogether; ++t)
#pragma unroll
      for (unsigned field = 0; field < Counters<bits>::kFields; ++field) {
        const unsigned bin = Counters<bits>::bin_of_field(word[t], field);
        const unsigned n = sums[t].of(field, sums[t].sum[field % sums[t].kSums]);
        if (n != 0 && bin < unsigned(c.bin_count) && i + t * kThreads < words)
          atomicAdd(c.bins + bin, n);
      }
  }
  if constexpr (bits < 8) {
    const auto* totals = reinterpret_cast<const unsigned short*>(memory + c.totals.first_byte);
    for (unsigned i = threadIdx.x; i < c.totals.part; i += kThreads) {
      const unsigned bin = c.totals.bin(i, rank), n = totals[i];
      if (n != 0 && bin < unsigned(c.bin_count)) atomicAdd(c.bins + bin, n << bits);
    }
  }
#endif
}

__device__ __forceinline__ void sync_with_others() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (cooperative_groups::this_cluster().num_blocks() > 1) sync_cluster();
#endif
}

// Counts privately, below 8 bits with carries to the totals of the cluster.
template <int bits, bool hot_keys>
__global__ void __launch_bounds__(kThreads, 1) count_in_clusters(const ClusterCountParams c) {
  // The kernel before zeroes the output, to which overflows of narrow counters may be added at any
  // time.
  if constexpr (bits < 32) {
    wait_on_dependent_grids();
    using CountPolicy = std::conditional_t<(bits < 8), InCluster<bits>, InBlock<bits>>;
    count_all_narrow<bits, hot_keys, false, CountPolicy>(c, blockIdx.x, gridDim.x, 0);
    write_overflow_sums();
  } else {
    count_all<true>(c, blockIdx.x, gridDim.x);
    wait_on_dependent_grids();
  }
  sync_with_others();
  add_cluster_to_output<bits>(c);
  sync_with_others();  // other blocks may still read these counters
}

// Below 8 bits there are totals behind a block's counters.
template <int bits>
ClusterTotals totals(int64_t bins, int64_t cluster_size) {
  constexpr int64_t kSectorWords = ClusterTotals::kSectorWords;
  if (bits >= 8) return {};
  return {.cluster_size = unsigned(cluster_size),
          .reciprocal = unsigned(ceil_div(int64_t{1} << 31, cluster_size)),
          .first_byte = counter_bytes<bits>(bins),
          .part = unsigned(ceil_div(bins, kSectorWords * cluster_size) * kSectorWords)};
}
template <int bits>
size_t bytes_in_clusters(const Case& c) {
  return counter_bytes<bits>(c["bins"]) + 2 * totals<bits>(c["bins"], c["cluster"]).part;
}

// As many clusters as are resident at once, but no more than it takes for one warp per chunk.
template <int bits, int64_t cluster_size>
LaunchPlan clusters_of_counters(const Case& point, const Device& device, const void* kernel) {
  const Case c = cluster_size == 0 ? point : point.with({"cluster"}, cluster_size);
  const auto cluster = unsigned(c["cluster"]);
  LaunchPlan plan = fill_device(
      {.block = kThreads, .shared_bytes = bytes_in_clusters<bits>(c), .cluster = cluster}, kernel,
      device);
  const int64_t enough = ceil_div(c["keys"], int64_t{kWarps} * kChunk * cluster);
  plan.grid.x = std::min<unsigned>(plan.grid.x, std::max<int64_t>(enough, 1) * cluster);
  return plan;
}

template <int bits, bool hot_keys = true, int64_t cluster_size = 0>
Implementation in_clusters() {
  return zeroed_meanwhile(count_in_clusters<bits, hot_keys>,
                          clusters_of_counters<bits, cluster_size>,
                          [](Histogram& problem, const LaunchPlan& plan) {
                            ClusterCountParams c = {count_params<bits>(problem, plan), {}};
                            c.words = (counter_bytes<bits>(c.bin_count) - kCountersAt<bits>) / 4;
                            c.totals = totals<bits>(c.bin_count, plan.cluster);
                            c.overflow_sums = c.bins;
                            return c;
                          });
}

inline Implementation merged_in_clusters_at(const Case& c, const Device& device) {
  if (c["bins"] <= max_bins<32>(device)) return in_clusters<32, false>();
  if (c["bins"] <= max_bins<16>(device)) return in_clusters<16>();
  return in_clusters<8>();
}

// One more bit halves what crosses the network, but leaves less room for totals.
inline Implementation carried_at(const Case& c, const Device& device) {
  if (bytes_in_clusters<4>(c) <= device.shared_bytes_per_block) return in_clusters<4>();
  if (bytes_in_clusters<2>(c) <= device.shared_bytes_per_block) return in_clusters<2>();
  return in_clusters<1>();
}

}  // namespace ladders::histogram
