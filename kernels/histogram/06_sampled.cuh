// SPDX-License-Identifier: MIT
//
// A sample of the keys chooses the counters: narrow ones overflow where keys repeat.
#pragma once

#include "histogram/04_counting.cuh"

namespace ladders::histogram {
struct Sampled {
  Counting narrow, wide;  // 4 bits for all bins, and 8 bits for ranges of them
  unsigned log_slots;     // of the sample's table, which lies where the counters will
  unsigned* repeat;       // whether blocks counted in wide counters: for the kernel that adds them
};

// Whether a key has more than 16 equals in its block on average, as counters of 4 bits overflow
// then. The most frequent key is left out, since warps count it in registers. All blocks take the
// same sample. It does not see the order of the keys: blocks may share them out unevenly.
__device__ __forceinline__ bool keys_repeat(const Counting& c, unsigned log_slots) {
  constexpr unsigned kEach = 4, kSamples = kEach * kThreads, kMix = 0x9E3779B1u;
  const unsigned table = 1u << log_slots;
  const size_t part = c.count / kSamples;
  if (part == 0) return false;
  auto* slots = dynamic_shared<unsigned>();
  unsigned &pairs = slots[table], &most = slots[table + 1];
  for (unsigned i = threadIdx.x; i < table + 2; i += kThreads) slots[i] = 0;
  int key[kEach];
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    // Somewhere in the sample's part: equal distances could be multiples of a period of the keys.
    const unsigned sample = j * kThreads + threadIdx.x;
    key[j] = c.keys[sample * part + (size_t{sample * kMix} * part >> 32)];
  }
  __syncthreads();
  unsigned before = 0, top = 0;
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    const unsigned slot = clamped(key[j], c.bin_count) * kMix >> (32 - log_slots);
    const unsigned old = atomicAdd(&slots[slot], 1u);
    before += old;
    top = max(top, old);
  }
  if (before != 0) {
    atomicAdd(&pairs, before);
    atomicMax(&most, top);
  }
  __syncthreads();
  // Other keys come to a slot by chance. Two keys are equal at least as often as if all bins were
  // equally likely.
  constexpr float kAll = .5f * kSamples * (kSamples - 1);
  const float by_chance = 1.25f * kAll / float(table);
  const float equal = float(pairs) - .5f * float(most) * float(most + 1) - by_chance;
  const float likely = fmaxf(equal / kAll, 1.f / float(c.bin_count));
  __syncthreads();  // the slots become counters
  return likely * float(c.count) / float(gridDim.x) > 16;
}

inline __global__ void __launch_bounds__(kThreads, 1) count_by_sample(const Sampled s) {
  const bool repeat = keys_repeat(s.narrow, s.log_slots);
  if (blockIdx.x == 0 && threadIdx.x == 0) *s.repeat = repeat;
  if (repeat)
    count_and_store<8, true, true>(s.wide);
  else
    count_and_store<4, true, false>(s.narrow);
}
inline __global__ void __launch_bounds__(32 * kAdders)
    add_by_sample(const Sampled s, unsigned blocks) {
  wait_for_kernel_before();
  if (__ldcg(s.repeat))
    add_columns<8>(s.wide, blocks);
  else if (blockIdx.x * 32 < s.narrow.words)  // the grid has columns for all ranges
    add_columns<4>(s.narrow, blocks);
}

// All bins take as much memory in counters of 4 bits as half of them in those of 8, of which there
// are two ranges: hence an even number of blocks.
inline LaunchPlan one_block_for_either(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = one_block_per_sm<4>(c, device, kernel);
  plan.grid.x = std::max(2u, plan.grid.x / 2 * 2);
  return plan;
}
inline Implementation by_sample() {
  return launches<Histogram>(
      count_by_sample, one_block_for_either, [](Histogram& p, const LaunchPlan& plan, auto stream) {
        Sampled s = {.narrow = counting<4>(p, plan), .wide = counting<8>(p, plan)};
        const size_t words = size_t{plan.grid.x} * s.narrow.words;
        s.log_slots = unsigned(std::bit_width(s.narrow.words - 2)) - 1;
        s.narrow.rows = s.wide.rows = p.room_for_counters(words + 1);
        s.narrow.credits = s.wide.credits = p.credits();
        s.repeat = s.narrow.rows + words;
        launch(plan, stream, count_by_sample, s);
        launch({.grid = s.wide.groups * s.wide.words / 32, .block = 32 * kAdders},
               {.early = p.device().compute_capability >= 90}, stream, add_by_sample, s,
               plan.grid.x);
      });
}

inline std::string no_sample(const Case& c, const Device& device) {
  return c["bins"] <= fitting<8>(device) ? "all bins fit in counters of 8 bits"
                                         : too_many<4>(c, device);
}

}  // namespace ladders::histogram
