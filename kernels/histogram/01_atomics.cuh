// SPDX-License-Identifier: MIT
//
// One atomic per key: on bins in L2, in a block's shared memory, or in that of a whole cluster.
#pragma once

#include <cooperative_groups.h>

#include "histogram/problem.cuh"

namespace ladders::histogram {
inline __global__ void global(const int* __restrict__ keys, size_t count,
                              unsigned* __restrict__ bins, int bin_count) {
  for_all_in_grid(count, [&](size_t i) { atomicAdd(&bins[bin_of(keys[i], bin_count)], 1u); });
}

inline __global__ void shared(const int* __restrict__ keys, size_t count,
                              unsigned* __restrict__ bins, int bin_count) {
  auto* mine = dynamic_shared<unsigned>();
  for (int b = threadIdx.x; b < bin_count; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  for_all_in_grid(count, [&](size_t i) { atomicAdd(&mine[bin_of(keys[i], bin_count)], 1u); });
  __syncthreads();
  for (int b = threadIdx.x; b < bin_count; b += blockDim.x)
    if (mine[b] != 0) atomicAdd(&bins[b], mine[b]);
}

inline __global__ void distributed(const int* __restrict__ keys, size_t count,
                                   unsigned* __restrict__ bins, int bin_count) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // clusters exist from 9.0 on
  const auto cluster = cooperative_groups::this_cluster();
  const int part = ceil_div(bin_count, int(cluster.num_blocks()));
  auto* mine = dynamic_shared<unsigned>();
  for (int b = threadIdx.x; b < part; b += blockDim.x) mine[b] = 0;
  cluster.sync();
  for_all_in_grid(count, [&](size_t i) {
    const int bin = bin_of(keys[i], bin_count);
    atomicAdd(cluster.map_shared_rank(mine, bin / part) + bin % part, 1u);
  });
  cluster.sync();
  const int first = int(cluster.block_rank()) * part;
  for (int b = threadIdx.x; b < part && first + b < bin_count; b += blockDim.x)
    if (mine[b] != 0) atomicAdd(&bins[first + b], mine[b]);
#endif
}

inline size_t part_bytes(const Case& c) { return 4 * ceil_div(c["bins"], c["cluster"]); }

inline LaunchPlan resident_with_bins(const Case& c, const Device& d, const void* kernel) {
  return fill_device({.block = kThreads, .shared_bytes = sizeof(unsigned) * c["bins"]}, kernel, d);
}
inline LaunchPlan resident_clusters(const Case& c, const Device& d, const void* kernel) {
  const auto blocks = unsigned(c["cluster"]);
  return fill_device({.block = kThreads, .shared_bytes = part_bytes(c), .cluster = blocks}, kernel,
                     d);
}

inline std::string too_large(size_t bytes, const Device& device) {
  if (bytes <= device.shared_bytes_per_block) return "";
  return "does not fit: " + std::to_string(bytes) + " bytes of shared memory per block, " +
         std::to_string(device.shared_bytes_per_block) + " at most";
}

}  // namespace ladders::histogram
