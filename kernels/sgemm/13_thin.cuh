// SPDX-License-Identifier: MIT
//
// Products for which tiles are too large: C with few rows or few columns, which is as many products
// of a matrix and a vector, and sums of few terms. FMAs suffice, since DRAM is the limit.
#pragma once

#include <cooperative_groups.h>

#include <bit>

#include "sgemm/problem.cuh"

namespace ladders::sgemm {
constexpr int kThin = 8;  // rows or columns of C, at most

// The terms of each sum: A and B are not read if alpha is 0.
__device__ __forceinline__ int terms(const Gemm& g) { return g.alpha == 0 ? 0 : g.k; }

__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(~0u, value, apart);
  return value;
}

// C of few columns: each team sums the products of `kRows` rows of A, whose elements neighbouring
// lanes load, and of B, which the block keeps in shared memory by columns. A team is a warp, or the
// block where C has few rows too.
template <int kColumns, int kRows, bool whole_block>
__global__ void __launch_bounds__(whole_block ? 1024 : 256) thin_columns(const Gemm g) {
  constexpr int kChunk = 1024, kSums = kRows * kColumns;
  __shared__ float chunk[kColumns][kChunk + 1];
  __shared__ float of_warps[32][kSums];
  const int k = terms(g), threads = whole_block ? blockDim.x : 32;
  const int team = blockIdx.x * (blockDim.x / threads) + threadIdx.x / threads;
  const int lane = threadIdx.x % threads, row0 = team * kRows;
  float sums[kRows][kColumns] = {};
  for (int k0 = 0; k0 < k; k0 += kChunk) {
    const int depth = min(kChunk, k - k0);
    __syncthreads();
    for (int i = threadIdx.x; i < depth * kColumns; i += blockDim.x) {
      const int column = i % kColumns, step = i / kColumns;
      chunk[column][step] = column < g.n ? g.b[(k0 + step) * g.ldb + column] : 0;
    }
    __syncthreads();
#pragma unroll 8
    for (int i = lane; i < depth; i += threads) {
      float a[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) a[r] = row0 + r < g.m ? g.a[(row0 + r) * g.lda + k0 + i] : 0;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        for (int r = 0; r < kRows; ++r) sums[r][j] += a[r] * chunk[j][i];
    }
  }
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    const float sum = sum_of_lanes(sums[i / kColumns][i % kColumns]);
    if (threadIdx.x % 32 == 0) of_warps[warp][i] = sum;
  }
  __syncthreads();
  if (lane >= kSums) return;
  const int row = row0 + lane / kColumns, column = lane % kColumns;
  float sum = 0;
  for (int w = 0; w < threads / 32; ++w) sum += of_warps[whole_block ? w : warp][lane];
  if (row < g.m && column < g.n) update(g.c[row * g.ldc + column], g.alpha * sum, g.beta);
}

// C of few rows: neighbouring lanes load neighbours of a row of B. Warps, and the blocks of a
// cluster, share its rows.
template <int kRows>
__global__ void __launch_bounds__(1024) thin_rows(const Gemm g) {
  constexpr int kOwn = kThin / kRows, kWidth = 32 * kOwn, kSums = kRows * kWidth;
  __shared__ float of_warps[32][kSums], of_block[kSums];
  int part = 0, parts = 1;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  part = cluster.block_rank(), parts = cluster.num_blocks();
#endif
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int column0 = blockIdx.x / parts * kWidth;
  float sums[kRows][kOwn] = {};
#pragma unroll 8
  for (int i = part * warps + warp; i < terms(g); i += parts * warps) {
    float a[kRows], b[kOwn];
#pragma unroll
    for (int r = 0; r < kRows; ++r) a[r] = r < g.m ? g.a[r * g.lda + i] : 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int column = column0 + lane + 32 * j;
      b[j] = column < g.n ? g.b[i * g.ldb + column] : 0;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      for (int j = 0; j < kOwn; ++j) sums[r][j] += a[r] * b[j];
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kOwn; ++j) of_warps[warp][r * kWidth + lane + 32 * j] = sums[r][j];
  __syncthreads();
  float sum = 0;
  if (threadIdx.x < kSums)
    for (int w = 0; w < warps; ++w) sum += of_warps[w][threadIdx.x];
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (parts > 1) {
    if (threadIdx.x < kSums) of_block[threadIdx.x] = sum;
    cluster.sync();
    if (part == 0 && threadIdx.x < kSums)
      for (int other = 1; other < parts; ++other)
        sum += cluster.map_shared_rank(of_block, other)[threadIdx.x];
    cluster.sync();  // no block may end while its memory is read
  }
#endif
  const int row = threadIdx.x / kWidth, column = column0 + threadIdx.x % kWidth;
  if (part == 0 && threadIdx.x < kSums && row < g.m && column < g.n)
    update(g.c[row * g.ldc + column], g.alpha * sum, g.beta);
}

// Sums of few terms: what takes time is to store C, in whole rows of a small tile.
inline __global__ void __launch_bounds__(256) few_terms(const Gemm g) {
  constexpr int kSide = 64, kDepth = 32, kRows = 8, kPitch = kSide + 4;
  __shared__ float a_tile[kDepth][kPitch], b_tile[kDepth][kSide];
  const int k = terms(g), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  float sums[kRows][2] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    const int depth = min(kDepth, k - k0);
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < kSide * kDepth; i += 256) {
      const int a_row = i / kDepth, step = i % kDepth;
      if (step < depth)
        a_tile[step][a_row] = row0 + a_row < g.m ? g.a[(row0 + a_row) * g.lda + k0 + step] : 0;
    }
    for (int i = threadIdx.x; i < kSide * depth; i += 256) {
      const int step = i / kSide, column = i % kSide;
      b_tile[step][column] =
          column0 + column < g.n ? g.b[(k0 + step) * g.ldb + column0 + column] : 0;
    }
    __syncthreads();
#pragma unroll 4
    for (int step = 0; step < depth; ++step) {
      const float b[2] = {b_tile[step][lane], b_tile[step][lane + 32]};
      const float4 low = four(&a_tile[step][warp * kRows]);
      const float4 high = four(&a_tile[step][warp * kRows + 4]);
      const float a[kRows] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < 2; ++j) sums[r][j] += a[r] * b[j];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < 2; ++j) {
      const int row = row0 + warp * kRows + r, column = column0 + lane + 32 * j;
      if (row < g.m && column < g.n)
        update(g.c[row * g.ldc + column], g.alpha * sums[r][j], g.beta);
    }
}

struct GemmLaunch {
  void (*kernel)(Gemm);
  LaunchPlan plan;
};

// The number among 1, 2, 4 and 8 that holds `count`, as a template argument of `make`.
template <class Make>
GemmLaunch rounded_up(int count, Make make) {
  if (count <= 1) return make(std::integral_constant<int, 1>{});
  if (count <= 2) return make(std::integral_constant<int, 2>{});
  if (count <= 4) return make(std::integral_constant<int, 4>{});
  return make(std::integral_constant<int, kThin>{});
}

// A warp that has fewer than `kLeastTerms` of a sum is not worth its start.
constexpr int kLeastTerms = 8, kRowsPerWarp = 4;
inline GemmLaunch thin_launch(int m, int n, int k, const Device& device) {
  const auto warps_for = [&](int workers) {  // of a block, if k is shared by so many of them
    return 32 * std::clamp(int(std::bit_floor(unsigned(k) / (kLeastTerms * workers))), 8, 32);
  };
  if (n <= m)
    return rounded_up(n, [&](auto columns) -> GemmLaunch {
      if (ceil_div(m, kRowsPerWarp) >= 8 * device.sms)
        return {thin_columns<columns(), kRowsPerWarp, false>,
                {.grid = unsigned(ceil_div(m, 8 * kRowsPerWarp)), .block = 256}};
      return {thin_columns<columns(), 1, true>,
              {.grid = unsigned(m), .block = unsigned(warps_for(32))}};
    });
  return rounded_up(m, [&](auto rows) -> GemmLaunch {
    const int tiles = ceil_div(n, 32 * (kThin / rows()));
    unsigned parts = 1;  // blocks that share k
    while (device.compute_capability >= 90 && parts < 8 && tiles * int(parts) < device.sms &&
           k >= 2 * int(parts) * 8 * kLeastTerms)
      parts *= 2;
    return {thin_rows<rows()>,
            {.grid = unsigned(tiles) * parts,
             .block = unsigned(warps_for(int(parts))),
             .cluster = parts}};
  });
}

inline GemmLaunch few_terms_launch(int m, int n, int, const Device&) {
  return {few_terms,
          {.grid = dim3(unsigned(ceil_div(n, 64)), unsigned(ceil_div(m, 64))), .block = 256}};
}

inline std::string not_thin(const Case& c, const Device&) {
  return std::min(c["m"], c["n"]) > kThin ? "C has more than 8 rows and columns" : "";
}
template <auto launch_of>
Implementation gemm_at(const Case& c, const Device& device) {
  const GemmLaunch found = launch_of(int(c["m"]), int(c["n"]), int(c["k"]), device);
  const auto plan = [plan = found.plan](const Case&, const Device&, const void*) { return plan; };
  return kernel<Sgemm>(found.kernel, plan, [](Sgemm& p) { return std::tuple(p.gemm()); });
}

}  // namespace ladders::sgemm
