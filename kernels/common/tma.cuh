// SPDX-License-Identifier: MIT
//
// Hopper's tensor memory accelerator: one thread requests a whole tile; hardware computes the
// addresses, writes zeros beyond the edge, and counts the bytes that have arrived in an mbarrier.
#pragma once

#ifdef __CUDACC__
#include <cuda.h>
#endif

#include <string>

#include "common/mbarrier.cuh"
#include "model/cuda_check.hpp"

namespace ladders {
using TensorMap = CUtensorMap;

/// A row-major matrix of FP32 or FP16, copied in boxes of box_rows x box_columns. If `swizzle` is
/// 128 or 64, rows of a box have at most that many bytes, and the index of each 16-byte chunk is
/// XORed: with row % 8 if rows have 128 bytes, with row / 2 % 4 if they have 64. Rows of the matrix
/// must start on 16 bytes.
struct TensorBoxes {
  const void* data;
  int element_bytes;
  int64_t rows, columns;
  int box_rows, box_columns, swizzle;
  int64_t row_bytes = 0;  ///< from one row to the next; 0 if rows are contiguous
  /// If not 0: this many such matrices one after the other, with boxes that reach over several.
  int64_t matrices = 0;
  int box_matrices = 1;
};

// The compiler aligns dynamic shared memory as declared, but to 16 bytes for a debugger (nvcc -G).
#ifdef __CUDACC_DEBUG__
inline constexpr size_t kRoomToAlign = 1024 - 16;
#else
inline constexpr size_t kRoomToAlign = 0;
#endif

/// The block's dynamic shared memory as T, aligned as swizzled boxes must be. A launch plan adds
/// kRoomToAlign to its bytes.
template <class T>
__device__ __forceinline__ T* swizzled_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(1024) unsigned char swizzled[];
  if constexpr (kRoomToAlign == 0) return reinterpret_cast<T*>(swizzled);
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(swizzled) + 1023) / 1024 * 1024);
#else
  return static_cast<T*>(emulator::dynamic_shared());
#endif
}

/// The map that hardware needs for copies of such boxes. Throws CudaError.
inline TensorMap tensor_map(const TensorBoxes& t) {
#ifdef __CUDACC__
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
    if (found != cudaDriverEntryPointSuccess || !function)
      throw CudaError("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<Encode>(function);
  }();
  TensorMap map;
  const cuuint64_t row_bytes = t.row_bytes ? t.row_bytes : t.columns * t.element_bytes;
  const cuuint64_t sizes[] = {cuuint64_t(t.columns), cuuint64_t(t.rows), cuuint64_t(t.matrices)};
  const cuuint64_t strides[] = {row_bytes, row_bytes * t.rows};
  const cuuint32_t box[] = {cuuint32_t(t.box_columns), cuuint32_t(t.box_rows),
                            cuuint32_t(t.box_matrices)};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUresult result = encode(
      &map,
      t.element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      t.matrices ? 3 : 2, const_cast<void*>(t.data), sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE,
      t.swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
      : t.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                        : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw CudaError("cuTensorMapEncodeTiled refuses the matrix");
  return map;
#else
  const uint64_t row_bytes = t.row_bytes ? t.row_bytes : t.columns * t.element_bytes;
  const TensorMap map{
      .data = const_cast<void*>(t.data),
      .sizes = {uint64_t(t.columns), uint64_t(t.rows), uint64_t(t.matrices ? t.matrices : 1)},
      .strides = {row_bytes, row_bytes * t.rows},
      .box = {unsigned(t.box_columns), unsigned(t.box_rows), unsigned(t.box_matrices)},
      .element_bytes = unsigned(t.element_bytes),
      .dimensions = t.matrices ? 3u : 2u,
      .swizzle = unsigned(t.swizzle)};
  if (const char* why = emulator::refusal(map))
    throw CudaError(std::string("a tensor map refuses the matrix: ") + why);
  return map;
#endif
}

#ifdef __CUDACC__

/// Starts the copy of `bytes`, a multiple of 16, which arrive at the barrier.
__device__ __forceinline__ void bulk_load(void* to, const void* from, unsigned bytes,
                                          MBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::LADDERS_SHARED(to),
      "l"(from), "r"(bytes), LADDERS_SHARED(&barrier)
      : "memory");
}

/// The same for data that is read once: the L2 evicts it first. (Slow together with stores.)
__device__ __forceinline__ void bulk_load_evict_first(void* to, const void* from, unsigned bytes,
                                                      MBarrier& barrier) {
  asm volatile(
      "{ .reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], policy; }" ::LADDERS_SHARED(to),
      "l"(from), "r"(bytes), LADDERS_SHARED(&barrier)
      : "memory");
}

/// Orders later copies and wgmma after reads and writes of shared memory: the thread's own, and
/// those that it has synchronized with.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// The same for any memory.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

/// Starts the copy of `bytes`, a multiple of 16, to global memory.
__device__ __forceinline__ void bulk_store(void* to, const void* from, unsigned bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;" ::"l"(to),
      LADDERS_SHARED(from), "r"(bytes)
      : "memory");
}

/// Waits until this thread's copies to global memory have read their source.
__device__ __forceinline__ void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Waits until they are complete.
__device__ __forceinline__ void bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Starts the copy of the box whose first element is in this row and column.
__device__ __forceinline__ void tma_load(void* to, const TensorMap& map, int row, int column,
                                         MBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::LADDERS_SHARED(to),
      "l"(&map), LADDERS_SHARED(&barrier), "r"(column), "r"(row)
      : "memory");
}

/// Starts the copy of a box to this row and column. Parts outside of the matrix are dropped.
__device__ __forceinline__ void tma_store(const TensorMap& map, int row, int column,
                                          const void* from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n"
      "cp.async.bulk.commit_group;" ::"l"(&map),
      LADDERS_SHARED(from), "r"(column), "r"(row)
      : "memory");
}

/// Starts the copy of the box that begins in this matrix, row and column to the blocks of the
/// cluster whose bit is set in `blocks`; the bytes count at each one's own barrier.
__device__ __forceinline__ void tma_load_multicast(void* to, const TensorMap& map, int matrix,
                                                   int row, int column, MBarrier& barrier,
                                                   unsigned blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::LADDERS_SHARED(to),
      "l"(&map), LADDERS_SHARED(&barrier), "r"(column), "r"(row), "r"(matrix), "h"(uint16_t(blocks))
      : "memory");
}
#else
using emulator::tma_load, emulator::tma_store, emulator::bulk_load, emulator::bulk_load_evict_first,
    emulator::bulk_store, emulator::fence_proxy_async, emulator::fence_proxy_async_shared,
    emulator::bulk_wait_group_read, emulator::bulk_wait_group;
#endif

}  // namespace ladders
