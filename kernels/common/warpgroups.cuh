// SPDX-License-Identifier: MIT
//
// Registers that Hopper's warpgroups hand over: from the warps that copy to those that compute.
#pragma once

#include <cuda_runtime.h>

namespace ladders {
/// Whether this build has code for Hopper alone, which this and wgmma need.
#ifdef LADDERS_HOPPER
inline constexpr bool kBuiltForHopper = true;
#else
inline constexpr bool kBuiltForHopper = false;
#endif

/// All warps of a warpgroup give up what they have above this many registers per thread.
template <int kRegisters>
__device__ __forceinline__ void shrink_to() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

/// All warps of a warpgroup wait until they have this many.
template <int kRegisters>
__device__ __forceinline__ void grow_to() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

}  // namespace ladders
