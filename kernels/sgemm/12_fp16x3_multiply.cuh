// SPDX-License-Identifier: MIT
//
// The second kernel of fp16x3: three products of the parts by wgmma, fed by TMA.
#pragma once

#include "common/raster.cuh"
#include "common/ring.cuh"
#include "common/tensor_cores.cuh"
#include "common/tma.cuh"
#include "sgemm/11_fp16x3_split.cuh"
#include "sgemm/matrices.cuh"

namespace ladders::sgemm {
// Tiles of 128 rows of outputs by two warpgroups, from a ring of stages that a third one keeps
// full. The two blocks of a cluster have tiles one below the other, and each loads half of B for
// both.
constexpr int kRows = 128, kDepth = 32, kCluster = 2;
constexpr int kConsumers = 256, kMultiplyThreads = kConsumers + 128;
// Launched with 168 registers per thread: consumers need more for their sums.
constexpr int kProducerRegisters = 40, kConsumerRegisters = (3 * 168 - kProducerRegisters) / 2;
// Outputs go through shared memory, 16 rows of so many columns per warp at a time.
constexpr int kStagedColumns = 32, kStaged = 16 * kStagedColumns;

// Tiles of `columns` columns. With 256 a thread lacks the registers for its sums and those of a
// stage, so a stage is multiplied in two passes of 128 columns.
template <int columns>
struct WideTiles {
  static constexpr int kColumns = columns, kPasses = columns > 192 ? 2 : 1;
  static constexpr int kPassColumns = columns / kPasses,
                       kOutputs = 64 * kPassColumns / 128;  // of a thread
  static constexpr int kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2;
  static constexpr int kStageBytes = 2 * (kABytes + kBBytes);
  static constexpr int kStagedBytes = kConsumers / 32 * kStaged * int(sizeof(float));
  // A block may have 227 KiB. One is left for barriers.
  static constexpr int kStages = (226 * 1024 - kStagedBytes) / kStageBytes,
                       kRingBytes = kStages * kStageBytes;
  static constexpr int kShared = kRingBytes + kStagedBytes;
};

// Describes to wgmma where operands are in shared memory: address and two strides in units of 16
// bytes, and the swizzle, 1 for 128 bytes, 2 for 64.
__device__ __forceinline__ uint64_t descriptor(const void* tile, int leading, int stride,
                                               uint64_t swizzle) {
  return uint64_t((__cvta_generic_to_shared(tile) & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16 |
         uint64_t(stride >> 4) << 32 | swizzle << 62;
}
// Rows of 32 k, 64 bytes: a stride for 8 rows; the other is not used.
__device__ __forceinline__ uint64_t rows_of_k(const void* tile) {
  return descriptor(tile, 16, 8 * 2 * kDepth, 2);
}
// B: each block of the cluster copies 16 of the stage's 32 rows of k, chunk after chunk. So a chunk
// is 16 rows of 128 bytes here. Strides are from chunk to chunk and from 8 rows of k to the next.
constexpr int kChunkBytes = 16 * 2 * kChunk;
__device__ __forceinline__ uint64_t chunks_of_columns(const void* tile) {
  return descriptor(tile, kChunkBytes, 8 * 2 * kChunk, 1);
}

// D[64 x n] = A[64 x 16] B[16 x n] by a warpgroup, plus the old D if `add`. A thread has n / 2
// outputs. The last operands: whether to add, the signs of A and B, and that B alone is transposed.
__device__ __forceinline__ void wgmma(float (&d)[32], uint64_t a, uint64_t b, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LADDERS_TEN() LADDERS_TEN(1)
          LADDERS_TEN(2) "%30,%31}, %32, %33, add, 1, 1, 0, 1; }"
      : LADDERS_F8(0), LADDERS_F8(8), LADDERS_F8(16), LADDERS_F8(24)
      : "l"(a), "l"(b), "r"(int(add)));
#endif
}
__device__ __forceinline__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LADDERS_TEN() LADDERS_TEN(1)
          LADDERS_TEN(2) LADDERS_TEN(3) LADDERS_TEN(4)
              LADDERS_TEN(5) "%60,%61,%62,%63}, %64, %65, add, 1, 1, 0, 1; }"
      : LADDERS_F8(0), LADDERS_F8(8), LADDERS_F8(16), LADDERS_F8(24), LADDERS_F8(32),
        LADDERS_F8(40), LADDERS_F8(48), LADDERS_F8(56)
      : "l"(a), "l"(b), "r"(int(add)));
#endif
}
__device__ __forceinline__ void wgmma(float (&d)[96], uint64_t a, uint64_t b, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 {" LADDERS_TEN() LADDERS_TEN(1)
          LADDERS_TEN(2) LADDERS_TEN(3) LADDERS_TEN(4) LADDERS_TEN(5) LADDERS_TEN(6) LADDERS_TEN(7)
              LADDERS_TEN(8) "%90,%91,%92,%93,%94,%95}, %96, %97, add, 1, 1, 0, 1; }"
      : LADDERS_F8(0), LADDERS_F8(8), LADDERS_F8(16), LADDERS_F8(24), LADDERS_F8(32),
        LADDERS_F8(40), LADDERS_F8(48), LADDERS_F8(56), LADDERS_F8(64), LADDERS_F8(72),
        LADDERS_F8(80), LADDERS_F8(88)
      : "l"(a), "l"(b), "r"(int(add)));
#endif
}

// wgmma uses these registers asynchronously. The compiler moves no access to them across this call.
template <int outputs>
__device__ __forceinline__ void warpgroup_fence_operand(float (&sums)[outputs]) {
#pragma unroll
  for (int i = 0; i < outputs; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// x 2^e for |x| < 2^64 and e < 254. The intermediate result overflows or underflows only if the
// result does.
__device__ __forceinline__ float times_power_of_two(float x, int e) {
  e = max(e, -252);  // below, the result is 0 too
  const int first = max(-126, min(e, 127));
  return x * power_of_two(first) * power_of_two(e - first);
}

// The sum of the products that are not finite, for all lanes of a warp: infinity or NaN. Finite
// products cannot change it, but could overflow in FP32.
__device__ __forceinline__ float sum_not_finite(const float* a, const float* b, int64_t ldb,
                                                int k) {
  const int lane = threadIdx.x % 32;
  float sum = 0;
  for (int first = 0; first < k; first += 8 * 32) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      if (const int i = first + lane + 32 * j; i < k) {
        const float x = a[i], y = b[i * ldb];
        if (!isfinite(x) || !isfinite(y)) sum += x * y;
      }
    if (__any_sync(~0u, isnan(sum))) return NAN;  // and remains NaN
  }
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
  return sum;
}

// The outputs of a warp's 16 rows whose row or column is not finite.
template <int columns>
__device__ __forceinline__ void store_not_finite(const Gemm& g, const int* row_exponents,
                                                 const int* column_exponents, int first_row,
                                                 int first_column) {
  const int lane = threadIdx.x % 32;
  for (int row = first_row; row < min(first_row + 16, g.m); ++row)
    for (int at = first_column; at < min(first_column + columns, g.n); at += 32) {
      unsigned todo = __ballot_sync(
          ~0u,
          at + lane < g.n && !is_finite_exponent(row_exponents[row] + column_exponents[at + lane]));
      for (; todo != 0; todo &= todo - 1) {
        const int column = at + __ffs(todo) - 1;
        const float sum = sum_not_finite(g.a + row * g.lda, g.b + column, g.ldb, g.k);
        if (lane == 0) update(g.c[row * g.ldc + column], g.alpha, sum, g.beta);
      }
    }
}

// A warp's 16 rows, of which lane 4 r + t has columns 2 t and 2 t + 1 of every eight in rows r and
// r + 8. They go through shared memory, since code for each of the thread's outputs would be so
// long that it takes longer to fetch than to execute. Only the first slice of k applies beta;
// later ones add to C.
template <class T>
__device__ __forceinline__ void store_sums(const Gemm& g, bool first_slice,
                                           const float (&sums)[T::kPasses][T::kOutputs],
                                           const int* row_exponents, const int* column_exponents,
                                           int first_row, int first_column, float* staged) {
  constexpr int kBatch = 8;  // rows whose loads are in flight together
  const float beta = first_slice ? g.beta : 1;
  const int lane = threadIdx.x % 32, r = lane / 4, rows = min(16, g.m - first_row);
  if (rows <= 0) return;
  const int row_exponent = row_exponents[first_row + min(lane, rows - 1)];
  bool all_finite = is_finite_exponent(row_exponent);
  // Eights of columns are XORed with the row's number: then there are no bank conflicts.
  float2* own = reinterpret_cast<float2*>(staged + r * kStagedColumns + lane % 4 * 2);
#pragma unroll
  for (int i = 0; i < T::kColumns / kStagedColumns; ++i) {
    constexpr int kInPass = T::kPassColumns / kStagedColumns;
    const float* from = &sums[i / kInPass][i % kInPass * (kStagedColumns / 2)];
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kStagedColumns / 8; ++j) {
      const int at = (j ^ r % 4) * 4;
      own[at] = {from[4 * j], from[4 * j + 1]};
      own[at + 8 * kStagedColumns / 2] = {from[4 * j + 2], from[4 * j + 3]};
    }
    __syncwarp();
    const int column = first_column + i * kStagedColumns + lane;
    if (column - lane >= g.n) break;
    const int column_exponent = column_exponents[column];
    all_finite &= is_finite_exponent(column_exponent) || column >= g.n;
#pragma unroll 1
    for (int row0 = 0; row0 < rows; row0 += kBatch) {
      float x[kBatch], values[kBatch] = {};
      float* c = g.c + (first_row + row0) * g.ldc + column;
      const auto inside = [&](int row) { return row0 + row < rows && column < g.n; };
#pragma unroll
      for (int row = 0; row < kBatch; ++row) {
        x[row] = staged[(row0 + row) * kStagedColumns + (lane ^ row % 4 * 8)];
        if (beta != 0 && inside(row)) values[row] = c[row * g.ldc];
      }
#pragma unroll
      for (int row = 0; row < kBatch; ++row) {
        const int exponent = __shfl_sync(~0u, row_exponent, row0 + row) + column_exponent;
        update(values[row], g.alpha, times_power_of_two(x[row], exponent), beta);
        if (inside(row) && is_finite_exponent(exponent)) c[row * g.ldc] = values[row];
      }
    }
  }
  if (first_slice && __any_sync(~0u, !all_finite))
    store_not_finite<T::kColumns>(g, row_exponents, column_exponents, first_row, first_column);
}

// The first row and column of the outputs of block `rank`, of a pair of tiles one below the other.
__device__ __forceinline__ Raster::Place origin_of(const Raster& pairs, int columns, int pair,
                                                   int rank) {
  const auto [row, column] = pairs.place(pair);
  return {.row = (row * kCluster + rank) * kRows, .column = column * columns};
}

// The two consumer warpgroups take turns to issue their products, so that one adds up its sums
// while the tensor cores work for the other. Warpgroup 0 is the first. Barrier g + 1 lets warpgroup
// g go on once its 128 threads wait and the other 128 have arrived.
__device__ __forceinline__ void wait_for_turn(int group) {
  if (group == 0)
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
  else
    asm volatile("bar.sync 2, %0;" ::"n"(kConsumers) : "memory");
}
__device__ __forceinline__ void give_turn_to(int group) {
  if (group == 0)
    asm volatile("bar.arrive 1, %0;" ::"n"(kConsumers) : "memory");
  else
    asm volatile("bar.arrive 2, %0;" ::"n"(kConsumers) : "memory");
}

// Adds the products of a stage. Tensor cores truncate when they add, so FP32 units add up what the
// stages give.
template <class T>
__device__ __forceinline__ void add_stage(float (&sums)[T::kPasses][T::kOutputs], int group,
                                          int thread, const Ring<T::kStages>& ring,
                                          PipelineState<T::kStages>& state,
                                          const unsigned char* stages) {
  constexpr int kNext16 = T::kBBytes / 2 >> 4;  // to the next 16 terms of B, in units of 16 bytes
  const unsigned char* stage = stages + state.stage * T::kStageBytes;
  const unsigned char *a = stage + group * (T::kABytes / 2), *b = stage + 2 * T::kABytes;
  const uint64_t high_a = rows_of_k(a), low_a = rows_of_k(a + T::kABytes);
  wait(ring.full[state.stage], state.parity);
#pragma unroll
  for (int pass = 0; pass < T::kPasses; ++pass) {
    const unsigned char* columns = b + pass * (T::kPassColumns / kChunk) * kChunkBytes;
    const uint64_t high_b = chunks_of_columns(columns);
    const uint64_t low_b = chunks_of_columns(columns + T::kBBytes);
    float some[T::kOutputs];
    wait_for_turn(group);
    warpgroup_fence_operand(some);
    wgmma_fence();
    // The small terms come first, so that few sums are truncated at their full size.
#pragma unroll
    for (int q = 0; q < kDepth / 16; ++q) {
      wgmma(some, high_a + 2 * q, low_b + kNext16 * q, q > 0);
      wgmma(some, low_a + 2 * q, high_b + kNext16 * q, true);
    }
#pragma unroll
    for (int q = 0; q < kDepth / 16; ++q) wgmma(some, high_a + 2 * q, high_b + kNext16 * q, true);
    wgmma_commit_group();
    give_turn_to(group ^ 1);
    wgmma_wait_group();
    warpgroup_fence_operand(some);
    if (pass == T::kPasses - 1) {  // both blocks filled this stage: both learn that it is read
      if (thread < kCluster) arrive_remote(ring.empty[state.stage], thread);
      __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < T::kOutputs; ++i) sums[pass][i] += some[i];
  }
  state.next();
}

// `k_tiles_per_slice` stages make a slice of k, whose sums are added to C.
template <int columns>
__global__ void __launch_bounds__(kMultiplyThreads, 1)
    fp16_products(const __grid_constant__ TensorMap a_high, const __grid_constant__ TensorMap a_low,
                  const __grid_constant__ TensorMap b_high, const __grid_constant__ TensorMap b_low,
                  const int* row_exponents, const int* column_exponents,
                  const __grid_constant__ Gemm g, int k_tiles_per_slice, const Raster raster) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using T = WideTiles<columns>;
  __shared__ MBarrier barriers[2 * T::kStages];
  MBarrier *full = in_register(barriers), *empty = full + T::kStages;
  auto* stages = in_register(swizzled_shared<unsigned char>());
  const int rank = cluster_rank();
  Ring<T::kStages>{full, empty}.start(1, kCluster * kConsumers / 128);
  cluster_sync_relaxed();
  wait_on_dependent_grids();
  const int k_tiles = ceil_div(g.k, kDepth), pairs = raster.tiles(),
            clusters = gridDim.x / kCluster;
  const int first_pair = blockIdx.x / kCluster;
  if (threadIdx.x >= kConsumers) {
    warpgroup_reg_dealloc<kProducerRegisters>();
    if (threadIdx.x == kConsumers) {
      PipelineState<T::kStages> state{.parity = 1};  // all stages are free
      for (int pair = first_pair; pair < pairs; pair += clusters) {
        const auto origin = origin_of(raster, T::kColumns, pair, rank);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, state.next()) {
          const int k0 = k_tile * kDepth;
          MBarrier& arrived = full[state.stage];
          wait(empty[state.stage], state.parity);
          // This block's rows of A, and half of B for both.
          unsigned char* stage = stages + state.stage * T::kStageBytes;
          arrive_expect_tx(arrived, T::kStageBytes);
          tma_load(stage, a_high, origin.row, k0, arrived);
          tma_load(stage + T::kABytes, a_low, origin.row, k0, arrived);
          unsigned char* half = stage + 2 * T::kABytes + rank * (T::kBBytes / kCluster);
          constexpr unsigned kBoth = (1 << kCluster) - 1;
          const int chunk = origin.column / kChunk, b_row = k0 + rank * (kDepth / kCluster);
          tma_load_multicast(half, b_high, chunk, b_row, 0, arrived, kBoth);
          tma_load_multicast(half + T::kBBytes, b_low, chunk, b_row, 0, arrived, kBoth);
        }
      }
      // No block may exit before the other's last copy and arrival here: wait until both have
      // emptied all stages.
      for (int stage = 0; stage < T::kStages; ++stage, state.next())
        wait(empty[state.stage], state.parity);
    }
    __syncwarp();
  } else {
    warpgroup_reg_alloc<kConsumerRegisters>();
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128, warp = threadIdx.x / 32;
    float* staged = reinterpret_cast<float*>(stages + T::kRingBytes) + warp * kStaged;
    PipelineState<T::kStages> state;
    if (group == 1) give_turn_to(0);
    for (int pair = first_pair; pair < pairs; pair += clusters) {
      const auto [row, column] = origin_of(raster, T::kColumns, pair, rank);
      for (int begin = 0; begin < k_tiles; begin += k_tiles_per_slice) {
        float sums[T::kPasses][T::kOutputs] = {};
        for (int k_tile = begin; k_tile < min(begin + k_tiles_per_slice, k_tiles); ++k_tile)
          add_stage<T>(sums, group, thread, {full, empty}, state, stages);
        store_sums<T>(g, begin == 0, sums, row_exponents, column_exponents, row + warp * 16, column,
                      staged);
      }
    }
    __syncwarp();
  }
#endif
}

// If there are no products: C = beta C.
inline __global__ void scale_outputs(const __grid_constant__ Gemm g) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x, size = int64_t{g.m} * g.n;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < size; i += stride)
    update(g.c[i / g.n * g.ldc + i % g.n], 0, 0, g.beta);
}

}  // namespace ladders::sgemm
