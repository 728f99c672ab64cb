// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace ladders {
/// The block's dynamic shared memory. 128-byte alignment makes bulk copies fast.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(128) unsigned char raw[];
  return reinterpret_cast<T*>(raw);
#else  // the emulator: a host linker allocates no extern shared array
  return static_cast<T*>(emulator::dynamic_shared());
#endif
}

/// Whether kernels may load values that they do not use, where that is faster than a branch. The
/// emulator reports reads of uninitialized memory, so not there.
#ifdef __CUDACC__
inline constexpr bool kLoadsUnused = true;
#else
inline constexpr bool kLoadsUnused = false;
#endif

/// Returns `shared` after a shuffle, so that the compiler keeps the address in a register. It would
/// recompute a known address at each use; on Hopper that waits for the block's rank in its cluster.
/// All lanes of the warp call it.
template <class T>
__device__ __forceinline__ T* in_register(T* shared) {
#if __CUDA_ARCH__ >= 900
  const auto address = unsigned(__cvta_generic_to_shared(shared));
  return static_cast<T*>(__cvta_shared_to_generic(__shfl_sync(~0u, address, 0)));
#else
  return shared;
#endif
}

/// act(i) for all i below `count`, each in one thread of the grid.
template <class Act>
__device__ __forceinline__ void for_all_in_grid(size_t count, Act act) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride) act(i);
}

/// Calls act(std::true_type{}) or act(std::false_type{}), so that each case is compiled by itself.
template <class Act>
__device__ __forceinline__ void by_case(bool condition, Act act) {
  condition ? act(std::true_type{}) : act(std::false_type{});
}

/// Index of an element of a row-major matrix, in 64 bits: large ones have over 2^31 elements.
__device__ __forceinline__ size_t at(int row, int column, int columns) {
  return size_t(row) * columns + column;
}

template <class A, class B, class T = std::common_type_t<A, B>>
__host__ __device__ constexpr T ceil_div(A a, B b) {
  return (T(a) + T(b) - 1) / T(b);
}

}  // namespace ladders
