// SPDX-License-Identifier: MIT
//
// A tile in static or dynamic memory is written and read repeatedly, another block's only read.
#pragma once

#include <cooperative_groups.h>

#include "smem_layout/problem.cuh"

namespace ladders::smem_layout {
// A store that the compiler may not drop: see load_volatile().
template <class V>
__device__ __forceinline__ void store_volatile(V* to, V v) {
#ifdef __CUDA_ARCH__
  const auto p = unsigned(__cvta_generic_to_shared(to));
  if constexpr (sizeof(V) == 4)
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(p), "r"(v) : "memory");
  else if constexpr (sizeof(V) == 8)
    asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %2};" ::"r"(p), "r"(v.x), "r"(v.y)
                 : "memory");
  else
    asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
#else
  *to = v;
  asm volatile("" ::: "memory");
#endif
}

// This thread's vector in a tile, and what it writes there.
template <class Layout>
__device__ __forceinline__ auto* my_vector(unsigned* tile, Order order) {
  return reinterpret_cast<Vector<Layout::kBytes>*>(tile + Layout::kWords *
                                                              Layout::vector(order, threadIdx.x));
}
template <class Layout>
__device__ __forceinline__ auto my_words() {
  return iota<Vector<Layout::kBytes>>(Layout::kWords *
                                      (blockIdx.x * Layout::kThreads + threadIdx.x));
}

template <class Layout>
__device__ __forceinline__ void exercise(unsigned* tile, unsigned* out, int repetitions) {
  const auto mine = my_words<Layout>();
  auto* to = my_vector<Layout>(tile, Layout::kWrite);
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r) store_volatile(to, mine);
  __syncthreads();
  const auto* from = my_vector<Layout>(tile, Layout::kRead);
  unsigned sum = 0;
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r) sum += sum_of(load_volatile(from));
  out[blockIdx.x * Layout::kThreads + threadIdx.x] = sum;
}

template <class Layout>
__global__ void static_tile(unsigned* out, int repetitions) {
  __shared__ __align__(128) unsigned tile[Layout::kTile];
  exercise<Layout>(tile, out, repetitions);
}

template <class Layout>
__global__ void dynamic_tile(unsigned* out, int repetitions) {
  exercise<Layout>(dynamic_shared<unsigned>(), out, repetitions);
}

// Two blocks per cluster: each writes its own tile once and reads the other's repeatedly.
template <class Layout>
__global__ void remote_tile(unsigned* out, int repetitions) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // clusters
  __shared__ __align__(128) unsigned tile[Layout::kTile];
  const auto cluster = cooperative_groups::this_cluster();
  store_volatile(my_vector<Layout>(tile, Layout::kWrite), my_words<Layout>());
  cluster.sync();
  unsigned* theirs = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
  const auto* from = my_vector<Layout>(theirs, Layout::kRead);
  unsigned sum = 0;
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r)
    sum += sum_of(load_volatile_from_cluster(from));
  cluster.sync();  // no block may end while its memory is read
  out[blockIdx.x * Layout::kThreads + threadIdx.x] = sum;
#endif
}

enum TileMemory { static_memory, dynamic_memory, remote_memory };

template <class Layout, TileMemory memory>
Implementation on_tile() {
  const auto tile = [] {
    if constexpr (memory == static_memory) return static_tile<Layout>;
    if constexpr (memory == dynamic_memory) return dynamic_tile<Layout>;
    if constexpr (memory == remote_memory) return remote_tile<Layout>;
  };
  const auto plan = [](const Case&, const Device& device, const void*) {
    return LaunchPlan{
        .grid = unsigned(threads_on(device) / Layout::kThreads),
        .block = Layout::kThreads,
        .shared_bytes = memory == dynamic_memory ? Layout::kTile * sizeof(unsigned) : 0,
        .cluster = memory == remote_memory ? 2 : 1};
  };
  return checked<Tiles>(kernel<Tiles>(tile(), plan), [](const Tiles& tiles) {
    return tiles.compare<Layout, memory == remote_memory>();
  });
}

}  // namespace ladders::smem_layout
