// SPDX-License-Identifier: MIT
//
// For k from 33 to 255 where rows of B or C do not start on 16 bytes; if they do, bf16x6 is faster.
// Tiles are half as large as those of `vectorized`, so that three blocks fit on an SM: while one
// waits for operands or stores its sums, others multiply.
#pragma once

#include <algorithm>

#include "sgemm/02_warp_tiles.cuh"
#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
// 64 x 128 outputs per block, 64 x 32 per warp, 8 x 8 per thread. Three blocks fit on an SM.
struct SmallTiles : Tiles64x128 {
  static constexpr int kDepth = 16;
  static constexpr int kWarps = kColumns / 32, kThreads = 32 * kWarps, kBlocks = 3;
  static constexpr int kPitch = kRows + 4;  // of A's tile, which is transposed
  static constexpr int kStageWords = kDepth * (kPitch + kColumns);
  static constexpr int kOutputs = kRows * kColumns;
  static constexpr int kShared = 4 * std::max(2 * kStageWords, kOutputs);
};

// A thread's rows are four at 4 y and 32 + 4 y, its columns at 4 x and 16 + 4 x. While a stage is
// multiplied, the next one is loaded to registers: the transpose and unaligned rows need single
// words, and asynchronous copies of these are slow (docs/research-log.md). B and C are loaded and
// stored kWords words at a time. Beyond the edges the last row or column is read again, but not
// stored.
template <int kWords>
__global__ void __launch_bounds__(SmallTiles::kThreads, SmallTiles::kBlocks) small_tiles(Gemm g) {
  using T = SmallTiles;
  float* stages = dynamic_shared<float>();
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // A warp loads 4 rows by 8 columns of A at once: other shapes have bank conflicts in the
  // transpose.
  constexpr int kRowsApart = 4 * T::kWarps, kRowsOfA = T::kRows / kRowsApart;
  const int a_row = 4 * warp + lane / 8, a_k = lane % 8;
  const float* a_from[kRowsOfA];
#pragma unroll
  for (int j = 0; j < kRowsOfA; ++j)
    a_from[j] = &g.a[min(row0 + a_row + j * kRowsApart, g.m - 1) * g.lda + a_k];
  constexpr int kLoads = T::kColumns / kWords;     // per row of B
  constexpr int kTogether = T::kThreads / kLoads;  // rows
  const int b_k = threadIdx.x / kLoads, b_column = threadIdx.x % kLoads * kWords;
  const float* b_from = &g.b[b_k * g.ldb + min(column0 + b_column, g.n - kWords)];

  const int k = terms(g);
  float next_a[T::kDepth / 8][kRowsOfA] = {};
  alignas(16) float next_b[T::kDepth / kTogether][kWords] = {};
  const auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < T::kDepth; i += 8)
      for (int j = 0; j < kRowsOfA; ++j)
        if (k0 + i + a_k < k) next_a[i / 8][j] = a_from[j][k0 + i];
#pragma unroll
    for (int i = 0; i < T::kDepth; i += kTogether, b_from += kTogether * g.ldb)
      if (k0 + i + b_k < k) copy_vector<kWords>(next_b[i / kTogether], b_from);
  };
  const auto store = [&](float* stage) {
#pragma unroll
    for (int i = 0; i < T::kDepth; i += 8)
      for (int j = 0; j < kRowsOfA; ++j)
        stage[(i + a_k) * T::kPitch + a_row + j * kRowsApart] = next_a[i / 8][j];
    float* b_tile = stage + T::kDepth * T::kPitch;
#pragma unroll
    for (int i = 0; i < T::kDepth; i += kTogether)
      copy_vector<kWords>(&b_tile[(i + b_k) * T::kColumns + b_column], next_b[i / kTogether]);
  };

  const auto [x, y] = lane_position();
  float sums[8][8] = {};
  load(0);
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += T::kDepth) {
    float* stage = stages + k0 / T::kDepth % 2 * T::kStageWords;
    store(stage);
    __syncthreads();
    load(k0 + T::kDepth);
    const float *a = stage + 4 * y, *b = stage + T::kDepth * T::kPitch + warp * 32 + 4 * x;
    const int depth = min(T::kDepth, k - k0);
#pragma unroll 4
    for (int i = 0; i < depth; ++i) {
      alignas(16) float from_a[8], from_b[8];
#pragma unroll
      for (int r = 0; r < 8; r += 4) {
        as_float4(&from_a[r]) = as_float4(&a[i * T::kPitch + 8 * r]);
        as_float4(&from_b[r]) = as_float4(&b[i * T::kColumns + 4 * r]);
      }
#pragma unroll
      for (int r = 0; r < 8; ++r)
        for (int j = 0; j < 8; ++j) {
          const int column = r % 2 ? 7 - j : j;
          sums[r][column] += from_a[r] * from_b[column];
        }
    }
  }
  // Sums go through shared memory, so that whole rows of the warp's outputs are stored. The XOR
  // keeps the two rows that eight lanes store together in different banks.
  __syncthreads();
  float* staging = stages + warp * T::kRows * 32;
#pragma unroll
  for (int r = 0; r < 8; ++r)
    for (int j = 0; j < 8; j += 4)
      as_float4(&staging[(r / 4 * 32 + 4 * y + r % 4) * 32 + ((x + j) ^ y % 2 * 4) * 4]) =
          swapped(&sums[r][j]);
  __syncwarp();
  if constexpr (kWords == 4) {
#pragma unroll 2
    for (int row = lane / 8; row < T::kRows; row += 4) {
      const int quad = lane % 8;
      const float4 four_sums = swapped(&staging[row * 32 + (quad ^ row / 4 % 2 * 4) * 4]);
      store_four(g.c, g.ldc, true, row0 + row, column0 + warp * 32 + 4 * quad, g.m, g.n, g.alpha,
                 &four_sums.x, g.beta);
    }
  } else {
    // A row at a time: four stores of every fourth word would write each sector four times.
    const int column = column0 + warp * 32 + lane;
    if (column >= g.n) return;
#pragma unroll 4
    for (int row = 0; row < min(T::kRows, g.m - row0); ++row) {
      const float sum = staging[row * 32 + (lane / 4 ^ row / 4 % 2 * 4) * 4 + (lane % 4 ^ 1)];
      update(g.c[(row0 + row) * g.ldc + column], g.alpha, sum, g.beta);
    }
  }
}

inline GemmLaunch small_tiles_launch(const Gemm& g, const Device&) {
  using T = SmallTiles;
  return {are_b_and_c_float4_aligned(g) ? small_tiles<4> : small_tiles<1>,
          {.grid = dim3(ceil_div(g.n, T::kColumns), ceil_div(g.m, T::kRows)),
           .block = T::kThreads,
           .shared_bytes = T::kShared}};
}

}  // namespace ladders::sgemm
