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
  for (unsigned i = threadIdx.x; i < words; i += kThreads) {
    const unsigned word = from + (i + start < words ? i + start : i + start - words);
    FieldSums<bits> sums;
#pragma unroll 4
    for (unsigned b = 0; b < blocks; ++b) {
      const unsigned next = rank + b;
      sums.add(*cluster.map_shared_rank(counters + word, next < blocks ? next : next - blocks));
    }
#pragma unroll
    for (unsigned field = 0; field < Counters<bits>::kFields; ++field) {
      const unsigned bin = Counters<bits>::bin_of_field(word, field);
      const unsigned n = sums.of(field, sums.sum[field % sums.kSums]);
      if (n != 0 && bin < unsigned(c.bin_count)) atomicAdd(c.bins + bin, n);
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

// Counts privately, in fewer than 8 bits with carries to the totals of the cluster.
template <int bits, bool hot_keys>
__global__ void __launch_bounds__(kThreads, 1) count_in_clusters(const Counting c) {
  count_all<bits, true, hot_keys, false>(c, blockIdx.x, gridDim.x, 0);
  if constexpr (bits < 32) write_credits();
  sync_cluster();
  add_cluster_to_output<bits>(c);
  sync_cluster();  // nobody's counters go away while another block still reads them
}

}  // namespace
}  // namespace ladders
