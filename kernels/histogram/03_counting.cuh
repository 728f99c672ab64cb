// SPDX-License-Identifier: MIT
//
// Counting at the speed of DRAM: one block per SM, with loads always in flight.
#pragma once

#include "common/dependent_launch.cuh"
#include "common/sums.cuh"
#include "common/vector.cuh"
#include "histogram/01_atomics.cuh"
#include "histogram/02_counters.cuh"

namespace ladders::histogram {
// A warp takes 2 KiB of keys at a time, in 16-byte loads.
constexpr int kLoads = 4, kChunk = kLoads * 32 * 4;

struct CountParams {
  const int* keys;
  size_t count;
  unsigned* bins;
  int bin_count;
  unsigned words;  // of a block's counters
  unsigned* rows;  // where blocks store their counters, one row per block
  // For counts that the counters cannot hold, a word per bin: the output, or memory that is zero
  // between launches.
  unsigned* overflow_sums;
  int groups = 1, range = 0;  // each group of blocks reads all keys and counts a range of the bins
};

// Zeroes the bins. The next kernel may start meanwhile, and waits before it adds to them.
inline __global__ void __launch_bounds__(kThreads) zero_bins(unsigned* bins, int bin_count) {
  launch_dependent_grids();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < bin_count) bins[i] = 0;
}

// bin_of(), in one instruction from compute capability 9.0 on.
__device__ __forceinline__ unsigned clamped(int key, int bin_count) {
#ifdef __CUDACC__
  return unsigned(__vimin_s32_relu(key, bin_count - 1));
#else
  return unsigned(bin_of(key, bin_count));
#endif
}

// Keeps the compiler from computing a pointer again for each load.
__device__ __forceinline__ void compute_once([[maybe_unused]] const int4*& pointer) {
#ifdef __CUDACC__
  asm("" : "+l"(pointer));
#endif
}

// A lane's vectors of a chunk are 32 vectors apart.
__device__ __forceinline__ void load_chunk(int4 (&loaded)[kLoads], const int4* from) {
#pragma unroll
  for (int j = 0; j < kLoads; ++j) loaded[j] = load_past_l1(from + 32 * j);
}

__device__ __forceinline__ void zero(unsigned char* counters, unsigned bytes) {
  auto* quads = reinterpret_cast<uint4*>(counters);
  for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) quads[i] = make_uint4(0, 0, 0, 0);
}

// Block `rank` of a group of `group_size` counts its share of the keys, in counters of 32 bits:
// hardware combines lanes that hit the same one. A warp loads a chunk while it counts the one
// before, and the first while the counters are zeroed. Ends with a barrier.
template <bool spread>
__device__ __forceinline__ void count_all(const auto& c, unsigned rank, unsigned group_size) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto* vectors = reinterpret_cast<const int4*>(c.keys);
  const unsigned chunks = unsigned(c.count / kChunk), step = group_size * kWarps;
  unsigned chunk = warp * group_size + rank;
  int4 loaded[kLoads] = {};
  if (chunk < chunks) load_chunk(loaded, vectors + size_t{chunk} * (kChunk / 4) + lane);
  auto* counters = in_register(dynamic_shared<unsigned char>());
  zero(counters, 4 * c.words);
  __syncthreads();

  const auto count = [&](unsigned bin) {
    atomicAdd(Counters<32, spread>::word_of(counters, bin), 1u);
  };
  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
    compute_once(from);
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int4 v = loaded[j];
      if (more) loaded[j] = load_past_l1(from + 32 * j);
      const int key[] = {v.x, v.y, v.z, v.w};
      unsigned bin[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) bin[k] = clamped(key[k], c.bin_count);
#pragma unroll
      for (int k = 0; k < 4; ++k) count(bin[k]);
    }
  }
  if (rank == 0)  // counts the keys after the last whole chunk
    for (size_t i = size_t{chunks} * kChunk + threadIdx.x; i < c.count; i += kThreads)
      count(clamped(c.keys[i], c.bin_count));
  __syncthreads();
}

// Counts, and adds the block's counters to the output. Each block starts at another word, so that
// blocks rarely add to one bin at the same time.
template <bool spread>
__global__ void __launch_bounds__(kThreads, 1) count_and_merge(const CountParams c) {
  const unsigned rank = blockIdx.x, group_size = gridDim.x;
  count_all<spread>(c, rank, group_size);
  wait_on_dependent_grids();  // the kernel before may still be zeroing the output
  const auto* words =
      reinterpret_cast<const unsigned*>(in_register(dynamic_shared<unsigned char>()));
  const unsigned start = unsigned(size_t{rank} * c.words / group_size) & ~31u;
  for (unsigned i = threadIdx.x; i < c.words; i += kThreads) {
    const unsigned word = i + start < c.words ? i + start : i + start - c.words;
    const unsigned bin = Counters<32, spread>::bin_of_field(word, 0);
    if (words[word] != 0) atomicAdd(c.bins + bin, words[word]);
  }
}

constexpr int64_t kMostBlocksPerGroup = 257;  // FieldSums hold no more

// At most one block per SM. A group has no more blocks than it needs for one warp per chunk. If
// `ranged`, there are at least two groups, unless one row of counters holds all bins.
template <int bits, bool ranged = false>
LaunchPlan one_block_per_sm(const Case& c, const Device& device, const void*) {
  constexpr int64_t kBinsPerRow = Counters<bits>::kBinsPerRow;
  const int64_t bins = c["bins"];
  const int64_t parts = ranged ? std::max<int64_t>(2, ceil_div(bins, max_bins<bits>(device))) : 1;
  const int64_t rows = ceil_div(ceil_div(bins, parts), kBinsPerRow);
  const int64_t groups = ceil_div(bins, rows * kBinsPerRow);
  const int64_t most = std::clamp<int64_t>(device.sms / groups, 1, kMostBlocksPerGroup);
  const int64_t enough = ceil_div(c["keys"], kWarps * kChunk);
  return {.grid = unsigned(std::clamp<int64_t>(enough, 1, most) * groups),
          .block = kThreads,
          .shared_bytes = counter_bytes<bits>(rows * kBinsPerRow)};
}

template <int bits>
CountParams count_params(Histogram& problem, const LaunchPlan& plan) {
  const auto [keys, count, bins, bin_count] = problem.arguments();
  CountParams c = {.keys = keys, .count = count, .bins = bins, .bin_count = bin_count};
  c.words = unsigned((plan.shared_bytes - kCountersAt<bits>) / 4);
  c.range = int(c.words) * Counters<bits>::kFields;
  c.groups = ceil_div(bin_count, c.range);
  return c;
}

template <bool spread>
Implementation merged_by_atomics() {
  return kernel<Histogram>(
      count_and_merge<spread>, one_block_per_sm<32>,
      [](Histogram& p, const LaunchPlan& plan) { return std::tuple(count_params<32>(p, plan)); });
}

// Launches zero_bins(), and then `count`, which starts meanwhile from compute capability 9.0 on.
// make_params(problem, plan) makes the argument of `count`.
template <class C>
Implementation zeroed_meanwhile(void (*count)(C), auto plan, auto make_params) {
  return launches<Histogram>(count, plan, [=](Histogram& p, const LaunchPlan& plan, auto stream) {
    const C c = make_params(p, plan);
    const auto blocks = unsigned(ceil_div(c.bin_count, kThreads));
    launch({.grid = blocks, .block = kThreads}, stream, zero_bins, c.bins, c.bin_count);
    launch(plan, {.programmatic = p.device().compute_capability >= 90}, stream, count, c);
  });
}

inline Implementation zeroed_and_merged() {
  return zeroed_meanwhile(count_and_merge<true>, one_block_per_sm<32>, count_params<32>);
}

template <int bits>
std::string too_many(const Case& c, const Device& device) {
  return too_large(counter_bytes<bits>(c["bins"]), device);
}

}  // namespace ladders::histogram
