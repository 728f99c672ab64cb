// SPDX-License-Identifier: MIT
//
// Bulk copies see what threads wrote once a fence has shown them that (fence.proxy.async).
#include <emulator/bulk_copies.hpp>

#include <cuda/atomic>

#include "schedules.hpp"

namespace emulator {
namespace {

enum Wrong {
  nothing,
  no_fence,
  fence_too_early,
  fence_of_another,
  fence_for_shared_alone,
  barrier_not_published,
  barrier_not_awaited
};

constexpr unsigned kBytes = 256;

// Threads write a tile, and one copies it out.
template <Wrong wrong, bool one_fences>
__global__ void out_of_shared(int* out, const int*) {
  __shared__ __align__(16) int tile[64];
  if (wrong == fence_too_early) fence_proxy_async_shared();
  tile[threadIdx.x] = 1;
  if (wrong == fence_of_another && threadIdx.x % 2 != 0) fence_proxy_async_shared();
  if (wrong == nothing && !one_fences) fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (wrong == nothing && one_fences) fence_proxy_async_shared();
  bulk_store(out, tile, kBytes);
  bulk_wait_group_read();
}
// A copy to where a thread has written before.
template <Wrong wrong>
__global__ void into_shared(int* out, const int* in) {
  __shared__ __align__(16) int tile[64];
  __shared__ MBarrier full;
  tile[threadIdx.x] = 1;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    if (wrong != barrier_not_published) fence_mbarrier_init();
  }
  if (wrong != no_fence && wrong != barrier_not_published) fence_proxy_async_shared();
  if (wrong != barrier_not_awaited) __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect_tx(full, kBytes);
    bulk_load(tile, in, kBytes, full);
  }
  wait(full, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
template <Wrong wrong>
__global__ void barrier_alone(int* out, const int* in) {
  __shared__ __align__(16) int tile[64];
  __shared__ MBarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    if (wrong != barrier_not_published) fence_mbarrier_init();
  }
  if (wrong != barrier_not_awaited) __syncthreads();
  if (threadIdx.x == 32) {
    arrive_expect_tx(full, kBytes);
    bulk_load(tile, in, kBytes, full);
  }
  __syncthreads();
  wait(full, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
// What one block leaves in global memory another copies in.
template <Wrong wrong>
__global__ void from_block_to_block(int* out, int* data, unsigned* flag) {
  using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  __shared__ __align__(16) int tile[64];
  __shared__ MBarrier full;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) Flag(*flag).store(1, cuda::memory_order_release);
    return;
  }
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    if (wrong == fence_too_early) fence_proxy_async();
    while (Flag(*flag).load(cuda::memory_order_acquire) == 0) {
    }
    if (wrong == fence_for_shared_alone) fence_proxy_async_shared();
    if (wrong == nothing) fence_proxy_async();
    arrive_expect_tx(full, kBytes);
    bulk_load(tile, data, kBytes, full);
  }
  __syncthreads();
  wait(full, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

auto copies_of(void (*kernel)(int*, const int*)) {
  return [=] {
    const DeviceArray<int> in(std::vector(64, 1)), out(64);
    return launch({1, 64}, kernel, out, in) == cudaSuccess && out.values() == in.values();
  };
}
auto transfers_of(void (*kernel)(int*, int*, unsigned*)) {
  return [=] {
    const DeviceArray<int> data(64), out(64);
    const DeviceArray<unsigned> flag(1);
    return launch({2, 64}, kernel, out, data, flag) == cudaSuccess &&
           out.values() == std::vector(64, 1);
  };
}

CLEAN(Proxy, FenceAfterABarrierBeforeACopyOut, copies_of(out_of_shared<nothing, true>))
CLEAN(Proxy, FencesOfAllThreadsBeforeACopyOut, copies_of(out_of_shared<nothing, false>))
FOUND(Proxy, NoFenceBeforeACopyOut, copies_of(out_of_shared<no_fence, true>))
FOUND(Proxy, FenceBeforeTheWrites, copies_of(out_of_shared<fence_too_early, true>))
FOUND(Proxy, FencesOfHalfOfTheThreads, copies_of(out_of_shared<fence_of_another, true>))
CLEAN(Proxy, FencesBeforeACopyIn, copies_of(into_shared<nothing>))
FOUND(Proxy, NoFenceBeforeACopyIn, copies_of(into_shared<no_fence>))
CLEAN(Proxy, BarrierPublished, copies_of(barrier_alone<nothing>))
FOUND(Proxy, BarrierNotPublished, copies_of(barrier_alone<barrier_not_published>))
FOUND(Proxy, BarrierUsedBeforeThreadsMeet, copies_of(barrier_alone<barrier_not_awaited>))
CLEAN(Proxy, FenceBeforeACopyOfAnotherBlocksData, transfers_of(from_block_to_block<nothing>))
FOUND(Proxy, NoFenceBeforeACopyOfAnotherBlocksData, transfers_of(from_block_to_block<no_fence>))
FOUND(Proxy, FenceBeforeTheFlag, transfers_of(from_block_to_block<fence_too_early>))
FOUND(Proxy, FenceOfSharedMemoryForGlobalMemory,
      transfers_of(from_block_to_block<fence_for_shared_alone>))

}  // namespace
}  // namespace emulator
