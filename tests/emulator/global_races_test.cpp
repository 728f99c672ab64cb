// SPDX-License-Identifier: MIT
//
// Races on global memory between threads of one block, and what orders these.
#include <cooperative_groups.h>

#include <cuda/atomic>

#include "correct.hpp"
#include "faults.hpp"

namespace emulator {
namespace {

__device__ int next_of(int thread) { return (thread + 1) % 64; }

__global__ void no_barrier(int* data) {
  const int t = static_cast<int>(threadIdx.x);
  data[t] = t;                                         // fault
  if (t == 0 || t == 63) data[t] += data[next_of(t)];  // fault
}
TEST(GlobalRaces, NoBarrier) {
  EXPECT_FAULT(no_barrier, "global-memory race (between warps|inside a warp): (read|write) after");
}
__global__ void no_barrier_in_each_block(int* data) {
  if (threadIdx.x == 32 * (blockIdx.x % 2)) data[blockIdx.x] = 1;  // fault
  if (threadIdx.x == 40) data[blockIdx.x + 8] = data[blockIdx.x];  // fault
}
TEST(GlobalRaces, InEachBlockOfAGrid) {
  EXPECT_FAULT(no_barrier_in_each_block, "global-memory race", {4, 64});
}
__global__ void reads_before_another_stores(int* data) {
  const int value = data[63 - threadIdx.x];  // fault
  data[threadIdx.x] = value + 1;             // fault
}
TEST(GlobalRaces, WriteAfterRead) {
  EXPECT_FAULT(reads_before_another_stores,
               "race between warps: (write after read|read after write) of byte");
}
__global__ void warps_store_different_values(int* data) {
  data[threadIdx.x % 32] = static_cast<int>(threadIdx.x / 32);  // fault
}
TEST(GlobalRaces, WriteAfterWrite) {
  EXPECT_FAULT(warps_store_different_values,
               R"(race between warps: write after write of byte \d+ of a buffer of 256)");
}
__global__ void lockstep(int* data) {
  volatile int* v = data;
  data[threadIdx.x] = 1;                                          // fault
  if (threadIdx.x < 16) v[threadIdx.x] = data[threadIdx.x + 16];  // fault
}
TEST(GlobalRaces, WarpSynchronousCodeQuotesTheRule) {
  EXPECT_FAULT(lockstep, "inside a warp: .*since compute capability 7.0 lanes need not", {1, 32});
}
__global__ void atomics_and_plain_loads(int* data) {
  if (threadIdx.x == 0)
    data[1] = data[0];  // fault
  else
    atomicAdd(data, 1);  // fault
}
TEST(GlobalRaces, AtomicsAndPlainLoads) {
  EXPECT_FAULT(atomics_and_plain_loads, "race (between warps|inside a warp): (atomic|read)");
}
__device__ int variable[64];
__global__ void no_barrier_on_a_variable(int* data) {
  variable[threadIdx.x] = 1;                       // fault
  data[threadIdx.x] = variable[63 - threadIdx.x];  // fault
}
TEST(GlobalRaces, OfADeviceVariable) {
  EXPECT_FAULT(no_barrier_on_a_variable, "race between warps: .* of variable");
}

// ---- legal

__global__ void barriers(int* out, int* data) {
  const int t = static_cast<int>(threadIdx.x);
  data[t] = t;
  __syncthreads();
  const int next = data[next_of(t)];
  __syncthreads();
  data[t] = next;
  if (t % 32 == 31) out[t] = -1;
  __syncwarp();
  if (t % 32 == 0) out[t] = data[t] + out[t + 31];
  __syncwarp();
  if (t % 32 != 0) out[t] = next;
}
TEST(GlobalOrders, Barriers) {
  const Ints expected = list_of(64, [](int t) { return t % 32 == 0 ? t : (t + 1) % 64; });
  expect_everywhere(expected, [](int* out) {
    const DeviceArray<int> data(64);
    return launch({1, 64}, barriers, out, data.data());
  });
}
// What is overwritten was read before the shuffle that passes it on.
__global__ void rotates(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = lane;
  __syncwarp();
  const int next = __shfl_sync(~0u, out[lane], (lane + 1) % 32);
  out[(lane + 5) % 32] = next;
}
TEST(GlobalOrders, Shuffles) {
  const Ints expected = list_of(32, [](int i) { return (i + 32 - 4) % 32; });
  expect_everywhere(expected, [](int* out) { return launch({1, 32}, rotates, out); });
}
__global__ void one_value(int* out) {
  out[threadIdx.x % 7] = 7;
  atomicAdd(out + 7, 1);
  __syncthreads();
  if (threadIdx.x == 40) out[7] = out[7] * 2;
}
TEST(GlobalOrders, OneValueAndAtomics) {
  expect_everywhere({7, 7, 7, 7, 7, 7, 7, 128},
                    [](int* out) { return launch({1, 64}, one_value, out); });
}
// A flag between warps, with fences of a block's scope or with a release and an acquire of it.
template <bool fences>
__global__ void flag_between_warps(int* out, unsigned* flag) {
  using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
  if (threadIdx.x == 0) {
    out[1] = 7;
    if (fences) {
      __threadfence_block();
      atomicExch_block(flag, 1u);
    } else {
      Flag(*flag).store(1, cuda::memory_order_release);
    }
  }
  if (threadIdx.x != 32) return;
  if (fences) {
    while (atomicAdd_block(flag, 0u) == 0) {
    }
    __threadfence_block();
  } else {
    while (Flag(*flag).load(cuda::memory_order_acquire) == 0) {
    }
  }
  out[0] = out[1];
}
TEST(GlobalOrders, FlagsOfABlocksScope) {
  for (const auto kernel : {flag_between_warps<true>, flag_between_warps<false>})
    expect_results_everywhere({7, 7}, [&](int* out) {
      const DeviceArray<unsigned> flag(1);
      return launch({1, 64}, kernel, out, flag.data());
    });
}

// ---- flags that are no memory of the device

__global__ void flag_out_of_bounds(int* data) {
  using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
  if (threadIdx.x == 0) Flag(data[kInts]).store(1, cuda::memory_order_release);  // fault
}
TEST(GlobalRaces, FlagOutOfBounds) {
  EXPECT_FAULT(flag_out_of_bounds, "out-of-bounds global store: byte 256 of a buffer of 256");
}

}  // namespace
}  // namespace emulator
