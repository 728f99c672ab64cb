// SPDX-License-Identifier: MIT
//
// No wave that is not whole: blocks share out the tiles that would make one by steps of k, and hand
// their sums of parts over to one another.
#pragma once

#include <cuda/atomic>

#include "sgemm_producers.cuh"

namespace ladders {
namespace {

// Some steps of a tile.
struct Part {
  int tile, first, steps;
};

// What a block has to do: an equal share of the steps of the tiles that make no whole wave, and of
// those of a wave more if there is one, and then whole tiles. So all blocks end together.
class Share {
 public:
  __device__ Share(int tiles, int steps) : tiles_(tiles), steps_(steps) {
    const int blocks = gridDim.x, rest = tiles % blocks, shared = min(tiles, blocks + rest);
    all_ = rest == 0 ? 0 : shared * steps;
    each_ = all_ / blocks, more_ = all_ % blocks;
    begin_ = next_ = begin(blockIdx.x);
    end_ = begin(blockIdx.x + 1);
    tile_ = rest == 0 ? blockIdx.x : shared + blockIdx.x;
  }
  __device__ bool more() const { return next_ < end_ || tile_ < tiles_; }
  __device__ Part next() {
    if (next_ == end_) {
      const int tile = tile_;
      tile_ += gridDim.x;
      return {tile, 0, steps_};
    }
    const int tile = next_ / steps_, first = next_ % steps_;
    const int steps = min(steps_ - first, end_ - next_);
    next_ += steps;
    return {tile, first, steps};
  }
  // Whether `part` is the last of the shared ones. All that this block shares with others are of
  // tiles from first_tile() to last_tile(), in between whole ones.
  __device__ bool is_last_shared(const Part& part) const {
    return end_ > begin_ && int64_t{part.tile} * steps_ + part.first + part.steps == end_;
  }
  __device__ int first_tile() const { return begin_ / steps_; }
  __device__ int last_tile() const { return (end_ - 1) / steps_; }
  // The blocks that have steps of a shared tile, from .x to .y.
  __device__ int2 blocks_of(int tile) const {
    return {block_of(tile * steps_), block_of((tile + 1) * steps_ - 1)};
  }

 private:
  __device__ int begin(int block) const {
    return each_ * block + more_ * block / static_cast<int>(gridDim.x);
  }
  __device__ int block_of(int step) const {
    int block = static_cast<int>(float(step) * gridDim.x / all_);  // or next to it
    while (begin(block) > step) --block;
    while (begin(block + 1) <= step) ++block;
    return block;
  }

  int tiles_, steps_, tile_;
  int all_, each_, more_, begin_, end_, next_;  // steps of shared tiles
};

// Where blocks leave their sums of parts of tiles, each thread's quads as it has them. Once all
// parts of a tile are there, each of its blocks adds up some quads of all of them, always in the
// same order, and stores these: a warp those of the same warp. A flag says how many blocks have
// still to see that a warp's sums are there, and so is 0 between launches, which must not overlap.
// All blocks must run at once.
template <class Tiles>
struct Handover {
  static constexpr int kQuads = 32;  // a thread

  float4* quads;     // of as many tiles as there are blocks and shared tiles
  unsigned* unseen;  // one a warp of each

  using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  // What this warp of a block has of a tile: blocks have tiles in order, so no two have the same.
  __device__ static int slot(int block, int tile) {
    return (block + tile) * Tiles::kWarps + threadIdx.x / 32;
  }
  __device__ float4* quads_of(int slot) const {
    return quads + slot * kQuads * 32 + threadIdx.x % 32;
  }
  // For the blocks from .x to .y, which share the tile.
  __device__ void leave(const float (&sums)[8][16], int tile, const int2& blocks) const {
    const int mine = slot(blockIdx.x, tile);
    float4* to = quads_of(mine);
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) __stcg(to + (4 * r + j) * 32, swapped(&sums[r][4 * j]));
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      Flag(unseen[mine]).store(blocks.y - blocks.x + 1, cuda::memory_order_release);
  }
  // Until this warp's sums of all parts are there.
  __device__ void wait(int tile, const int2& blocks) const {
    const int lane = threadIdx.x % 32;
    for (bool there = false; !__all_sync(~0u, there);) {
      there = true;
#pragma unroll 1
      for (int b = blocks.x + lane; b <= blocks.y; b += 32)
        there = there && Flag(unseen[slot(b, tile)]).load(cuda::memory_order_acquire) != 0;
    }
#pragma unroll 1
    for (int b = blocks.x + lane; b <= blocks.y; b += 32)
      Flag(unseen[slot(b, tile)]).fetch_sub(1, cuda::memory_order_relaxed);
    __syncwarp();
  }
  // The warp's sums begin in this row and column of `to`.
  template <bool plain>
  __device__ void add_up(int tile, const int2& blocks, const Destination& to, int row,
                         int column) const {
    constexpr int kAtOnce = 4, kApart = Tiles::kWarps * kQuads * 32;
    const int parts = blocks.y - blocks.x + 1, mine = blockIdx.x - blocks.x;
    const int end = kQuads * (mine + 1) / parts;
    const auto [x, y] = corner();
#pragma unroll 1
    for (int quad = kQuads * mine / parts; quad < end; quad += kAtOnce) {
      float4 sums[kAtOnce] = {};
      const float4* from = quads_of(slot(blocks.x, tile)) + quad * 32;
#pragma unroll 1
      for (int left = parts; left > 0; left -= kAtOnce) {
        float4 more[kAtOnce][kAtOnce];  // all are asked for before any is waited for
#pragma unroll
        for (int i = 0; i < kAtOnce * kAtOnce; ++i) {
          const int ahead = i / kAtOnce, right = i % kAtOnce;
          const bool there = ahead < left && quad + right < end;
          more[ahead][right] = there ? __ldcg(from + ahead * kApart + right * 32) : float4{};
        }
#pragma unroll
        for (int i = 0; i < kAtOnce * kAtOnce; ++i)
          add(sums[i % kAtOnce], more[i / kAtOnce][i % kAtOnce]);
        from += kAtOnce * kApart;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = (quad + i) / 4, j = (quad + i) % 4;
        if (quad + i < end)
          to.store<plain>(row + r / 4 * 32 + 4 * y + r % 4, column + 16 * j + 4 * x,
                          swapped(&sums[i].x));
      }
    }
  }
};

template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    stream_k(const float* __restrict__ a, const __grid_constant__ TensorMap b_map,
             float* __restrict__ c, int m, int n, int k, float alpha, float beta, Raster raster,
             Handover<Tiles> handover) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  __shared__ MBarrier barriers[2 * stages];
  MBarrier *full = kept(barriers), *empty = full + stages;
  float* ring = kept(swizzled_shared<float>());
  start_ring<stages>(full, empty, Tiles::kConsumers);
  const int steps = ceil_div(k, kDepth);
  Share share(raster.tiles(), steps);
  if (threadIdx.x >= Tiles::kConsumers) {
    shrink_to<72>();
    Producer<Tiles, stages> producer{ring, full, empty, a, b_map, m, k};
    while (share.more()) {
      const Part part = share.next();
      const Place tile = raster.place(part.tile);
      producer.produce(tile.row * kRows, tile.column * kColumns, part.first * kDepth, part.steps);
    }
    return;
  }
  grow_to<216>();
  constexpr int kWarpsX = kColumns / 64;
  const int warp = threadIdx.x / 32;
  const auto [x, y] = corner();
  const int row = warp / kWarpsX * 64, column = warp % kWarpsX * 64;
  float* way_out = ring + stages * Tiles::kWords + warp * 8 * 64;
  Consumer<Tiles, stages> consumer{ring + row + 4 * y, ring + kRows * kDepth + column + 4 * x, full,
                                   empty};
  const auto out = [&](int tile) -> Destination {
    const Place place = raster.place(tile);
    return {c, place.row * kRows, place.column * kColumns, m, n, alpha, beta};
  };
  if (share.more()) consumer.start();
  while (share.more()) {
    const Part part = share.next();
    float sums[8][16] = {};
    consumer.consume(sums, part.steps, !share.more());
    if (part.steps == steps)
      store<Tiles>(sums, row, column, way_out, out(part.tile));
    else
      handover.leave(sums, part.tile, share.blocks_of(part.tile));
    if (share.is_last_shared(part))
      for (int tile = share.first_tile(); tile <= share.last_tile(); ++tile)
        if (const int2 others = share.blocks_of(tile); others.x < others.y) {
          const Destination to = out(tile);
          handover.wait(tile, others);
          if (to.plain<Tiles>())
            handover.template add_up<true>(tile, others, to, row, column);
          else
            handover.template add_up<false>(tile, others, to, row, column);
        }
  }
#endif
}

}  // namespace
}  // namespace ladders
