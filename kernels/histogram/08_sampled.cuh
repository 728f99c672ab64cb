// SPDX-License-Identifier: MIT
//
// A sample of the keys chooses the counters: narrow ones overflow where keys repeat.
#pragma once

#include "histogram/05_stored_counters.cuh"

namespace ladders::histogram {
struct Sampled {
  CountParams narrow, wide;  // 4 bits for all bins, and 8 bits for ranges of them
  unsigned log_slots;        // of the sample's table, which lies where the counters will
  unsigned* rows_are_wide;   // tells the kernel that sums them which counters the rows hold
};

// Whether keys repeat within a block so often that counters of 4 bits overflow. All blocks take the
// same sample. The most frequent key is left out, since warps count it in registers. Keys repeat if
// a random share of the keys, as large as a block's, holds more than 16 equals of a key on average.
// Or keys come in runs, as sorted keys do, which have few equals in the sample. A run of fewer than
// 16 keys does not overflow a counter. Of a run longer than a chunk, warps count most keys in
// registers. So a sample is in a run if it equals the key 16 further on, but not the key 256
// further on. More than a third of all keys do if all runs have one length between 24 and 720:
// about where counters of 8 bits were the faster ones. A quarter of the samples tells that.
__device__ __forceinline__ bool keys_repeat(const CountParams& c, unsigned log_slots) {
  constexpr unsigned kEach = 4, kSamples = kEach * kThreads, kMix = 0x9E3779B1u;
  constexpr unsigned kNear = 16, kFar = kChunk / 2;
  constexpr unsigned kInRun = 1u << 16;  // a slot's upper half counts its samples in runs
  if (c.count < kSamples + kFar) return false;
  const size_t part = (c.count - kFar) / kSamples;
  const unsigned table = 1u << log_slots;
  int key[kEach], near = 0, far = 0;  // the neighbours of a thread's first
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    // Somewhere in the sample's part: equal distances could be multiples of a period of the keys.
    const unsigned sample = kEach * threadIdx.x + j;
    const int* at = c.keys + sample * part + (size_t{sample * kMix} * part >> 32);
    key[j] = at[0];
    if (j == 0) near = at[kNear], far = at[kFar];
  }
  auto* slots = dynamic_shared<unsigned>();
  unsigned &pairs = slots[table], &in_runs = slots[table + 1], &most = slots[table + 2];
  for (unsigned i = threadIdx.x; i < table + 3; i += kThreads) slots[i] = 0;
  __syncthreads();
  const bool in_run = near == key[0] && far != key[0];
  unsigned before = 0, top = 0;
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    const unsigned slot = clamped(key[j], c.bin_count) * kMix >> (32 - log_slots);
    const unsigned old = atomicAdd(&slots[slot], in_run && j == 0 ? 1 + kInRun : 1) % kInRun;
    before += old;
    top = max(top, old << log_slots | slot);
  }
  if (before != 0) {
    atomicAdd(&pairs, before);
    atomicMax(&most, top);
  }
  if (in_run) atomicAdd(&in_runs, 1u);
  __syncthreads();
  const unsigned hot = slots[most & (table - 1)];  // the slot with the most samples
  const unsigned others = kSamples - hot % kInRun, others_in_runs = in_runs - hot / kInRun;
  const auto pairs_of = [](unsigned n) { return .5f * float(n) * (float(n) - 1); };
  // Other keys come to a slot by chance. Two of them are equal at least as often as if all bins
  // were equally likely.
  const float by_chance = 1.25f * pairs_of(others) / float(table);
  const float equal = fmaxf(float(pairs) - pairs_of(hot % kInRun) - by_chance,
                            pairs_of(others) / float(c.bin_count));
  __syncthreads();  // the slots become counters
  const float equals_in_block = equal / pairs_of(kSamples) * float(c.count) / float(gridDim.x);
  return equals_in_block > 16 || 3 * others_in_runs > kThreads;
}

inline __global__ void __launch_bounds__(kThreads, 1) count_by_sample(const Sampled s) {
  const bool repeat = keys_repeat(s.narrow, s.log_slots);
  if (blockIdx.x == 0 && threadIdx.x == 0) *s.rows_are_wide = repeat;
  if (repeat)
    count_and_store<8, true, true>(s.wide);
  else
    count_and_store<4, true, false>(s.narrow);
}
inline __global__ void __launch_bounds__(32 * kSumWarps)
    sum_columns_by_sample(const Sampled s, unsigned blocks) {
  wait_on_dependent_grids();
  if (__ldcg(s.rows_are_wide))
    column_sums<8>(s.wide, blocks);
  else if (blockIdx.x * 32 < s.narrow.words)  // the grid has columns for all ranges
    column_sums<4>(s.narrow, blocks);
}

// Counters of 4 bits for all bins take as much memory as counters of 8 bits for half of them. So in
// 8 bits there are two ranges, and the number of blocks must be even.
inline LaunchPlan one_block_for_either(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = one_block_per_sm<4>(c, device, kernel);
  plan.grid.x = std::max(2u, plan.grid.x / 2 * 2);
  return plan;
}
inline Sampled sampled(Histogram& problem, const LaunchPlan& plan) {
  Sampled s = {.narrow = count_params<4>(problem, plan), .wide = count_params<8>(problem, plan)};
  const size_t words = size_t{plan.grid.x} * s.narrow.words;
  s.log_slots = unsigned(std::bit_width(s.narrow.words - 3)) - 1;
  s.narrow.rows = s.wide.rows = problem.room_for_counters(words + 1);
  s.narrow.overflow_sums = s.wide.overflow_sums = problem.overflow_sums();
  s.rows_are_wide = s.narrow.rows + words;
  return s;
}
inline Implementation by_sample() {
  return launches<Histogram>(
      count_by_sample, one_block_for_either, [](Histogram& p, const LaunchPlan& plan, auto stream) {
        const Sampled s = sampled(p, plan);
        launch(plan, stream, count_by_sample, s);
        launch({.grid = s.wide.groups * s.wide.words / 32, .block = 32 * kSumWarps},
               {.programmatic = p.device().compute_capability >= 90}, stream, sum_columns_by_sample,
               s, plan.grid.x);
      });
}

inline std::string no_sample(const Case& c, const Device& device) {
  return c["bins"] <= max_bins<8>(device) ? "all bins fit in counters of 8 bits"
                                          : too_many<4>(c, device);
}

}  // namespace ladders::histogram
