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
    next_ = begin(blockIdx.x);
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
  // The last of the blocks that have steps of a shared tile.
  __device__ int last_block(int tile) const {
    const int step = (tile + 1) * steps_ - 1;
    int block = static_cast<int>(float(step) * gridDim.x / all_);  // or next to it
    while (begin(block) > step) --block;
    while (begin(block + 1) <= step) ++block;
    return block;
  }

 private:
  __device__ int begin(int block) const {
    return each_ * block + more_ * block / static_cast<int>(gridDim.x);
  }

  int tiles_, steps_, tile_;
  int all_, each_, more_, end_, next_;  // steps of shared tiles
};

// Where a block leaves its sums of a tile that begins in a block before. It comes to them first,
// and that block to the tile's beginning last: so they are there when they are wanted, and added in
// the same order always. Each thread's quads are as it has them; a flag a warp says that they are
// there, and is 0 between launches, which must not overlap. All blocks must run at once.
template <class Tiles>
struct Handover {
  static constexpr int kQuads = 32;  // a thread

  float4* quads;  // a tile a block
  unsigned* there;

  using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  __device__ static int slot(int block) { return block * Tiles::kWarps + threadIdx.x / 32; }
  __device__ float4* quads_of(int slot) const {
    return quads + slot * kQuads * 32 + threadIdx.x % 32;
  }
  __device__ void leave(const float (&sums)[8][16]) const {
    const int mine = slot(blockIdx.x);
    float4* to = quads_of(mine);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) __stcg(to + i * 32, swapped(&sums[i / 4][i % 4 * 4]));
    __syncwarp();
    if (threadIdx.x % 32 == 0) Flag(there[mine]).store(1, cuda::memory_order_release);
  }
  __device__ void take(float (&sums)[8][16], int block) const {
    constexpr int kAtOnce = 8;  // are asked for before any is waited for
    const int theirs = slot(block);
    const Flag flag(there[theirs]);
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) flag.store(0, cuda::memory_order_relaxed);
    const float4* from = quads_of(theirs);
#pragma unroll
    for (int first = 0; first < kQuads; first += kAtOnce) {
      float4 more[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) more[i] = __ldcg(from + (first + i) * 32);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        float* to = &sums[(first + i) / 4][(first + i) % 4 * 4];
        to[0] += more[i].y, to[1] += more[i].x, to[2] += more[i].w, to[3] += more[i].z;
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
  Consumer<Tiles, stages, 2> consumer{ring + row + 4 * y, ring + kRows * kDepth + column + 4 * x,
                                      full, empty};
  if (share.more()) consumer.start();
  while (share.more()) {
    const Part part = share.next();
    float sums[8][16] = {};
    consumer.consume(sums, part.steps, !share.more());
    if (part.first > 0) {
      handover.leave(sums);
      continue;
    }
    if (part.steps < steps)
      for (int block = blockIdx.x + 1; block <= share.last_block(part.tile); ++block)
        handover.take(sums, block);
    const Place tile = raster.place(part.tile);
    store<Tiles>(sums, row, column, way_out,
                 {c, tile.row * kRows, tile.column * kColumns, m, n, alpha, beta});
  }
#endif
}

}  // namespace
}  // namespace ladders
