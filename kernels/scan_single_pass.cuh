// SPDX-License-Identifier: MIT
//
// One launch: every element is read once and written once. A block learns from the others' words
// what lies before its tile, while its elements stay in registers. Blocks start in the order of
// their numbers, so that those it waits for are done or running.
#pragma once

#ifndef __CUDACC__
#include <sched.h>
#endif

#include "scan_tile.cuh"

namespace ladders {
namespace {

// ---- Words --------------------------------------------------------------------------------------
// A tag is of one launch: what earlier ones have left never looks like news, and nothing has to be
// cleared between them.

enum Tag : unsigned { of_tile, of_all_before };  // the sum of one tile, or of all up to it
__device__ __forceinline__ unsigned tagged(unsigned epoch, Tag tag) { return 2 * epoch + 2 + tag; }

template <class T>
__device__ __forceinline__ Word pack(T sum, unsigned tag) {
  return Word{tag} << 32 | __builtin_bit_cast(unsigned, sum);
}
template <class T>
__device__ __forceinline__ T sum_in(Word word) {
  return __builtin_bit_cast(T, static_cast<unsigned>(word));
}
__device__ __forceinline__ unsigned tag_of(Word word) { return static_cast<unsigned>(word >> 32); }

#ifndef __CUDACC__
// Emulated: how often a word is looked at before it has the tag that it has in the end is chance,
// and not to be counted. Once a million looks in a row were in vain, the emulator is left to find
// out, and tell, that no word comes any more.
LADDERS_NOT_COUNTED inline void wait_a_while(const Word* word, unsigned tag) {
  static thread_local int in_vain = 0;
  for (; __atomic_load_n(word, __ATOMIC_ACQUIRE) >> 32 != tag; sched_yield())
    if (in_vain == 1'000'000 || ++in_vain == 1'000'000) return;
  if (in_vain < 1'000'000) in_vain = 0;
}
#endif

__device__ __forceinline__ void put(Word* word, Word value) {
#ifndef __CUDACC__
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
#elif defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#endif
}

// `last` is the tag that the word has in the end.
__device__ __forceinline__ Word get(const Word* word, [[maybe_unused]] unsigned last) {
  Word value = 0;
#ifndef __CUDACC__
  wait_a_while(word, last);
  value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
#elif defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#endif
  return value;
}

template <class T>
__device__ __forceinline__ T wait_for(const Word* word, unsigned tag) {
  Word value = 0;
  do value = get(word, tag);
  while (tag_of(value) != tag);
  return sum_in<T>(value);
}

// A word that has left the L2 would come from DRAM when it is looked at first.
__device__ __forceinline__ void ask_for([[maybe_unused]] const Word* word) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(word));
#endif
}

// ---- Ways to learn what is before ---------------------------------------------------------------
// Each makes its tile's sum known and returns, to all threads, the sum of the tiles before.

// Each block waits for the whole sum of the one before: one hop through the L2 for each tile.
struct Chain {
  static constexpr unsigned kLooks = 1;  // words a block will look at, at most
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T before;
    if (threadIdx.x == 0) {
      const unsigned tag = tagged(epoch, of_all_before);
      before = tile == 0 ? T{} : wait_for<T>(x.words + tile - 1, tag);
      put(x.words + tile, pack(before + sum, tag));
    }
    __syncthreads();
    return before;
  }
};

// Merrill and Garland, 2016: a tile's own sum is known before what precedes it, and is made known
// at once. A warp looks at the 32 tiles before, adds their sums up to the nearest that knows its
// whole sum, and goes on to the 32 before those if there is none.
struct LookBack {
  static constexpr unsigned kLooks = 32;
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T before;
    if (threadIdx.x < 32) {
      const unsigned own = tagged(epoch, of_tile), all = tagged(epoch, of_all_before);
      if (threadIdx.x == 0) put(x.words + tile, pack(sum, tile == 0 ? all : own));
      T found{};
      unsigned whole = tile == 0;
      for (unsigned end = tile; !whole; end -= 32) {  // the lane looks at the tile end - 1 - lane
        Word word = pack(T{}, all);                   // before the first tile
        unsigned missing = 0;
        do {
          if (threadIdx.x < end) word = get(x.words + end - 1 - threadIdx.x, all);
          whole = __ballot_sync(0xFFFFFFFF, tag_of(word) == all);
          missing = __ballot_sync(0xFFFFFFFF, tag_of(word) != all && tag_of(word) != own);
        } while (missing & ((whole & -whole) - 1));  // of those nearer than the nearest whole one
        const bool counts = (1u << threadIdx.x & ((whole & -whole) * 2 - 1)) != 0;
        T part = counts ? sum_in<T>(word) : T{};
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
          part += __shfl_down_sync(0xFFFFFFFF, part, offset);
        found = part + found;
      }
      if (threadIdx.x == 0) {
        before = found;
        if (tile > 0) put(x.words + tile, pack(found + sum, all));
      }
    }
    __syncthreads();
    return before;
  }
};

// As many tiles as a block has threads make a group. A thread waits for each tile of the group that
// is before, and one for the sum of all groups before: a single look, however many blocks are on
// their way at once. And sums are always added in the same order.
struct Groups {
  static constexpr unsigned kLooks = 1024;
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T warps[kThreads / 32];
    const unsigned tag = tagged(epoch, of_tile), group = tile / kThreads, index = tile % kThreads;
    if (threadIdx.x == 0) put(x.words + tile, pack(sum, tag));
    T part{};
    if (threadIdx.x < index) part = wait_for<T>(x.words + tile - index + threadIdx.x, tag);
    if (threadIdx.x == index && group > 0) part = wait_for<T>(x.prefixes + group - 1, tag);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      part += __shfl_down_sync(0xFFFFFFFF, part, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = part;
    __syncthreads();
    const unsigned lane = threadIdx.x % 32;
    part = lane < kThreads / 32 ? warps[lane] : T{};
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) part += __shfl_xor_sync(0xFFFFFFFF, part, mask);
    if (threadIdx.x == 0 && index + 1 == kThreads) put(x.prefixes + group, pack(part + sum, tag));
    return part;
  }
};

// ---- The kernel ---------------------------------------------------------------------------------

// Three blocks of 512 an SM, or two where each thread has more in flight.
constexpr int blocks_per_sm(int threads, int vectors) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  const int most = 1024;
#else
  const int most = 1536;
#endif
  const int resident = vectors <= 4 ? most : 1024;
  return resident / threads < 16 ? resident / threads : 16;
}

template <class Type, int kThreads, int kVectors, class Way>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kThreads, kVectors))
    single_pass(const typename Type::Value* __restrict__ in, size_t count,
                typename Type::Value* __restrict__ out, Exchange x) {
  using T = typename Type::Value;
  __shared__ unsigned launches;
  const unsigned index = blockIdx.x;
  Tile<Type, kThreads, kVectors> tile;
  tile.load(in, count, index);
  if (threadIdx.x < min(index, Way::kLooks)) ask_for(x.words + index - 1 - threadIdx.x);
  unsigned epoch = 0;
  if (threadIdx.x == 0) epoch = *x.epoch;
  tile.scan([&] {
    if (threadIdx.x == 0) launches = epoch;
  });
  epoch = launches;
  const T before = Way::template sum_before<kThreads>(tile.sum, index, x, epoch);
  // All blocks have looked at it, or the last one would not know all their sums.
  if (index + 1 == gridDim.x && threadIdx.x == 0) *x.epoch = epoch + 1;
  tile.store(out, count, index, before);
}

}  // namespace
}  // namespace ladders
