// SPDX-License-Identifier: MIT
//
// For a C of few tiles: large ones would leave SMs idle. The time is that of the launch, of DRAM's
// latency and of one block's sums. Small tiles give work to more SMs, and if k is long, the blocks
// of a cluster divide it.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "common/mbarrier.cuh"
#include "sgemm/02_warp_tiles.cuh"
#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
constexpr int kFewTilesSide = 32;

struct FewTiles {
  int64_t tiles;
  unsigned cluster_size;  // its blocks share k
  // The terms that an SM adds up one after the other, times the fifth root of the tiles per SM: the
  // fewer tiles, the more terms pay. (Of the powers tried, 0.2 fits times on an H200 best.)
  double load(int k, const Device& device) const {
    const double per_sm = double(tiles) / device.sms;
    return double(k) / cluster_size * std::max(1.0, per_sm * cluster_size) * std::pow(per_sm, 0.2);
  }
};
// More blocks share k while SMs are idle and each keeps few_tiles_terms terms, or
// few_tiles_least_terms where k is shared anyway and no SM gets two blocks.
inline FewTiles few_tiles_of(int m, int n, int k, const Device& device) {
  const int64_t tiles = int64_t{ceil_div(m, kFewTilesSide)} * ceil_div(n, kFewTilesSide);
  unsigned cluster_size = k_splits(tiles, device.sms, kTuning.few_tiles_terms, k);
  if (cluster_size > 1)
    cluster_size = std::max(cluster_size,
                            k_splits(tiles, device.sms / 2 + 1, kTuning.few_tiles_least_terms, k));
  return {tiles, largest_cluster(cluster_size, device)};
}

// Not inlined: it runs seldom, and inlined code is fetched from DRAM even where it is skipped.
[[gnu::noinline]] __device__ inline float product_again(const float* row, const float* column,
                                                        int64_t pitch, int k) {
  return exact_product(row, column, pitch, k);
}

// A block has 32 x 32 outputs, a thread 2 x 2. The block copies 128 terms at once, so that it waits
// for DRAM once for all of these. Copies and products are in loops: code that runs once comes from
// DRAM too. What a sum loses when it is rounded is added to the next four products (Kahan's
// summation), so that errors hardly grow with k. Up to about 100 terms single elements may err more
// than a library's.
__global__ void __launch_bounds__(256) few_tiles(const Gemm g) {
  constexpr int kSide = kFewTilesSide, kDepth = 128, kPitch = kDepth + 4, kTerms = 16;
  __shared__ __align__(16) float a_tile[kSide][kPitch], b_tile[kDepth][kSide];
  int rank = 0, log_cluster_size = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  rank = cluster.block_rank(), log_cluster_size = __ffs(cluster.num_blocks()) - 1;
#endif
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kSide, column0 = (blockIdx.x >> log_cluster_size) * kSide;
  const auto [down, right] = lane_position();  // 4 x 8 lanes
  const int y = warp / 2 * 8 + down * 2, x = warp % 2 * 16 + right * 2;
  const int all = ceil_div(terms(g), kTerms);
  const int begin = (all * rank >> log_cluster_size) * kTerms;
  const int end = (all * (rank + 1) >> log_cluster_size) * kTerms;  // beyond k, elements are 0
  alignas(8) float sums[2][2] = {};
  float lost[2][2] = {};
  for (int k0 = begin; k0 < end; k0 += kDepth) {
    const int depth = min(kDepth, end - k0), inside = min(depth, g.k - k0);
    if (k0 > begin) __syncthreads();  // all have read what the copies overwrite
    const auto copy = [](float& to, const float* from, bool is_inside) {
      __pipeline_memcpy_async(&to, from, 4, is_inside ? 0 : 4);
    };
    const float* a = &g.a[(row0 + warp) * g.lda + k0];
    for (int i = lane; i < depth; i += 32)
#pragma unroll
      for (int row = 0; row < kSide; row += 8)
        copy(a_tile[warp + row][i], a + row * g.lda + i, i < inside && row0 + warp + row < g.m);
    const float* b = &g.b[(k0 + warp) * g.ldb + column0 + lane];
#pragma unroll 4
    for (int i = warp; i < depth; i += 8, b += 8 * g.ldb)
      copy(b_tile[i][lane], b, i < inside && column0 + lane < g.n);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < depth; first += kTerms)
#pragma unroll
      for (int i = first; i < first + kTerms; i += 4) {
        alignas(16) float from_a[2][4];
        alignas(8) float from_b[4][2];
        for (int r = 0; r < 2; ++r) as_float4(from_a[r]) = as_float4(&a_tile[y + r][i]);
        for (int j = 0; j < 4; ++j) as_float2(from_b[j]) = as_float2(&b_tile[i + j][x]);
        for (int r = 0; r < 2; ++r)
          for (int c = 0; c < 2; ++c) {
            float more = lost[r][c];
            for (int j = 0; j < 4; ++j) more += from_a[r][j] * from_b[j][c];
            const float sum = sums[r][c] + more;
            lost[r][c] = more - (sum - sums[r][c]);
            sums[r][c] = sum;
          }
      }
  }
  const auto store = [&](int row, int column, float sum) {
    row += row0, column += column0;
    if (row >= g.m || column >= g.n) return;
    if (!(fabsf(sum) <= FLT_MAX))  // Kahan's summation turns infinities into NaN
      sum = product_again(&g.a[row * g.lda], &g.b[column], g.ldb, g.k);
    update(g.c[row * g.ldc + column], g.alpha, sum, g.beta);
  };
  if (log_cluster_size == 0) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 2; ++c) store(y + r, x + c, sums[r][c]);
    return;
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __syncthreads();  // the tile of A is free
#pragma unroll
  for (int r = 0; r < 2; ++r) as_float2(&a_tile[y + r][x]) = as_float2(sums[r]);
  cluster_sync_shared();
  const int share = kSide * kSide >> log_cluster_size;
#pragma unroll 1
  for (int i = rank * share + threadIdx.x; i < (rank + 1) * share; i += 256) {
    const int row = i / kSide, column = i % kSide;
    double sum = 0;
#pragma unroll 8
    for (int other = 0; other < 1 << log_cluster_size; ++other)
      sum += *cluster.map_shared_rank(&a_tile[row][column], other);
    store(row, column, float(sum));
  }
  cluster_sync_shared();  // no block may exit while another loads from it
#endif
}

inline GemmLaunch few_tiles_launch(const Gemm& g, const Device& device) {
  const unsigned cluster_size = few_tiles_of(g.m, g.n, g.k, device).cluster_size;
  return {few_tiles,
          {.grid = dim3(ceil_div(g.n, kFewTilesSide) * cluster_size, ceil_div(g.m, kFewTilesSide)),
           .block = 256,
           .cluster = cluster_size}};
}

}  // namespace ladders::sgemm
