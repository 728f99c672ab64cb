// SPDX-License-Identifier: MIT
//
// One launch reads and writes every element once. A block keeps its tile in registers until it
// knows the sum of all tiles before, from words that other blocks publish.
//
// So blocks wait for blocks of lower indices, and would hang if these could not start. GPUs start
// blocks in order, but CUDA does not guarantee it: CUB's look-back relies on it, too, and is called
// not strictly safe (NVIDIA/cub, issue 245). Tiles drawn from an atomic counter would be safe.
#pragma once

#include "common/flags.cuh"
#include "scan/02_register_tiles.cuh"

namespace ladders::scan {
// ---- Words --------------------------------------------------------------------------------------
// A tag names the launch, so words of earlier launches need no clearing. It also says what the word
// holds: the sum of one tile (its aggregate), or the sum up to the end of the tile.
enum Tag : unsigned { aggregate, inclusive_prefix };
__device__ __forceinline__ unsigned tagged(unsigned epoch, Tag tag) { return 2 * epoch + 2 + tag; }

template <class T>
__device__ __forceinline__ Word pack(T sum, unsigned tag) {
  return Word{tag} << 32 | __builtin_bit_cast(unsigned, sum);
}
template <class T>
__device__ __forceinline__ T sum_in(Word word) {
  return __builtin_bit_cast(T, unsigned(word));
}
__device__ __forceinline__ unsigned tag_of(Word word) { return unsigned(word >> 32); }

// `last` is the final tag of the word.
__device__ __forceinline__ Word load_word(const Word* word, unsigned last) {
  wait_uncounted(reinterpret_cast<const unsigned*>(word) + 1, last);
  return load_relaxed(word);
}

template <class T>
__device__ __forceinline__ T wait_for(const Word* word, unsigned tag) {
  Word value = 0;
  do value = load_word(word, tag);
  while (tag_of(value) != tag);
  return sum_in<T>(value);
}

// ---- Three ways to the sum before ---------------------------------------------------------------
// Each publishes a sum for later tiles and returns, in all threads, the sum of all tiles before.

// Each block waits for its predecessor's sum of all tiles so far: one exchange through L2 per tile.
struct Chain {
  static constexpr unsigned kPolled = 1;  // words that a block prefetches, at most
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T before;
    if (threadIdx.x == 0) {
      const unsigned tag = tagged(epoch, inclusive_prefix);
      before = tile == 0 ? T{} : wait_for<T>(x.words + tile - 1, tag);
      store_relaxed(x.words + tile, pack(before + sum, tag));
    }
    __syncthreads();
    return before;
  }
};

// Merrill and Garland, 2016: a block publishes its tile's own sum at once. A warp polls the 32
// tiles before, and adds up sums back to the nearest tile that knows the sum of all before it. If
// none knows it, the warp goes 32 tiles further back.
struct LookBack {
  static constexpr unsigned kPolled = 32;
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T before;
    if (threadIdx.x < 32) {
      const unsigned own = tagged(epoch, aggregate), whole = tagged(epoch, inclusive_prefix);
      if (threadIdx.x == 0) store_relaxed(x.words + tile, pack(sum, tile == 0 ? whole : own));
      T found{};
      unsigned prefixes = tile == 0;
      for (unsigned end = tile; !prefixes; end -= 32) {  // the lane polls the tile end - 1 - lane
        Word word = pack(T{}, whole);                    // before the first tile
        unsigned missing = 0;
        do {
          if (threadIdx.x < end) word = load_word(x.words + end - 1 - threadIdx.x, whole);
          prefixes = __ballot_sync(0xFFFFFFFF, tag_of(word) == whole);
          missing = __ballot_sync(0xFFFFFFFF, tag_of(word) != whole && tag_of(word) != own);
        } while (missing & ((prefixes & -prefixes) - 1));  // nearer than the nearest prefix
        const bool counts = (1u << threadIdx.x & ((prefixes & -prefixes) * 2 - 1)) != 0;
        found = sum_in_lane_0(counts ? sum_in<T>(word) : T{}) + found;
      }
      if (threadIdx.x == 0) {
        before = found;
        if (tile > 0) store_relaxed(x.words + tile, pack(found + sum, whole));
      }
    }
    __syncthreads();
    return before;
  }
};

// A group has as many tiles as a block has threads. One thread waits for each earlier tile of the
// group, and one for the sum of all groups before: a single round of polls, always in the same
// order.
struct Groups {
  static constexpr unsigned kPolled = 1024;
  template <int kThreads, class T>
  __device__ static T sum_before(T sum, unsigned tile, const Exchange& x, unsigned epoch) {
    __shared__ T warps[kThreads / 32];
    const unsigned tag = tagged(epoch, aggregate), group = tile / kThreads, index = tile % kThreads;
    if (threadIdx.x == 0) store_relaxed(x.words + tile, pack(sum, tag));
    T part{};
    if (threadIdx.x < index) part = wait_for<T>(x.words + tile - index + threadIdx.x, tag);
    if (threadIdx.x == index && group > 0) part = wait_for<T>(x.prefixes + group - 1, tag);
    store_warp_sums(part, warps);
    const unsigned lane = threadIdx.x % 32;
    part = sum_in_all_lanes(lane < kThreads / 32 ? warps[lane] : T{});
    if (threadIdx.x == 0 && index + 1 == kThreads)
      store_relaxed(x.prefixes + group, pack(part + sum, tag));
    return part;
  }
};

// 1536 threads per SM, or 1024 if each has more than four vectors in flight.
constexpr int blocks_per_sm(int threads, int vectors) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  const int most = 1024;
#else
  const int most = vectors <= 4 ? 1536 : 1024;
#endif
  return std::min(most / threads, 16);
}

template <class Type, int kThreads, int kVectors, class TilePrefix>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kThreads, kVectors))
    single_pass(const Value<Type>* __restrict__ in, size_t count, Value<Type>* __restrict__ out,
                Exchange x) {
  using T = Value<Type>;
  __shared__ unsigned launches;
  const unsigned index = blockIdx.x;
  Tile<Type, kThreads, kVectors> tile;
  tile.load(in, count, index);
  if (threadIdx.x < min(index, TilePrefix::kPolled)) prefetch(x.words + index - 1 - threadIdx.x);
  unsigned epoch = 0;
  if (threadIdx.x == 0) epoch = *x.epoch;
  tile.scan([&] {
    if (threadIdx.x == 0) launches = epoch;
  });
  epoch = launches;
  const T before = TilePrefix::template sum_before<kThreads>(tile.sum, index, x, epoch);
  // All blocks have read the epoch, since the last one knows their sums.
  if (index + 1 == gridDim.x && threadIdx.x == 0) *x.epoch = epoch + 1;
  tile.store(out, count, index, before);
}

template <class Type, int threads, int vectors, class TilePrefix>
Implementation in_one_pass() {
  return kernel<Scan<Type>>(
      single_pass<Type, threads, vectors, TilePrefix>,
      block_per_tile<Tile<Type, threads, vectors>::kElements, threads>,
      [](Scan<Type>& p) { return std::tuple_cat(p.arguments(), std::tuple(p.exchange())); });
}

}  // namespace ladders::scan
