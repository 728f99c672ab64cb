// SPDX-License-Identifier: MIT
//
// Counters in shared memory: where a bin's counter lies, and what keeps narrow ones exact.
#pragma once

#include <bit>

#include "common/device.cuh"
#include "model/device.hpp"

namespace ladders::histogram {
// Counters of 32, 16, 8 or fewer bits, packed into words. A row is 32 words, one per bank, and 32
// neighbouring bins are one field of its words: bin = (row, field, lane). If spread, the lane is
// XORed with a hash of the row: if a warp's bins are 32, 64, ... or 2048 apart, at most three share
// a bank.
template <int bits, bool spread = true>
struct Counters {
  static constexpr int kFields = 32 / bits, kLogFields = std::countr_zero(unsigned{kFields});
  static constexpr unsigned kFull = 0xFFFFFFFFu >> (32 - bits);
  static constexpr int kBinsPerRow = 32 * kFields;

  // The byte offset of a bin's word.
  static __device__ __forceinline__ unsigned byte_of(unsigned bin) {
    const unsigned at = bin << 2, row = at >> kLogFields & ~0x7Fu;
    return row | ((at ^ hash(row)) & 0x7Cu);
  }
  static __device__ __forceinline__ unsigned* word_of(unsigned char* counters, unsigned bin) {
    return reinterpret_cast<unsigned*>(counters + byte_of(bin));
  }
  static __device__ __forceinline__ unsigned shift_of(unsigned bin) {
    return bits == 32 ? 0 : (bin >> 5 & (kFields - 1)) * bits;
  }
  static __device__ __forceinline__ unsigned bin_of_field(unsigned word, unsigned field) {
    const unsigned row = word >> 5, lane = (word ^ hash(row << 7) >> 2) & 31;
    return row << (5 + kLogFields) | field << 5 | lane;
  }

 private:
  static __device__ __forceinline__ unsigned hash(unsigned row_bytes) {
    return spread ? row_bytes * 0x9E3779B1u >> 25 : 0;
  }
};

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

// Counts outside narrow counters: of overflows and of hot keys. A bin hashes to a slot in shared
// memory, which the first bin to come keeps. The others have a word in global memory.
struct Overflows {
  static constexpr unsigned kSlots = 256;
  unsigned bin_plus_1[kSlots];  // 0 in a free slot
  unsigned sum[kSlots];
  unsigned* overflow_sums;  // in global memory, of the first bin of this block's range
  unsigned bin_count;       // in that range
};

// Narrow counters lie behind the overflows.
template <int bits>
constexpr unsigned kCountersAt = bits == 32 ? 0 : (sizeof(Overflows) + 127) / 128 * 128;

// How many bins fit in one block's counters, at most.
template <int bits>
int64_t max_bins(const Device& device) {
  return (int64_t(device.shared_bytes_per_block) - kCountersAt<bits>) / 128 *
         Counters<bits>::kBinsPerRow;
}
// The dynamic shared memory of a block for the counters and overflows of so many bins.
template <int bits>
unsigned counter_bytes(int64_t bins) {
  return kCountersAt<bits> + unsigned(ceil_div(bins, Counters<bits>::kBinsPerRow) * 128);
}

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

// The counter of `bin` was full in `old`, the word before, and has wrapped: adds the 2^bits that it
// lost, and takes back the carry into the next field. The old words show which other fields
// wrapped, so counter plus overflow sum is exact whatever other threads do. Inlining would cost
// registers.
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

}  // namespace ladders::histogram
