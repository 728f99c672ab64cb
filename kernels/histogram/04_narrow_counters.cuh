// SPDX-License-Identifier: MIT
//
// Counting in counters of 16 bits or fewer: several per word, so that more bins fit. A counter may
// overflow, and a frequent key makes it overflow often.
#pragma once

#include "histogram/03_counting.cuh"

namespace ladders::histogram {
// The sums of the fields of a word, over blocks. Fields of fewer than 16 bits have two sums per
// register, so there are at most 257 blocks (257 x 255 fits 16 bits).
template <int bits>
struct FieldSums {
  static constexpr int kSums = bits == 32 ? 1 : bits == 16 ? 2 : 16 / bits;
  static constexpr unsigned kMask = Counters<bits>::kFull * (bits < 16 ? 0x00010001u : 1u);

  unsigned sum[kSums] = {};

  __device__ __forceinline__ void add(unsigned word) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) sum[s] += word >> (bits % 32 * s) & kMask;
  }
  // The sum of a field, given sum[field % kSums].
  static __device__ __forceinline__ unsigned of(unsigned field, unsigned sums) {
    return bits < 16 ? sums >> (16 * (field / kSums)) & 0xFFFFu : sums;
  }
};

// Atomics if `on`, predicated where compilers would branch. They return the old word, or 0.
#ifdef __CUDACC__
#define LADDERS_ATOMIC_IF(instruction, emulated)                                 \
  unsigned old = 0;                                                              \
  asm volatile(                                                                  \
      "{ .reg .pred on; setp.ne.u32 on, %3, 0;\n"                                \
      "@on atom.shared::cta." instruction " %0, [%1], %2; }"                     \
      : "+r"(old)                                                                \
      : "r"(unsigned(__cvta_generic_to_shared(word))), "r"(n), "r"(unsigned{on}) \
      : "memory");                                                               \
  return old
#else
#define LADDERS_ATOMIC_IF(instruction, emulated) return on ? emulated(word, n) : 0
#endif
__device__ __forceinline__ unsigned add_if(bool on, unsigned* word, unsigned n) {
  LADDERS_ATOMIC_IF("add.u32", atomicAdd);
}
__device__ __forceinline__ unsigned flip_if(bool on, unsigned* word, unsigned n) {
  LADDERS_ATOMIC_IF("xor.b32", atomicXor);
}
#undef LADDERS_ATOMIC_IF

// Adds n to the total of a bin, modulo 2^32, outside its counter.
__device__ __forceinline__ void add_overflow(unsigned bin, unsigned n) {
  auto* overflows = dynamic_shared<Overflows>();
  if (bin >= overflows->bin_count) return;  // a field beyond the last bin
  const unsigned slot = bin * 0x9E3779B1u >> 24;
  const unsigned owner = atomicCAS(&overflows->bin_plus_1[slot], 0u, bin + 1);
  if (owner == 0 || owner == bin + 1)
    atomicAdd(&overflows->sum[slot], n);
  else
    atomicAdd(overflows->overflow_sums + bin, n);
}

// An increment found the counter of `bin` full; `old` is the word before. The counter wrapped to 0
// and carried into the next field. Adds the 2^bits that it lost to the bin's overflow sum, and
// takes back the carry. The old words show which other fields wrapped, so counter plus overflow sum
// is exact whatever other threads do. Inlining would cost registers.
template <int bits>
__device__ __attribute__((noinline)) void overflow(unsigned bin, unsigned old) {
  using C = Counters<bits>;
  constexpr unsigned kWrapped = 1u << (bits & 31);
  add_overflow(bin, kWrapped);
  const unsigned first = C::shift_of(bin) + bits;
  if (first == 32) return;  // the carry left the word
  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  const unsigned before = atomicSub(C::word_of(counters, bin), 1u << first);
  unsigned next = bin + 32;
  for (unsigned shift = first; (old >> shift & C::kFull) == C::kFull; next += 32) {
    add_overflow(next, kWrapped);  // the carry wrapped this field too
    if ((shift += bits) == 32) break;
    add_overflow(next + 32, ~0u);  // and went on
  }
  next = bin + 32;
  for (unsigned shift = first; (before >> shift & C::kFull) == 0; next += 32) {
    add_overflow(next, 0u - kWrapped);  // taking it back borrowed from the next field
    if ((shift += bits) == 32) break;
    add_overflow(next + 32, 1u);
  }
}

// For increments that found their counter full. `mask` has the bits of the counter in its word,
// `old` is the word before.
template <void (*wrapped)(unsigned bin, unsigned old)>
__device__ __forceinline__ void handle_full(const unsigned (&mask)[4], const unsigned (&bin)[4],
                                            const unsigned (&old)[4]) {
  unsigned not_set[4];  // 0 where the counter was full
#pragma unroll
  for (int j = 0; j < 4; ++j) not_set[j] = mask[j] & ~old[j];
  if (min(min(not_set[0], not_set[1]), min(not_set[2], not_set[3])) != 0) return;
#pragma unroll 1
  for (int j = 0; j < 4; ++j) {  // by selection: an index would put the arrays in memory
    const bool low = j < 2, even = j % 2 == 0;
    const auto of = [&](const unsigned (&v)[4]) {
      return low ? (even ? v[0] : v[1]) : (even ? v[2] : v[3]);
    };
    if (of(not_set) == 0) wrapped(of(bin), of(old));
  }
}

// Counts those of four keys that are `on`. The old word shows whether the field was full. The four
// atomics are in flight together.
template <int bits>
__device__ __forceinline__ void count_four(unsigned char* counters, const unsigned (&bin)[4],
                                           const bool (&on)[4]) {
  using C = Counters<bits>;
  unsigned mask[4], old[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unsigned one = 1u << C::shift_of(bin[j]);
    asm("" : "+r"(one));  // keeps the product below: a shift would go to the busier pipe
    mask[j] = one * C::kFull;
    old[j] = add_if(on[j], C::word_of(counters, bin[j]), one);
  }
  handle_full<overflow<bits>>(mask, bin, old);
}

// How a block counts: in its own counters.
template <int bits>
struct InBlock {
  static __device__ __forceinline__ unsigned bytes_behind(const CountParams&) { return 0; }
  static __device__ __forceinline__ void synchronize() { __syncthreads(); }
  static __device__ __forceinline__ void count(const CountParams&, unsigned char* counters,
                                               const unsigned (&bin)[4], const bool (&on)[4]) {
    count_four<bits>(counters, bin, on);
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

// As count_all() in narrow counters. If `hot_keys`, a frequent key is counted in registers. If
// `ranged`, counts only the range of bins that starts at `first`.
template <int bits, bool hot_keys, bool ranged, class CountPolicy = InBlock<bits>>
__device__ __forceinline__ void count_all_narrow(const auto& c, unsigned rank, unsigned group_size,
                                                 unsigned first) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto* vectors = reinterpret_cast<const int4*>(c.keys);
  const unsigned chunks = unsigned(c.count / kChunk), step = group_size * kWarps;
  unsigned chunk = warp * group_size + rank;
  int4 loaded[kLoads] = {};
  if (chunk < chunks) load_chunk(loaded, vectors + size_t{chunk} * (kChunk / 4) + lane);
  auto* counters = dynamic_shared<unsigned char>() + kCountersAt<bits>;
  zero(counters, 4 * c.words + CountPolicy::bytes_behind(c));
  auto* overflows = dynamic_shared<Overflows>();
  for (unsigned i = threadIdx.x; i < Overflows::kSlots; i += kThreads)
    overflows->bin_plus_1[i] = overflows->sum[i] = 0;
  if (threadIdx.x == 0) {
    overflows->overflow_sums = c.overflow_sums + first;
    overflows->bin_count = ranged ? min(unsigned(c.range), c.bin_count - first) : c.bin_count;
  }
  CountPolicy::synchronize();

  HotKey hot;
  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const int4* from = vectors + size_t{chunk} * (kChunk / 4) + lane;
    compute_once(from);
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
      CountPolicy::count(c, counters, bins, on);
    }
  if constexpr (hot_keys) hot.flush(c, first);
  __syncthreads();
}

}  // namespace ladders::histogram
