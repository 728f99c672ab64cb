// SPDX-License-Identifier: MIT
//
// C of few tiles: SMs are idle, and time is launch, DRAM's latency and the sums of one block. Small
// tiles give work to more SMs, and the blocks of a cluster share k where it is long.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "sgemm/02_warp_tiles.cuh"
#include "sgemm/13_thin.cuh"

namespace ladders::sgemm {
constexpr int kFewTilesSide = 32;

struct FewTiles {
  unsigned tiles, parts;  // blocks per cluster, which share k
  // That an SM adds up one after the other.
  double terms(int k, const Device& device) const {
    return double(k) / parts * std::max(1.0, double(tiles) * parts / device.sms);
  }
};
// More blocks share k while SMs are idle and each keeps enough terms.
inline FewTiles few_tiles_of(int m, int n, int k, const Device& device) {
  const int64_t tiles = int64_t{ceil_div(m, kFewTilesSide)} * ceil_div(n, kFewTilesSide);
  unsigned parts = 1;
  if (device.compute_capability >= 90) parts = shares(tiles, device.sms, kTuning.few_tiles_part, k);
  while (parts > 1 && device.clusters_at_once[parts] == 0) parts /= 2;
  return {unsigned(tiles), parts};
}

// A block has 32 x 32 outputs. It loads 128 steps of k at once, so that it waits for DRAM once, in
// loops, since code that runs once comes from DRAM too. Four groups of two warps take four steps in
// turn, with 4 x 4 outputs per thread. Products of four steps are added up first, so that sums are
// rounded less often.
__global__ void __launch_bounds__(256) few_tiles(const Gemm g) {
  constexpr int kSide = kFewTilesSide, kDepth = 128, kGroups = 4, kSteps = 4;
  __shared__ __align__(16) float a_tile[kDepth][kSide + 4], b_tile[kDepth][kSide];
  int part = 0, parts = 1;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  part = cluster.block_rank(), parts = cluster.num_blocks();
#endif
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = warp / 2;
  const auto [down, right] = corner();  // 4 x 8 lanes
  const int y = warp % 2 * 16 + down * 4, x = right * 4;
  const int tile = blockIdx.x / parts, tiles_x = ceil_div(g.n, kSide);
  const int row0 = tile / tiles_x * kSide, column0 = tile % tiles_x * kSide;
  constexpr int kTurn = kGroups * kSteps;  // beyond k, elements are 0
  const int turns = ceil_div(terms(g), kTurn);
  const int begin = int64_t{turns} * part / parts * kTurn;
  const int end = int64_t{turns} * (part + 1) / parts * kTurn;
  alignas(16) float sums[4][4] = {};
  for (int k0 = begin; k0 < end; k0 += kDepth) {
    const int depth = min(kDepth, end - k0), inside = min(depth, g.k - k0);
    if (k0 > begin) __syncthreads();  // all have read what the copies overwrite
    const auto copy = [](float& to, const float* from, bool is_inside) {
      __pipeline_memcpy_async(&to, from, 4, is_inside ? 0 : 4);
    };
    // A is transposed: a warp copies 4 rows by 8 columns at once, which has no bank conflicts.
    const int row = 4 * warp + lane / 8;
    const float* a = &g.a[(row0 + row) * g.lda + k0];
#pragma unroll 4
    for (int i = lane % 8; i < depth; i += 8)
      copy(a_tile[i][row], a + i, i < inside && row0 + row < g.m);
    const float* b = &g.b[(k0 + warp) * g.ldb + column0 + lane];
#pragma unroll 4
    for (int i = warp; i < depth; i += 8, b += 8 * g.ldb)
      copy(b_tile[i][lane], b, i < inside && column0 + lane < g.n);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (int i = group * kSteps; i < depth; i += kTurn) {
      float products[4][4] = {};
#pragma unroll
      for (int step = i; step < i + kSteps; ++step) {
        alignas(16) float from_a[4], from_b[4];
        four(from_a) = four(&a_tile[step][y]), four(from_b) = four(&b_tile[step][x]);
        for (int r = 0; r < 4; ++r)
          for (int c = 0; c < 4; ++c) products[r][c] += from_a[r] * from_b[c];
      }
#pragma unroll
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) sums[r][c] += products[r][c];
    }
  }
  __syncthreads();  // the tile of A is free
  float* of_groups = a_tile[0];
  const auto place = [](int row, int column) {  // without bank conflicts
    return row * kSide + (column ^ row / 4 % 4 * 8);
  };
#pragma unroll
  for (int r = 0; r < 4; ++r)
    four(&of_groups[group * kSide * kSide + place(y + r, x)]) = four(sums[r]);
  __syncthreads();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (parts > 1) cluster.sync();
#endif
  const int share = kSide * kSide / parts;
  for (int i = part * share + threadIdx.x; i < (part + 1) * share; i += 256) {
    const int row = i / kSide, column = i % kSide;
    float sum = 0;
    for (int other = 0; other < parts; ++other) {
      const float* of_other = of_groups;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
      of_other = cluster.map_shared_rank(of_groups, other);
#endif
#pragma unroll
      for (int j = 0; j < kGroups; ++j) sum += of_other[j * kSide * kSide + place(row, column)];
    }
    if (row0 + row < g.m && column0 + column < g.n)
      update(g.c[(row0 + row) * g.ldc + column0 + column], g.alpha * sum, g.beta);
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (parts > 1) cluster.sync();  // no block may end while its memory is read
#endif
}

inline GemmLaunch few_tiles_launch(const Gemm& g, const Device& device) {
  const auto [tiles, parts] = few_tiles_of(g.m, g.n, g.k, device);
  return {few_tiles, {.grid = tiles * parts, .block = 256, .cluster = parts}};
}

}  // namespace ladders::sgemm
