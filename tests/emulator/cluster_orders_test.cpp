// SPDX-License-Identifier: MIT
//
// What barriers of a cluster order: all memory, shared memory alone, or only that blocks have
// started.
#include <cooperative_groups.h>

#include <emulator/bulk_copies.hpp>

#include "schedules.hpp"

namespace emulator {
namespace {

constexpr unsigned kBlocks = 4, kThreads = 64;

void sync(Orders what) {
  if (what == Orders::all) cooperative_groups::this_cluster().sync();
  if (what == Orders::shared_memory) cluster_sync_shared();
  if (what == Orders::nothing) cluster_sync_relaxed();
}

// Each thread reads what one of the next block has stored in its shared memory.
template <Orders before>
__global__ void from_the_next_block(int*, int* out) {
  __shared__ int own[kThreads];
  const auto cluster = cooperative_groups::this_cluster();
  own[threadIdx.x] = static_cast<int>(threadIdx.x);
  sync(before);
  const int* next = cluster.map_shared_rank(own, (cluster.block_rank() + 1) % kBlocks);
  out[blockIdx.x * kThreads + threadIdx.x] = next[kThreads - 1 - threadIdx.x];
  cluster_sync_shared();
}
// The same in its own block, which is ordered no better.
template <Orders between>
__global__ void from_the_own_block(int*, int* out) {
  __shared__ int own[kThreads];
  own[threadIdx.x] = static_cast<int>(threadIdx.x);
  sync(between);
  out[blockIdx.x * kThreads + threadIdx.x] = own[kThreads - 1 - threadIdx.x];
}
// The same by way of global memory.
template <Orders between>
__global__ void through_global_memory(int* data, int* out) {
  const unsigned to = blockIdx.x * kThreads + threadIdx.x;
  const unsigned from = (to / kThreads + 1) % kBlocks * kThreads + kThreads - 1 - threadIdx.x;
  data[to] = static_cast<int>(threadIdx.x);
  sync(between);
  out[to] = data[from];
}
// What one barrier has ordered a later one passes on.
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
  data[to] = static_cast<int>(threadIdx.x);
  __threadfence();
  cluster_sync_relaxed();
  out[to] = data[kBlocks * kThreads - 1 - to];
}
// Global memory is overwritten after another block has read it and passed it on.
__global__ void permuted_in_place(int* data, int*) {
  __shared__ int own[kThreads];
  const unsigned next = (blockIdx.x + 1) % kBlocks;
  own[threadIdx.x] = data[blockIdx.x * kThreads + threadIdx.x];
  cluster_sync_shared();
  data[next * kThreads + kThreads - 1 - threadIdx.x] = own[threadIdx.x];
}
// A block reads what another has stored in its memory.
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
  own[threadIdx.x] = static_cast<int>(threadIdx.x);
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
  data[blockIdx.x * kThreads + threadIdx.x] = static_cast<int>(threadIdx.x);
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

auto outputs_of(void (*kernel)(int*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    return launch_clusters(kBlocks, {kBlocks, kThreads}, kernel, data, out) == cudaSuccess;
  };
}

TEST(ClusterOrders, OfBarriers) {
  using enum Orders;
  expect_clean(outputs_of(from_the_next_block<all>));
  expect_clean(outputs_of(from_the_next_block<shared_memory>));
  expect_clean(outputs_of(from_the_own_block<all>));
  expect_clean(outputs_of(from_the_own_block<shared_memory>));
  expect_clean(outputs_of(through_global_memory<all>));
  expect_clean(outputs_of(by_way_of_the_second_block<all>));
  expect_clean(outputs_of(by_way_of_the_second_block<shared_memory>));
  expect_clean(outputs_of(arrivals));
  expect_clean(outputs_of(by_fences));
  expect_clean(outputs_of(permuted_in_place));
  expect_clean(outputs_of(into_the_next_block<all>));
  expect_clean(outputs_of(copied_out<all>));
  expect_clean(outputs_of(copied_out<shared_memory>));
  expect_clean(outputs_of(copied_in<all>));
}
TEST(ClusterOrderFaults, SharedMemoryOfAnotherBlockAfterARelaxedBarrier) {
  expect_found(outputs_of(from_the_next_block<Orders::nothing>));
}
TEST(ClusterOrderFaults, SharedMemoryAfterARelaxedBarrier) {
  expect_found(outputs_of(from_the_own_block<Orders::nothing>));
}
TEST(ClusterOrderFaults, GlobalMemoryAfterABarrierForSharedMemory) {
  expect_found(outputs_of(through_global_memory<Orders::shared_memory>));
}
TEST(ClusterOrderFaults, GlobalMemoryAfterARelaxedBarrier) {
  expect_found(outputs_of(through_global_memory<Orders::nothing>));
}
TEST(ClusterOrderFaults, StoreInAnotherBlockBeforeABarrierForOwnMemory) {
  expect_found(outputs_of(into_the_next_block<Orders::shared_memory>));
}
TEST(ClusterOrderFaults, BulkCopyOutAfterARelaxedBarrier) {
  expect_found(outputs_of(copied_out<Orders::nothing>));
}
TEST(ClusterOrderFaults, BulkCopyInAfterABarrierForSharedMemory) {
  expect_found(outputs_of(copied_in<Orders::shared_memory>));
}
TEST(ClusterOrderFaults, CopyAfterARelaxedBarrier) {
  expect_found(outputs_of(by_way_of_the_second_block<Orders::nothing>));
}

}  // namespace
}  // namespace emulator
