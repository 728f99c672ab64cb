// SPDX-License-Identifier: MIT
//
// Counters in shared memory: where a bin's counter lies, and how many fit.
#pragma once

#include <bit>

#include "common/device.cuh"
#include "model/device.hpp"

namespace ladders::histogram {
// Counters of 32, 16, 8 or fewer bits. A word holds one or more, its fields. A row is 32 words, one
// per bank, and 32 neighbouring bins are one field of its words: bin = (row, field, bank). If
// spread, the bank is XORed with a hash of the row: if a warp's bins are 32, 64, ... or 2048 apart,
// at most three share a bank.
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
    const unsigned row = word >> 5, bank = (word ^ hash(row << 7) >> 2) & 31;
    return row << (5 + kLogFields) | field << 5 | bank;
  }

 private:
  static __device__ __forceinline__ unsigned hash(unsigned row_bytes) {
    return spread ? row_bytes * 0x9E3779B1u >> 25 : 0;
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

}  // namespace ladders::histogram
