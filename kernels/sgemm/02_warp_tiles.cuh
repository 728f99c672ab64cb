// SPDX-License-Identifier: MIT
//
// 8 x 16 outputs per thread, as many as its registers hold, and how to load for such threads.
#pragma once

#include <cuda_pipeline.h>

#include "common/raster.cuh"
#include "sgemm/problem.cuh"

namespace ladders::sgemm {
// A warp has 64 x 64 outputs. A k tile is kDepth consecutive terms of the sums: the part of A and B
// that a stage in shared memory holds, rows of A, then rows of B.
template <int rows, int columns>
struct WarpTiles {
  static constexpr int kRows = rows, kColumns = columns, kDepth = 32;
  static constexpr int kThreads = 32 * (rows / 64) * (columns / 64);
  static constexpr int kWords = kDepth * (rows + columns);
};

// Chunks of A's rows of 32 words, XORed with the row: eight lanes that read one chunk of
// neighbouring rows cover all banks.
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * 32 + ((chunk ^ (row % 8)) * 4);
}

// This lane's place in its warp, x of 4 and y of 8. A quarter of a warp is 2 x 4 lanes: hardware
// serves 16-byte loads per quarter warp, and joins two quarters if pairs of lanes read the same.
__device__ __forceinline__ int2 lane_position() {
  const int lane = threadIdx.x % 32;
  return {(lane & 1) | ((lane >> 1) & 2), ((lane >> 1) & 1) | ((lane >> 2) & 6)};
}

// The outputs of a thread: rows `row`, row + 8, ..., and four columns at `column`, column + 16, ...
template <class Tiles>
__device__ __forceinline__ Raster::Place my_outputs() {
  constexpr int kWarpsX = Tiles::kColumns / 64;
  const int warp = threadIdx.x / 32;
  const auto [x, y] = lane_position();
  return {.row = warp / kWarpsX * 64 + y, .column = warp % kWarpsX * 64 + x * 4};
}

__device__ __forceinline__ float4 swapped(const float* quad) {
  return {quad[1], quad[0], quad[3], quad[2]};
}

// 128 FMAs from 24 words of a stage. A is read for four terms at a time, so it need not be
// transposed.
template <class Tiles>
__device__ __forceinline__ void multiply(float (&sums)[8][16], const float* stage,
                                         Raster::Place mine) {
  constexpr int kChunks = Tiles::kDepth / 4, kUnrolled = 2;
  const float* a_rows = stage + mine.row * Tiles::kDepth;
  const float* b_row = stage + Tiles::kRows * Tiles::kDepth + mine.column;
  int column = mine.row % 8 * 4;  // of A's chunk, advanced by XOR
#pragma unroll 1
  for (int chunk = 0; chunk < kChunks; chunk += kUnrolled) {
#pragma unroll
    for (int u = 0; u < kUnrolled; ++u) {
      alignas(16) float a[8][4];
      for (int r = 0; r < 8; ++r)
        as_float4(a[r]) = as_float4(a_rows + (column ^ 4 * u) + r * 8 * Tiles::kDepth);
      for (int i = 0; i < 4; ++i) {
        alignas(16) float b[16];
        for (int j = 0; j < 16; j += 4)
          as_float4(&b[j]) = as_float4(b_row + (4 * u + i) * Tiles::kColumns + 4 * j);
        for (int r = 0; r < 8; ++r)
          for (int j = 0; j < 16; ++j) sums[r][j] += a[r][i] * b[j];
      }
    }
    column ^= (chunk ^ (chunk + kUnrolled)) * 4;
    b_row += 4 * kUnrolled * Tiles::kColumns;
  }
}

__device__ __forceinline__ void store_thread_tile(float* c, const float (&sums)[8][16], int row,
                                                  int column, int m, int n, float alpha,
                                                  float beta) {
#pragma unroll
  for (int r = 0; r < 8; ++r)
    for (int j = 0; j < 16; j += 4)
      store_four(c, row + 8 * r, column + 4 * j, m, n, alpha, &sums[r][j], beta);
}

// Loads as `vectorized` does, but does not transpose A, and waits for the loads: the SM's only
// block has nothing else to do.
template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    warp_tile(Input a, Input b, Output c, int m, int n, int k, float alpha, float beta) {
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  __shared__ __align__(16) float stage[Tiles::kWords];
  float *a_tile = stage, *b_tile = stage + kRows * kDepth;
  const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const auto mine = my_outputs<Tiles>();
  float sums[8][16] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
#pragma unroll
    for (int i = threadIdx.x; i < kRows * kDepth / 4; i += Tiles::kThreads) {
      const int row = i / (kDepth / 4), chunk = i % (kDepth / 4);
      as_float4(&a_tile[swizzled(row, chunk)]) =
          load_float4_or_zero(a, row0 + row, k0 + 4 * chunk, m, k);
    }
#pragma unroll
    for (int i = threadIdx.x; i < kDepth * kColumns / 4; i += Tiles::kThreads) {
      const int row = i / (kColumns / 4), column = i % (kColumns / 4) * 4;
      as_float4(&b_tile[row * kColumns + column]) =
          load_float4_or_zero(b, k0 + row, column0 + column, k, n);
    }
    __syncthreads();
    multiply<Tiles>(sums, stage, mine);
    __syncthreads();
  }
  store_thread_tile(c, sums, row0 + mine.row, column0 + mine.column, m, n, alpha, beta);
}

// Starts the copy of `bytes` of a row to shared memory. Elements outside of the matrix become 0.
template <int bytes>
__device__ __forceinline__ void copy_edge(float* to, const float* matrix, int row, int column,
                                          int rows, int columns) {
  const int inside = row < rows ? min(max(columns - column, 0) * 4, bytes) : 0;
  __pipeline_memcpy_async(to, inside > 0 ? &matrix[size_t(row) * columns + column] : matrix, bytes,
                          bytes - inside);
}
// Copies every kApart-th row of a box, from row `within` of the box on, to place(row).
template <int box_rows, int kApart, int bytes, class Place>
__device__ __forceinline__ void copy_rows(const float* matrix, int row, int column, int within,
                                          int rows, int columns, bool whole, Place place) {
  const float* from = &matrix[size_t(row) * columns + column + within];
#pragma unroll
  for (int i = 0; i < box_rows; i += kApart) {
    if (whole) {
      __pipeline_memcpy_async(place(i), from, bytes);
      from += size_t(kApart) * columns;
    } else {
      copy_edge<bytes>(place(i), matrix, row + i, column + within, rows, columns);
    }
  }
}

// The next tiles arrive while this one is used: a ring of stages, filled without passing through
// registers, and one barrier instead of two per stage. Unaligned rows are copied word by word.
template <class Tiles, int stages, int bytes>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    async_copies(Input a, Input b, Output c, int m, int n, int k, float alpha, float beta) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (stages < 4) return;  // Hopper has room for four: see async_copies_at()
#endif
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  constexpr int kWords = bytes / 4, kA = kDepth / kWords, kB = kColumns / kWords;  // copies per row
  float* ring = dynamic_shared<float>();
  const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const int a_row = threadIdx.x / kA, a_column = threadIdx.x % kA * kWords;
  const int b_row = threadIdx.x / kB, b_column = threadIdx.x % kB * kWords;
  const int k_tiles = ceil_div(k, kDepth);
  const auto start_copies = [&](int k_tile) {
    float* a_tile = ring + k_tile % stages * Tiles::kWords;
    float* b_tile = a_tile + kRows * kDepth;
    const int k0 = k_tile * kDepth;
    const bool whole = row0 + kRows <= m && column0 + kColumns <= n && k0 + kDepth <= k;
    copy_rows<kRows, Tiles::kThreads / kA, bytes>(
        a, row0 + a_row, k0, a_column, m, k, whole,
        [&](int row) { return &a_tile[swizzled(a_row + row, a_column / 4) + a_column % 4]; });
    copy_rows<kDepth, Tiles::kThreads / kB, bytes>(
        b, k0 + b_row, column0, b_column, k, n, whole,
        [&](int row) { return &b_tile[(b_row + row) * kColumns + b_column]; });
  };
  for (int k_tile = 0; k_tile < stages - 1; ++k_tile) {
    if (k_tile < k_tiles) start_copies(k_tile);
    __pipeline_commit();
  }
  const auto mine = my_outputs<Tiles>();
  float sums[8][16] = {};
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    __pipeline_wait_prior(stages - 2);
    __syncthreads();  // this k tile has arrived; nobody reads earlier ones
    if (k_tile + stages - 1 < k_tiles) start_copies(k_tile + stages - 1);
    __pipeline_commit();
    multiply<Tiles>(sums, ring + k_tile % stages * Tiles::kWords, mine);
  }
  store_thread_tile(c, sums, row0 + mine.row, column0 + mine.column, m, n, alpha, beta);
}

template <class Tiles, int stages = 0>
LaunchPlan one_block_per_warped_tile(const Case& c, const Device&, const void*) {
  return {.grid = tiles(c, Tiles::kRows, Tiles::kColumns),
          .block = Tiles::kThreads,
          .shared_bytes = stages * Tiles::kWords * sizeof(float)};
}

using LargeTiles = WarpTiles<128, 256>;

// Whether rows of A, B and C start on 16 bytes.
inline bool aligned(const Case& c) { return c["n"] % 4 == 0 && c["k"] % 4 == 0; }

template <int stages>
Implementation async_copies_in(const Case& c) {
  return kernel<Sgemm>(
      aligned(c) ? async_copies<LargeTiles, stages, 16> : async_copies<LargeTiles, stages, 4>,
      one_block_per_warped_tile<LargeTiles, stages>);
}
// As many stages as fit, at most four: three on an A100, two on an RTX 4090.
inline Implementation async_copies_at(const Case& c, const Device& device) {
  const size_t room = device.shared_bytes_per_block / (LargeTiles::kWords * sizeof(float));
  if (room >= 4) return async_copies_in<4>(c);
  return room == 3 ? async_copies_in<3>(c) : async_copies_in<2>(c);
}

}  // namespace ladders::sgemm
