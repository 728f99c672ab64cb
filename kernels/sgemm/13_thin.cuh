// SPDX-License-Identifier: MIT
//
// Products for which tiles are too large: C with few rows or few columns, which is as many products
// of a matrix and a vector, and sums of few terms.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <bit>
#include <type_traits>

#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
constexpr int kThin = 8;  // rows or columns of C, at most

// A thread adds up chains of four products: in FP64 if C has one or two rows or columns, else in
// FP32. Sums of threads are always added in FP64.
template <int thickness>
using Total = std::conditional_t<thickness <= 2, double, float>;

// Adds up `count` sums over the lanes of a warp: lane i returns number i * count / 32. In each
// step, two lanes give each other half of their sums.
template <class Own, int count>
__device__ __forceinline__ double sum_of_lanes(const Own (&own)[count]) {
  const int lane = threadIdx.x % 32;
  double sums[count];
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = own[i];
  int left = count;
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) {
    if (left == 1) {
      sums[0] += __shfl_xor_sync(~0u, sums[0], apart);
      continue;
    }
    left /= 2;
#pragma unroll
    for (int i = 0; i < left; ++i) {
      const double lower = sums[i], upper = sums[left + i];
      sums[i] = lane & apart ? upper : lower;
      sums[i] += __shfl_xor_sync(~0u, lane & apart ? lower : upper, apart);
    }
  }
  return sums[0];
}

template <int columns>
constexpr int kRowsPerTeam = columns <= 4 ? 2 : 1;
template <int columns, bool wide>
constexpr int kOwnTerms = wide && columns < 4 ? 4 / columns : 1;

// C of few columns. A block is (32, split, teams): the warps of a team share one or two rows of A.
// Lanes take terms in turn, one each, or kOwnTerms if wide (where C has exactly kColumns): those
// have four elements of B, or more, so neighbouring lanes load neighbouring chunks of A and of B.
template <int kColumns, bool wide>
__global__ void __launch_bounds__(256) thin_columns(const Gemm g) {
  constexpr int kRows = kRowsPerTeam<kColumns>, kSums = kRows * kColumns;
  constexpr int kOwn = kOwnTerms<kColumns, wide>, kBatch = 4;  // of loads in flight together
  __shared__ double of_warps[8][kSums];
  const int k = terms(g), lane = threadIdx.x, split = blockDim.y;
  const int row0 = (blockIdx.x * blockDim.z + threadIdx.z) * kRows, stride = split * 32 * kOwn;
  Total<kColumns> sums[kSums] = {};
  for (int i = (threadIdx.y * 32 + lane) * kOwn; i < k; i += kBatch * stride) {
    alignas(16) float a[kBatch][kRows][kOwn] = {}, b[kBatch][kOwn][kColumns] = {};
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      const int at = i + u * stride;
      if (at >= k) continue;
      for (int r = 0; r < kRows; ++r) {
        if (row0 + r >= g.m) continue;
        const float* from = &g.a[(row0 + r) * g.lda + at];
        if constexpr (kOwn == 4)
          four(a[u][r]) = four(from);
        else if constexpr (kOwn == 2)
          two(a[u][r]) = *reinterpret_cast<const float2*>(from);
        else
          a[u][r][0] = *from;
      }
      const float* from = &g.b[at * g.ldb];
      if constexpr (wide) {
        for (int j = 0; j < kOwn * kColumns; j += 4) four(&b[u][0][0] + j) = four(from + j);
      } else {
        for (int j = 0; j < kColumns; ++j)
          if (j < g.n) b[u][0][j] = from[j];
      }
    }
#pragma unroll
    for (int u = 0; u < kBatch * kOwn; u += 4) {
      float chain[kSums] = {};
      for (int t = u; t < u + 4; ++t)
        for (int r = 0; r < kRows; ++r)
          for (int j = 0; j < kColumns; ++j)
            chain[r * kColumns + j] += a[t / kOwn][r][t % kOwn] * b[t / kOwn][t % kOwn][j];
      for (int j = 0; j < kSums; ++j) sums[j] += chain[j];
    }
  }
  const double of_warp = sum_of_lanes(sums);
  constexpr int kAlike = 32 / kSums;  // lanes that have the same
  if (lane % kAlike == 0) of_warps[threadIdx.z * split + threadIdx.y][lane / kAlike] = of_warp;
  __syncthreads();
  if (threadIdx.y > 0 || lane >= kSums) return;
  const int row = row0 + lane / kColumns, column = lane % kColumns;
  double sum = 0;
  for (int w = 0; w < split; ++w) sum += of_warps[threadIdx.z * split + w][lane];
  if (row < g.m && column < g.n) update(g.c[row * g.ldc + column], g.alpha * float(sum), g.beta);
}

constexpr int kThinWidth = 32, kThinGroups = 32;  // columns of a block; groups of eight lanes
template <int rows>
constexpr int kRowsOfB = rows <= 2 ? 8 : 4;  // whose loads are in flight together
constexpr int kManyRowsOfB = 16;             // if C has one row and k is not short

// C of few rows. Groups of eight lanes, and the blocks of a cluster, take four rows of B in turn; a
// lane loads four columns of each, neighbours if wide.
template <int kRows, bool wide, int kBatch = kRowsOfB<kRows>>
__global__ void __launch_bounds__(256, 2) thin_rows(const Gemm g) {
  constexpr int kLanes = 8, kWidth = kThinWidth, kGroups = kThinGroups;
  constexpr int kSums = kRows * kWidth;
  __shared__ Total<kRows> of_groups[kGroups][kSums];
  __shared__ double of_block[kSums];
  const bool a_in_fours = in_fours(g.a, g.lda, g.k);
  int part = 0, parts = 1;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  part = cluster.block_rank(), parts = cluster.num_blocks();
#endif
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int k = terms(g), stride = 4 * parts * kGroups;
  const int column0 = blockIdx.x / parts * kWidth;
  const auto column = [=](int j) { return wide ? 4 * lane + j : lane + kLanes * j; };
  Total<kRows> sums[kRows][4] = {};
  for (int i = 4 * (part * kGroups + group); i < k; i += kBatch / 4 * stride) {
    alignas(16) float a[kRows][kBatch] = {}, b[kBatch][4] = {};
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      const int at = i + u / 4 * stride + u % 4;
      if (at >= k) continue;
      const float* from = &g.b[at * g.ldb + column0];
      if constexpr (wide) {
        if (column0 + column(0) < g.n) four(b[u]) = four(&from[column(0)]);
      } else {
        for (int j = 0; j < 4; ++j)
          if (column0 + column(j) < g.n) b[u][j] = from[column(j)];
      }
      if (a_in_fours) {
        if (u % 4 == 0)
          for (int r = 0; r < kRows; ++r)
            if (r < g.m) four(&a[r][u]) = four(&g.a[r * g.lda + at]);
      } else {
        for (int r = 0; r < kRows; ++r)
          if (r < g.m) a[r][u] = g.a[r * g.lda + at];
      }
    }
#pragma unroll
    for (int u = 0; u < kBatch; u += 4)
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < 4; ++j) {
          float chain = 0;
          for (int t = u; t < u + 4; ++t) chain += a[r][t] * b[t][j];
          sums[r][j] += chain;
        }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < 4; ++j) of_groups[group][r * kWidth + column(j)] = sums[r][j];
  __syncthreads();
  const auto store = [&](int i, double sum) {
    const int row = i / kWidth, at = column0 + i % kWidth;
    if (row < g.m && at < g.n) update(g.c[row * g.ldc + at], g.alpha * float(sum), g.beta);
  };
  for (int i = threadIdx.x; i < kSums; i += 256) {
    double sum = 0;
#pragma unroll
    for (int other = 0; other < kGroups; ++other) sum += of_groups[other][i];
    if (parts == 1)
      store(i, sum);
    else
      of_block[i] = sum;
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (parts == 1) return;
  cluster.sync();
  const int share = kSums / parts;
  for (int i = part * share + threadIdx.x; i < (part + 1) * share; i += 256) {
    double sum = 0;
    for (int other = 0; other < parts; ++other) sum += cluster.map_shared_rank(of_block, other)[i];
    store(i, sum);
  }
  cluster.sync();  // no block may end while its memory is read
#endif
}

// Sums of few terms: most instructions load or store. A warp stores kRows rows of a tile; several
// blocks per SM store while others load. Beyond the edges the last row or column is read again.
template <int kRows, int kColumns>
__global__ void __launch_bounds__(256, 4) few_terms(const Gemm g) {
  constexpr int kHeight = 8 * kRows, kWidth = 32 * kColumns, kDepth = 32;
  __shared__ __align__(16) float a_tile[kDepth][kHeight + 4];
  __shared__ float b_tile[kDepth][kWidth];
  const int k = terms(g), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tiles_x = ceil_div(g.n, kWidth);
  const int row0 = blockIdx.x / tiles_x * kHeight, column0 = blockIdx.x % tiles_x * kWidth;
  float sums[kRows][kColumns] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    const int depth = min(kDepth, k - k0);
    const int bits = 32 - __clz(depth - 1);  // 2^bits lanes load a row of A
    if (k0 > 0) __syncthreads();             // all have read what the copies overwrite
    for (int i = threadIdx.x; i < kHeight << bits; i += 256) {
      const int row = i >> bits, step = i - (row << bits);
      if (step < depth)
        __pipeline_memcpy_async(&a_tile[step][row],
                                &g.a[min(row0 + row, g.m - 1) * g.lda + k0 + step], 4);
    }
    for (int i = threadIdx.x; i < depth * kWidth; i += 256) {
      const int step = i / kWidth, column = i % kWidth;
      __pipeline_memcpy_async(&b_tile[step][column],
                              &g.b[(k0 + step) * g.ldb + min(column0 + column, g.n - 1)], 4);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < depth; ++step) {
      alignas(16) float a[kRows];
      float b[kColumns];
#pragma unroll
      for (int r = 0; r < kRows; r += 4) four(&a[r]) = four(&a_tile[step][warp * kRows + r]);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) b[j] = b_tile[step][lane + 32 * j];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        for (int j = 0; j < kColumns; ++j) sums[r][j] += a[r] * b[j];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = row0 + warp * kRows + r;
    if (row >= g.m) return;
    float* const to = &g.c[row * g.ldc + column0 + lane];
    for (int j = 0; j < kColumns; ++j)
      if (column0 + lane + 32 * j < g.n) update(to[32 * j], g.alpha * sums[r][j], g.beta);
  }
}

// The number among 1, 2, 4 and 8 that holds `count`, and a yes or no, as template arguments of
// `make`.
template <int number = 1, class Make>
GemmLaunch rounded_up(int count, bool yes, Make make) {
  if constexpr (number < kThin)
    if (count > number) return rounded_up<2 * number>(count, yes, make);
  const std::integral_constant<int, number> n;
  return yes ? make(n, std::true_type{}) : make(n, std::false_type{});
}

// How many workers share k: 1, 2, 4 or 8, doubled while `work` groups of them are fewer than
// `enough` and each keeps `terms_each` terms.
inline unsigned shares(int64_t work, int64_t enough, int64_t terms_each, int k) {
  unsigned shares = 1;
  while (shares < 8 && work * shares < enough && k >= 2 * shares * terms_each) shares *= 2;
  return shares;
}

// The largest cluster of at most so many blocks, a power of two.
inline unsigned largest_cluster(unsigned blocks, const Device& device) {
  if (device.compute_capability < 90) return 1;
  while (blocks > 1 && device.clusters_at_once[blocks] == 0) blocks /= 2;
  return blocks;
}

inline GemmLaunch thin_launch(const Gemm& g, const Device& device) {
  if (g.n <= g.m) {
    const bool wide = std::has_single_bit(unsigned(g.n)) && g.ldb == g.n && in_fours(g.b, 0) &&
                      words_at_once(g.a, g.lda, g.k) >= 4 / g.n;
    return rounded_up(g.n, wide, [&](auto columns, auto is_wide) -> GemmLaunch {
      const int64_t teams = ceil_div(g.m, kRowsPerTeam<columns()>);
      const unsigned split =
          shares(teams, 32 * device.sms, 64 * kOwnTerms<columns(), is_wide()>, g.k);
      return {thin_columns<columns(), is_wide()>,
              {.grid = unsigned(ceil_div(teams, 8 / split)), .block = dim3(32, split, 8 / split)}};
    });
  }
  return rounded_up(g.m, in_fours(g.b, g.ldb, g.n), [&](auto rows, auto wide) -> GemmLaunch {
    // Clusters make at most two blocks per SM, and leave at least two batches to each group, or one
    // if batches are large.
    const unsigned tiles = ceil_div(g.n, kThinWidth);
    constexpr int kMany = kThinGroups * kManyRowsOfB;
    if constexpr (rows() == 1)
      if (g.k > kMany / 2) {
        const unsigned parts =
            largest_cluster(shares(tiles, device.sms + 1, kMany / 2 + 1, g.k), device);
        return {thin_rows<rows(), wide(), kManyRowsOfB>,
                {.grid = tiles * parts, .block = 256, .cluster = parts}};
      }
    const unsigned parts = largest_cluster(
        shares(tiles, device.sms + 1, 2 * kThinGroups * kRowsOfB<rows()>, g.k), device);
    return {thin_rows<rows(), wide()>, {.grid = tiles * parts, .block = 256, .cluster = parts}};
  });
}

inline GemmLaunch few_terms_launch(const Gemm& g, const Device& device) {
  const auto tiles = [&](int64_t rows, int64_t columns) {
    return unsigned(ceil_div(g.m, rows) * ceil_div(g.n, columns));
  };
  if (tiles(64, 128) >= unsigned(device.sms))
    return {few_terms<8, 4>, {.grid = tiles(64, 128), .block = 256}};
  return {few_terms<4, 2>, {.grid = tiles(32, 64), .block = 256}};
}

inline std::string not_thin(const Case& c, const Device&) {
  return std::min(c["m"], c["n"]) > kThin ? "C has more than 8 rows and columns" : "";
}

}  // namespace ladders::sgemm
