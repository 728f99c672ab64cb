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

// Counts those of four keys that are `on`. Into counters of 32 bits, hardware combines lanes that
// hit the same word. In narrow counters the old word shows whether the field was full, and the four
// atomics are in flight together.
template <int bits, bool spread>
__device__ __forceinline__ void count_four(unsigned char* counters, const unsigned (&bin)[4],
                                           const bool (&on)[4]) {
  using C = Counters<bits, spread>;
  unsigned mask[4], old[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if constexpr (bits == 32) {
      if (on[j]) atomicAdd(C::word_of(counters, bin[j]), 1u);
    } else {
      unsigned one = 1u << C::shift_of(bin[j]);
      asm("" : "+r"(one));  // keeps the product below: a shift would go to the busier pipe
      mask[j] = one * C::kFull;
      old[j] = add_if(on[j], C::word_of(counters, bin[j]), one);
    }
  }
  if constexpr (bits < 32) handle_full<overflow<bits>>(mask, bin, old);
}

// How a block counts: in its own counters, of `bits` bits.
template <int bits, bool spread>
struct InBlock {
  static constexpr bool kInCluster = false;
  static __device__ __forceinline__ void count(const CountParams&, unsigned char* counters,
                                               const unsigned (&bin)[4], const bool (&on)[4]) {
    count_four<bits, spread>(counters, bin, on);
  }
};

// A frequent key of a warp, counted in registers: in shared memory it would serialize and overflow.
struct HotKey {
  static constexpr int kEnough = 3;    // lanes that must hold the hot key to count it in registers
  static constexpr int kBetterBy = 2;  // another key replaces it if it leads by more than 2 lanes
  static constexpr int kRun = 8;       // lanes with lane 31's key that make it hot after a run

  int key = -1;
  unsigned count = 0;  // of this lane

  __device__ __forceinline__ void flush(const CountParams& c, unsigned first) {
    const unsigned n = sum_in_all_lanes(count);
    count = 0;
    if (threadIdx.x % 32 == 0 && n != 0) add_overflow(clamped(key, c.bin_count) - first, n);
  }
  __device__ __forceinline__ void become(int other, const CountParams& c, unsigned first) {
    flush(c, first);
    key = other;
  }
};

__device__ __forceinline__ int lanes_with(int key, int wanted) {
  return __popc(__ballot_sync(~0u, key == wanted));
}

// Block `rank` of a group of `group_size` counts its share of the keys, in counters of `bits` bits.
// If `ranged`, counts only the range of bins that starts at `first`. Ends with a barrier.
template <int bits, bool spread, bool hot_keys, bool ranged,
          class CountPolicy = InBlock<bits, spread>>
__device__ __forceinline__ void count_all(const auto& c, unsigned rank, unsigned group_size,
                                          unsigned first) {
  static_assert(bits == 32 ? !hot_keys && !ranged : spread);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // A chunk is loaded while the one before is counted, the first while counters are zeroed.
  const auto* vectors = reinterpret_cast<const int4*>(c.keys);
  const unsigned chunks = unsigned(c.count / kChunk), step = group_size * kWarps;
  unsigned chunk = warp * group_size + rank;
  int4 loaded[kLoads] = {};
  if (chunk < chunks) {
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
#pragma unroll
    for (int j = 0; j < kLoads; ++j) loaded[j] = load_past_l1(from + 32 * j);
  }
  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  if constexpr (bits == 32) counters = in_register(counters);  // narrow counters are slower with it
  auto* quads = reinterpret_cast<uint4*>(counters);
  unsigned bytes = 4 * c.words;
  if constexpr (CountPolicy::kInCluster) bytes += CountPolicy::bytes_behind(c);
  for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) quads[i] = make_uint4(0, 0, 0, 0);
  auto* overflows = dynamic_shared<Overflows>();
  if constexpr (bits < 32) {
    for (unsigned i = threadIdx.x; i < Overflows::kSlots; i += kThreads)
      overflows->bin_plus_1[i] = overflows->sum[i] = 0;
    if (threadIdx.x == 0) {
      overflows->overflow_sums = c.overflow_sums + first;
      overflows->bin_count = ranged ? min(unsigned(c.range), c.bin_count - first) : c.bin_count;
    }
  }
  if constexpr (CountPolicy::kInCluster)
    CountPolicy::synchronize();
  else
    __syncthreads();

  HotKey hot;
  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
#ifdef __CUDACC__
    asm("" : "+l"(from));  // keeps the compiler from recomputing it for each load
#endif
    bool active = false;
    if constexpr (hot_keys) {
      // One key of each lane: is the hot key still frequent, or is another more so?
      const int sample = loaded[0].x;
      const int other = __shfl_sync(~0u, sample, chunk * 0x9E3779B1u >> 27);
      int same = lanes_with(sample, hot.key), better = lanes_with(sample, other);
      if (ranged && clamped(other, c.bin_count) - first >= unsigned(c.range)) better = 0;
      if (better > same + hot.kBetterBy) {
        hot.become(other, c, first);
        same = better;
      }
      active = same >= hot.kEnough;
    }
    const auto count_loaded = [&]<bool hot_now>(std::bool_constant<hot_now>) {
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const int4 v = loaded[j];
        if (more) loaded[j] = load_past_l1(from + 32 * j);
        if (hot_now && j > 0 && lanes_with(v.x, hot.key) < hot.kEnough) {  // a run is over
          const int next = __shfl_sync(~0u, v.x, 31);
          const bool in_range = !ranged || clamped(next, c.bin_count) - first < unsigned(c.range);
          if (lanes_with(v.x, next) >= hot.kRun && in_range) hot.become(next, c, first);
        }
        const int key[] = {v.x, v.y, v.z, v.w};
        unsigned bin[4];
        bool on[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          on[k] = !hot_now || key[k] != hot.key;
          if (!on[k]) ++hot.count;
          bin[k] = clamped(key[k], c.bin_count) - first;
          if (ranged) on[k] = on[k] && bin[k] < unsigned(c.range);
        }
        CountPolicy::count(c, counters, bin, on);
      }
    };
    if (hot_keys && active)
      count_loaded(std::true_type{});
    else
      count_loaded(std::false_type{});
  }
  if (rank == 0)  // counts the keys after the last whole chunk
    for (size_t i = size_t{chunks} * kChunk + threadIdx.x; i < c.count; i += kThreads) {
      const unsigned bin = clamped(c.keys[i], c.bin_count) - first;
      const unsigned bins[] = {bin, bin, bin, bin};
      const bool on[] = {!ranged || bin < unsigned(c.range), false, false, false};
      if constexpr (bits == 32)
        atomicAdd(Counters<bits, spread>::word_of(counters, bin), 1u);
      else
        CountPolicy::count(c, counters, bins, on);
    }
  if constexpr (hot_keys) hot.flush(c, first);
  __syncthreads();
}

// Counts, and adds the block's counters to the output. Each block starts at another word, so that
// blocks rarely add to one bin at the same time.
template <bool spread>
__global__ void __launch_bounds__(kThreads, 1) count_and_merge(const CountParams c) {
  const unsigned rank = blockIdx.x, group_size = gridDim.x;
  count_all<32, spread, false, false>(c, rank, group_size, 0);
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

constexpr int64_t kMostRows = 257;  // more could overflow FieldSums

// At most one block per SM. A group has no more blocks than it needs for one warp per chunk. If
// `ranged`, there are at least two groups, unless one row of counters holds all bins.
template <int bits, bool ranged = false>
LaunchPlan one_block_per_sm(const Case& c, const Device& device, const void*) {
  constexpr int64_t kBinsPerRow = Counters<bits>::kBinsPerRow;
  const int64_t bins = c["bins"];
  const int64_t parts = ranged ? std::max<int64_t>(2, ceil_div(bins, max_bins<bits>(device))) : 1;
  const int64_t rows = ceil_div(ceil_div(bins, parts), kBinsPerRow);
  const int64_t groups = ceil_div(bins, rows * kBinsPerRow);
  const int64_t most = std::clamp<int64_t>(device.sms / groups, 1, kMostRows);
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
