// SPDX-License-Identifier: MIT
//
// From atomics in the L2 to counters in shared memory, and 16 keys per load.
#pragma once

#include "byte_histogram/problem.cuh"

namespace ladders::byte_histogram {
inline __global__ void bytes_global(const Byte* __restrict__ keys, size_t count,
                                    unsigned* __restrict__ bins) {
  for_all_in_grid(count, [&](size_t i) { atomicAdd(&bins[keys[i]], 1u); });
}

struct OneCopy {
  unsigned* counters;
  __device__ OneCopy(unsigned* counters) : counters(counters) {
    for (unsigned b = threadIdx.x; b < kByteBins; b += blockDim.x) counters[b] = 0;
    __syncthreads();
  }
  __device__ void add(Byte key) { atomicAdd(&counters[key], 1u); }
  __device__ void add_vector(const uint4& v) {
    for (const unsigned word : {v.x, v.y, v.z, v.w})
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) add(static_cast<Byte>(word >> 8 * byte));
  }
  __device__ void merge_into(unsigned* bins) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < kByteBins; b += blockDim.x)
      if (counters[b] != 0) atomicAdd(&bins[b], counters[b]);
  }
};

inline __global__ void bytes_shared(const Byte* __restrict__ keys, size_t count,
                                    unsigned* __restrict__ bins) {
  __shared__ unsigned counters[kByteBins];
  OneCopy mine(counters);
  for_all_in_grid(count, [&](size_t i) { mine.add(keys[i]); });
  mine.merge_into(bins);
}

// Aligned vectors of 16 keys. One warp counts the keys before the first vector and after the last,
// 30 at most, one per lane.
struct Vectors {
  const uint4* first;
  size_t count, keys_before;

  __device__ Vectors(const Byte* keys, size_t all)
      : keys_before(min(all, -reinterpret_cast<size_t>(keys) % 16)) {
    first = reinterpret_cast<const uint4*>(keys + keys_before);
    count = (all - keys_before) / 16;
  }
};

__device__ __forceinline__ void count_loose(const Byte* keys, size_t all, const Vectors& vectors,
                                            auto& counters) {
  const size_t i = threadIdx.x + (threadIdx.x < vectors.keys_before ? 0 : 16 * vectors.count);
  if (blockIdx.x == 0 && i < all && threadIdx.x < 32) counters.add(keys[i]);
}

__device__ __forceinline__ void count_vectors(const Byte* __restrict__ keys, size_t count,
                                              unsigned* __restrict__ bins, auto& counters) {
  const Vectors vectors(keys, count);
  for_all_in_grid(vectors.count, [&](size_t i) { counters.add_vector(vectors.first[i]); });
  count_loose(keys, count, vectors, counters);
  counters.merge_into(bins);
}

inline __global__ void bytes_vectorized(const Byte* __restrict__ keys, size_t count,
                                        unsigned* __restrict__ bins) {
  __shared__ unsigned counters[kByteBins];
  OneCopy mine(counters);
  count_vectors(keys, count, bins, mine);
}

}  // namespace ladders::byte_histogram
