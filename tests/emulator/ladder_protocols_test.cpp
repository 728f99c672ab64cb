// SPDX-License-Identifier: MIT
//
// Protocols between blocks as the ladders' kernels have them, where planted_faults/ has no copy of
// a kernel. As it should be, each is clean under every schedule of a search; with a fault planted,
// it is found out under one.
#include <cuda/atomic>

#include "correct.hpp"
#include "schedules.hpp"

namespace emulator {
namespace {

// What is wrong with a protocol. Each has some of these.
enum Wrong {
  nothing,
  flag_first,
  no_barrier,
  relaxed_store,
  relaxed_load,
  wrong_flag,
  reset_early,
  one_too_few
};

constexpr unsigned kBlocks = 3, kThreads = 64;
constexpr int kSum = static_cast<int>(kBlocks * kThreads * (kBlocks * kThreads - 1) / 2);

__device__ int block_sum() {
  const int first = static_cast<int>(blockIdx.x * kThreads), n = static_cast<int>(kThreads);
  return first * n + n * (n - 1) / 2;
}

// ---- The last block adds up, where each warp has a slot

template <Wrong wrong>
__global__ void last_block_of_warps(int* slots, unsigned* ticket, int* result) {
  __shared__ bool last;
  if (threadIdx.x % 32 == 0) slots[blockIdx.x * 2 + threadIdx.x / 32] = block_sum() / 2;
  if (wrong != no_barrier) __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < 2 * gridDim.x; ++i) sum += __ldcg(&slots[i]);
  *result = sum;
}
auto sums_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> slots(2 * kBlocks), result(1);
    const DeviceArray<unsigned> ticket(1);
    if (launch({kBlocks, kThreads}, kernel, slots, ticket, result) != cudaSuccess) return false;
    return result.values()[0] == kSum;
  };
}
CLEAN(LadderProtocol, LastBlockOfWarps, sums_of(last_block_of_warps<nothing>))
FOUND(LadderProtocol, NoBarrierBeforeTheTicket, sums_of(last_block_of_warps<no_barrier>))

// ---- A chain whose data, written by all threads, is apart from the flags

template <Wrong wrong>
__global__ void chain(int* data, unsigned* flags, int* out) {
  const unsigned b = blockIdx.x, t = threadIdx.x;
  const auto wait_for = [&](unsigned block) {
    unsigned there = 0;
    while (there == 0)
      strong_load(flags + block, &there, 4,
                  wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
  };
  const auto raise = [&] {
    const unsigned one = 1;
    strong_store(flags + b, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
  };
  if (b > 0 && t == 0) wait_for(wrong == wrong_flag && b > 1 ? b - 2 : b - 1);
  __syncthreads();
  if (wrong == flag_first && t == 0) raise();
  data[b * kThreads + t] = 1 + (b > 0 ? data[(b - 1) * kThreads + t] : 0);
  if (wrong != no_barrier) __syncthreads();
  if (wrong != flag_first && t == 0) raise();
  // What the first block wrote is known through those in between.
  out[b * kThreads + t] = b == 2 ? data[kThreads - 1 - t] + data[b * kThreads + t] : 0;
}
auto chains_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    const DeviceArray<unsigned> flags(kBlocks);
    if (launch({kBlocks, kThreads}, kernel, data, flags, out) != cudaSuccess) return false;
    // The last block adds up the first one's 1 and its own 3.
    return out.values() == list_of(kBlocks * kThreads, [](int i) { return i < 2 * 64 ? 0 : 4; });
  };
}
CLEAN(LadderProtocol, ChainOfThreeBlocks, chains_of(chain<nothing>))
FOUND(LadderProtocol, FlagBeforeItsData, chains_of(chain<flag_first>))
FOUND(LadderProtocol, RelaxedStoreOfAFlag, chains_of(chain<relaxed_store>))
FOUND(LadderProtocol, RelaxedLoadOfAFlag, chains_of(chain<relaxed_load>))
FOUND(LadderProtocol, FlagOfAnotherBlock, chains_of(chain<wrong_flag>))
FOUND(LadderProtocol, NoBarrierBeforeTheFlag, chains_of(chain<no_barrier>))

// ---- sgemm/05_stream_k.cuh: each warp stores its partial sums and counts itself

using Count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

template <Wrong wrong>
__global__ void fixup(int* parts, unsigned* there, int* out) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x > 0) {
    parts[t] = static_cast<int>(t);
    if (wrong != no_barrier) __syncwarp();
    if (t % 32 == 0)
      Count(*there).fetch_add(
          1, wrong == relaxed_store ? cuda::memory_order_relaxed : cuda::memory_order_release);
    return;
  }
  const unsigned warps = wrong == one_too_few ? 1 : kThreads / 32;
  if (t == 0) {
    const Count count(*there);
    while (count.load(cuda::memory_order_acquire) < warps) {
    }
    count.store(0, cuda::memory_order_relaxed);
  }
  __syncthreads();
  out[t] = parts[t];
}
auto fixups_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> parts(kThreads), out(kThreads);
    const DeviceArray<unsigned> there(1);
    if (launch({2, kThreads}, kernel, parts, there, out) != cudaSuccess) return false;
    return out.values() == counting(kThreads);
  };
}
CLEAN(LadderProtocol, Fixup, fixups_of(fixup<nothing>))
FOUND(LadderProtocol, NoSyncwarpBeforeTheCount, fixups_of(fixup<no_barrier>))
FOUND(LadderProtocol, RelaxedCount, fixups_of(fixup<relaxed_store>))
FOUND(LadderProtocol, OneWarpTooFew, fixups_of(fixup<one_too_few>))

// ---- byte_histogram/02_always_reading.cuh: the first block zeroes, the last resets

struct Meeting {
  unsigned blocks, zeroed;
};
template <Wrong wrong>
__global__ void meeting(unsigned* bins, Meeting* meeting, int*) {
  const unsigned t = threadIdx.x, one = 1;
  const unsigned came = t == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
  if (t < 32 && __shfl_sync(~0u, came, 0) == 0) {
    if (wrong == flag_first && t == 0) strong_store(&meeting->zeroed, &one, 4, Strength::release);
    bins[t] = 0;
    if (wrong != no_barrier) __syncwarp();
    if (t == 0) strong_store(&meeting->zeroed, &one, 4, Strength::release);
    __syncwarp();
  }
  if (t < 32) {
    unsigned zeroed = 0;
    do
      strong_load(&meeting->zeroed, &zeroed, 4,
                  wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
    while (!__all_sync(~0u, zeroed != 0));
    atomicAdd(bins + t, 1u);
  }
  __syncthreads();
  const unsigned left = t == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
  if (t == 0 && left == (wrong == reset_early ? gridDim.x : 2 * gridDim.x - 1))
    meeting->blocks = meeting->zeroed = 0;
}
auto meetings_of(void (*kernel)(unsigned*, Meeting*, int*)) {
  return [=] {
    const DeviceArray<unsigned> bins(32);
    const DeviceArray<Meeting> state(1);
    for (int i = 0; i < 2; ++i) {
      if (launch({kBlocks, kThreads}, kernel, bins, state, nullptr) != cudaSuccess) return false;
      if (bins.values() != std::vector(32, kBlocks)) return false;
    }
    return true;
  };
}
CLEAN(LadderProtocol, Meeting, meetings_of(meeting<nothing>))
FOUND(LadderProtocol, ZeroedBeforeTheZeros, meetings_of(meeting<flag_first>))
FOUND(LadderProtocol, NoSyncwarpAfterTheZeros, meetings_of(meeting<no_barrier>))
FOUND(LadderProtocol, RelaxedPollOfZeroed, meetings_of(meeting<relaxed_load>))
FOUND(LadderProtocol, ResetByTheWrongBlock, meetings_of(meeting<reset_early>))

}  // namespace
}  // namespace emulator
