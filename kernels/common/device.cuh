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
#else  // no linker places the array
  return static_cast<T*>(emulator::dynamic_shared());
#endif
}

/// Whether to load what is not used where that is faster than a branch. An emulator reports reads
/// of what nobody wrote.
#ifdef __CUDACC__
inline constexpr bool kLoadsUnused = true;
#else
inline constexpr bool kLoadsUnused = false;
#endif

/// The same shared address, from a shuffle of the whole warp, so that the compiler keeps it in a
/// register: it recomputes one that it knows, and on Hopper waits for the block's cluster rank.
template <class T>
__device__ __forceinline__ T* in_register(T* shared) {
#if __CUDA_ARCH__ >= 900
  const auto address = unsigned(__cvta_generic_to_shared(shared));
  return static_cast<T*>(__cvta_shared_to_generic(__shfl_sync(~0u, address, 0)));
#else
  return shared;
#endif
}

/// The sum over all lanes, in every lane.
__device__ __forceinline__ unsigned sum_of_warp(unsigned n) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, n);
#else
  for (int lanes = 16; lanes > 0; lanes /= 2) n += __shfl_xor_sync(~0u, n, lanes);
  return n;
#endif
}

/// act(i) for all i below `count`, each in one thread of the grid.
template <class Act>
__device__ __forceinline__ void for_all_in_grid(size_t count, Act act) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride) act(i);
}

/// act(std::true_type{}) or act(std::false_type{}): code of its own for either.
template <class Act>
__device__ __forceinline__ void by_case(bool condition, Act act) {
  condition ? act(std::true_type{}) : act(std::false_type{});
}

/// The index of an element of a row-major matrix: beyond 2^31 in large ones.
__device__ __forceinline__ size_t at(int row, int column, int columns) {
  return size_t(row) * columns + column;
}

template <class A, class B, class T = std::common_type_t<A, B>>
__host__ __device__ constexpr T ceil_div(A a, B b) {
  return (T(a) + T(b) - 1) / T(b);
}

}  // namespace ladders
