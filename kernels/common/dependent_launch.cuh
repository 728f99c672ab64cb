// SPDX-License-Identifier: MIT
//
// Overlapping kernels of one stream (programmatic dependent launch), from compute capability 9.0
// on. Elsewhere a kernel starts after the previous one has ended.
#pragma once

#include <cuda_runtime.h>

namespace ladders {
/// Lets the next kernel of the stream start, if its launch is programmatic, once all blocks have
/// called this or ended.
__device__ __forceinline__ void launch_dependent_grids() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// In such a kernel: waits until the previous one, on which it depends, has ended and its writes
/// are visible.
__device__ __forceinline__ void wait_on_dependent_grids() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace ladders
