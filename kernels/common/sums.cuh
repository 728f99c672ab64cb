// SPDX-License-Identifier: MIT
//
// Sums over the lanes of a warp, by shuffles, and over the threads of a block.
#pragma once

#include <cuda_runtime.h>

namespace ladders {
/// The sum of the first `lanes` lanes, a power of two, in lane 0. All lanes call it.
template <int lanes = 32, class T>
__device__ __forceinline__ T sum_in_lane_0(T sum) {
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  return sum;
}

/// The sum of all lanes, in each of them.
template <class T>
__device__ __forceinline__ T sum_in_all_lanes(T sum) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, mask);
  return sum;
}
/// The same of unsigned numbers: one instruction from compute capability 8.0 on.
__device__ __forceinline__ unsigned sum_in_all_lanes(unsigned n) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, n);
#else
  return sum_in_all_lanes<unsigned>(n);
#endif
}

/// Stores the sum of each warp in `warps`, which is shared memory, and synchronizes the block.
/// Returns the sum of the warp in lane 0.
template <class T>
__device__ __forceinline__ T store_warp_sums(T sum, T* warps) {
  sum = sum_in_lane_0(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  return sum;
}

/// The sum of a block, in thread 0. Another barrier must come before the next call.
template <int threads, class T>
__device__ __forceinline__ T sum_of_block(T sum) {
  constexpr int kWarps = threads / 32;
  __shared__ T warps[kWarps];
  sum = store_warp_sums(sum, warps);
  if (threadIdx.x < 32)
    sum = sum_in_lane_0<kWarps>(threadIdx.x < kWarps ? warps[threadIdx.x] : T{});
  return sum;
}

}  // namespace ladders
