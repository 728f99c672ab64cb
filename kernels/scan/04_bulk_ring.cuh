// SPDX-License-Identifier: MIT
//
// Copies that overlap with everything else: bulk copies move tiles to a ring in shared memory and
// back. A resident block takes the next tile, in the order of memory, when its ring has room.
#pragma once

#include "common/ring.cuh"
#include "common/tma.cuh"
#include "scan/03_single_pass.cuh"
#include "scan/schedule.cuh"

namespace ladders::scan {
// The warps of a block have four roles, and synchronize only at the stages of the ring:
// - One thread of one warp loads tiles and stores them.
// - Each stage has a warp that publishes the sum of a tile and waits for its prefix, the sum of all
//   tiles before.
// - Half of the warps scan the tile in place, starting from its prefix.
// - The last warp of block 0 adds up the published sums of all blocks, always in the same order. In
//   other blocks it idles: if all polled, the few L2 lines that hold the sums would be the limit.

// That warp handles 32 tiles at a time, and polls eight times as many. It publishes a tile's prefix
// as soon as all earlier sums are there: it does not need the tile's own.
template <class T>
__device__ __forceinline__ void publish_prefixes(unsigned tiles, const Exchange& x, unsigned tag) {
  constexpr int kPolled = 8;
  const unsigned lane = threadIdx.x % 32;
  T before{};
  unsigned next = 0;  // the tile whose prefix is published next
  for (unsigned first = 0; first < tiles;) {
    Word words[kPolled];
#pragma unroll
    for (int j = 0; j < kPolled; ++j) {
      const unsigned tile = first + 32 * j + lane;
      words[j] = tile < tiles ? load_word(x.words + tile, tag) : pack(T{}, tag);
    }
#pragma unroll
    for (int j = 0; j < kPolled; ++j) {
      const unsigned missing = __ballot_sync(0xFFFFFFFF, tag_of(words[j]) != tag);
      const unsigned tile = first + lane, end = missing ? first + __ffs(missing) : first + 32;
      const T sums = scan_warp(sum_in<T>(words[j])), left = __shfl_up_sync(0xFFFFFFFF, sums, 1);
      if (tile >= next && tile < min(end, tiles))
        store_relaxed(x.prefixes + tile, pack(lane == 0 ? before : before + left, tag));
      next = max(next, end);
      if (missing) break;
      before += __shfl_sync(0xFFFFFFFF, sums, 31);
      first += 32;
    }
  }
}

template <class Type, int kThreads, int kVectors, int stages>
__global__ void __launch_bounds__(kThreads + 32 * (stages + 2), 1)
    bulk_ring(const Value<Type>* __restrict__ in, size_t count, Value<Type>* __restrict__ out,
              Schedule schedule, Exchange x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using T = Value<Type>;
  using Vector = typename Type::Vector;
  constexpr unsigned kWarps = kThreads / 32, kStages = stages, kStage = kThreads * kVectors;
  static_assert(kWarps + kStages + 2 <= 32);
  __shared__ MBarrier full[kStages], prefix_ready[kStages], scanned[kStages];
  __shared__ unsigned tile_of[kStages];  // a number that is no tile marks the end
  __shared__ T before[kStages][kWarps];  // the sum of all elements before the warp's
  auto* ring = dynamic_shared<Vector>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  struct Part {
    size_t first;
    unsigned vectors, odd;  // `odd` elements after the last whole vector
  };
  const auto part_of = [&](unsigned tile) {
    const size_t first = size_t{tile} * schedule.tile_elements;
    const size_t left = first < count ? count - first : 0;
    const unsigned most = schedule.tile_elements, elements = left < most ? unsigned(left) : most;
    return Part{first, elements / 4, elements % 4};
  };

  if (threadIdx.x == 0) {
    Ring<stages>{full, scanned}.initialize(1, kThreads);
    for (MBarrier& barrier : prefix_ready) mbarrier_init(barrier, 32);
    fence_mbarrier_init();
  }
  const unsigned epoch = *x.epoch, tag = tagged(epoch, aggregate);
  __syncthreads();

  const auto load_and_store = [&] {  // one thread
    bool ended = false;
    const auto fetch = [&](unsigned k) {
      unsigned tile = schedule.tiles;
      if (!ended)
        tile = gridDim.x * min(k, kStages) +
               (k < kStages ? blockIdx.x : atomicInc(x.ticket, schedule.last_ticket));
      ended = tile >= schedule.tiles;
      const unsigned stage = k % kStages;
      const Part part = part_of(tile);
      tile_of[stage] = tile;
      arrive_expect_tx(full[stage], part.vectors * sizeof(Vector));
      if (part.vectors > 0)
        bulk_load(ring + stage * kStage, in + part.first, part.vectors * sizeof(Vector),
                  full[stage]);
    };
    for (unsigned k = 0; k < kStages; ++k) fetch(k);
    for (unsigned k = 0;; ++k) {
      const unsigned stage = k % kStages, tile = tile_of[stage];
      if (tile >= schedule.tiles) break;
      wait(scanned[stage], k / kStages % 2);
      const Part part = part_of(tile);
      if (part.vectors > 0)
        bulk_store(out + part.first, ring + stage * kStage, part.vectors * sizeof(Vector));
      bulk_wait_group_read();
      fetch(k + kStages);
    }
    bulk_wait_group();
  };
  const auto publish_sums = [&](unsigned stage) {  // one warp
    for (unsigned round = 0;; ++round) {
      wait(full[stage], round % 2);
      const unsigned tile = tile_of[stage];
      if (tile >= schedule.tiles) {
        arrive(prefix_ready[stage]);
        return;
      }
      const unsigned vectors = part_of(tile).vectors;
      T warps{};  // the sum of consumer warp `lane`
#pragma unroll 4
      for (unsigned w = 0; w < kWarps; ++w) {
        T sum{};
#pragma unroll
        for (int j = 0; j < kVectors; ++j) {
          const unsigned i = (w * kVectors + j) * 32 + lane;
          const Vector v = i < vectors ? ring[stage * kStage + i] : Vector{};
          sum += v.x + v.y + (v.z + v.w);
        }
        sum = sum_in_all_lanes(sum);
        if (lane == w) warps = sum;
      }
      warps = scan_warp(warps);
      if (lane == 31) store_relaxed(x.words + tile, pack(warps, tag));
      const T own = __shfl_up_sync(0xFFFFFFFF, warps, 1);
      const T left = wait_for<T>(x.prefixes + tile, tag);
      if (lane < kWarps) before[stage][lane] = lane == 0 ? left : left + own;
      arrive(prefix_ready[stage]);
    }
  };
  const auto scan_tiles = [&] {
    const unsigned mine = warp * kVectors * 32 + lane;
    for (unsigned k = 0;; ++k) {
      const unsigned stage = k % kStages;
      wait(prefix_ready[stage], k / kStages % 2);
      const unsigned tile_index = tile_of[stage];
      if (tile_index >= schedule.tiles) return;
      wait(full[stage], k / kStages % 2);  // no delay; makes the copy visible to this thread
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
      fence_proxy_async_shared();
      arrive(scanned[stage]);
    }
  };

  if (warp < kWarps) {
    scan_tiles();
  } else if (warp < kWarps + kStages) {
    publish_sums(warp - kWarps);
  } else if (warp == kWarps + kStages) {
    if (lane == 0) load_and_store();
  } else if (blockIdx.x == 0) {
    publish_prefixes<T>(schedule.tiles, x, tag);
    if (lane == 0)
      *x.epoch = epoch + 1;  // all blocks with tiles have read it: their sums carry its tag
  }
#endif
}

constexpr int kRingThreads = 384, kRingVectors = 3, kRingStages = 10;
constexpr size_t kRingTile = size_t{4} * kRingThreads * kRingVectors;  // elements, at most
constexpr size_t kRingBytes = 4 * kRingTile * kRingStages;
constexpr size_t kRingRoom = kRingBytes + 1024;  // plus barriers and prefixes

// Blocks wait for each other, so all must be resident: a cooperative launch fails if they are not.
// (Occupancy cannot tell if other processes share the GPU.) Few elements take fewer blocks.
template <class Type>
Implementation in_a_ring() {
  return kernel<Scan<Type>>(
      bulk_ring<Type, kRingThreads, kRingVectors, kRingStages>,
      [](const Case& c, const Device& device, const void* kernel) {
        constexpr unsigned kBlock = kRingThreads + 32 * (kRingStages + 2);
        auto plan = fill_device({.block = kBlock, .shared_bytes = kRingBytes}, kernel, device);
        plan.grid.x = std::min<size_t>(plan.grid.x, ceil_div(c["elements"], kLeastTile));
        return plan;
      },
      [](Scan<Type>& p, const LaunchPlan& plan) {
        const auto [in, count, out] = p.arguments();
        return std::tuple(in, count, out, make_schedule(count, kRingTile, plan.grid.x, kRingStages),
                          p.exchange());
      },
      LaunchMode{.cooperative = true});
}

}  // namespace ladders::scan
