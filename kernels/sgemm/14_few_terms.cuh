// SPDX-License-Identifier: MIT
//
// For k up to 32: so few FMAs per output that most instructions load or store, and each of these
// should move several words. Four blocks share an SM, of which some store while others load.
#pragma once

#include <cuda_pipeline.h>

#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
// A warp stores kRows rows of a tile; a lane has kColumns columns, kWords neighbours at a time.
// Beyond the edges the last row or columns are read again.
template <int kRows, int kColumns, int kWords>
__global__ void __launch_bounds__(256, 4) few_terms(const Gemm g) {
  constexpr int kHeight = 8 * kRows, kWidth = 32 * kColumns, kDepth = 32;
  constexpr bool kSmall = kRows == 4;
  static_assert(kSmall || (kHeight == Tiles64x128::kRows && kWidth == Tiles64x128::kColumns));
  constexpr int kCopies = kWidth / kWords;  // of a row of B
  constexpr int kTogether = 256 / kCopies;  // rows that are copied at once
  static_assert(kDepth % kTogether == 0 && kColumns % kWords == 0);
  __shared__ __align__(16) float a_tile[kDepth][kHeight + 4];
  __shared__ __align__(16) float b_tile[kDepth][kWidth];
  const int k = terms(g), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tiles_x = ceil_div(g.n, kWidth);
  const int row0 = blockIdx.x / tiles_x * kHeight, column0 = blockIdx.x % tiles_x * kWidth;
  const int b_step = threadIdx.x / kCopies, b_column = threadIdx.x % kCopies * kWords;
  const float* b_from = &g.b[b_step * g.ldb + min(column0 + b_column, g.n - kWords)];
  float sums[kRows][kColumns] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    const int depth = min(kDepth, k - k0);
    const int bits = 32 - __clz(depth - 1);  // 2^bits lanes load a row of A
    const int a_step = threadIdx.x & ((1 << bits) - 1);
    if (k0 > 0) __syncthreads();  // all have read what the copies overwrite
    if (a_step < depth)
      for (int row = threadIdx.x >> bits; row < kHeight; row += 256 >> bits)
        __pipeline_memcpy_async(&a_tile[a_step][row],
                                &g.a[min(row0 + row, g.m - 1) * g.lda + k0 + a_step], 4);
    for (int i = b_step; i < depth; i += kTogether, b_from += kTogether * g.ldb)
      __pipeline_memcpy_async(&b_tile[i][b_column], b_from, 4 * kWords);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 2
    for (int term = 0; term < depth; ++term) {
      alignas(16) float a[kRows], b[kColumns];
#pragma unroll
      for (int r = 0; r < kRows; r += 4)
        as_float4(&a[r]) = as_float4(&a_tile[term][warp * kRows + r]);
#pragma unroll
      for (int j = 0; j < kColumns; j += kWords)
        copy_vector<kWords>(&b[j], &b_tile[term][32 * j + kWords * lane]);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < kColumns; ++j) sums[r][j] += a[r] * b[j];
    }
  }
  const int column = column0 + kWords * lane;
  float* to = &g.c[(row0 + warp * kRows) * g.ldc + column];
#pragma unroll
  for (int r = 0; r < kRows; ++r, to += g.ldc) {
    if (row0 + warp * kRows + r >= g.m) return;
    for (int j = 0; j < kColumns; j += kWords) {
      if (column + 32 * j >= g.n) continue;
      alignas(16) float out[kWords] = {};
      if (g.beta != 0) copy_vector<kWords>(out, to + 32 * j);
      for (int i = 0; i < kWords; ++i) update(out[i], g.alpha, sums[r][j + i], g.beta);
      copy_vector<kWords>(to + 32 * j, out);
    }
  }
}

}  // namespace ladders::sgemm
