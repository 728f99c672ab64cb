// SPDX-License-Identifier: MIT
//
// What orders memory between blocks: barriers of the grid, flags, locks, or nothing. As it should
// be, each kernel is clean under every schedule of a search; with a fault planted, it is found out
// under one.
#include <cooperative_groups.h>

#include "schedules.hpp"

namespace emulator {
namespace {

// What is wrong with a kernel. Each has some of these.
enum Wrong {
  nothing,
  no_fence_before,
  no_fence_after,
  flag_first,
  no_barrier,
  relaxed_store,
  relaxed_load,
  reset_early
};

constexpr unsigned kBlocks = 3, kThreads = 64;

// ---- a barrier of the grid

template <Wrong wrong>
__global__ void grid_barrier(int* data, unsigned* arrived, int* out) {
  data[blockIdx.x * kThreads + threadIdx.x] = 1;
  if (wrong != no_barrier) __syncthreads();
  if (threadIdx.x == 0) {
    if (wrong != no_fence_before) __threadfence();
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
    }
    if (wrong != no_fence_after) __threadfence();
  }
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] =
      data[(blockIdx.x + 1) % gridDim.x * kThreads + threadIdx.x];
}
auto grids_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    const DeviceArray<unsigned> arrived(1);
    if (launch({kBlocks, kThreads}, kernel, data, arrived, out) != cudaSuccess) return false;
    return out.values() == std::vector(kBlocks * kThreads, 1);
  };
}
CLEAN(BlockOrder, GridBarrier, grids_of(grid_barrier<nothing>))
FOUND(BlockOrder, GridBarrierNoBarrier, grids_of(grid_barrier<no_barrier>))
FOUND(BlockOrder, GridBarrierNoFenceBefore, grids_of(grid_barrier<no_fence_before>))
FOUND(BlockOrder, GridBarrierNoFenceAfter, grids_of(grid_barrier<no_fence_after>))

template <Wrong wrong>
__global__ void grid_sync(int* data, int* out, int rounds) {
  const auto grid = cooperative_groups::this_grid();
  const auto own = grid.thread_rank(), other = (own + kThreads) % grid.num_threads();
  for (int i = 0; i < rounds; ++i) {
    data[own] = i;
    if (wrong == no_barrier)
      __syncthreads();
    else
      grid.sync();
    out[own] += data[other] == i;
    if (wrong != reset_early) grid.sync();
  }
}
auto grid_syncs_of(void (*kernel)(int*, int*, int)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    constexpr int kRounds = 3;
    for (int i = 1; i <= 2; ++i) {
      if (launch_cooperative({kBlocks, kThreads}, kernel, data, out, kRounds) != cudaSuccess)
        return false;
      if (out.values() != std::vector(kBlocks * kThreads, i * kRounds)) return false;
    }
    return true;
  };
}
CLEAN(BlockOrder, GridSync, grid_syncs_of(grid_sync<nothing>))
FOUND(BlockOrder, BlocksSyncForTheGrid, grid_syncs_of(grid_sync<no_barrier>))
FOUND(BlockOrder, NoGridSyncAtTheEndOfALoop, grid_syncs_of(grid_sync<reset_early>))

// ---- flags in global memory of data in shared memory: of the own block, or of another's

__device__ unsigned wait_for(const unsigned* flag, Strength strength) {
  unsigned there = 0;
  while (there == 0) strong_load(flag, &there, 4, strength);
  return there;
}
template <Wrong wrong>
__global__ void between_warps(unsigned* flags, int* out) {
  __shared__ int s;
  const unsigned one = 1, t = threadIdx.x;
  if (t == 0) {
    s = 7;
    strong_store(flags + blockIdx.x, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
    if (wrong == flag_first) s = 7 + static_cast<int>(blockIdx.x) + 1;
  }
  if (t != 32) return;
  wait_for(flags + blockIdx.x, wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
  out[blockIdx.x] = s;
}
template <Wrong wrong>
__global__ void between_clusters(unsigned* flags, int* out) {
  namespace cg = cooperative_groups;
  __shared__ int s;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned one = 1, t = threadIdx.x, other = cluster.block_rank() ^ 1;
  cluster.sync();
  if (t == 0) {
    s = 7;
    strong_store(flags + blockIdx.x, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
    wait_for(flags + (blockIdx.x ^ 1), Strength::acquire);
    out[blockIdx.x] = *cluster.map_shared_rank(&s, other);
  }
  cluster.sync();
}
template <unsigned blocks, unsigned cluster>
auto shared_of(void (*kernel)(unsigned*, int*)) {
  return [=] {
    const DeviceArray<unsigned> flags(blocks);
    const DeviceArray<int> out(blocks);
    const Shape shape{blocks, kThreads};
    if (launch_clusters(cluster, shape, kernel, flags, out) != cudaSuccess) return false;
    return out.values() == std::vector(blocks, 7);
  };
}
constexpr auto shared_of_one = shared_of<1, 1>;
constexpr auto shared_of_two = shared_of<2, 1>;
constexpr auto shared_of_clusters = shared_of<4, 2>;
CLEAN(BlockOrder, SharedDataOfOneBlock, shared_of_one(between_warps<nothing>))
CLEAN(BlockOrder, SharedData, shared_of_two(between_warps<nothing>))
CLEAN(BlockOrder, SharedDataOfClusters, shared_of_clusters(between_clusters<nothing>))
FOUND(BlockOrder, RelaxedStoreAfterSharedData, shared_of_two(between_warps<relaxed_store>))
FOUND(BlockOrder, RelaxedLoadBeforeSharedData, shared_of_one(between_warps<relaxed_load>))
FOUND(BlockOrder, SharedDataAfterItsFlag, shared_of_one(between_warps<flag_first>))
FOUND(BlockOrder, RelaxedStoreInAClusterBeforeItsEnd,
      shared_of_clusters(between_clusters<relaxed_store>))

// ---- a lock

template <Wrong wrong>
__global__ void locked(int* lock, unsigned*, int* total) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  if (wrong != no_fence_after) __threadfence();
  *total += 1;
  if (wrong != no_fence_before) __threadfence();
  atomicExch(lock, 0);
}
auto locks_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> lock(1), total(1);
    if (launch({kBlocks, kThreads}, kernel, lock, nullptr, total) != cudaSuccess) return false;
    return total.values()[0] == static_cast<int>(kBlocks);
  };
}
CLEAN(BlockOrder, Lock, locks_of(locked<nothing>))
FOUND(BlockOrder, LockNoFenceBefore, locks_of(locked<no_fence_before>))
FOUND(BlockOrder, LockNoFenceAfter, locks_of(locked<no_fence_after>))

// ---- no flags at all

template <Wrong wrong>
__global__ void shifted(int* data, unsigned* counts, int*) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  atomicAdd(counts, 1u);
  counts[1] = 1;  // by all, the same
  if (wrong == no_barrier)
    data[i] = data[(i + 1) % (kBlocks * kThreads)] + 1;
  else
    data[i] = data[i] + 1;
}
auto own_elements(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads);
    const DeviceArray<unsigned> counts(2);
    if (launch({kBlocks, kThreads}, kernel, data, counts, nullptr) != cudaSuccess) return false;
    return data.values() == std::vector(kBlocks * kThreads, 1) &&
           counts.values() == std::vector{kBlocks * kThreads, 1u};
  };
}
CLEAN(BlockOrder, OwnElements, own_elements(shifted<nothing>))
FOUND(BlockOrder, ElementsOfOthers, own_elements(shifted<no_barrier>))

}  // namespace
}  // namespace emulator
