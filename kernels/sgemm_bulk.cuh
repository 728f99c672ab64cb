// SPDX-License-Identifier: MIT
//
// The same arithmetic, fed by the tensor memory accelerator: no issue slot is spent on loading.
#pragma once

#include "sgemm_warp_tile.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// The order of C's tiles: `band` rows of them at a time, downwards, then on to the right, so that
// those at work together share rows of A and columns of B in the L2.
struct Place {
  int row, column;  // of a tile
};
struct Raster {
  int rows, columns, band;  // of tiles

  __host__ __device__ int tiles() const { return rows * columns; }
  __device__ __forceinline__ Place place(int tile) const {
    const int first = tile / (band * columns) * band, high = min(band, rows - first);
    const int within = tile % (band * columns);
    return {.row = first + within % high, .column = within / high};
  }
};

// A ring of stages that one thread keeps full. A warp that has read a stage arrives at its `empty`;
// the bytes of the next copies into it arrive at `full`. Blocks take every gridDim.x-th tile, so as
// many blocks as tiles, or as many as there are SMs: then the copies for a block's next tile are
// under way while it stores the last.
template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    bulk_copies(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                float* __restrict__ c, int m, int n, int k, float alpha, float beta,
                Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  constexpr int kLag = 2;  // stages that are read while none is waited for to be free
  __shared__ MBarrier full[stages], empty[stages];
  float* ring = swizzled_shared<float>();
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      initialize(full[s], 1);
      initialize(empty[s], Tiles::kThreads / 32);
    }
    publish_barriers();
  }
  __syncthreads();
  const int steps = ceil_div(k, kDepth), grid = gridDim.x;
  const int tiles = (raster.tiles() - int(blockIdx.x) + grid - 1) / grid, total = tiles * steps;
  const auto start_copies = [&](int step) {
    const int s = step % stages, k0 = step % steps * kDepth;
    const Place tile = raster.place(blockIdx.x + step / steps * grid);
    float* a_tile = ring + s * Tiles::kWords;
    arrive_expecting(full[s], Tiles::kWords * 4);
    copy_box(a_tile, a_map, tile.row * kRows, k0, full[s]);
    copy_box(a_tile + kRows * kDepth, b_map, k0, tile.column * kColumns, full[s]);
  };
  if (threadIdx.x == 0)
    for (int step = 0; step < min(stages - kLag, total); ++step) start_copies(step);
  const Outputs mine = my_outputs<Tiles>();
  int step = 0, s = 0;
  uint32_t parity = 0;
  for (int t = 0; t < tiles; ++t) {
    float sums[8][16] = {};
    for (const int last = step + steps; step < last; ++step) {
      if (threadIdx.x == 0) {
        const int next = step + stages - kLag;
        if (next < total) {
          if (next >= stages) wait(empty[next % stages], (next / stages - 1) % 2);
          start_copies(next);
        }
      }
      __syncwarp();
      wait(full[s], parity);
      multiply<Tiles>(sums, ring + s * Tiles::kWords, mine);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(empty[s]);
      if (++s == stages) s = 0, parity ^= 1;
    }
    const Place tile = raster.place(blockIdx.x + t * grid);
    store(c, sums, tile.row * kRows + mine.row, tile.column * kColumns + mine.column, m, n, alpha,
          beta);
  }
#endif
}

}  // namespace
}  // namespace ladders
