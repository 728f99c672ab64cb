// SPDX-License-Identifier: MIT
//
// Scopes that are too narrow: what is ordered for threads of one block is not for those of others.
#include <cuda/atomic>

#include "schedules.hpp"

namespace emulator {
namespace {

enum Wrong { nothing, narrow_fence_before, narrow_fence_after, narrow_store, narrow_load };

// The last block to come adds up what all have left.
template <Wrong wrong>
__global__ void last_block(int* slots, unsigned* ticket, int* result) {
  if (threadIdx.x != 0) return;
  slots[blockIdx.x] = static_cast<int>(blockIdx.x);
  wrong == narrow_fence_before ? __threadfence_block() : __threadfence();
  const unsigned before =
      wrong == narrow_store ? atomicAdd_block(ticket, 1u) : atomicAdd(ticket, 1u);
  if (before != gridDim.x - 1) return;
  wrong == narrow_fence_after ? __threadfence_block() : __threadfence();
  *result = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) *result += slots[i];
}
// The first block tells all others.
template <Wrong wrong>
__global__ void flag(int* data, unsigned* there, int* result) {
  using Wide = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  using Narrow = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 3;
    if (wrong == narrow_store)
      Narrow(*there).store(1, cuda::memory_order_release);
    else
      Wide(*there).store(1, cuda::memory_order_release);
    return;
  }
  const auto come = [&] {
    return wrong == narrow_load ? Narrow(*there).load(cuda::memory_order_acquire)
                                : Wide(*there).load(cuda::memory_order_acquire);
  };
  while (come() == 0) {
  }
  if (blockIdx.x == 2) *result = *data;
}
auto threes_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(3), result(1);
    const DeviceArray<unsigned> word(1);
    return launch({3, 64}, kernel, data, word, result) == cudaSuccess && result.values()[0] == 3;
  };
}

CLEAN(Scope, TicketOfTheDevice, threes_of(last_block<nothing>))
FOUND(Scope, FenceOfTheBlockBeforeTheTicket, threes_of(last_block<narrow_fence_before>))
FOUND(Scope, FenceOfTheBlockAfterTheTicket, threes_of(last_block<narrow_fence_after>))
FOUND(Scope, TicketOfTheBlock, threes_of(last_block<narrow_store>))
CLEAN(Scope, FlagOfTheDevice, threes_of(flag<nothing>))
FOUND(Scope, ReleaseToTheBlock, threes_of(flag<narrow_store>))
FOUND(Scope, AcquireFromTheBlock, threes_of(flag<narrow_load>))

}  // namespace
}  // namespace emulator
