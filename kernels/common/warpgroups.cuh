// SPDX-License-Identifier: MIT
//
// Registers that Hopper's warpgroups reallocate: from the warps that copy to those that compute.
#pragma once

#include <cuda_runtime.h>

namespace ladders {
/// Whether this build has code for sm_90a, which setmaxnreg and wgmma need.
#ifdef LADDERS_HOPPER
inline constexpr bool kBuiltForHopper = true;
#else
inline constexpr bool kBuiltForHopper = false;
#endif

// Code for a debugger (nvcc -G) ignores these limits, so there all warps keep their registers.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(__CUDACC_DEBUG__)
#define LADDERS_SETMAXNREG(instruction) \
  asm volatile("setmaxnreg." instruction ".sync.aligned.u32 %0;" ::"n"(kRegisters))
#else
#define LADDERS_SETMAXNREG(instruction)
#endif

/// All warps of a warpgroup release their registers above this many per thread.
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
  LADDERS_SETMAXNREG("dec");
}

/// All warps of a warpgroup wait until they have this many.
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_alloc() {
  LADDERS_SETMAXNREG("inc");
}
#undef LADDERS_SETMAXNREG

}  // namespace ladders
