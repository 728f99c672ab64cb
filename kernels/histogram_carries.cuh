// SPDX-License-Identifier: MIT
//
// Private counters of a few bits, whose carries go to totals that the blocks of a cluster share.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "histogram_counters.cuh"

namespace ladders {
namespace {

// A cluster's totals: 16 bits a bin, in units of what a private counter holds before it wraps. The
// bins are dealt out to the blocks in groups of 8: skewed keys are frequent in neighbouring bins,
// and 8 bins of the output are a sector.
struct ClusterTotals {
  static constexpr unsigned kGroup = 8;

  unsigned blocks = 0;      // of the cluster
  unsigned reciprocal = 0;  // 2^31 / blocks, rounded up
  unsigned first_byte = 0;  // of each block's part in its dynamic shared memory
  unsigned part = 0;        // bins in it

  ClusterTotals() = default;
  ClusterTotals(unsigned first_byte, int64_t bins, int64_t blocks)
      : blocks(static_cast<unsigned>(blocks)),
        reciprocal(static_cast<unsigned>(ceil_div(int64_t{1} << 31, blocks))),
        first_byte(first_byte),
        part(static_cast<unsigned>(ceil_div<int64_t>(bins, kGroup * blocks) * kGroup)) {}

  // Which of its owner's bins a bin is.
  __device__ __forceinline__ unsigned place(unsigned bin, unsigned& owner) const {
    const unsigned group = bin / kGroup, round = __umulhi(2 * group, reciprocal);
    owner = group - round * blocks;
    return round * kGroup + bin % kGroup;
  }
  __device__ __forceinline__ unsigned bin(unsigned place, unsigned owner) const {
    return (place / kGroup * blocks + owner) * kGroup + place % kGroup;
  }
};

// All blocks of the cluster have come here, and what they did before is seen.
__device__ __forceinline__ void sync_cluster() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  cooperative_groups::this_cluster().sync();
#endif
}

// Flips bits of a word of shared memory if `on`, and returns what was there, else 0.
__device__ __forceinline__ unsigned flip_if(bool on, unsigned* word, unsigned bits) {
  unsigned old = 0;
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .pred on;\n"
      "setp.ne.u32 on, %3, 0;\n"
      "@on atom.shared::cta.xor.b32 %0, [%1], %2;\n"
      "}"
      : "+r"(old)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(word))), "r"(bits), "r"(unsigned{on})
      : "memory");
#else
  if (on) old = atomicXor(word, bits);
#endif
  return old;
}

// Adds to the same word in the shared memory of another block of the cluster if `on`, and returns
// what was there, else 0.
__device__ __forceinline__ unsigned add_there_if(bool on, unsigned* word, unsigned block,
                                                 unsigned n) {
  unsigned old = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred on;\n"
      ".reg .u32 there;\n"
      "setp.ne.u32 on, %4, 0;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "@on atom.shared::cluster.add.u32 %0, [there], %3;\n"
      "}"
      : "+r"(old)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(word))), "r"(block), "r"(n),
        "r"(unsigned{on})
      : "memory");
#elif !defined(__CUDACC__)
  if (on) old = atomicAdd(cooperative_groups::this_cluster().map_shared_rank(word, block), n);
#endif
  return old;
}

// The total of `bin` was full in `old`, the word before the addition, and has wrapped: what it held
// is credited, and so is the carry that the bin in the upper half has got. That sum is exact,
// whatever other threads do in between.
template <int bits>
__device__ __attribute__((noinline)) void total_overflow(unsigned bin, unsigned old) {
  constexpr unsigned kUnit = 1u << bits;
  credit(bin, kUnit << 16);
  if (bin % 2 != 0) return;  // the carry left the word
  credit(bin + 1, 0u - kUnit);
  if (old == ~0u) credit(bin + 1, kUnit << 16);  // which wrapped by it
}

// Adds one to counters, bit by bit: a bit that was set is carried to the next one, and what the
// last one carries to the total. A flip disturbs no other counter of the word, and the sum of
// counter and total is exact whichever thread's flip comes first.
template <int bits>
__device__ __forceinline__ void carry_four(const ClusterTotals& totals, unsigned char* counters,
                                           const unsigned (&bin)[4], const bool (&on)[4]) {
  using C = Counters<bits>;
  unsigned* word[4];
  unsigned bit[4];
  bool carry[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    word[j] = reinterpret_cast<unsigned*>(counters + C::byte_of(bin[j]));
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
  unsigned left[4], old[4];  // how much more the total could have held
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unsigned owner;
    const unsigned place = totals.place(bin[j], owner), one = place % 2 == 0 ? 1u : 1u << 16;
    auto* pair = dynamic_shared<unsigned char>() + totals.first_byte + place / 2 * 4;
    old[j] = add_there_if(carry[j], reinterpret_cast<unsigned*>(pair), owner, one);
    left[j] = one * 0xFFFF;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) left[j] &= ~old[j];
  if (min(min(left[0], left[1]), min(left[2], left[3])) != 0) return;
#pragma unroll 1
  for (int j = 0; j < 4; ++j) {  // by selection: an index would put the arrays in memory
    const bool low = j < 2, even = j % 2 == 0;
    const auto of = [&](const unsigned (&v)[4]) {
      return low ? (even ? v[0] : v[1]) : (even ? v[2] : v[3]);
    };
    if (of(left) == 0) total_overflow<bits>(of(bin), of(old));
  }
}

}  // namespace
}  // namespace ladders
