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

// Whether most keys have more than 16 equals in their block, as counters of 4 bits overflow then.
// The most frequent key is left out, since warps count it in registers. All `blocks` take the same
// sample, and so store the same counters.
__device__ __forceinline__ bool keys_repeat(const Counting& c, unsigned log_slots,
                                            unsigned blocks) {
  constexpr unsigned kEach = 4, kSamples = kEach * kThreads, kMix = 0x9E3779B1u, kMost = 16;
  const unsigned table = 1u << log_slots;
  const size_t part = c.count / (kSamples / 2);
  if (part <= kMost) return false;
  auto* slots = dynamic_shared<unsigned>();
  unsigned &pairs = slots[table], &most = slots[table + 1];
  for (unsigned i = threadIdx.x; i < table + 2; i += kThreads) slots[i] = 0;
  int key[kEach];
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    // Somewhere in a part of the keys, since equal distances could be multiples of a period of
    // theirs. The next is so far behind that it is equal only in a run that overflows a counter.
    const unsigned which = j / 2 * kThreads + threadIdx.x;
    const size_t first = which * part + (size_t{which * kMix} * (part - kMost) >> 32);
    key[j] = clamped(c.keys[first + j % 2 * kMost], c.bin_count);
  }
  __syncthreads();
  unsigned slot[kEach], before = 0, top = 0;
#pragma unroll
  for (unsigned j = 0; j < kEach; ++j) {
    // One product alone would spread keys at equal distances over the slots more evenly than
    // chance does.
    const unsigned mixed = key[j] * kMix;
    slot[j] = (mixed ^ mixed >> 15) * kMix >> (32 - log_slots);
    const unsigned old = atomicAdd(&slots[slot[j]], 1u);
    before += old;
    top = max(top, old);
  }
  if (before != 0) {
    atomicAdd(&pairs, before);
    atomicMax(&most, top);
  }
  __syncthreads();
  const float all_pairs = float(pairs), largest = float(most);
  const auto in_run = [&](int j) {
    return key[j] == key[j + 1] && float(slots[slot[j]]) <= largest;
  };
  int runs = __syncthreads_count(in_run(0));
  runs += __syncthreads_count(in_run(2));  // from here on the slots are counters
  // Other keys come to a slot by chance. Two keys are equal at least as often as if all bins were
  // equally likely.
  constexpr float kAll = .5f * kSamples * (kSamples - 1);
  const float by_chance = 1.25f * kAll / float(table);
  const float equal = all_pairs - float(runs) - .5f * largest * (largest + 1) - by_chance;
  const float likely = fmaxf(equal / kAll, 1.f / float(c.bin_count));
  return runs > kThreads || likely * float(c.count) / float(blocks) > kMost;
}

inline __global__ void __launch_bounds__(kThreads, 1) count_by_sample(const Sampled s) {
  const bool repeat = keys_repeat(s.narrow, s.log_slots, gridDim.x);
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

// Of the sample's table, in the memory of the counters of 4 bits, with two words behind it.
inline unsigned log_slots(const Counting& narrow) {
  return unsigned(std::bit_width(narrow.words - 2)) - 1;
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
        s.log_slots = log_slots(s.narrow);
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
