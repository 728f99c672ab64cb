// SPDX-License-Identifier: MIT
//
// C with few rows or few columns, for which tiles are too large: as many products of a matrix and a
// vector, limited by memory. thin.cu chooses among four kernels:
//
//                   long sums, or few of them         short sums, and many of them
//   few columns     thin_columns: warps share a sum   short_columns: a thread per row of C
//   few rows        thin_rows: warps share a sum      short_rows: a thread per column of C
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "common/mbarrier.cuh"
#include "sgemm/gemm_launch.cuh"

namespace ladders::sgemm {
// The type in which a thread that shares its sums with others adds up chains of four products: FP64
// if C has one or two rows or columns, else FP32, which is faster. Sums of threads are always added
// in FP64.
template <int thickness>
using Total = std::conditional_t<thickness <= 2, double, float>;

// Reduce-scatter of `count` sums over the lanes of a warp whose indices differ by multiples of
// `least`. In each step two lanes exchange half of their sums. At the end a lane has complete sums
// at the front of `sums`: those from lane / least * count * least / 32 on, at least one.
template <int least, int count, int apart = 16>
__device__ __forceinline__ void add_over_lanes(double* sums) {
  if constexpr (apart >= least) {
    const bool upper = threadIdx.x & apart;
    if constexpr (count == 1) sums[0] += __shfl_xor_sync(~0u, sums[0], apart);
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const double lower_half = sums[i], upper_half = sums[count / 2 + i];
      sums[i] = upper ? upper_half : lower_half;
      sums[i] += __shfl_xor_sync(~0u, upper ? lower_half : upper_half, apart);
    }
    add_over_lanes<least, (count > 1 ? count / 2 : 1), apart / 2>(sums);
  }
}

template <int columns>
constexpr int kRowsPerTeam = columns <= 4 ? 2 : 1;
template <int columns, bool wide>
constexpr int kOwnTerms = wide && columns < 4 ? 4 / columns : 1;

// C of few columns. A block is (32, split, teams): the `split` warps of a team divide the terms of
// one or two rows of A. A lane takes one term at a time, or kOwnTerms if `wide`, where C has
// exactly kColumns columns. Then a lane loads 16 bytes of B at a time or more, and neighbouring
// lanes load neighbouring chunks of A and B.
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
        copy_vector<kOwn>(a[u][r], &g.a[(row0 + r) * g.lda + at]);
      }
      const float* from = &g.b[at * g.ldb];
      if constexpr (wide) {
        for (int j = 0; j < kOwn * kColumns; j += 4)
          as_float4(&b[u][0][0] + j) = as_float4(from + j);
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
  double all[kSums];
  for (int i = 0; i < kSums; ++i) all[i] = sums[i];
  add_over_lanes<1, kSums>(all);
  constexpr int kAlike = 32 / kSums;  // lanes that have the same
  if (lane % kAlike == 0) of_warps[threadIdx.z * split + threadIdx.y][lane / kAlike] = all[0];
  __syncthreads();
  if (threadIdx.y > 0 || lane >= kSums) return;
  const int row = row0 + lane / kColumns, column = lane % kColumns;
  double sum = 0;
  for (int w = 0; w < split; ++w) sum += of_warps[threadIdx.z * split + w][lane];
  if (row < g.m && column < g.n) update(g.c[row * g.ldc + column], g.alpha, float(sum), g.beta);
}

constexpr int kThinWidth = 32, kThinGroups = 32;  // columns of a block; groups of eight lanes

// A step's rows of B, and columns of A.
template <int kRows>
struct ThinStage {
  float4 b[4][256];
  float a[kThinGroups][4][kRows];
};
template <int kRows>
struct ThinSums {
  double of_warps[8][kRows * kThinWidth], of_blocks[kRows * kThinWidth];
};

// C of few rows. Groups of eight lanes, and the blocks of a cluster, take four rows of B in turn; a
// lane takes four columns of each. A warp copies its rows to shared memory kStages - 1 steps ahead
// and waits for no other. If wide, a lane copies the columns that it takes, else one column
// of all 16 rows of its warp.
template <int kRows, bool wide, int kStages>
__global__ void __launch_bounds__(256) thin_rows(const Gemm g) {
  constexpr int kLanes = 8, kGroups = kThinGroups, kWidth = kThinWidth, kSums = kRows * kWidth;
  __shared__ ThinSums<kRows> shared;
  auto* const stages = in_register(dynamic_shared<ThinStage<kRows>>());
  int rank = 0, cluster_size = 1;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  rank = cluster.block_rank(), cluster_size = cluster.num_blocks();
#endif
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int k = terms(g), first = 4 * (rank * kGroups + group), stride = 4 * cluster_size * kGroups;
  const int column0 = (blockIdx.x >> (__ffs(cluster_size) - 1)) * kWidth;
  const int row_in_warp = 4 * (threadIdx.x % 32 / kLanes);  // the first of the group's rows
  const int copied = column0 + (wide ? 4 * lane : threadIdx.x % 32);  // a column
  const float* b_from = g.b + (wide ? first : first - row_in_warp) * g.ldb + copied;
  const float* a_from[ceil_div(kRows, 2)];  // lanes copy columns of A, two rows at a time
  for (int r = 0; r < kRows; r += 2)
    a_from[r / 2] = g.a + (r + lane / 4) * g.lda + first + lane % 4;
  int copied_row = first;
  const auto copy = [&](int slot) {
    auto& stage = stages[slot];
    const int left = k - copied_row;
    const int rows = copied >= g.n ? 0 : wide ? left : left + row_in_warp;
    const float* row = b_from;
#pragma unroll
    for (int t = 0; t < (wide ? 4 : 16) && rows > 0; ++t, row += g.ldb) {
#ifdef __CUDACC__
      asm volatile("" : "+l"(row));  // else the compiler multiplies again for each row
#endif
      if (t >= rows) continue;
      if constexpr (wide)
        __pipeline_memcpy_async(&stage.b[t][threadIdx.x], row, 16);
      else
        __pipeline_memcpy_async(
            &stage.b[t % 4][threadIdx.x / 32 * 32 + t / 4 * kLanes].x + threadIdx.x % 32, row, 4);
    }
#pragma unroll
    for (int r = lane / 4; r < kRows; r += 2)
      if (lane % 4 < left && r < g.m)
        __pipeline_memcpy_async(&stage.a[group][lane % 4][r], a_from[r / 2], 4);
    b_from += stride * g.ldb;
    for (auto& from : a_from) from += stride;
    copied_row += stride;
    __pipeline_commit();
  };
#pragma unroll 1
  for (int slot = 0; slot < kStages - 1; ++slot) copy(slot);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (cluster_size > 1) cluster_sync_relaxed();  // others run: their memory may be written
#endif
  Total<kRows> sums[kRows * 4] = {};
  int slot = 0;
#pragma unroll 1
  for (int row = 0; row < k; row += stride) {
    __pipeline_wait_prior(kStages - 2);
    __syncwarp();  // all have copied, and none reads the stage before any more
    const auto& stage = stages[slot];
    const int left = k - row - first;
    float a[4][kRows] = {};
    alignas(16) float b[4][4] = {};
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (t >= left) continue;
      if (kLoadsUnused || column0 + 4 * lane + 4 <= g.n)
        as_float4(b[t]) = stage.b[t][threadIdx.x];
      else
        for (int j = 0; column0 + 4 * lane + j < g.n; ++j)
          b[t][j] = (&stage.b[t][threadIdx.x].x)[j];
      for (int r = 0; r < kRows; ++r)
        if (kLoadsUnused || r < g.m) a[t][r] = stage.a[group][t][r];
    }
    copy(slot == 0 ? kStages - 1 : slot - 1);
    slot = slot == kStages - 1 ? 0 : slot + 1;
#pragma unroll
    for (int s = 0; s < kRows * 4; ++s) {
      float chain = 0;
      for (int t = 0; t < 4; ++t) chain += a[t][s / 4] * b[t][s % 4];
      sums[s] += chain;
    }
  }
  double all[kRows * 4];
#pragma unroll
  for (int s = 0; s < kRows * 4; ++s) all[s] = sums[s];
  add_over_lanes<kLanes, kRows * 4>(all);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int s = threadIdx.x % 32 / kLanes * kRows + i;
    shared.of_warps[threadIdx.x / 32][s / 4 * kWidth + 4 * lane + s % 4] = all[i];
  }
  __syncthreads();
  const auto store = [&](int i, double sum) {
    const int row = i / kWidth, at = column0 + i % kWidth;
    if (row < g.m && at < g.n) update(g.c[row * g.ldc + at], g.alpha, float(sum), g.beta);
  };
  const int share = kSums >> (__ffs(cluster_size) - 1);  // of the sums: a block adds them up
  for (int i = threadIdx.x; i < kSums; i += 256) {
    double sum = 0;
#pragma unroll
    for (const auto& of_warp : shared.of_warps) sum += of_warp[i];
    if (cluster_size == 1) store(i, sum);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (cluster_size > 1)
      *cluster.map_shared_rank(&shared.of_blocks[rank * share + (i & (share - 1))],
                               i >> (__ffs(share) - 1)) = sum;
#endif
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (cluster_size == 1) return;
  cluster.sync();
  for (int i = threadIdx.x; i < share; i += 256) {
    double sum = 0;
    for (int other = 0; other < cluster_size; ++other) sum += shared.of_blocks[other * share + i];
    store(rank * share + i, sum);
  }
#endif
}

// The kernels below are for a short k, and so many rows or columns that a thread sums one alone: no
// threads exchange sums. The thread loads a chunk of terms while it sums the one before. Chains of
// four products are added in FP64.

// The most terms that short_rows and short_columns take:
constexpr int kTermsOfRows = 256, kTermsOfColumns = 128;
constexpr int kShortThreads = 128, kShortChunk = 32;

// Adds a chunk of products: x of the thread's row or column, and the others in shared memory.
template <int kCount>
__device__ __forceinline__ void add_chunk(double (&sums)[kCount], const float (&x)[kShortChunk],
                                          const float (*others)[kCount], int left) {
#pragma unroll
  for (int t = 0; t < kShortChunk; t += 4) {
    if (t >= left) break;
    float chain[kCount] = {};
    for (int u = t; u < t + 4; ++u)
      for (int i = 0; i < kCount; ++i) chain[i] += x[u] * others[u][i];
    for (int i = 0; i < kCount; ++i) sums[i] += chain[i];
  }
}

// C of few rows: a thread takes a column.
template <int kRows>
__global__ void __launch_bounds__(kShortThreads) short_rows(const Gemm g) {
  __shared__ __align__(16) float a[kTermsOfRows][kRows];
  const int k = terms(g), column = blockIdx.x * kShortThreads + threadIdx.x;
  float next[kShortChunk];
  const auto load = [&](int k0) {
    const float* from = g.b + k0 * g.ldb + column;
#pragma unroll
    for (int t = 0; t < kShortChunk; ++t, from += g.ldb)
      next[t] = k0 + t < k && column < g.n ? *from : 0;
  };
  load(0);
  for (int i = threadIdx.x; i < (k + 3) / 4 * 4 * kRows; i += kShortThreads) {
    const int row = i % kRows, term = i / kRows;
    a[term][row] = term < k && row < g.m ? g.a[row * g.lda + term] : 0;
  }
  __syncthreads();
  if (column >= g.n) return;
  double sums[kRows] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += kShortChunk) {
    float b[kShortChunk];
#pragma unroll
    for (int t = 0; t < kShortChunk; ++t) b[t] = next[t];
    if (k0 + kShortChunk < k) load(k0 + kShortChunk);
    add_chunk<kRows>(sums, b, a + k0, k - k0);
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row)
    if (row < g.m) update(g.c[row * g.ldc + column], g.alpha, float(sums[row]), g.beta);
}

// C of few columns: a thread takes a row. A and C pass through shared memory, so that neighbouring
// lanes load and store neighbouring elements. Rows there are an odd number of words apart: they
// begin in different banks.
template <int kColumns>
__global__ void __launch_bounds__(kShortThreads) short_columns(const Gemm g) {
  constexpr int kRows = kShortThreads, kApart = kColumns | 1;
  __shared__ float tiles[2][kRows * (kShortChunk + 1)];
  __shared__ __align__(16) float b[kTermsOfColumns][kColumns];
  const int k = terms(g), row0 = blockIdx.x * kRows, rows = min(kRows, g.m - row0);
  const int longest = min(k, kShortChunk), apart = longest | 1;  // of a row's chunk
  const int bits = longest > 1 ? 32 - __clz(longest - 1) : 0;    // 2^bits lanes load it
  const auto copy = [&](int k0) {
    float* tile = tiles[k0 / kShortChunk % 2];
#pragma unroll 8
    for (int i = threadIdx.x; i < rows << bits; i += kRows) {
      const int row = i >> bits, term = i - (row << bits);
      if (term < longest && k0 + term < k)
        __pipeline_memcpy_async(&tile[row * apart + term], &g.a[(row0 + row) * g.lda + k0 + term],
                                4);
    }
    __pipeline_commit();
  };
  copy(0);
  for (int i = threadIdx.x; i < (k + 3) / 4 * 4 * kColumns; i += kRows) {
    const int column = i % kColumns, term = i / kColumns;
    b[term][column] = term < k && column < g.n ? g.b[term * g.ldb + column] : 0;
  }
  double sums[kColumns] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += kShortChunk) {
    __pipeline_wait_prior(0);
    __syncthreads();  // all have copied, and none reads the other tile any more
    if (k0 + kShortChunk < k) copy(k0 + kShortChunk);
    const float* row = &tiles[k0 / kShortChunk % 2][threadIdx.x * apart];
    float a[kShortChunk];
#pragma unroll
    for (int t = 0; t < kShortChunk; ++t) a[t] = k0 + t < k && int(threadIdx.x) < rows ? row[t] : 0;
    add_chunk<kColumns>(sums, a, b + k0, k - k0);
  }
  __syncthreads();  // all have read the first tile, which becomes one of C
#pragma unroll
  for (int j = 0; j < kColumns; ++j) tiles[0][threadIdx.x * kApart + j] = float(sums[j]);
  __syncthreads();
  for (int i = threadIdx.x; i < rows * kColumns; i += kRows) {
    const int row = i / kColumns, column = i % kColumns;
    if (column < g.n)
      update(g.c[(row0 + row) * g.ldc + column], g.alpha, tiles[0][row * kApart + column], g.beta);
  }
}

}  // namespace ladders::sgemm
