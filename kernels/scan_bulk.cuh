// SPDX-License-Identifier: MIT
//
// Loads that never pause: as many blocks as are resident take tiles in turn, fetched by bulk copies
// into a ring of stages, while the block adds up one that has come and writes one whose
// predecessors are known. All of them go round together, so that nobody looks further back than
// over one round.
#pragma once

#include "device.cuh"
#include "scan_single_pass.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// ---- Rounds -------------------------------------------------------------------------------------

struct Rounds {
  unsigned count;
  unsigned tile;  // elements of each tile but the last ones: blocks end together
};
inline Rounds rounds_of(size_t elements, size_t largest_tile, unsigned blocks) {
  if (blocks == 0) return {};
  const size_t rounds = ceil_div(elements, largest_tile * blocks);
  constexpr size_t kLine = 32;  // copies are of whole lines
  const size_t tile = ceil_div(ceil_div(elements, rounds * blocks), kLine) * kLine;
  return {static_cast<unsigned>(rounds), static_cast<unsigned>(tile)};
}

// Sums are made known this many rounds before they are needed: a look finds them there. Who writes
// the word of round r knows that all have written those of round r - kAhead, and so have read those
// of r - 2 kAhead, whose place it takes.
constexpr unsigned kAhead = 2, kRoundsOfWords = 2 * kAhead;

// A warp looks at all words of a round at once: those before the block's own, and all.
template <class T>
struct RoundSums {
  T before, all;
};
template <class T>
__device__ __forceinline__ RoundSums<T> sums_of_round(const Word* words, unsigned tag) {
  constexpr int kLooks = 10;
  RoundSums<T> sums{};
  for (unsigned first = threadIdx.x % 32; first < gridDim.x; first += 32 * kLooks) {
    Word word[kLooks];
#pragma unroll
    for (int j = 0; j < kLooks; ++j)
      word[j] = first + 32 * j < gridDim.x ? get(words + first + 32 * j, tag) : pack(T{}, tag);
#pragma unroll
    for (int j = 0; j < kLooks; ++j) {
      while (tag_of(word[j]) != tag) word[j] = get(words + first + 32 * j, tag);
      sums.all += sum_in<T>(word[j]);
      if (first + 32 * j < blockIdx.x) sums.before += sum_in<T>(word[j]);
    }
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    sums.before += __shfl_xor_sync(0xFFFFFFFF, sums.before, mask);
    sums.all += __shfl_xor_sync(0xFFFFFFFF, sums.all, mask);
  }
  return sums;
}

template <class T>
__device__ __forceinline__ T first_lanes_sum(T x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_down_sync(0xFFFFFFFF, x, offset);
  return x;
}

// ---- The kernel ---------------------------------------------------------------------------------
// One more warp than work on elements deals with the other blocks and with the copies. In each turn
// the others add up the tile that has come, there is a barrier, and they write the tile of kAhead
// rounds ago; the one warp finds out, meanwhile, what is before that, and after the barrier makes
// the new sum known. A stage is asked for again a turn later, when all have passed a barrier since
// they read it.

template <class Type, int kThreads, int kVectors, int kStages>
__global__ void __launch_bounds__(kThreads + 32, 1)
    bulk_ring(const typename Type::Value* __restrict__ in, size_t count,
              typename Type::Value* __restrict__ out, Rounds rounds, Exchange x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using T = typename Type::Value;
  using Vector = typename Type::Vector;
  constexpr unsigned kWarps = kThreads / 32, kStage = kThreads * kVectors;
  static_assert(kWarps < 32 && kStages > kAhead + 1);
  __shared__ MBarrier full[kStages];
  __shared__ T sums[kStages][kWarps], before[2];
  auto* ring = dynamic_shared<Vector>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  struct Part {
    size_t first;
    unsigned vectors, odd;  // the elements after the last whole vector
  };
  const auto tile_of = [&](unsigned round) -> Part {
    const size_t first = (size_t{round} * gridDim.x + blockIdx.x) * rounds.tile;
    const size_t left = first < count ? count - first : 0;
    const unsigned elements = left < rounds.tile ? static_cast<unsigned>(left) : rounds.tile;
    return {first, elements / 4, elements % 4};
  };
  const auto fetch = [&](unsigned round) {
    const unsigned stage = round % kStages;
    const Part tile = tile_of(round);
    arrive_expecting(full[stage], tile.vectors * sizeof(Vector));
    if (tile.vectors > 0)
      copy_once(ring + stage * kStage, in + tile.first, tile.vectors * sizeof(Vector), full[stage]);
  };

  const bool exchanges = warp == kWarps, copies = threadIdx.x == kThreads;
  unsigned epoch = 0;
  T rounds_before{};  // their sum
  if (copies) {
    for (MBarrier& barrier : full) initialize(barrier, 1);
    publish_barriers();
    for (unsigned round = 0; round < kStages && round < rounds.count; ++round) fetch(round);
  }
  if (exchanges) epoch = *x.epoch;
  __syncthreads();

  for (unsigned turn = 0; turn < rounds.count + kAhead; ++turn) {
    const unsigned due = turn - kAhead;  // the round that is written
    const bool comes = turn < rounds.count, goes = turn >= kAhead && due < rounds.count;
    if (exchanges && goes) {
      const auto round = sums_of_round<T>(x.words + due % kRoundsOfWords * gridDim.x,
                                          tagged(epoch + due, of_tile));
      if (lane == 0) before[turn % 2] = rounds_before + round.before;
      rounds_before += round.all;
    }
    if (!exchanges && comes) {
      const unsigned stage = turn % kStages, vectors = tile_of(turn).vectors;
      wait(full[stage], turn / kStages % 2);
      T sum{};
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const unsigned i = (warp * kVectors + j) * 32 + lane;
        const Vector v = i < vectors ? ring[stage * kStage + i] : Vector{};
        sum += v.x + v.y + (v.z + v.w);
      }
      sum = first_lanes_sum(sum);
      if (lane == 0) sums[stage][warp] = sum;
    }
    __syncthreads();
    if (exchanges && comes) {
      const T sum = first_lanes_sum(lane < kWarps ? sums[turn % kStages][lane] : T{});
      if (copies)
        put(x.words + turn % kRoundsOfWords * gridDim.x + blockIdx.x,
            pack(sum, tagged(epoch + turn, of_tile)));
    }
    if (copies && turn > kAhead) {
      const unsigned done = due - 1;  // the round whose stage nobody needs any more
      if (done + kStages < rounds.count) fetch(done + kStages);
    }
    if (!exchanges && goes) {
      const unsigned stage = due % kStages;
      const Part part = tile_of(due);
      const T warps = scan_warp(lane < kWarps ? sums[stage][lane] : T{});
      const T left = __shfl_sync(0xFFFFFFFF, warps, warp == 0 ? 0 : warp - 1);
      Tile<Type, kThreads, kVectors> tile;
      const unsigned mine = warp * kVectors * 32 + lane;
      const T* odd = in + part.first + 4 * size_t{part.vectors};
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const unsigned i = mine + 32 * j;
        tile.v[j] = i < part.vectors ? ring[stage * kStage + i] : Vector{};
        if (i == part.vectors && part.odd > 0)
          tile.v[j] = {odd[0], load(odd, 1, part.odd), load(odd, 2, part.odd), T{}};
      }
      T before_vector[kVectors];
      tile.scan_rows(before_vector, warp == 0 ? before[turn % 2] : before[turn % 2] + left);
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        tile.add(tile.v[j], before_vector[j]);
        const unsigned i = mine + 32 * j;
        const size_t at = part.first + 4 * size_t{i};
        if (i < part.vectors) {
          __stcs(reinterpret_cast<Vector*>(out + at), tile.v[j]);
        } else if (i == part.vectors) {
          if (part.odd > 0) out[at] = tile.v[j].x;
          if (part.odd > 1) out[at + 1] = tile.v[j].y;
          if (part.odd > 2) out[at + 2] = tile.v[j].z;
        }
      }
    }
  }
  // All blocks have looked at it, or this one would not know the sums of the last round.
  if (copies && blockIdx.x + 1 == gridDim.x) *x.epoch = epoch + rounds.count;
#endif
}

}  // namespace
}  // namespace ladders
