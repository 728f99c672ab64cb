// SPDX-License-Identifier: MIT
//
// Private counters of a few bits, whose carries go to totals that the blocks of a cluster share.
#pragma once

#include <cooperative_groups.h>

#include "histogram/05_stored_counters.cuh"

namespace ladders::histogram {
// A cluster's totals: 16 bits per bin, in units of 2^bits, the worth of a carry. Groups of 8 bins,
// one sector of the output, go to the blocks in turn: frequent bins are often neighbours.
struct ClusterTotals {
  static constexpr unsigned kSectorWords = 8;

  unsigned cluster_size = 0;  // in blocks
  unsigned reciprocal = 0;    // 2^31 / cluster_size, rounded up
  unsigned first_byte = 0;    // of a block's part in its dynamic shared memory
  unsigned part = 0;          // bins in it

  // The place of a bin in its owner's part.
  __device__ __forceinline__ unsigned place(unsigned bin, unsigned& owner_rank) const {
    const unsigned group = bin / kSectorWords, round = __umulhi(2 * group, reciprocal);
    owner_rank = group - round * cluster_size;
    return round * kSectorWords + bin % kSectorWords;
  }
  __device__ __forceinline__ unsigned bin(unsigned place, unsigned owner_rank) const {
    return (place / kSectorWords * cluster_size + owner_rank) * kSectorWords + place % kSectorWords;
  }
};

__device__ __forceinline__ void sync_cluster() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cooperative_groups::this_cluster().sync();
#endif
}

// add_if() on the same word of another block of the cluster.
__device__ __forceinline__ unsigned add_there_if(bool on, unsigned* word, int rank, unsigned n) {
  unsigned old = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{ .reg .pred on; .reg .u32 there; setp.ne.u32 on, %4, 0;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "@on atom.shared::cluster.add.u32 %0, [there], %3; }"
      : "+r"(old)
      : "r"(unsigned(__cvta_generic_to_shared(word))), "r"(rank), "r"(n), "r"(unsigned{on})
      : "memory");
#elif !defined(__CUDACC__)
  if (on) old = atomicAdd(cooperative_groups::this_cluster().map_shared_rank(word, rank), n);
#endif
  return old;
}

// The total of `bin` was full in `old`, the word before, and has wrapped: adds the 2^16 units that
// it lost. If a bin in the upper half got the carry, takes that back from its overflow sum. Total
// plus overflow sum is exact whatever other threads do.
template <int bits>
__device__ __attribute__((noinline)) void total_overflow(unsigned bin, unsigned old) {
  constexpr unsigned kUnit = 1u << bits;
  add_overflow(bin, kUnit << 16);
  if (bin % 2 != 0) return;  // the carry left the word
  add_overflow(bin + 1, 0u - kUnit);
  if (old == ~0u) add_overflow(bin + 1, kUnit << 16);  // the carry wrapped it
}

// Counts bit by bit: a bit that was set carries to the next, the last one to the total. A flip
// disturbs no other counter, and counter plus total is exact whichever thread's flip comes first.
template <int bits>
__device__ __forceinline__ void carry_four(const ClusterTotals& totals, unsigned char* counters,
                                           const unsigned (&bin)[4], const bool (&on)[4]) {
  using C = Counters<bits>;
  unsigned* word[4];
  unsigned bit[4];
  bool carry[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    word[j] = C::word_of(counters, bin[j]);
    bit[j] = 1u << C::shift_of(bin[j]);
    carry[j] = on[j];
  }
#pragma unroll
  for (int b = 0; b < bits; ++b) {
    unsigned old[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) old[j] = flip_if(carry[j], word[j], bit[j] << b);
#pragma unroll
    for (int j = 0; j < 4; ++j) carry[j] = (old[j] & bit[j] << b) != 0;
  }
  unsigned mask[4], old[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unsigned owner_rank;
    const unsigned place = totals.place(bin[j], owner_rank), one = place % 2 == 0 ? 1u : 1u << 16;
    auto* pair = dynamic_shared<unsigned char>() + totals.first_byte + place / 2 * 4;
    old[j] = add_there_if(carry[j], reinterpret_cast<unsigned*>(pair), owner_rank, one);
    mask[j] = one * 0xFFFF;
  }
  handle_full<total_overflow<bits>>(mask, bin, old);
}

struct ClusterCountParams : CountParams {
  ClusterTotals totals;  // behind each block's counters
};

// How a block counts: in its own counters of few bits, with carries to the cluster's totals.
template <int bits>
struct InCluster {
  static __device__ __forceinline__ unsigned bytes_behind(const ClusterCountParams& c) {
    return 2 * c.totals.part;
  }
  // Other blocks add to this one's totals, once these are zeroed.
  static __device__ __forceinline__ void synchronize() { sync_cluster(); }
  static __device__ __forceinline__ void count(const ClusterCountParams& c, unsigned char* counters,
                                               const unsigned (&bin)[4], const bool (&on)[4]) {
    carry_four<bits>(c.totals, counters, bin, on);
  }
};

}  // namespace ladders::histogram
