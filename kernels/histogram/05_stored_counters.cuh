// SPDX-License-Identifier: MIT
//
// Blocks store their counters, and a second kernel sums them: the output needs no atomics, and
// counters can be narrow.
#pragma once

#include "histogram/04_narrow_counters.cuh"

namespace ladders::histogram {
// Adds the block's overflow sums to those in global memory.
__device__ __forceinline__ void write_overflow_sums() {
  const auto* overflows = dynamic_shared<Overflows>();
  for (unsigned i = threadIdx.x; i < Overflows::kSlots; i += kThreads)
    if (overflows->sum[i] != 0)
      atomicAdd(overflows->overflow_sums + overflows->bin_plus_1[i] - 1, overflows->sum[i]);
}

// Counts, and stores the block's counters as a row for column_sums(). If `ranged`, each group of
// blocks has a range of the bins.
template <int bits, bool hot_keys, bool ranged>
__device__ __forceinline__ void count_and_store(const CountParams& c) {
  const unsigned groups = ranged ? c.groups : 1;
  const unsigned first = ranged ? blockIdx.x % groups * c.range : 0;
  if constexpr (bits == 32)
    count_all<true>(c, blockIdx.x, gridDim.x);
  else
    count_all_narrow<bits, hot_keys, ranged>(c, blockIdx.x / groups, gridDim.x / groups, first);
  launch_dependent_grids();
  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  if constexpr (bits == 32)
    counters = in_register(counters);
  else
    write_overflow_sums();
  const auto* quads = reinterpret_cast<const uint4*>(counters);
  auto* row = reinterpret_cast<uint4*>(c.rows + size_t{blockIdx.x} * c.words);
  for (unsigned i = threadIdx.x; i < c.words / 4; i += kThreads) __stcg(row + i, quads[i]);
}
template <int bits, bool hot_keys, bool ranged>
__global__ void __launch_bounds__(kThreads, 1) count_keys(const CountParams c) {
  count_and_store<bits, hot_keys, ranged>(c);
}

// Sums the stored counters by columns: 32 columns per block, a share of the rows per warp.
constexpr int kSumWarps = 8;

template <int bits>
__device__ __forceinline__ void column_sums(const CountParams& c, unsigned blocks) {
  using C = Counters<bits>;
  using Sums = FieldSums<bits>;
  __shared__ unsigned sums[kSumWarps][Sums::kSums][32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned column = blockIdx.x * 32 + lane, group = column / c.words;
  const unsigned word = column % c.words;
  wait_on_dependent_grids();
  Sums mine;
#pragma unroll 8
  for (unsigned row = warp * c.groups + group; row < blocks; row += kSumWarps * c.groups)
    mine.add(__ldcg(c.rows + size_t{row} * c.words + word));
#pragma unroll
  for (int s = 0; s < Sums::kSums; ++s) sums[warp][s][lane] = mine.sum[s];
  __syncthreads();

  if (warp >= C::kFields) return;
  unsigned total = 0;  // one field per warp
#pragma unroll
  for (int w = 0; w < kSumWarps; ++w) total += Sums::of(warp, sums[w][warp % Sums::kSums][lane]);
  const unsigned bin_in_range = C::bin_of_field(word, warp), bin = group * c.range + bin_in_range;
  if (bin_in_range >= unsigned(c.range) || bin >= unsigned(c.bin_count)) return;
  if (const unsigned more = bits < 32 ? __ldcg(c.overflow_sums + bin) : 0) {
    total += more;
    c.overflow_sums[bin] = 0;
  }
  c.bins[bin] = total;
}
template <int bits>
__global__ void __launch_bounds__(32 * kSumWarps)
    sum_columns(const CountParams c, unsigned blocks) {
  column_sums<bits>(c, blocks);
}

// Two kernels: one stores the counters of each block, the other sums them.
template <int bits, bool hot_keys = false, bool ranged = false>
Implementation stored_then_summed() {
  // Captured here: each file that includes this has its own copy of the kernel, and only the
  // planned one may use so much shared memory.
  const auto count = count_keys<bits, hot_keys, ranged>;
  const auto plan = one_block_per_sm<bits, ranged>;
  return launches<Histogram>(count, plan, [=](Histogram& p, const LaunchPlan& plan, auto stream) {
    CountParams c = count_params<bits>(p, plan);
    c.rows = p.room_for_counters(size_t{plan.grid.x} * c.words);
    c.overflow_sums = p.overflow_sums();
    launch(plan, stream, count, c);
    launch({.grid = c.groups * c.words / 32, .block = 32 * kSumWarps},
           {.programmatic = p.device().compute_capability >= 90}, stream, sum_columns<bits>, c,
           plan.grid.x);
  });
}

// 16 bits where they fit, else 8, else 4: wider counters overflow less.
template <bool hot_keys>
Implementation packed_at(const Case& c, const Device& device) {
  return c["bins"] <= max_bins<16>(device)  ? stored_then_summed<16, hot_keys>()
         : c["bins"] <= max_bins<8>(device) ? stored_then_summed<8, hot_keys>()
                                            : stored_then_summed<4, hot_keys>();
}

}  // namespace ladders::histogram
