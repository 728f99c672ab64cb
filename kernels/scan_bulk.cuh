// SPDX-License-Identifier: MIT
//
// Copies that overlap with everything: as many blocks as are resident take tiles in the order of
// memory, each when it has room (a dynamic tile scheduler), and bulk copies bring them to a ring in
// shared memory and back. (An H200 copies 4130 GB/s so, but 3880 if each block has every n-th tile:
// not all SMs are equally fast.)
#pragma once

#include "device.cuh"
#include "scan_single_pass.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// ---- The schedule -------------------------------------------------------------------------------

// A block's first tiles, one for each stage, are its by its number; for later ones it takes a
// ticket. (One that is taken before there is room delays the prefixes of all later tiles.)
struct Schedule {
  unsigned tiles;
  unsigned tile_elements;  // of each but the last: blocks end together
  unsigned last_ticket;    // after which the counter is at zero again, for the next launch
};
inline Schedule make_schedule(size_t elements, size_t largest_tile, unsigned blocks,
                              unsigned stages) {
  if (blocks == 0) return {};
  const size_t rounds = ceil_div(elements, largest_tile * blocks);
  constexpr size_t kLine = 32;  // copies are of whole lines
  const size_t tile = ceil_div(ceil_div(elements, rounds * blocks), kLine) * kLine;
  const auto tiles = static_cast<unsigned>(ceil_div(elements, tile));
  // A ticket for each tile, and one for each block that finds that there are no more.
  const unsigned by_ticket = tiles > stages * blocks ? tiles - stages * blocks : 0;
  const unsigned takers = std::min(blocks, tiles - std::min(tiles, (stages - 1) * blocks));
  return {tiles, static_cast<unsigned>(tile), std::max(by_ticket + takers, 1u) - 1};
}

// ---- The kernel ---------------------------------------------------------------------------------
// Four kinds of warps, which meet at the stages of the ring and nowhere else. One thread, the
// producer, fetches tiles and writes them back. Each stage has a reducer: a warp that sums a tile
// once it has come, publishes the sum, and waits for the prefix, what is before the tile. The
// consumers scan the tile where it lies, from its prefix on. And one warp of the whole grid adds up
// the sums that reducers publish: if all looked at all sums, the few lines of the L2 that these lie
// in would be the limit.

// That warp sees to 32 tiles at a time, and looks at several times as many at once. A tile's prefix
// is published once all sums before it are there, even if its own is not: a block that waits for it
// may hold the tile whose sum is missing. Sums are always added in the same order.
template <class T>
__device__ __forceinline__ void publish_prefixes(unsigned tiles, const Exchange& x, unsigned tag) {
  constexpr int kLooks = 8;
  const unsigned lane = threadIdx.x % 32;
  T before{};
  unsigned next = 0;  // whose prefix is to be published
  for (unsigned first = 0; first < tiles;) {
    Word words[kLooks];
#pragma unroll
    for (int j = 0; j < kLooks; ++j) {
      const unsigned tile = first + 32 * j + lane;
      words[j] = tile < tiles ? get(x.words + tile, tag) : pack(T{}, tag);
    }
#pragma unroll
    for (int j = 0; j < kLooks; ++j) {
      const unsigned missing = __ballot_sync(0xFFFFFFFF, tag_of(words[j]) != tag);
      const unsigned tile = first + lane, end = missing ? first + __ffs(missing) : first + 32;
      const T sums = scan_warp(sum_in<T>(words[j])), left = __shfl_up_sync(0xFFFFFFFF, sums, 1);
      if (tile >= next && tile < min(end, tiles))
        put(x.prefixes + tile, pack(lane == 0 ? before : before + left, tag));
      next = max(next, end);
      if (missing) break;
      before += __shfl_sync(0xFFFFFFFF, sums, 31);
      first += 32;
    }
  }
}

template <class Type, int kThreads, int kVectors, int stages>
__global__ void __launch_bounds__(kThreads + 32 * (stages + 2), 1)
    bulk_ring(const typename Type::Value* __restrict__ in, size_t count,
              typename Type::Value* __restrict__ out, Schedule schedule, Exchange x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using T = typename Type::Value;
  using Vector = typename Type::Vector;
  constexpr unsigned kWarps = kThreads / 32, kStages = stages, kStage = kThreads * kVectors;
  static_assert(kWarps + kStages + 2 <= 32);
  __shared__ MBarrier full[kStages], prefix_ready[kStages], scanned[kStages];
  __shared__ unsigned tile_of[kStages];  // which tile; no tile is the end
  __shared__ T before[kStages][kWarps];  // before what each warp scans
  auto* ring = dynamic_shared<Vector>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  struct Part {
    size_t first;
    unsigned vectors, odd;  // the elements after the last whole vector
  };
  const auto part_of = [&](unsigned tile) -> Part {
    const size_t first = size_t{tile} * schedule.tile_elements,
                 left = first < count ? count - first : 0;
    const unsigned elements =
        left < schedule.tile_elements ? static_cast<unsigned>(left) : schedule.tile_elements;
    return {first, elements / 4, elements % 4};
  };

  if (threadIdx.x == 0) {
    for (MBarrier& barrier : full) initialize(barrier, 1);
    for (MBarrier& barrier : prefix_ready) initialize(barrier, 32);
    for (MBarrier& barrier : scanned) initialize(barrier, kThreads);
    publish_barriers();
  }
  const unsigned epoch = *x.epoch, tag = tagged(epoch, of_tile);
  __syncthreads();

  if (warp == kWarps + kStages + 1) {
    if (blockIdx.x != 0) return;
    publish_prefixes<T>(schedule.tiles, x, tag);
    if (lane == 0)
      *x.epoch = epoch + 1;  // who has a tile has looked at it, or its sum would be missing
  } else if (warp == kWarps + kStages) {
    if (lane != 0) return;
    bool ended = false;
    const auto fetch = [&](unsigned k) {
      unsigned tile = schedule.tiles;
      if (!ended)
        tile = gridDim.x * min(k, kStages) +
               (k < kStages ? blockIdx.x : atomicInc(x.ticket, schedule.last_ticket));
      ended = tile >= schedule.tiles;  // and so for each reducer
      const unsigned stage = k % kStages;
      const Part part = part_of(tile);
      tile_of[stage] = tile;
      arrive_expecting(full[stage], part.vectors * sizeof(Vector));
      if (part.vectors > 0)
        copy_in(ring + stage * kStage, in + part.first, part.vectors * sizeof(Vector), full[stage]);
    };
    for (unsigned k = 0; k < kStages; ++k) fetch(k);
    for (unsigned k = 0;; ++k) {
      const unsigned stage = k % kStages, tile = tile_of[stage];
      if (tile >= schedule.tiles) break;
      wait(scanned[stage], k / kStages % 2);
      const Part part = part_of(tile);
      if (part.vectors > 0)
        copy_out(out + part.first, ring + stage * kStage, part.vectors * sizeof(Vector));
      wait_until_read();
      fetch(k + kStages);
    }
    wait_until_written();
  } else if (warp >= kWarps) {
    const unsigned stage = warp - kWarps;
    for (unsigned round = 0;; ++round) {
      wait(full[stage], round % 2);
      const unsigned tile = tile_of[stage];
      if (tile >= schedule.tiles) {
        arrive(prefix_ready[stage]);
        return;
      }
      const unsigned vectors = part_of(tile).vectors;
      T warps{};  // of the lane's warp
#pragma unroll 4
      for (unsigned w = 0; w < kWarps; ++w) {
        T sum{};
#pragma unroll
        for (int j = 0; j < kVectors; ++j) {
          const unsigned i = (w * kVectors + j) * 32 + lane;
          const Vector v = i < vectors ? ring[stage * kStage + i] : Vector{};
          sum += v.x + v.y + (v.z + v.w);
        }
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, mask);
        if (lane == w) warps = sum;
      }
      warps = scan_warp(warps);
      if (lane == 31) put(x.words + tile, pack(warps, tag));
      const T own = __shfl_up_sync(0xFFFFFFFF, warps, 1);
      const T left = wait_for<T>(x.prefixes + tile, tag);
      if (lane < kWarps) before[stage][lane] = lane == 0 ? left : left + own;
      arrive(prefix_ready[stage]);
    }
  } else {
    const unsigned mine = warp * kVectors * 32 + lane;
    for (unsigned k = 0;; ++k) {
      const unsigned stage = k % kStages;
      wait(prefix_ready[stage], k / kStages % 2);
      const unsigned tile_index = tile_of[stage];
      if (tile_index >= schedule.tiles) return;
      wait(full[stage], k / kStages % 2);  // long since; now this thread sees the copy
      const Part part = part_of(tile_index);
      Tile<Type, kThreads, kVectors> tile;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const unsigned i = mine + 32 * j;
        tile.v[j] = i < part.vectors ? ring[stage * kStage + i] : Vector{};
        if (i == part.vectors && part.odd > 0) {
          const T* odd = in + part.first + 4 * size_t{i};
          tile.v[j] = {odd[0], load(odd, 1, part.odd), load(odd, 2, part.odd), T{}};
        }
      }
      T before_vector[kVectors];
      tile.scan_rows(before_vector, before[stage][warp]);
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        tile.add(tile.v[j], before_vector[j]);
        const unsigned i = mine + 32 * j;
        if (i < part.vectors) {
          ring[stage * kStage + i] = tile.v[j];
        } else if (i == part.vectors) {
          T* odd = out + part.first + 4 * size_t{i};
          if (part.odd > 0) odd[0] = tile.v[j].x;
          if (part.odd > 1) odd[1] = tile.v[j].y;
          if (part.odd > 2) odd[2] = tile.v[j].z;
        }
      }
      show_to_copies();
      arrive(scanned[stage]);
    }
  }
#endif
}

}  // namespace
}  // namespace ladders
