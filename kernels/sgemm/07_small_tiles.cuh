// SPDX-License-Identifier: MIT
//
// For a k too short for a ring of stages: small tiles, several blocks per SM. While one waits for
// operands or stores its sums, others multiply.
#pragma once

#include <cuda_pipeline.h>

#include "sgemm/02_warp_tiles.cuh"
#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
// 64 x 128 outputs per block, 64 x 32 per warp, 8 x 8 per thread. Up to 80 steps of k are loaded at
// once, in slabs; three blocks fit on an SM of Hopper.
struct SmallTiles : Tiles64x128 {
  static constexpr int kDepth = 80, kSlab = 16, kSlabs = kDepth / kSlab;
  static constexpr int kWarps = kColumns / 32, kThreads = 32 * kWarps, kBlocks = 3;
  static constexpr int kPitch = kRows + 4;  // of A's tile, which is transposed when it is loaded
  static constexpr int kWords = kDepth * (kPitch + kColumns);
};

// Waits for the copies of this slab and of those before. cp.async.wait_group takes a constant, so
// the loop selects one. The caller's loop over slabs is not unrolled: code that runs once is
// fetched from DRAM, so it should be short.
template <int slabs>
__device__ __forceinline__ void wait_for_slab(int slab) {
#pragma unroll
  for (int s = 0; s < slabs; ++s)
    if (slab == s) __pipeline_wait_prior(slabs - 1 - s);
}

// A thread's rows are four at 4 y and 32 + 4 y, its columns at 4 x and 16 + 4 x. B and C are copied
// `bytes` at a time. Beyond the edges the last row or column is read again, but not stored.
template <int bytes>
__global__ void __launch_bounds__(SmallTiles::kThreads, SmallTiles::kBlocks) small_tiles(Gemm g) {
  using T = SmallTiles;
  float *a_tile = dynamic_shared<float>(), *b_tile = a_tile + T::kDepth * T::kPitch;
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // A warp copies 4 rows by 8 columns of A at once: other shapes have bank conflicts in the
  // transpose.
  constexpr int kRowsApart = 4 * T::kWarps, kCopied = T::kRows / kRowsApart;
  const int a_row = 4 * warp + lane / 8, a_k = lane % 8;
  const float* a_from[kCopied];
#pragma unroll
  for (int j = 0; j < kCopied; ++j)
    a_from[j] = &g.a[min(row0 + a_row + j * kRowsApart, g.m - 1) * g.lda + a_k];
  constexpr int kWords = bytes / 4, kCopies = T::kColumns / kWords;  // per row of B
  constexpr int kTogether = T::kThreads / kCopies;                   // rows
  const int b_k = threadIdx.x / kCopies, b_column = threadIdx.x % kCopies * kWords;
  const float* b_from = &g.b[b_k * g.ldb + min(column0 + b_column, g.n - kWords)];

  const auto [x, y] = corner();
  const float *a = a_tile + 4 * y, *b = b_tile + warp * 32 + 4 * x;
  float sums[8][8] = {};
  const int k = terms(g);
  for (int k0 = 0; k0 < k; k0 += T::kDepth) {
    const int depth = min(T::kDepth, k - k0);
    if (k0 > 0) __syncthreads();  // all have read what the copies overwrite
#pragma unroll
    for (int slab = 0; slab < T::kSlabs; ++slab) {
      for (int i = slab * T::kSlab; i < (slab + 1) * T::kSlab; i += 8)
        if (i + a_k < depth)
          for (int j = 0; j < kCopied; ++j)
            __pipeline_memcpy_async(&a_tile[(i + a_k) * T::kPitch + a_row + j * kRowsApart],
                                    a_from[j] + i, 4);
      for (int i = slab * T::kSlab; i < (slab + 1) * T::kSlab; i += kTogether) {
        if (i + b_k < depth)
          __pipeline_memcpy_async(&b_tile[(i + b_k) * T::kColumns + b_column], b_from, bytes);
        b_from += kTogether * g.ldb;
      }
      __pipeline_commit();
    }
#pragma unroll
    for (const float*& from : a_from) from += T::kDepth;
#pragma unroll 1
    for (int slab = 0; slab * T::kSlab < depth; ++slab) {
      wait_for_slab<T::kSlabs>(slab);
      __syncthreads();
      const int last = min((slab + 1) * T::kSlab, depth);
#pragma unroll 4
      for (int i = slab * T::kSlab; i < last; ++i) {
        alignas(16) float from_a[8], from_b[8];
#pragma unroll
        for (int r = 0; r < 8; r += 4) {
          four(&from_a[r]) = four(&a[i * T::kPitch + 8 * r]);
          four(&from_b[r]) = four(&b[i * T::kColumns + 4 * r]);
        }
#pragma unroll
        for (int r = 0; r < 8; ++r)
          for (int j = 0; j < 8; ++j) {
            const int column = r % 2 ? 7 - j : j;
            sums[r][column] += from_a[r] * from_b[column];
          }
      }
    }
  }
  // Sums go through shared memory, so that whole rows of the warp's outputs are stored.
  __syncthreads();
  float* staging = a_tile + warp * T::kRows * 32;
#pragma unroll
  for (int r = 0; r < 8; ++r)
    for (int j = 0; j < 8; j += 4)
      four(&staging[(r / 4 * 32 + 4 * y + r % 4) * 32 + ((x + j) ^ y) * 4]) = swapped(&sums[r][j]);
  __syncwarp();
#pragma unroll 2
  for (int row = lane / 8; row < T::kRows; row += 4) {
    const int quad = lane % 8;
    const float4 four_sums = swapped(&staging[row * 32 + (quad ^ (row / 4 % 8)) * 4]);
    store_four(g.c, g.ldc, bytes == 16, row0 + row, column0 + warp * 32 + 4 * quad, g.m, g.n,
               g.alpha, &four_sums.x, g.beta);
  }
}

inline GemmLaunch small_tiles_launch(const Gemm& g, const Device&) {
  using T = SmallTiles;
  const bool wide = in_fours(g.b, g.ldb, g.n) && in_fours(g.c, g.ldc);
  return {wide ? small_tiles<16> : small_tiles<4>,
          {.grid = dim3(ceil_div(g.n, T::kColumns), ceil_div(g.m, T::kRows)),
           .block = T::kThreads,
           .shared_bytes = T::kWords * sizeof(float)}};
}

}  // namespace ladders::sgemm
