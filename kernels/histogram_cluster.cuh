// SPDX-License-Identifier: MIT
//
// Kernels whose clusters add up what their blocks have counted, over the SM-to-SM network: reading
// neighbouring words of another block goes at several times the pace of atomics on them.
#pragma once

#include <cooperative_groups.h>

#include "histogram_carries.cuh"
#include "histogram_count.cuh"

namespace ladders {
namespace {

// A block's counters and, where there are any, its part of the totals, to be added to the output.
// Each block adds up a share of the words of all, each cluster starting elsewhere.
template <int bits>
__device__ __forceinline__ void add_cluster_to_output(const Counting& c) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  const unsigned share = ceil_div(c.words / 32, blocks) * 32, from = min(rank * share, c.words);
  const unsigned words = min(share, c.words - from);
  const unsigned start =
      static_cast<unsigned>(size_t{blockIdx.x / blocks} * words / (gridDim.x / blocks)) & ~31u;
  auto* memory = dynamic_shared<unsigned char>();
  auto* counters = reinterpret_cast<unsigned*>(memory + kCountersAt<bits>);
  // Loads that are under way together, as the network takes its time: of words times blocks.
  [[maybe_unused]] constexpr int kUnderWay = 8;
  constexpr int kTogether = bits == 32 ? 4 : bits < 8 ? 1 : 2;
  for (unsigned i = threadIdx.x; i < words; i += kTogether * kThreads) {
    unsigned word[kTogether];
    FieldSums<bits> sums[kTogether];
#pragma unroll
    for (unsigned t = 0; t < kTogether; ++t) {
      const unsigned at = i + t * kThreads + start;
      word[t] = from + (at < words ? at : at - words);
    }
#pragma unroll(kUnderWay / kTogether)
    for (unsigned b = 0; b < blocks; ++b) {
      const unsigned next = rank + b < blocks ? rank + b : rank + b - blocks;
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

// A block alone has no others to wait for.
__device__ __forceinline__ void sync_with_others() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (cooperative_groups::this_cluster().num_blocks() > 1) sync_cluster();
#endif
}

// Counts privately, in fewer than 8 bits with carries to the totals of the cluster.
template <int bits, bool hot_keys>
__global__ void __launch_bounds__(kThreads, 1) count_in_clusters(const Counting c) {
  // The kernel before zeroes the output, to which narrow counters are credited at any time.
  if constexpr (bits < 32) wait_for_kernel_before();
  count_all<bits, true, hot_keys, false>(c, blockIdx.x, gridDim.x, 0);
  if constexpr (bits == 32) wait_for_kernel_before();
  if constexpr (bits < 32) write_credits();
  sync_with_others();
  add_cluster_to_output<bits>(c);
  sync_with_others();  // nobody's counters go away while another block still reads them
}

}  // namespace
}  // namespace ladders
