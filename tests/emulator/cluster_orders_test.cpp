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
TEST(ClusterOrderFaults, CopyAfterARelaxedBarrier) {
  expect_found(outputs_of(by_way_of_the_second_block<Orders::nothing>));
}

}  // namespace
}  // namespace emulator
