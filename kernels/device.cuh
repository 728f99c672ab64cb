// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

namespace ladders {

/// The block's dynamic shared memory as T: as large as the launch plan says, 128-byte aligned,
/// since bulk copies to elsewhere take a third longer.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(128) unsigned char raw[];
  return reinterpret_cast<T*>(raw);
#else  // the emulator has no linker that would give this array its place
  return static_cast<T*>(emulator::dynamic_shared());
#endif
}

template <class T>
__host__ __device__ constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace ladders
