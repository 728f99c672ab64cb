// SPDX-License-Identifier: MIT
//
// The tensor memory accelerator (TMA) loads the tiles. One thread names a box of a matrix, and
// hardware computes the addresses, so loads take almost no issue slots.
//
// Each stage of the ring has two barriers in shared memory (mbarriers). `full`: all bytes have
// arrived, so warps may read. `empty`: all warps have read, so the stage may be filled again. A
// barrier is used again and again. Its uses are called phases, and a wait names the parity of one.
#pragma once

#include "common/ring.cuh"
#include "common/tma.cuh"
#include "sgemm/02_warp_tiles.cuh"

namespace ladders::sgemm {
// A ring of stages that one thread keeps full. Blocks take every gridDim.x-th tile. If there are no
// more blocks than SMs, a block copies its next tile while it stores the last.
template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    bulk_copies(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                Output c, int m, int n, int k, float alpha, float beta, Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  // A stage is filled again two k tiles after it was read, so that the thread that copies seldom
  // waits for slower warps.
  constexpr int kLag = 2;
  __shared__ MBarrier full[stages], empty[stages];
  float* ring = swizzled_shared<float>();
  Ring<stages>{full, empty}.start(1, Tiles::kThreads / 32);
  const int k_tiles = ceil_div(k, kDepth), grid = gridDim.x;
  const int tiles = ceil_div(raster.tiles() - int(blockIdx.x), grid), total = tiles * k_tiles;
  const auto start_copies = [&](int k_tile) {
    const int s = k_tile % stages, k0 = k_tile % k_tiles * kDepth;
    const auto tile = raster.place(blockIdx.x + k_tile / k_tiles * grid);
    float* a_tile = ring + s * Tiles::kWords;
    arrive_expect_tx(full[s], Tiles::kWords * 4);
    tma_load(a_tile, a_map, tile.row * kRows, k0, full[s]);
    tma_load(a_tile + kRows * kDepth, b_map, k0, tile.column * kColumns, full[s]);
  };
  if (threadIdx.x == 0)
    for (int k_tile = 0; k_tile < min(stages - kLag, total); ++k_tile) start_copies(k_tile);
  const auto mine = my_outputs<Tiles>();
  int k_tile = 0, s = 0;
  uint32_t parity = 0;  // of the stage's phase
  for (int t = 0; t < tiles; ++t) {
    float sums[8][16] = {};
    for (const int last = k_tile + k_tiles; k_tile < last; ++k_tile) {
      if (threadIdx.x == 0) {
        if (const int next = k_tile + stages - kLag; next < total) {
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
    const auto tile = raster.place(blockIdx.x + t * grid);
    store_thread_tile(c, sums, tile.row * kRows + mine.row, tile.column * kColumns + mine.column, m,
                      n, alpha, beta);
  }
#endif
}

template <class Tiles>
Raster raster_of(int64_t m, int64_t n) {
  return {.rows = int(ceil_div(m, Tiles::kRows)),
          .columns = int(ceil_div(n, Tiles::kColumns)),
          .band = 8};
}

template <bool persistent>
Implementation by_bulk_copies() {
  using Tiles = LargeTiles;
  constexpr int kStages = 4;
  return kernel<Sgemm>(
      bulk_copies<Tiles, kStages>,
      [](const Case& c, const Device& device, const void*) {
        const unsigned tiles = raster_of<Tiles>(c["m"], c["n"]).tiles();
        return LaunchPlan{.grid = persistent ? std::min(tiles, unsigned(device.sms)) : tiles,
                          .block = Tiles::kThreads,
                          .shared_bytes = kStages * Tiles::kWords * sizeof(float) + kRoomToAlign};
      },
      [](Sgemm& p) {
        const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
        return std::tuple(tensor_map({a, 4, m, k, Tiles::kRows, Tiles::kDepth, 128}),
                          tensor_map({b, 4, k, n, Tiles::kDepth, Tiles::kColumns, 0}), c, m, n, k,
                          alpha, beta, raster_of<Tiles>(m, n));
      });
}
inline std::string no_maps(const Case& c, const Device&) {
  if (c["m"] * c["n"] * c["k"] == 0) return "TMA takes no empty matrices";
  return aligned(c) ? "" : "TMA needs rows that start on 16 bytes";
}

}  // namespace ladders::sgemm
