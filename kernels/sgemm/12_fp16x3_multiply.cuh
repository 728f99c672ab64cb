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
// Tiles of 128 x 192 outputs by two warpgroups, from a ring of stages that a third one keeps full.
// The two blocks of a cluster have tiles one below the other, and each loads half of B for both.
constexpr int kRows = 128, kColumns = 192, kDepth = 32, kStages = 5, kCluster = 2;
constexpr int kOutputs = 64 * kColumns / 128;  // per thread
constexpr int kConsumers = 256, kMultiplyThreads = kConsumers + 128;
constexpr int kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2;
constexpr int kStageBytes = 2 * (kABytes + kBBytes), kRingBytes = kStages * kStageBytes;
// Tensor cores truncate sums, so after this many stages FP32 units add them up.
constexpr int kPromoteEvery = 2;
// Launched with 168 registers per thread: consumers need more for their sums.
constexpr int kProducerRegisters = 40, kConsumerRegisters = (3 * 168 - kProducerRegisters) / 2;

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
// B in chunks: the lower 16 rows of k of all three chunks, then the upper. Strides are from chunk
// to chunk and from 8 rows of k to the next.
constexpr int kChunkBytes = 16 * 2 * kChunk;
__device__ __forceinline__ uint64_t chunks_of_columns(const void* tile) {
  return descriptor(tile, kChunkBytes, 8 * 2 * kChunk, 1);
}

// D[64 x 192] = A[64 x 16] B[16 x 192] by a warpgroup, plus the old D if `add`.
__device__ __forceinline__ void multiply_add(float (&d)[kOutputs], uint64_t a, uint64_t b,
                                             bool add) {
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

// wgmma uses the sums until here, and again from here on: the compiler may move nothing across.
__device__ __forceinline__ void pin(float (&sums)[kOutputs]) {
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// x 2^e for |e| <= 350. Intermediate results overflow or underflow only if the result does.
__device__ __forceinline__ float times_power_of_two(float x, int e) {
  const int first = max(-126, min(e, 127));
  x *= power_of_two(first);
  if (first != e) {
    const int second = max(-126, min(e - first, 127));
    x = x * power_of_two(second) * power_of_two(max(-126, min(e - first - second, 127)));
  }
  return x;
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
__device__ __forceinline__ void store_not_finite(const Gemm& g, const int* row_powers,
                                                 const int* column_powers, int first_row,
                                                 int first_column) {
  const int lane = threadIdx.x % 32;
  for (int row = first_row; row < min(first_row + 16, g.m); ++row)
    for (int at = first_column; at < min(first_column + kColumns, g.n); at += 32) {
      unsigned todo = __ballot_sync(
          ~0u, at + lane < g.n && !finite(row_powers[row] + column_powers[at + lane]));
      for (; todo != 0; todo &= todo - 1) {
        const int column = at + __ffs(todo) - 1;
        const float sum = sum_not_finite(g.a + row * g.lda, g.b + column, g.ldb, g.k);
        if (lane == 0) update(g.c[row * g.ldc + column], g.alpha * sum, g.beta);
      }
    }
}

// A warp's 16 rows: lane 4 r + t has columns 2 t and 2 t + 1 of every eight in rows r and r + 8.
// Only the first part of k meets C as it was.
__device__ __forceinline__ void store_fragments(const Gemm& g, bool first_part,
                                                const float (&sums)[kOutputs],
                                                const int* row_powers, const int* column_powers,
                                                int first_row, int first_column) {
  const float beta = first_part ? g.beta : 1;
  const int lane = threadIdx.x % 32;
  const bool pairs = g.ldc % 2 == 0 && reinterpret_cast<uintptr_t>(g.c) % 8 == 0;
  bool all_finite = true;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = first_row + lane / 4 + 8 * h;
    if (row >= g.m) continue;
    const int row_power = row_powers[row];
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const int column = first_column + 8 * j + lane % 4 * 2;
      if (column >= g.n) continue;
      float* c = g.c + row * g.ldc + column;
      const int2 powers = *reinterpret_cast<const int2*>(column_powers + column);
      const int x_power = row_power + powers.x, y_power = row_power + powers.y;
      const float x = g.alpha * times_power_of_two(sums[4 * j + 2 * h], x_power);
      const float y = g.alpha * times_power_of_two(sums[4 * j + 2 * h + 1], y_power);
      const bool two = column + 1 < g.n, x_finite = finite(x_power), y_finite = finite(y_power);
      if (pairs && two && x_finite && y_finite) {
        float2 both{};
        if (beta != 0) both = *reinterpret_cast<const float2*>(c);
        update(both.x, x, beta), update(both.y, y, beta);
        *reinterpret_cast<float2*>(c) = both;
      } else {
        if (x_finite) update(c[0], x, beta);
        if (two && y_finite) update(c[1], y, beta);
        all_finite &= x_finite && (y_finite || !two);
      }
    }
  }
  if (first_part && __any_sync(~0u, !all_finite))
    store_not_finite(g, row_powers, column_powers, first_row, first_column);
}

// The tile of block `rank` of a pair of tiles, one below the other.
__device__ __forceinline__ Raster::Place origin_of(const Raster& pairs, int pair, int rank) {
  const auto [row, column] = pairs.place(pair);
  return {.row = (row * kCluster + rank) * kRows, .column = column * kColumns};
}

// Adds the products of kPromoteEvery stages, or up to `end`; `some` holds the sums of these stages.
__device__ __forceinline__ void add_stages(float (&sums)[kOutputs], float (&some)[kOutputs],
                                           int group, int thread, int step, int end,
                                           const Ring<kStages>& ring, Turn<kStages>& turn,
                                           const unsigned char* stages) {
  constexpr int kNext16 = kBBytes / 2 >> 4;  // k, in B
  // A remainder instead would make tensor cores wait: 7 to 19 % more time.
  const auto stage_of = [first = turn.stage](int j) {
    return first + j < kStages ? first + j : first + j - kStages;
  };
  const auto a_of = [&](int stage) { return stages + stage * kStageBytes + group * (kABytes / 2); };
  const auto b_of = [&](int stage) { return stages + stage * kStageBytes + 2 * kABytes; };
  // The small terms of all these stages come first, so that few sums are truncated at their full
  // size.
#pragma unroll
  for (int j = 0; j < kPromoteEvery; ++j)
    if (step + j < end) {
      wait(ring.full[turn.stage], turn.parity);
      const unsigned char *a = a_of(turn.stage), *b = b_of(turn.stage);
      const uint64_t high_a = rows_of_k(a), low_a = rows_of_k(a + kABytes);
      const uint64_t high_b = chunks_of_columns(b), low_b = chunks_of_columns(b + kBBytes);
      pin(some);
      wgmma_fence();
      for (int q = 0; q < kDepth / 16; ++q) {
        multiply_add(some, high_a + 2 * q, low_b + kNext16 * q, j + q > 0);
        multiply_add(some, low_a + 2 * q, high_b + kNext16 * q, true);
      }
      wgmma_commit();
      turn.next();
    }
#pragma unroll
  for (int j = 0; j < kPromoteEvery; ++j)
    if (step + j < end) {
      const uint64_t high_a = rows_of_k(a_of(stage_of(j)));
      const uint64_t high_b = chunks_of_columns(b_of(stage_of(j)));
      pin(some);
      wgmma_fence();
      for (int q = 0; q < kDepth / 16; ++q)
        multiply_add(some, high_a + 2 * q, high_b + kNext16 * q, true);
      wgmma_commit();
    }
  wgmma_wait();
  pin(some);
  if (thread < kCluster)
    for (int j = 0; j < kPromoteEvery && step + j < end; ++j)
      arrive_at_block(ring.empty[stage_of(j)], thread);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) sums[i] += some[i];
}

// `steps_a_part` stages make a part of k, whose sums are added to C.
inline __global__ void __launch_bounds__(kMultiplyThreads, 1)
    fp16_products(const __grid_constant__ TensorMap a_high, const __grid_constant__ TensorMap a_low,
                  const __grid_constant__ TensorMap b_high, const __grid_constant__ TensorMap b_low,
                  const int* row_powers, const int* column_powers, const __grid_constant__ Gemm g,
                  int steps_a_part, const Raster raster) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ MBarrier barriers[2 * kStages];
  MBarrier *full = kept(barriers), *empty = full + kStages;
  auto* stages = kept(swizzled_shared<unsigned char>());
  const int rank = cluster_rank();
  Ring<kStages>{full, empty}.start(1, kCluster * kConsumers / 128);
  synchronize_cluster();
  wait_for_kernel_before();
  const int steps = ceil_div(g.k, kDepth), pairs = raster.tiles(), clusters = gridDim.x / kCluster;
  const int first_pair = blockIdx.x / kCluster;
  if (threadIdx.x >= kConsumers) {
    shrink_to<kProducerRegisters>();
    if (threadIdx.x == kConsumers) {
      int s = 0;
      uint32_t parity = 1;  // all stages are free
      for (int pair = first_pair; pair < pairs; pair += clusters) {
        const auto origin = origin_of(raster, pair, rank);
        for (int step = 0; step < steps; ++step) {
          const int k0 = step * kDepth;
          wait(empty[s], parity);
          // This block's rows of A, and half of B for both.
          unsigned char* stage = stages + s * kStageBytes;
          arrive_expecting(full[s], kStageBytes);
          copy_box(stage, a_high, origin.row, k0, full[s]);
          copy_box(stage + kABytes, a_low, origin.row, k0, full[s]);
          unsigned char* half = stage + 2 * kABytes + rank * (kBBytes / kCluster);
          constexpr unsigned kBoth = (1 << kCluster) - 1;
          const int chunk = origin.column / kChunk, b_row = k0 + rank * (kDepth / kCluster);
          copy_box_to_blocks(half, b_high, chunk, b_row, 0, full[s], kBoth);
          copy_box_to_blocks(half + kBBytes, b_low, chunk, b_row, 0, full[s], kBoth);
          if (++s == kStages) s = 0, parity ^= 1;
        }
      }
    }
    __syncwarp();
  } else {
    grow_to<kConsumerRegisters>();
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    Turn<kStages> turn;
    for (int pair = first_pair; pair < pairs; pair += clusters) {
      const auto [row, column] = origin_of(raster, pair, rank);
      for (int begin = 0; begin < steps; begin += steps_a_part) {
        const int end = min(begin + steps_a_part, steps);
        float sums[kOutputs] = {}, some[kOutputs];
        for (int step = begin; step < end; step += kPromoteEvery)
          add_stages(sums, some, group, thread, step, end, {full, empty}, turn, stages);
        store_fragments(g, begin == 0, sums, row_powers, column_powers,
                        row + group * 64 + thread / 32 * 16, column);
      }
    }
    __syncwarp();
  }
  synchronize_cluster();  // no block may exit while the other copies to it or arrives there
#endif
}

// If there are no products: C = beta C.
inline __global__ void scale_outputs(const __grid_constant__ Gemm g) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x, size = int64_t{g.m} * g.n;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < size; i += stride)
    update(g.c[i / g.n * g.ldc + i % g.n], 0, g.beta);
}

}  // namespace ladders::sgemm
