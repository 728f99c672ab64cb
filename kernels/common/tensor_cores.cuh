// SPDX-License-Identifier: MIT
//
// Matrix multiply-adds on tensor cores, in PTX, since C++ does not reach their full rate. Needs
// nvcc.
#pragma once

#include <cstdint>

#include "common/warpgroups.cuh"

namespace ladders {
/// Element types of the operands; sums are FP32. kDepth is the k of one instruction, 32 bytes.
struct Bf16 {
  static constexpr int kDepth = 16, kBytes = 2;
};
struct Tf32 {
  static constexpr int kDepth = 8, kBytes = 4;
};

/// `value`, which the type must be able to hold exactly, in its lowest kBytes.
template <class Type>
__device__ uint32_t encode(float value) {
  return __float_as_uint(value) >> (32 - 8 * Type::kBytes);
}

/// D[16 x 8] += A[16 x k] B[k x 8] by one warp. In PTX's order of fragments: lane 4 g + t has rows
/// g and g + 8 of A and D, column g of B.
template <class Type>
__device__ void mma_m16n8(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
#define LADDERS_MMA(shape_and_types)                                    \
  asm volatile("mma.sync.aligned." shape_and_types                      \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (Type::kDepth == 16)
    LADDERS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  else
    LADDERS_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
#undef LADDERS_MMA
#endif
}

/// What wgmma's PTX lists: operands %10 t to %10 t + 9, and eight sums of d from the i-th on.
#define LADDERS_TEN(t) \
  "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define LADDERS_F8(i)                                                                         \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

/// D[64 x 128] += kSign A[64 x k] B[k x 128] by the four warps of a group: between wgmma_fence()
/// and wgmma_commit_group(), done after wgmma_wait_group(). Warp w has rows 16 w and on, as above;
/// B is in shared memory as `descriptor` says.
template <class Type, int kSign>
__device__ void wgmma_m64n128(float (&d)[64], const uint32_t (&a)[4], uint64_t descriptor) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDERS_WGMMA(shape_and_types, transposed)                                                 \
  asm volatile("wgmma.mma_async.sync.aligned." shape_and_types                                     \
               " {" LADDERS_TEN() LADDERS_TEN(1) LADDERS_TEN(2) LADDERS_TEN(3) LADDERS_TEN(4)      \
                   LADDERS_TEN(5) "%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, 1, %69, 1" transposed \
                                  ";"                                                              \
               : LADDERS_F8(0), LADDERS_F8(8), LADDERS_F8(16), LADDERS_F8(24), LADDERS_F8(32),     \
                 LADDERS_F8(40), LADDERS_F8(48), LADDERS_F8(56)                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor), "n"(kSign))
  if constexpr (Type::kDepth == 16)
    LADDERS_WGMMA("m64n128k16.f32.bf16.bf16", ", 0");
  else
    LADDERS_WGMMA("m64n128k8.f32.tf32.tf32", "");
#undef LADDERS_WGMMA
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LADDERS_WGMMA(instruction) asm volatile("wgmma." instruction ";" ::: "memory")
#else
#define LADDERS_WGMMA(instruction)
#endif
__device__ inline void wgmma_fence() { LADDERS_WGMMA("fence.sync.aligned"); }
__device__ inline void wgmma_commit_group() { LADDERS_WGMMA("commit_group.sync.aligned"); }
__device__ inline void wgmma_wait_group() { LADDERS_WGMMA("wait_group.sync.aligned 0"); }
#undef LADDERS_WGMMA

}  // namespace ladders
