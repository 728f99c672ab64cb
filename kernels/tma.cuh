// SPDX-License-Identifier: MIT
//
// Hopper's tensor memory accelerator: one thread asks for a whole tile, hardware works out the
// addresses, fills in zeros beyond the edge, and counts the bytes that have come in an mbarrier.
#pragma once

#ifdef __CUDACC__
#include <cuda.h>
#endif

#include <cstdint>

#include "cuda_check.hpp"

namespace ladders {

#ifdef __CUDACC__
using TensorMap = CUtensorMap;
#else
struct TensorMap {};  // the emulator has no TMA
#endif

/// A row-major matrix of FP32 (or FP16) to be copied in boxes of box_rows x box_columns, whose rows
/// are at most 128 bytes where `swizzle` is 128 (or 64 where it is 64): then 16-byte chunks of a
/// row are XORed with its number, as hardware does it. Rows must start on 16 bytes.
struct TensorBoxes {
  const void* data;
  int element_bytes;
  int64_t rows, columns;
  int box_rows, box_columns, swizzle;
  int64_t row_bytes = 0;  ///< from one row to the next; 0 where they follow each other closely
  /// Where not 0, so many such matrices one after the other, and boxes that reach over several.
  int64_t matrices = 0;
  int box_matrices = 1;
};

/// The block's dynamic shared memory as T, aligned as swizzled boxes must be.
template <class T>
__device__ __forceinline__ T* swizzled_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(1024) unsigned char swizzled[];
  return reinterpret_cast<T*>(swizzled);
#else
  return nullptr;
#endif
}

inline TensorMap tensor_map([[maybe_unused]] const TensorBoxes& t) {
#ifdef __CUDACC__
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
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
  return {};
#endif
}

/// A barrier in shared memory that waits for arrivals and for bytes; its phases alternate.
struct MBarrier {
  uint64_t state;
};

#if __CUDA_ARCH__ >= 900
#define LADDERS_SHARED(p) "r"(static_cast<uint32_t>(__cvta_generic_to_shared(p)))
#define LADDERS_PTX(...) asm volatile(__VA_ARGS__)
#else  // TMA is Hopper's
#define LADDERS_PTX(...)
#endif

__device__ __forceinline__ void initialize([[maybe_unused]] MBarrier& barrier,
                                           [[maybe_unused]] int arrivals) {
  LADDERS_PTX("mbarrier.init.shared::cta.b64 [%0], %1;" ::LADDERS_SHARED(&barrier), "r"(arrivals));
}

/// After the initializations, for the copies to see them.
__device__ __forceinline__ void publish_barriers() {
  LADDERS_PTX("fence.mbarrier_init.release.cluster;" :: : "memory");
}

__device__ __forceinline__ void arrive([[maybe_unused]] MBarrier& barrier) {
  LADDERS_PTX("mbarrier.arrive.shared::cta.b64 _, [%0];" ::LADDERS_SHARED(&barrier) : "memory");
}

/// Arrives, and lets the phase wait for `bytes` more.
__device__ __forceinline__ void arrive_expecting([[maybe_unused]] MBarrier& barrier,
                                                 [[maybe_unused]] int bytes) {
  LADDERS_PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::LADDERS_SHARED(&barrier),
              "r"(bytes) : "memory");
}

#define LADDERS_WAIT(acquire)                   \
  LADDERS_PTX(                                  \
      "{\n"                                     \
      ".reg .pred done;\n"                      \
      "again: mbarrier.try_wait.parity" acquire \
      ".shared::cta.b64 done, [%0], %1;\n"      \
      "@!done bra again;\n"                     \
      "}" ::LADDERS_SHARED(&barrier),           \
      "r"(parity) : "memory")

/// Until the phase of this parity is over.
__device__ __forceinline__ void wait([[maybe_unused]] MBarrier& barrier,
                                     [[maybe_unused]] uint32_t parity) {
  LADDERS_WAIT("");
}

/// The same where other blocks of the cluster store what this thread then reads.
__device__ __forceinline__ void wait_for_cluster([[maybe_unused]] MBarrier& barrier,
                                                 [[maybe_unused]] uint32_t parity) {
  LADDERS_WAIT(".acquire.cluster");
}
#undef LADDERS_WAIT

/// Starts the copy of `bytes`, a multiple of 16, which arrive at the barrier.
__device__ __forceinline__ void copy_in([[maybe_unused]] void* to,
                                        [[maybe_unused]] const void* from,
                                        [[maybe_unused]] unsigned bytes,
                                        [[maybe_unused]] MBarrier& barrier) {
  LADDERS_PTX(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::LADDERS_SHARED(to),
      "l"(from), "r"(bytes), LADDERS_SHARED(&barrier) : "memory");
}

/// The same of what is read once: it is first to leave the L2. (Not good beside stores: an H200
/// copies 4 % less.)
__device__ __forceinline__ void copy_once([[maybe_unused]] void* to,
                                          [[maybe_unused]] const void* from,
                                          [[maybe_unused]] unsigned bytes,
                                          [[maybe_unused]] MBarrier& barrier) {
  LADDERS_PTX(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], policy;\n"
      "}" ::LADDERS_SHARED(to),
      "l"(from), "r"(bytes), LADDERS_SHARED(&barrier) : "memory");
}

/// After reads and writes of shared memory, the thread's own or those it has been told of, for
/// later copies and wgmma to come after them.
__device__ __forceinline__ void show_to_copies() {
  LADDERS_PTX("fence.proxy.async.shared::cta;" :: : "memory");
}

/// After what this thread has written or has been told of, in any memory, for copies it starts.
__device__ __forceinline__ void show_to_all_copies() {
  LADDERS_PTX("fence.proxy.async;" :: : "memory");
}

/// Starts the copy of `bytes`, a multiple of 16, to global memory.
__device__ __forceinline__ void copy_out([[maybe_unused]] void* to,
                                         [[maybe_unused]] const void* from,
                                         [[maybe_unused]] unsigned bytes) {
  LADDERS_PTX(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;" ::"l"(to),
      LADDERS_SHARED(from), "r"(bytes) : "memory");
}

/// Until the copies that this thread started to global memory have read all that they copy.
__device__ __forceinline__ void wait_until_read() {
  LADDERS_PTX("cp.async.bulk.wait_group.read 0;" :: : "memory");
}

/// Until they are complete.
__device__ __forceinline__ void wait_until_written() {
  LADDERS_PTX("cp.async.bulk.wait_group 0;" :: : "memory");
}

/// Starts the copy of the box whose first element is in this row and column.
__device__ __forceinline__ void copy_box([[maybe_unused]] void* to,
                                         [[maybe_unused]] const TensorMap& map,
                                         [[maybe_unused]] int row, [[maybe_unused]] int column,
                                         [[maybe_unused]] MBarrier& barrier) {
  LADDERS_PTX(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::LADDERS_SHARED(to),
      "l"(&map), LADDERS_SHARED(&barrier), "r"(column), "r"(row) : "memory");
}

/// Starts the copy of the box that begins in this matrix, row and column, to the same place in all
/// blocks of the cluster whose bit is set in `blocks`; the bytes count at each one's own barrier.
__device__ __forceinline__ void copy_box_to_blocks(
    [[maybe_unused]] void* to, [[maybe_unused]] const TensorMap& map, [[maybe_unused]] int matrix,
    [[maybe_unused]] int row, [[maybe_unused]] int column, [[maybe_unused]] MBarrier& barrier,
    [[maybe_unused]] unsigned blocks) {
  LADDERS_PTX(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::LADDERS_SHARED(to),
      "l"(&map), LADDERS_SHARED(&barrier), "r"(column), "r"(row), "r"(matrix),
      "h"(static_cast<uint16_t>(blocks)) : "memory");
}

/// Arrives at the barrier that is `barrier` in another block of the cluster.
__device__ __forceinline__ void arrive_at_block([[maybe_unused]] MBarrier& barrier,
                                                [[maybe_unused]] int block) {
  LADDERS_PTX(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::LADDERS_SHARED(&barrier),
      "r"(block) : "memory");
}

/// Stores 8 bytes to what is `to` in a block of the cluster, where they arrive at the barrier that
/// is `barrier` there.
template <class T>
__device__ __forceinline__ void store_to_block([[maybe_unused]] T* to, [[maybe_unused]] T value,
                                               [[maybe_unused]] MBarrier& barrier,
                                               [[maybe_unused]] int block) {
  static_assert(sizeof(T) == 8);
  LADDERS_PTX(
      "{\n"
      ".reg .b32 there, counted;\n"
      "mapa.shared::cluster.u32 there, %0, %3;\n"
      "mapa.shared::cluster.u32 counted, %1, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %2, [counted];\n"
      "}" ::LADDERS_SHARED(to),
      LADDERS_SHARED(&barrier), "l"(__builtin_bit_cast(uint64_t, value)), "r"(block) : "memory");
}

/// This block's number in its cluster.
__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
  LADDERS_PTX("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

/// For all threads of the cluster's blocks.
__device__ __forceinline__ void synchronize_cluster() {
  LADDERS_PTX("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" :: : "memory");
}

/// Lets the next kernel of the stream start, if it was launched to overlap with this one.
__device__ __forceinline__ void let_next_kernel_start() {
  LADDERS_PTX("griddepcontrol.launch_dependents;" :: : "memory");
}

/// In such a kernel: until the one before is done and what it wrote can be read.
__device__ __forceinline__ void wait_for_kernel_before() {
  LADDERS_PTX("griddepcontrol.wait;" :: : "memory");
}

/// Registers go from the warps that copy to those that compute, whole warpgroups at a time.
template <int kRegisters>
__device__ __forceinline__ void shrink_to() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ __forceinline__ void grow_to() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

#undef LADDERS_PTX
#undef LADDERS_SHARED

}  // namespace ladders
