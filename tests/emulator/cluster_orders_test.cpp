// SPDX-License-Identifier: MIT
//
// What barriers of a cluster order: all memory, shared memory alone, or only that blocks have
// started.
#include <cooperative_groups.h>

#include <emulator/bulk_copies.hpp>

#include "correct.hpp"
#include "schedules.hpp"

namespace emulator {
namespace {

constexpr unsigned kBlocks = 4, kThreads = 64;

void sync(Orders what) {
  if (what == Orders::all) cooperative_groups::this_cluster().sync();
  if (what == Orders::shared_memory) cluster_sync_shared();
  if (what == Orders::nothing) cluster_sync_relaxed();
}

// What threads store, unless a comment says what; others read it and write it to the output.
__device__ int number() { return static_cast<int>(blockIdx.x * kThreads + threadIdx.x); }
constexpr int kN = kThreads, kAll = kBlocks * kThreads, kStart = 1000;

// Each thread reads what one of the next block has stored in its shared memory.
template <Orders before>
__global__ void from_the_next_block(int*, int* out) {
  __shared__ int own[kThreads];
  const auto cluster = cooperative_groups::this_cluster();
  own[threadIdx.x] = number();
  sync(before);
  const int* next = cluster.map_shared_rank(own, (cluster.block_rank() + 1) % kBlocks);
  out[blockIdx.x * kThreads + threadIdx.x] = next[kThreads - 1 - threadIdx.x];
  cluster_sync_shared();
}
// The same in its own block, which is ordered no better.
template <Orders between>
__global__ void from_the_own_block(int*, int* out) {
  __shared__ int own[kThreads];
  own[threadIdx.x] = number();
  sync(between);
  out[blockIdx.x * kThreads + threadIdx.x] = own[kThreads - 1 - threadIdx.x];
}
// The same by way of global memory.
template <Orders between>
__global__ void through_global_memory(int* data, int* out) {
  const unsigned to = blockIdx.x * kThreads + threadIdx.x;
  const unsigned from = (to / kThreads + 1) % kBlocks * kThreads + kThreads - 1 - threadIdx.x;
  data[to] = number();
  sync(between);
  out[to] = data[from];
}
// What one barrier has ordered a later one passes on: a 7.
template <Orders second>
__global__ void by_way_of_the_second_block(int*, int* out) {
  __shared__ int own, copy;
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) own = 7;
  cluster_sync_shared();
  if (threadIdx.x == 0 && rank == 1) copy = *cluster.map_shared_rank(&own, 0);
  sync(second);
  if (rank > 1) out[blockIdx.x * kThreads + threadIdx.x] = *cluster.map_shared_rank(&copy, 1);
  if (rank < 2) out[blockIdx.x * kThreads + threadIdx.x] = own;
  cluster_sync_shared();
}
// A fence of each thread before a relaxed barrier makes it order all memory.
__global__ void by_fences(int* data, int* out) {
  const unsigned to = blockIdx.x * kThreads + threadIdx.x;
  data[to] = number();
  __threadfence();
  cluster_sync_relaxed();
  out[to] = data[kBlocks * kThreads - 1 - to];
}
// Global memory, whose elements are kStart + i, is overwritten after another block has read it and
// passed it on.
__global__ void permuted_in_place(int*, int* data) {
  __shared__ int own[kThreads];
  const unsigned next = (blockIdx.x + 1) % kBlocks;
  own[threadIdx.x] = data[blockIdx.x * kThreads + threadIdx.x];
  cluster_sync_shared();
  data[next * kThreads + kThreads - 1 - threadIdx.x] = own[threadIdx.x];
}
// A block reads what another has stored in its memory: threes.
template <Orders before>
__global__ void into_the_next_block(int*, int* out) {
  __shared__ int own[kThreads];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  cluster.map_shared_rank(own, (cluster.block_rank() + 1) % kBlocks)[threadIdx.x] = 3;
  sync(before);
  out[blockIdx.x * kThreads + threadIdx.x] = own[threadIdx.x];
  cluster.sync();
}
// A bulk copy of what threads of the block have stored in shared memory.
template <Orders before>
__global__ void copied_out(int*, int* out) {
  alignas(128) __shared__ int own[kThreads];
  own[threadIdx.x] = number();
  sync(before);
  if (threadIdx.x == 0) {
    fence_proxy_async_shared();
    bulk_store(out + blockIdx.x * kThreads, own, sizeof(own));
    bulk_wait_group();
  }
}
// A bulk copy of what another block has stored in global memory and shown to copies.
template <Orders between>
__global__ void copied_in(int* data, int* out) {
  alignas(128) __shared__ int own[kThreads];
  __shared__ MBarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  data[blockIdx.x * kThreads + threadIdx.x] = number();
  fence_proxy_async();
  sync(between);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect_tx(full, sizeof(own));
    bulk_load(own, data + (blockIdx.x + 1) % kBlocks * kThreads, sizeof(own), full);
  }
  wait(full, 0);
  out[blockIdx.x * kThreads + threadIdx.x] = own[threadIdx.x];
}
// An mbarrier that is initialised, at which other blocks then arrive.
__global__ void arrivals(int*, int* out) {
  __shared__ MBarrier all;
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) {
    mbarrier_init(all, kBlocks);
    fence_mbarrier_init();
  }
  cluster_sync_relaxed();
  if (threadIdx.x < kBlocks) arrive_remote(all, static_cast<int>(threadIdx.x));
  wait_acquire_cluster(all, 0);
  out[blockIdx.x * kThreads + threadIdx.x] = static_cast<int>(cluster.block_rank());
  cluster.sync();
}

auto outputs_of(void (*kernel)(int*, int*), int (*expected)(int block, int thread)) {
  return [=] {
    const DeviceArray<int> data(kAll);
    const DeviceArray<int> out(list_of(kAll, [](int i) { return kStart + i; }));
    if (launch_clusters(kBlocks, {kBlocks, kThreads}, kernel, data, out) != cudaSuccess)
      return false;
    return out.values() == list_of(kAll, [=](int i) { return expected(i / kN, i % kN); });
  };
}
// What the kernels write, block by block.
int of_next_block(int block, int thread) { return (block + 1) % 4 * kN + thread; }
int of_next_block_reversed(int block, int thread) { return of_next_block(block, kN - 1 - thread); }
int of_block_before_reversed(int block, int thread) {
  return kStart + (block + 3) % 4 * kN + kN - 1 - thread;
}
int of_own_block(int block, int thread) { return block * kN + thread; }
int of_own_block_reversed(int block, int thread) { return of_own_block(block, kN - 1 - thread); }
int of_all_reversed(int block, int thread) { return kAll - 1 - (block * kN + thread); }
int ranks(int block, int) { return block; }
int threes(int, int) { return 3; }
int sevens(int, int) { return 7; }

using enum Orders;
CLEAN(ClusterOrder, SharedMemoryOfAnotherBlock,
      outputs_of(from_the_next_block<all>, of_next_block_reversed))
CLEAN(ClusterOrder, SharedMemoryOfAnotherBlockAfterABarrierForIt,
      outputs_of(from_the_next_block<shared_memory>, of_next_block_reversed))
FOUND(ClusterOrder, SharedMemoryOfAnotherBlockAfterARelaxedBarrier,
      outputs_of(from_the_next_block<nothing>, of_next_block_reversed))
CLEAN(ClusterOrder, SharedMemory, outputs_of(from_the_own_block<all>, of_own_block_reversed))
CLEAN(ClusterOrder, SharedMemoryAfterABarrierForIt,
      outputs_of(from_the_own_block<shared_memory>, of_own_block_reversed))
FOUND(ClusterOrder, SharedMemoryAfterARelaxedBarrier,
      outputs_of(from_the_own_block<nothing>, of_own_block_reversed))
CLEAN(ClusterOrder, GlobalMemory, outputs_of(through_global_memory<all>, of_next_block_reversed))
FOUND(ClusterOrder, GlobalMemoryAfterABarrierForSharedMemory,
      outputs_of(through_global_memory<shared_memory>, of_next_block_reversed))
FOUND(ClusterOrder, GlobalMemoryAfterARelaxedBarrier,
      outputs_of(through_global_memory<nothing>, of_next_block_reversed))
CLEAN(ClusterOrder, GlobalMemoryAfterFencesAndARelaxedBarrier,
      outputs_of(by_fences, of_all_reversed))
CLEAN(ClusterOrder, GlobalMemoryThatIsOverwrittenInPlace,
      outputs_of(permuted_in_place, of_block_before_reversed))
CLEAN(ClusterOrder, CopyInAnotherBlock, outputs_of(by_way_of_the_second_block<all>, sevens))
CLEAN(ClusterOrder, CopyInAnotherBlockAfterABarrierForSharedMemory,
      outputs_of(by_way_of_the_second_block<shared_memory>, sevens))
FOUND(ClusterOrder, CopyInAnotherBlockAfterARelaxedBarrier,
      outputs_of(by_way_of_the_second_block<nothing>, sevens))
CLEAN(ClusterOrder, StoreInAnotherBlock, outputs_of(into_the_next_block<all>, threes))
FOUND(ClusterOrder, StoreInAnotherBlockBeforeABarrierForOwnMemory,
      outputs_of(into_the_next_block<shared_memory>, threes))
CLEAN(ClusterOrder, BulkCopyOut, outputs_of(copied_out<all>, of_own_block))
CLEAN(ClusterOrder, BulkCopyOutAfterABarrierForSharedMemory,
      outputs_of(copied_out<shared_memory>, of_own_block))
FOUND(ClusterOrder, BulkCopyOutAfterARelaxedBarrier, outputs_of(copied_out<nothing>, of_own_block))
CLEAN(ClusterOrder, BulkCopyIn, outputs_of(copied_in<all>, of_next_block))
FOUND(ClusterOrder, BulkCopyInAfterABarrierForSharedMemory,
      outputs_of(copied_in<shared_memory>, of_next_block))
CLEAN(ClusterOrder, ArrivalsFromOtherBlocks, outputs_of(arrivals, ranks))

}  // namespace
}  // namespace emulator
