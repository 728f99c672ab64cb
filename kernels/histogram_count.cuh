// SPDX-License-Identifier: MIT
//
// The kernels that read at the speed of DRAM: one block of 1024 threads an SM, all of whose shared
// memory is counters, and loads that are always in flight.
#pragma once

#include "histogram_carries.cuh"
#include "histogram_counters.cuh"
#include "histogram_problem.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32;
// A warp takes 2 KiB of keys at a time, as so many loads of 16 bytes a lane.
constexpr int kLoads = 4, kChunk = kLoads * 32 * 4;

struct Counting {
  const int* keys;
  size_t count;
  unsigned* bins;
  int bin_count;
  // Where blocks write their counters down, so many words each, and what these do not hold: a word
  // a bin, zero between launches.
  unsigned words;
  unsigned* rows;
  unsigned* credits;
  // Groups of blocks, each of which reads all keys and counts those of its range of bins.
  int groups = 1, range = 0;
  ClusterTotals totals = {};
};

// Zeroes the bins for the kernel after it, which counts meanwhile and adds up when this is done.
__global__ void __launch_bounds__(kThreads) zero_bins(unsigned* bins, int bin_count) {
  let_next_kernel_start();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < bin_count) bins[i] = 0;
}

// Past the L1, which has nothing to gain from keys that are read once.
__device__ __forceinline__ int4 load_past_l1(const int4* p) {
#ifdef __CUDACC__
  int4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
#else
  return *p;
#endif
}

// bin_of() in one instruction, where there is one.
__device__ __forceinline__ unsigned clamped(int key, int bin_count) {
#ifdef __CUDACC__
  return static_cast<unsigned>(__vimin_s32_relu(key, bin_count - 1));
#else
  return static_cast<unsigned>(bin_of(key, bin_count));
#endif
}

// Adds to a word of shared memory if `on`, and returns what was there: predicated, where compilers
// would branch.
__device__ __forceinline__ unsigned add_if(bool on, unsigned* word, unsigned n) {
  unsigned old = 0;
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .pred on;\n"
      "setp.ne.u32 on, %3, 0;\n"
      "@on atom.shared::cta.add.u32 %0, [%1], %2;\n"
      "}"
      : "+r"(old)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(word))), "r"(n), "r"(unsigned{on})
      : "memory");
#else
  if (on) old = atomicAdd(word, n);
#endif
  return old;
}

// Whole words: an increment without a result, whose lanes on one word the hardware counts first.
template <bool spread>
__device__ __forceinline__ void count_key(unsigned char* counters, unsigned bin) {
  atomicAdd(reinterpret_cast<unsigned*>(counters + Counters<32, spread>::byte_of(bin)), 1u);
}

// Narrow counters: the word as it was tells whether the field was full. Four keys at a time, so
// that the four answers come together; only those that are `on` count.
template <int bits>
__device__ __forceinline__ void count_four(unsigned char* counters, const unsigned (&bin)[4],
                                           const bool (&on)[4]) {
  using C = Counters<bits>;
  unsigned full[4], old[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unsigned one = 1u << C::shift_of(bin[j]);
#ifdef __CUDACC__
    asm(""
        : "+r"(one));  // so that what follows stays a product: the pipe of shifts is the busy one
#endif
    full[j] = one * C::kFull;
    old[j] = add_if(on[j], reinterpret_cast<unsigned*>(counters + C::byte_of(bin[j])), one);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) full[j] &= ~old[j];  // 0 where it was
  if (min(min(full[0], full[1]), min(full[2], full[3])) != 0) return;
#pragma unroll 1
  for (int j = 0; j < 4; ++j) {  // by selection: an index would put the arrays in memory
    const bool low = j < 2, even = j % 2 == 0;
    const auto of = [&](const unsigned (&v)[4]) {
      return low ? (even ? v[0] : v[1]) : (even ? v[2] : v[3]);
    };
    if (of(full) == 0) overflow<bits>(of(bin), of(old));
  }
}

// A key that a warp meets again and again, counted in registers: additions to one word of shared
// memory take turns, and narrow counters that overflow all the time take longer.
struct HotKey {
  // How many keys of a sample of 32 are to be equal, at first and while it stays. (Eight at first:
  // an H200 takes 13 % longer for uniform keys in 16-bit counters.)
  static constexpr int kEnough = 3;
  static constexpr int kBetterBy = 2;  // how many more of another, to take its place
  static constexpr int kRun = 8;       // how many of the next key, where a run is over

  int key = -1;
  unsigned count = 0;  // of this lane

  __device__ __forceinline__ unsigned bin(const Counting& c, unsigned first) const {
    return clamped(key, c.bin_count) - first;  // of another range if too large
  }
  __device__ __forceinline__ void flush(const Counting& c, unsigned first) {
    const unsigned n = sum_of_warp(count);
    count = 0;
    if (threadIdx.x % 32 == 0 && n != 0) credit(bin(c, first), n);
  }
  __device__ __forceinline__ void become(int other, const Counting& c, unsigned first) {
    flush(c, first);
    key = other;
  }
};

__device__ __forceinline__ int lanes_with(int key, int wanted) {
  return __popc(__ballot_sync(~0u, key == wanted));
}

template <int bits, bool spread, bool ranged, bool hot_now>
__device__ __forceinline__ void count_vector(const Counting& c, unsigned first, HotKey& hot,
                                             unsigned char* counters, int4 v) {
  const int key[4] = {v.x, v.y, v.z, v.w};
  unsigned bin[4];
  bool on[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    on[j] = !hot_now || key[j] != hot.key;
    if (!on[j]) ++hot.count;
    bin[j] = clamped(key[j], c.bin_count);
    if (ranged) {
      bin[j] -= first;
      on[j] = on[j] && bin[j] < static_cast<unsigned>(c.range);
    }
  }
  if constexpr (bits == 32) {
#pragma unroll
    for (int j = 0; j < 4; ++j) count_key<spread>(counters, bin[j]);
  } else if constexpr (bits < 8) {
    carry_four<bits>(c.totals, counters, bin, on);
  } else {
    count_four<bits>(counters, bin, on);
  }
}

// Counts the keys of this block, one of `members` that share them, in counters of `bits` bits, and
// among them only the bins from `first` on if `ranged`. When it returns, all threads are done.
template <int bits, bool spread, bool hot_keys, bool ranged>
__device__ __forceinline__ void count_all(const Counting& c, unsigned member, unsigned members,
                                          unsigned first) {
  static_assert(bits == 32 ? !hot_keys && !ranged : spread);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // A chunk's keys are on their way while the one before is counted; the first ones come while the
  // counters are set to zero.
  const auto* vectors = reinterpret_cast<const int4*>(c.keys);
  const unsigned chunks = static_cast<unsigned>(c.count / kChunk), step = members * kWarps;
  unsigned chunk = warp * members + member;
  int4 loaded[kLoads] = {};
  if (chunk < chunks) {
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
#pragma unroll
    for (int j = 0; j < kLoads; ++j) loaded[j] = load_past_l1(from + 32 * j);
  }
  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  if constexpr (bits == 32) counters = kept(counters);  // by it 131 072 narrow ones lost 12 %
  auto* quads = reinterpret_cast<uint4*>(counters);
  const unsigned bytes = 4 * c.words + 2 * c.totals.part;  // the totals lie behind
  for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) quads[i] = make_uint4(0, 0, 0, 0);
  auto* overflows = dynamic_shared<Overflows>();
  if constexpr (bits < 32) {
    for (unsigned i = threadIdx.x; i < Overflows::kSlots; i += kThreads)
      overflows->bin_plus_1[i] = overflows->sum[i] = 0;
    if (threadIdx.x == 0) {
      overflows->credits = c.credits + first;
      overflows->bins = ranged ? min(unsigned(c.range), c.bin_count - first) : c.bin_count;
    }
  }
  if constexpr (bits < 8)
    sync_cluster();  // other blocks add to this one's totals
  else
    __syncthreads();

  HotKey hot;
  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
#ifdef __CUDACC__
    asm("" : "+l"(from));  // once, where the compiler would work it out for each load
#endif
    bool active = false;
    if constexpr (hot_keys) {
      // A key of each lane tells whether the hot key still is, or another would be.
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
    if (hot_keys && active) {
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const int4 v = loaded[j];
        if (more) loaded[j] = load_past_l1(from + 32 * j);
        if (j > 0 && lanes_with(v.x, hot.key) < hot.kEnough) {  // a run of equal keys is over
          const int next = __shfl_sync(~0u, v.x, 31);
          const bool mine =
              !ranged || clamped(next, c.bin_count) - first < static_cast<unsigned>(c.range);
          if (lanes_with(v.x, next) >= hot.kRun && mine) hot.become(next, c, first);
        }
        count_vector<bits, spread, ranged, true>(c, first, hot, counters, v);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        const int4 v = loaded[j];
        if (more) loaded[j] = load_past_l1(from + 32 * j);
        count_vector<bits, spread, ranged, false>(c, first, hot, counters, v);
      }
    }
  }
  if (member == 0)  // less than a chunk is left over
    for (size_t i = size_t{chunks} * kChunk + threadIdx.x; i < c.count; i += kThreads) {
      const unsigned bin = clamped(c.keys[i], c.bin_count) - first;
      if constexpr (bits == 32) {
        count_key<spread>(counters, bin);
      } else {
        const bool mine = !ranged || bin < static_cast<unsigned>(c.range);
        if constexpr (bits < 8)
          carry_four<bits>(c.totals, counters, {bin, bin, bin, bin}, {mine, false, false, false});
        else
          count_four<bits>(counters, {bin, bin, bin, bin}, {mine, false, false, false});
      }
    }
  if constexpr (hot_keys) hot.flush(c, first);
  __syncthreads();
}

// What the block has credited goes to global memory.
__device__ __forceinline__ void write_credits() {
  const auto* overflows = dynamic_shared<Overflows>();
  for (unsigned i = threadIdx.x; i < Overflows::kSlots; i += kThreads)
    if (overflows->sum[i] != 0)
      atomicAdd(overflows->credits + overflows->bin_plus_1[i] - 1, overflows->sum[i]);
}

// Counts in counters of `bits` bits. Groups of blocks share out the bins if `ranged`. In the end
// blocks write their counters down for add_rows, or add them to the output, each starting
// elsewhere.
template <int bits, bool spread, bool writes_down, bool hot_keys = false, bool ranged = false>
__global__ void __launch_bounds__(kThreads, 1) count_keys(const Counting c) {
  static_assert(bits == 32 || writes_down);
  const unsigned groups = ranged ? c.groups : 1;
  const unsigned member = blockIdx.x / groups, members = gridDim.x / groups;
  const unsigned first = ranged ? blockIdx.x % groups * c.range : 0;
  count_all<bits, spread, hot_keys, ranged>(c, member, members, first);

  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  if constexpr (bits == 32) counters = kept(counters);
  if constexpr (writes_down) {
    let_next_kernel_start();
    if constexpr (bits < 32) write_credits();
    const auto* quads = reinterpret_cast<const uint4*>(counters);
    auto* row = reinterpret_cast<uint4*>(c.rows + size_t{blockIdx.x} * c.words);
    for (unsigned i = threadIdx.x; i < c.words / 4; i += kThreads) __stcg(row + i, quads[i]);
  } else {
    wait_for_kernel_before();  // which may have zeroed the output
    const auto* words = reinterpret_cast<const unsigned*>(counters);
    const unsigned start = static_cast<unsigned>(size_t{member} * c.words / members) & ~31u;
    for (unsigned i = threadIdx.x; i < c.words; i += kThreads) {
      const unsigned word = i + start < c.words ? i + start : i + start - c.words;
      const unsigned bin = Counters<32, spread>::bin_of_field(word, 0);
      if (words[word] != 0) atomicAdd(c.bins + bin, words[word]);
    }
  }
}

// The counters that the blocks have written down, added up by columns: a block has 32 columns, and
// each of its warps a share of the rows. Fields of 8 bits are added in pairs of 16, which up to 257
// rows do not overflow.
constexpr int kAdders = 8;
constexpr unsigned kMostRows = 257;

template <int bits, bool spread = true>
__global__ void __launch_bounds__(32 * kAdders) add_rows(const Counting c, unsigned blocks) {
  using C = Counters<bits, spread>;
  using Sums = FieldSums<bits>;
  __shared__ unsigned sums[kAdders][Sums::kSums][32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned column = blockIdx.x * 32 + lane, group = column / c.words;
  const unsigned word = column % c.words;
  wait_for_kernel_before();
  Sums mine;
#pragma unroll 8
  for (unsigned row = warp * c.groups + group; row < blocks; row += kAdders * c.groups)
    mine.add(__ldcg(c.rows + size_t{row} * c.words + word));
#pragma unroll
  for (int s = 0; s < Sums::kSums; ++s) sums[warp][s][lane] = mine.sum[s];
  __syncthreads();

  if (warp >= C::kFields) return;
  unsigned total = 0;  // of a field a warp
#pragma unroll
  for (int w = 0; w < kAdders; ++w) total += Sums::of(warp, sums[w][warp % Sums::kSums][lane]);
  const unsigned in_range = C::bin_of_field(word, warp), bin = group * c.range + in_range;
  if (in_range >= static_cast<unsigned>(c.range) || bin >= static_cast<unsigned>(c.bin_count))
    return;
  if constexpr (bits < 32) {
    if (const unsigned more = __ldcg(c.credits + bin)) {
      total += more;
      c.credits[bin] = 0;
    }
  }
  c.bins[bin] = total;
}

}  // namespace
}  // namespace ladders
