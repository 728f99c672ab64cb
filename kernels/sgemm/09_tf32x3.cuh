// SPDX-License-Identifier: MIT
//
// FP32 by three TF32 products on tensor cores (or six of BF16: 10_bf16x6.cuh) in one kernel. Needs
// sm_80, and sm_90 for clusters of several blocks. On Hopper, fp16x3 is faster for large products.
//
// x = hi + lo, where hi is x rounded to TF32 and lo the rest, 12 bits and a sign, of which tensor
// cores take 11. So an operand errs by up to 2^-23 of itself, without a bias; lo * lo, left out, is
// below 2^-22 of the product. There is no scaling, but numbers below 2^-113 err by up to 2^-136:
// tensor cores ignore the 13 lowest bits of a denormal number. Infinities and NaNs make lo NaN; a
// number that rounds up to infinity makes lo infinite, with the other sign. Either way a sum that
// contains it is not finite. Such sums, and very small ones, are computed again in FP64.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <cfloat>
#include <type_traits>

#include "common/flags.cuh"
#include "common/ring.cuh"
#include "common/tensor_cores.cuh"
#include "sgemm/matrices.cuh"
#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
// A product, how many words of A and B may be copied at once, and whether rows of C start on 16
// bytes.
struct AlignedGemm : Gemm {
  int words_a, words_b;  // see vector_width()
  bool wide_c;
};

// A warp computes warp_rows x warp_columns outputs, from one of the slices of each stage's depth. A
// slice is `groups` groups of 16 terms. Tensor cores add up a group, FP32 units add up groups.
// `blocks` should fit on an SM.
struct StagedShape {
  int rows, columns, warp_rows = 64, warp_columns = 32;
  int slices = 2, groups = 2, stages = 4, blocks = 1;
};
template <StagedShape shape>
struct StagedTiles {
  static constexpr int kRows = shape.rows, kColumns = shape.columns;
  static constexpr int kSlices = shape.slices, kGroups = shape.groups;
  static constexpr int kWarpRows = shape.warp_rows, kWarpColumns = shape.warp_columns;
  static constexpr int kStages = shape.stages, kBlocks = shape.blocks;
  static constexpr int kDepth = 16 * kGroups * kSlices;
  static constexpr int kWarpsX = kColumns / kWarpColumns;
  static constexpr int kWarps = kRows / kWarpRows * kWarpsX;  // per slice
  static constexpr int kThreads = 32 * kWarps * kSlices;
  static constexpr int kWords = kDepth * (kRows + kColumns);  // per stage
  static constexpr int kPitch = kColumns + 4;                 // of sums: rows start 4 banks apart
  static constexpr int kSums = kSlices * kRows * kPitch;
  static constexpr int kShared = 4 * std::max(kStages * kWords, kSums);
  static_assert(kDepth >= 32 && kRows % 32 == 0 && kWarpRows % 16 == 0 && kWarpColumns % 32 == 0);
  // Whether these tiles are for SMs with 164 or 100 KiB of shared memory, not for Hopper's 228.
  static constexpr bool kForLessShared = kBlocks * (kShared + 1024) <= 164 * 1024;
};

// The offset of an element in a stage. The XOR avoids bank conflicts of 16-byte loads, which are
// served eight lanes at a time: these read four neighbouring chunks of two rows of A, or two
// neighbouring chunks of four rows of B that are four rows apart.
template <int depth>
__device__ __forceinline__ int place_a(int row, int column) {
  return row * depth + (column ^ row % 2 * 16);
}
template <int columns, int apart = 8>  // 4: chunks i and i + 4 of 32 words
__device__ __forceinline__ int place_b(int row, int column) {
  return row * columns + (column ^ row / 4 % 4 * apart);
}

// Starts the copy of 1, 2 or 4 words to shared memory, or fills them with 0.
template <int words>
__device__ __forceinline__ void cp_async_words(uint32_t to, const float* from, bool inside) {
#define LADDERS_COPY(copy, bytes)                                      \
  asm volatile(                                                        \
      "{ .reg .pred outside; setp.eq.u32 outside, %2, 0;\n"            \
      "cp.async." copy " [%0], [%1], " bytes ", outside; }" ::"r"(to), \
      "l"(from), "r"(uint32_t{inside})                                 \
      : "memory")
  if constexpr (words == 4)
    LADDERS_COPY("cg.shared.global.L2::128B", "16");
  else if constexpr (words == 2)
    LADDERS_COPY("ca.shared.global", "8");
  else
    LADDERS_COPY("ca.shared.global", "4");
#undef LADDERS_COPY
}

// A warp starts the copy of a box of a matrix to place(row, column) in the stage; elements outside
// of the matrix become 0. Chunks of `words` words are aligned, and all inside or outside.
template <int box_rows, int box_columns, int words, class Place>
__device__ __forceinline__ void cp_async_box(const float* matrix, int64_t pitch, int row0,
                                             int column0, int rows, int columns, Place place) {
  constexpr int kPerRow = box_columns / words < 32 ? box_columns / words : 32;
  constexpr int kApart = 32 / kPerRow;
  constexpr int kUnrolled = 16;  // rows, after which places repeat
  static_assert(box_rows % kUnrolled == 0);
  const int lane = threadIdx.x % 32, row = lane / kPerRow, column = lane % kPerRow * words;
#pragma unroll
  for (int x = 0; x < box_columns; x += kPerRow * words) {
    const float* from = matrix + (row0 + row) * pitch + column0 + column + x;
    const int left = columns > column0 + column + x ? rows - row0 - row : 0;
#pragma unroll 1
    for (int y = 0; y < box_rows; y += kUnrolled)
      for (int i = 0; i < kUnrolled; i += kApart) {
        cp_async_words<words>(place(row + i, column + x) + 4 * y * box_columns, from, y + i < left);
        from += kApart * pitch;
      }
  }
}

// Calls `copy` with the number of words as a constant.
template <class Copy>
__device__ __forceinline__ void by_words(int words, Copy copy) {
  if (words == 4)
    copy(std::integral_constant<int, 4>{});
  else if (words == 2)
    copy(std::integral_constant<int, 2>{});
  else
    copy(std::integral_constant<int, 1>{});
}

// Tensor cores read the upper 19 bits only: this addition rounds hi. lo needs no rounding, as it
// has either sign. It is NaN where x is not finite, even where hi wraps to 0.
__device__ __forceinline__ void split(float x, uint32_t& hi, uint32_t& lo) {
  hi = __float_as_uint(x) + 0x1000;
  lo = __float_as_uint(x - __uint_as_float(hi & 0xffffe000));
}

struct PartIndices {
  int a, b;  // which part of A, which of B
};

// How elements are split, and the products, small terms first, since tensor cores truncate sums.
// Parts 0 and 1 are high, for the first and the second instruction of 8 terms; parts 2 and 3 are
// low. Products are lo hi, hi lo and hi hi, of either instruction in turn.
struct TwoOfTf32 {
  using Type = Tf32;
  static constexpr int kParts = 4;
  static __device__ constexpr PartIndices product(int i) {
    return {i < 2 ? 2 + i : i % 2, i / 2 == 1 ? i : i % 2};
  }

  static __device__ __forceinline__ void split_a(float4 v, int h, uint32_t (&parts)[kParts][4]) {
    split(v.x, parts[0][h], parts[2][h]), split(v.y, parts[0][h + 2], parts[2][h + 2]);
    split(v.z, parts[1][h], parts[3][h]), split(v.w, parts[1][h + 2], parts[3][h + 2]);
  }
  static __device__ __forceinline__ void split_b(const float* b, int pitch,
                                                 uint32_t (*parts)[kParts][2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      alignas(16) float row[4];
      as_float4(row) = as_float4(b + i * pitch);
      for (int j = 0; j < 4; ++j) split(row[j], parts[j][i / 2][i % 2], parts[j][2 + i / 2][i % 2]);
    }
  }
};

// Adds 16 terms to a warp's sums. The instruction's own order of operands would need scattered
// loads of single words. But a sum does not depend on the order of its terms, as long as A and B
// agree. So lane 4g + t loads k = 4t to 4t + 3, 16 bytes, of each row of A. It passes them off as
// what the instruction expects of this lane: k = t and t + 4 of two TF32 instructions, or k = 2t,
// 2t + 1, 2t + 8 and 2t + 9 of one BF16 instruction. Of B it loads the same four rows, and four
// columns at once: column j of the chunk is column g of instruction j. The stores undo that order.
template <class Tiles, class Parts>
__device__ __forceinline__ void add_group(
    float (&sums)[Tiles::kWarpRows / 16][Tiles::kWarpColumns / 8][4], const float* a,
    const float* b) {
  constexpr int kTilesX = Tiles::kWarpColumns / 8;
  uint32_t b_parts[kTilesX][Parts::kParts][2];
#pragma unroll
  for (int x = 0; x < kTilesX; x += 4) Parts::split_b(b + 8 * x, Tiles::kColumns, &b_parts[x]);
#pragma unroll
  for (int y = 0; y < Tiles::kWarpRows / 16; ++y) {
    uint32_t a_parts[Parts::kParts][4];
    for (int h = 0; h < 2; ++h)
      Parts::split_a(as_float4(a + (16 * y + 8 * h) * Tiles::kDepth), h, a_parts);
    for (int x = 0; x < kTilesX; x += 4) {
      float d[4][4] = {};
      for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 4; ++j)
          mma_m16n8<typename Parts::Type>(d[j], a_parts[Parts::product(i).a],
                                          b_parts[x + j][Parts::product(i).b]);
      for (int j = 0; j < 4; ++j)
        for (int e = 0; e < 4; ++e) sums[y][x + j][e] += d[j][e];
    }
  }
}

// Four neighbours of a row of C, computed again where parts were lost. (What is beyond the row's
// end is not stored.)
__device__ __forceinline__ void store_four_checked(const AlignedGemm& p, int row, int column,
                                                   float4 sum) {
  if (row >= p.m || column >= p.n) return;
  float sums[] = {sum.x, sum.y, sum.z, sum.w};
  restore_lost<4>([&](int i) -> float& { return sums[i]; },
                  [&](int i) {
                    const float* of_b = &p.b[min(column + i, p.n - 1)];
                    return exact_product(&p.a[row * p.lda], of_b, p.ldb, p.k);
                  });
  store_four(p.c, p.ldc, p.wide_c, row, column, p.m, p.n, p.alpha, sums, p.beta);
}

// How several clusters share the k of a tile: each stores its partial sums, and the last to arrive
// adds them up.
struct SplitKWorkspace {
  int clusters;  // per tile
  float4* sums;  // of each tile and cluster in turn, in chunks of four outputs
  // How many clusters have stored sums, for each tile and block of a cluster; 0 before and after.
  unsigned* arrived;
};
constexpr int kTogetherLoaded = 8;  // partial sums

// Warps keep a ring of stages full; arrivals at mbarriers say what is loaded and what is read, so
// no barrier makes all warps wait. The warps of a block share its tile and, in slices, each stage's
// depth; the `cluster_size` blocks of a cluster share k, and so do clusters where tiles are few.
// The order of additions is fixed.
template <class Tiles, class Parts>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocks)
    split_products(const __grid_constant__ AlignedGemm p, int cluster_size, int tiles_x,
                   const __grid_constant__ SplitKWorkspace workspace) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (Tiles::kForLessShared) return;
#endif
#if __CUDA_ARCH__ >= 800
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  constexpr int kStages = Tiles::kStages, kThreads = Tiles::kThreads, kPitch = Tiles::kPitch;
  constexpr int kTogether =
      1024 / (16 * Tiles::kGroups);  // k tiles before sums are added to totals
  constexpr int kLag = 2;  // k tiles from reading to refilling a stage: warps may drift apart
  constexpr int kWarps = kThreads / 32, kJobs = 4;  // jobs: copies of half a stage's A or B
  static_assert(kStages > kLag && kWarps >= kJobs && (kWarps & (kWarps - 1)) == 0);
  __shared__ MBarrier barriers[2 * kStages];
  const auto [full, empty] = Ring<kStages>::in_registers(barriers);
  float* ring = in_register(dynamic_shared<float>());
  if (threadIdx.x == 0) Ring<kStages>{full, empty}.initialize(32 * kJobs, kThreads);
  __syncthreads();
  const int rank = blockIdx.x % cluster_size, tile = blockIdx.x / cluster_size / workspace.clusters;
  const int row0 = tile / tiles_x * kRows, column0 = tile % tiles_x * kColumns;
  const int shares = workspace.clusters * cluster_size, share = blockIdx.x % shares;
  const int all = ceil_div(p.k, kDepth), first = int64_t(all) * share / shares;
  const int k_tiles = int64_t(all) * (share + 1) / shares - first;
  const uint32_t ring_address = shared_address(ring);
  // The warps take turns at the copies: of each stage, half of A or B is a job for one of them.
  const int warp = threadIdx.x / 32;
  const auto start_copies = [&](int k_tile, int s) {
    const int job = (warp - k_tile * kJobs) & (kWarps - 1), half = job % 2;
    if (job >= kJobs) return;
    if (k_tile >= kStages) poll(empty[s], (k_tile / kStages - 1) & 1);
    const uint32_t to = ring_address + 4 * (s * Tiles::kWords + (job < 2 ? 0 : kRows * kDepth));
    const int k0 = (first + k_tile) * kDepth;
    if (job < 2) {
      const auto place = [&](int row, int column) {
        return to + 4 * (half * (kRows / 2) * kDepth + place_a<kDepth>(row, column));
      };
      const int row = row0 + half * (kRows / 2);
      const auto copy = [&]<int words>(std::integral_constant<int, words>) {
        cp_async_box<kRows / 2, kDepth, words>(p.a, p.lda, row, k0, p.m, p.k, place);
      };
      by_words(p.words_a, copy);
    } else {
      const auto place = [&](int row, int column) {
        return to + 4 * (half * (kDepth / 2) * kColumns + place_b<kColumns>(row, column));
      };
      const int row = k0 + half * (kDepth / 2);
      const auto copy = [&]<int words>(std::integral_constant<int, words>) {
        cp_async_box<kDepth / 2, kColumns, words>(p.b, p.ldb, row, column0, p.k, p.n, place);
      };
      by_words(p.words_b, copy);
    }
    cp_async_arrive_noinc(full[s]);
  };
#pragma unroll 1
  for (int k_tile = 0; k_tile < min(kStages, k_tiles); ++k_tile) start_copies(k_tile, k_tile);

  const int slice = warp / Tiles::kWarps, g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4, my_row = warp % Tiles::kWarps / Tiles::kWarpsX * Tiles::kWarpRows;
  const int my_column = warp % Tiles::kWarpsX * Tiles::kWarpColumns;
  const int my_depth = slice * Tiles::kGroups * 16;
  int a_at = place_a<kDepth>(my_row + g, my_depth + 4 * t);
  int b_at = kRows * kDepth + place_b<kColumns>(my_depth + 4 * t, my_column + 4 * g);
  if constexpr (Tiles::kGroups > 1)  // else computed again for each k tile
    asm volatile("" : "+r"(a_at), "+r"(b_at));
  constexpr int kTilesY = Tiles::kWarpRows / 16, kTilesX = Tiles::kWarpColumns / 8;
  constexpr int kFours = kTilesY * kTilesX;
  float sums[kTilesY][kTilesX][4] = {};
  // Sums of 1024 terms are added to totals, so that each term takes part in fewer rounded sums. An
  // index that the compiler cannot know keeps totals in local memory.
  float4 totals[kFours];
  int totals_at = 0;
  asm volatile("" : "+r"(totals_at));
  bool has_totals = false;
  const auto add_totals = [&] {
    if (!has_totals) return;
    float4 loaded[kFours];
#pragma unroll
    for (int i = 0; i < kFours; ++i) loaded[i] = totals[totals_at + i];
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      float (&sum)[4] = sums[i / kTilesX][i % kTilesX];
      sum[0] += loaded[i].x, sum[1] += loaded[i].y, sum[2] += loaded[i].z, sum[3] += loaded[i].w;
    }
  };
  PipelineState<kStages> state;
  int left = p.k - first * kDepth - my_depth;  // from this stage on
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    if (k_tile >= kLag && k_tile - kLag + kStages < k_tiles)
      start_copies(k_tile - kLag + kStages,
                   state.stage < kLag ? state.stage - kLag + kStages : state.stage - kLag);
    __syncwarp();
    poll(full[state.stage], state.parity);
    const float* stage = ring + state.stage * Tiles::kWords;
#pragma unroll
    for (int u = 0; u < Tiles::kGroups; ++u)     // beyond k are zeros: one group needs no test
      if (Tiles::kGroups == 1 || left > 16 * u)  // XOR: place_a() may have flipped this bit
        add_group<Tiles, Parts>(sums, stage + (a_at ^ 16 * u), stage + b_at + 16 * u * kColumns);
    arrive(empty[state.stage]);  // all lanes: racecheck cannot follow __syncwarp() and one arrival
    left -= kDepth;
    state.next();
    if ((k_tile + 1) % kTogether == 0 && k_tile + 1 < k_tiles) {
      add_totals();
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        float (&sum)[4] = sums[i / kTilesX][i % kTilesX];
        totals[totals_at + i] = {sum[0], sum[1], sum[2], sum[3]};
        sum[0] = sum[1] = sum[2] = sum[3] = 0;
      }
      has_totals = true;
    }
  }
  add_totals();

  __syncthreads();  // the ring is free
  float* own = ring + (slice * kRows + my_row + g) * kPitch + my_column + 8 * t;
#pragma unroll
  for (int y = 0; y < Tiles::kWarpRows / 8; ++y)
    for (int x = 0; x < Tiles::kWarpColumns / 8; x += 4)
      for (int h = 0; h < 2; ++h) {
        const int e = y % 2 * 2 + h;
        const auto& four = sums[y / 2];
        *reinterpret_cast<float4*>(&own[8 * y * kPitch + 8 * x + 4 * h]) = {
            four[x][e], four[x + 1][e], four[x + 2][e], four[x + 3][e]};
      }
  __syncthreads();
  constexpr int kChunks = kRows * kColumns / 4, kPerRow = kColumns / 4;
  const auto chunk = [&](int i) {
    return &as_float4(&ring[i / kPerRow * kPitch + i % kPerRow * 4]);
  };
  const auto add_slices = [&](int i) {
    float4 sum = *chunk(i);
#pragma unroll
    for (int other = 1; other < Tiles::kSlices; ++other)
      add(sum, chunk(i)[other * kRows * kPitch / 4]);
    return sum;
  };
  // One loop for all cases, since code that runs once should be short: it comes from DRAM. First a
  // block adds up its slices. Then each block of a cluster adds up the cluster's sums of a part of
  // the tile. Then, for each part, the last block to arrive adds up the sums of the clusters.
  enum { slices, blocks, clusters } from = cluster_size == 1 ? slices : blocks;
  const int begin = kChunks * rank / cluster_size + threadIdx.x;
  const int end = kChunks * (rank + 1) / cluster_size;
  const int64_t of_tile = int64_t(tile) * workspace.clusters * kChunks;
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  if (from == blocks) {
    if (Tiles::kSlices > 1)
#pragma unroll 2
      for (int i = threadIdx.x; i < kChunks; i += kThreads) *chunk(i) = add_slices(i);
    cluster_sync_shared();
  }
#endif
  for (;;) {
    const bool stores_partials = workspace.clusters > 1 && from != clusters;
#pragma unroll 1
    for (int i = begin; i < end; i += kThreads) {
      float4 sum = {};
      if (from == slices) {
        sum = add_slices(i);
      } else if (from == clusters) {
#pragma unroll 1
        for (int from_cluster = 0; from_cluster < workspace.clusters;
             from_cluster += kTogetherLoaded) {
          float4 partials[kTogetherLoaded] = {};
#pragma unroll
          for (int u = 0; u < kTogetherLoaded; ++u)
            if (from_cluster + u < workspace.clusters)
              partials[u] = __ldcg(&workspace.sums[of_tile + (from_cluster + u) * kChunks + i]);
#pragma unroll
          for (const float4& x : partials) add(sum, x);
        }
      } else {
#if __CUDA_ARCH__ >= 900
#pragma unroll 4
        for (int other = 0; other < cluster_size; ++other)
          add(sum, *cluster.map_shared_rank(chunk(i), other));
#endif
      }
      if (stores_partials)
        workspace.sums[of_tile + share / cluster_size * kChunks + i] = sum;
      else
        store_four_checked(p, row0 + i / kPerRow, column0 + i % kPerRow * 4, sum);
    }
#if __CUDA_ARCH__ >= 900
    // No block may exit while another loads from it.
    if (from == blocks) cluster_sync_shared();
#endif
    if (!stores_partials) return;
    int& is_last = *reinterpret_cast<int*>(ring);
    __syncthreads();
    if (threadIdx.x == 0) {
      const Count arrived(workspace.arrived[tile * cluster_size + rank]);
      is_last =
          arrived.fetch_add(1, cuda::memory_order_acq_rel) + 1 == unsigned(workspace.clusters);
      if (is_last) arrived.store(0, cuda::memory_order_relaxed);
    }
    __syncthreads();
    if (!is_last) return;
    from = clusters;
  }
#endif
}

}  // namespace ladders::sgemm
