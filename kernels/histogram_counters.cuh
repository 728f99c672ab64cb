// SPDX-License-Identifier: MIT
//
// Counters in shared memory: where a bin's counter lies, and what keeps narrow ones exact.
#pragma once

#include <bit>

#include "device.cuh"

namespace ladders {
namespace {

// Counters of 32, 16, 8 or fewer bits, as many as fill a word. Neighbouring bins lie in
// neighbouring words, 32 of them in a row of all banks, and the field of the word is the next digit
// of the bin's number: bin = (row, field, lane).
//
// Where they are spread, the lane is XORed with a hash of the row: bins 32 or 1024 apart, which
// would share a bank, then lie anywhere.
template <int bits, bool spread = true>
struct Counters {
  static constexpr int kFields = 32 / bits, kLogFields = std::countr_zero(unsigned{kFields});
  static constexpr unsigned kFull = 0xFFFFFFFFu >> (32 - bits);
  static constexpr int kBinsARow = 32 * kFields;

  // Where the word of a bin is, in bytes from the first.
  static __device__ __forceinline__ unsigned byte_of(unsigned bin) {
    const unsigned at = bin << 2, row = at >> kLogFields & ~0x7Fu;
    return row | ((at ^ hash(row)) & 0x7Cu);
  }
  static __device__ __forceinline__ unsigned shift_of(unsigned bin) {
    return bits == 32 ? 0 : (bin >> 5 & (kFields - 1)) * bits;
  }
  // The bin whose counter is this field of this word.
  static __device__ __forceinline__ unsigned bin_of_field(unsigned word, unsigned field) {
    const unsigned row = word >> 5, lane = (word ^ hash(row << 7) >> 2) & 31;
    return row << (5 + kLogFields) | field << 5 | lane;
  }

 private:
  static __device__ __forceinline__ unsigned hash(unsigned row_bytes) {
    return spread ? row_bytes * 0x9E3779B1u >> 25 : 0;
  }
};

// The same word of many blocks added up, its fields side by side in as many registers as keep up to
// 257 of them from overflowing.
template <int bits>
struct FieldSums {
  static constexpr int kSums = bits == 32 ? 1 : bits == 16 ? 2 : 16 / bits;
  static constexpr unsigned kMask = Counters<bits>::kFull * (bits < 16 ? 0x00010001u : 1u);

  unsigned sum[kSums] = {};

  __device__ __forceinline__ void add(unsigned word) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) sum[s] += word >> (bits % 32 * s) & kMask;
  }
  // The sum of a field, from the register that has it, sum[field % kSums].
  static __device__ __forceinline__ unsigned of(unsigned field, unsigned sums) {
    return bits < 16 ? sums >> (16 * (field / kSums)) & 0xFFFFu : sums;
  }
};

// What narrow counters need beside them: what has overflowed is credited to the bin here, for the
// first bins of a block to overflow, else in global memory.
struct Overflows {
  static constexpr unsigned kSlots = 256;
  unsigned bin_plus_1[kSlots];  // of the owner, 0 without one
  unsigned sum[kSlots];
  unsigned* credits;  // of bin 0 of this block's range
  unsigned bins;      // in that range
};

// The block's counters lie behind its overflows, where there are any.
template <int bits>
constexpr unsigned kCountersAt = bits == 32 ? 0 : (sizeof(Overflows) + 127) / 128 * 128;

// Adds n to the total of a bin, modulo 2^32, outside its counter.
__device__ __forceinline__ void credit(unsigned bin, unsigned n) {
  auto* overflows = dynamic_shared<Overflows>();
  if (bin >= overflows->bins) return;  // of no bin: the last row is not full
  const unsigned slot = bin * 0x9E3779B1u >> 24;
  const unsigned owner = atomicCAS(&overflows->bin_plus_1[slot], 0u, bin + 1);
  if (owner == 0 || owner == bin + 1)
    atomicAdd(&overflows->sum[slot], n);
  else
    atomicAdd(overflows->credits + bin, n);
}

// The counter of `bin` was full in `old`, the word before the increment, and has wrapped: what it
// held is credited, and the carry that went on into the next field is taken back. Either may have
// wrapped further fields, which the old values tell; so the sum of counter and credit is exact at
// any moment, whatever other threads do in between. Not inlined, for the registers of the others.
template <int bits>
__device__ __attribute__((noinline)) void overflow(unsigned bin, unsigned old) {
  using C = Counters<bits>;
  constexpr unsigned kWrapped = 1u << (bits & 31);
  credit(bin, kWrapped);
  const unsigned first = C::shift_of(bin) + bits;
  if (first == 32) return;  // the carry left the word
  auto* word = reinterpret_cast<unsigned*>(dynamic_shared<unsigned char>() + kCountersAt<bits> +
                                           C::byte_of(bin));
  const unsigned before = atomicSub(word, 1u << first);
  unsigned next = bin + 32;
  for (unsigned shift = first; (old >> shift & C::kFull) == C::kFull; next += 32) {
    credit(next, kWrapped);  // the carry wrapped this field too
    if ((shift += bits) == 32) break;
    credit(next + 32, ~0u);  // and went on
  }
  next = bin + 32;
  for (unsigned shift = first; (before >> shift & C::kFull) == 0; next += 32) {
    credit(next, 0u - kWrapped);  // taking it back borrowed from the next
    if ((shift += bits) == 32) break;
    credit(next + 32, 1u);
  }
}

}  // namespace
}  // namespace ladders
