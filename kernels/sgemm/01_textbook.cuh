// SPDX-License-Identifier: MIT
//
// From one output per thread to 8 x 8 in registers: the rungs of the textbooks.
#pragma once

#include "sgemm/problem.cuh"

namespace ladders::sgemm {
// One thread per output. The lanes of a warp are 32 rows, so a load of A touches 32 sectors for 32
// words, and so does the store of C.
inline __global__ void naive_uncoalesced(Input a, Input b, Output c, int m, int n, int k,
                                         float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
  update(c[size_t(row) * n + column], alpha, sum, beta);
}

// The lanes are 32 columns. Now they load neighbouring words of B and store neighbouring words of
// C: these accesses are coalesced. All lanes load the same word of A, a broadcast.
inline __global__ void naive(Input a, Input b, Output c, int m, int n, int k, float alpha,
                             float beta) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
  update(c[size_t(row) * n + column], alpha, sum, beta);
}

// Tiles of A and B in shared memory: a word loaded from global memory serves 32 FMAs. But each FMA
// still reads two words of shared memory.
inline __global__ void tiled(Input a, Input b, Output c, int m, int n, int k, float alpha,
                             float beta) {
  constexpr int kTile = 32;
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    a_tile[y][x] = load_or_zero(a, row, k0 + x, m, k);
    b_tile[y][x] = load_or_zero(b, k0 + y, column, k, n);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();  // before the next tiles overwrite these
  }
  if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sum, beta);
}

// A thread owns eight outputs of a column, which share an element of B in a register: a term
// reads 9 words for 8 FMAs instead of 16.
inline __global__ void register_tile_1d(Input a, Input b, Output c, int m, int n, int k,
                                        float alpha, float beta) {
  constexpr int kSide = 64, kDepth = 8, kRows = 8;  // 512 threads: 64 columns x 8 groups of rows
  __shared__ float a_tile[kSide][kDepth], b_tile[kDepth][kSide];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  const int a_row = threadIdx.x / kDepth, a_column = threadIdx.x % kDepth;
  float sums[kRows] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    a_tile[a_row][a_column] = load_or_zero(a, row0 + a_row, k0 + a_column, m, k);
    b_tile[y][x] = load_or_zero(b, k0 + y, column0 + x, k, n);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const float b_value = b_tile[i][x];
      for (int r = 0; r < kRows; ++r) sums[r] += a_tile[y * kRows + r][i] * b_value;
    }
    __syncthreads();
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = row0 + y * kRows + r, column = column0 + x;
    if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sums[r], beta);
  }
}

// A thread owns 8 x 8 outputs: 16 words read feed 64 FMAs. Its columns lie 16 apart, so that the 16
// lanes of a half warp read neighbouring words of B. They all read the same word of A, a broadcast.
inline __global__ void __launch_bounds__(256, 2)
    register_tile_2d(Input a, Input b, Output c, int m, int n, int k, float alpha, float beta) {
  constexpr int kSide = 128, kDepth = 8, kOwn = 8, kApart = kSide / kOwn;
  __shared__ float a_tile[kSide][kDepth], b_tile[kDepth][kSide];
  const int x = threadIdx.x % kApart, y = threadIdx.x / kApart;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  float sums[kOwn][kOwn] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = threadIdx.x; i < kSide * kDepth; i += blockDim.x) {
      a_tile[i / kDepth][i % kDepth] = load_or_zero(a, row0 + i / kDepth, k0 + i % kDepth, m, k);
      b_tile[i / kSide][i % kSide] = load_or_zero(b, k0 + i / kSide, column0 + i % kSide, k, n);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a_values[kOwn], b_values[kOwn];
      for (int j = 0; j < kOwn; ++j) {
        a_values[j] = a_tile[y + j * kApart][i];
        b_values[j] = b_tile[i][x + j * kApart];
      }
      for (int r = 0; r < kOwn; ++r)
        for (int s = 0; s < kOwn; ++s) sums[r][s] += a_values[r] * b_values[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
    for (int s = 0; s < kOwn; ++s) {
      const int row = row0 + y + r * kApart, column = column0 + x + s * kApart;
      if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sums[r][s], beta);
    }
}

// 16-byte accesses: the same words in fewer instructions. A's tile is transposed, so that a
// thread's rows are neighbours too; four spare columns halve the conflicts of its stores. A thread
// owns its rows and columns in two groups of four, 64 apart, so that loads have no conflicts.
inline __global__ void __launch_bounds__(256, 2)
    vectorized(Input a, Input b, Output c, int m, int n, int k, float alpha, float beta) {
  constexpr int kSide = 128, kDepth = 16, kOwn = 8, kHalf = kSide / 2;
  __shared__ __align__(16) float a_tile[kDepth][kSide + 4];
  __shared__ __align__(16) float b_tile[kDepth][kSide];
  const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  float sums[kOwn][kOwn] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < kSide * kDepth; i += 256 * 4) {
      const int a_row = i / kDepth, a_column = i % kDepth;
      const float4 a_four = load_float4_or_zero(a, row0 + a_row, k0 + a_column, m, k);
      a_tile[a_column + 0][a_row] = a_four.x;
      a_tile[a_column + 1][a_row] = a_four.y;
      a_tile[a_column + 2][a_row] = a_four.z;
      a_tile[a_column + 3][a_row] = a_four.w;
      as_float4(&b_tile[i / kSide][i % kSide]) =
          load_float4_or_zero(b, k0 + i / kSide, column0 + i % kSide, k, n);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      alignas(16) float a_values[kOwn], b_values[kOwn];
      for (int half = 0; half < 2; ++half) {
        as_float4(&a_values[4 * half]) = as_float4(&a_tile[i][y + half * kHalf]);
        as_float4(&b_values[4 * half]) = as_float4(&b_tile[i][x + half * kHalf]);
      }
      for (int r = 0; r < kOwn; ++r)
        for (int s = 0; s < kOwn; ++s) sums[r][s] += a_values[r] * b_values[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + y + r % 4 + r / 4 * kHalf, column = column0 + x + half * kHalf;
      store_four(c, row, column, m, n, alpha, &sums[r][4 * half], beta);
    }
}

// One thread per output, in blocks of 32 x 32. If `x_is_row`, lanes lie along a column of C.
template <bool x_is_row>
LaunchPlan one_thread_per_output(const Case& c, const Device&, const void*) {
  const dim3 grid = tiles(c, 32, 32);
  return {.grid = x_is_row ? dim3(grid.y, grid.x) : grid, .block = dim3(32, 32)};
}

template <int side, int threads>
LaunchPlan one_block_per_tile(const Case& c, const Device&, const void*) {
  return {.grid = tiles(c, side, side), .block = threads};
}

}  // namespace ladders::sgemm
