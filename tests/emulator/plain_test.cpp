// SPDX-License-Identifier: MIT
//
// Without instrumentation kernels run and are right; faults of barriers and warp functions are
// still found, and what the processor traps.
#include <cuda_pipeline.h>

#include <sstream>

#include "support.hpp"

namespace emulator {
namespace {

TEST(Plain, CountsNothing) {
  EXPECT_FALSE(counted());
  std::ostringstream out;
  out << Report();
  EXPECT_EQ(out.str(), "nothing was counted: build with cuda_emulator_counted\n");
}

__global__ void reversed(int* out, const int* in) {
  __shared__ int s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
TEST(Plain, RunsKernels) {
  std::vector<int> in(2048);
  for (int i = 0; i < 2048; ++i) in[i] = i;
  const DeviceArray<int> device_in(in), out(2048);
  const Recording recording;
  for (const Order order : kOrders) {
    const Settings settings({.order = order, .check = true});
    ASSERT_EQ(launch({8, 256}, reversed, out, device_in), cudaSuccess) << last_fault();
    const std::vector<int> values = out.values();
    for (int i = 0; i < 2048; ++i) ASSERT_EQ(values[i], i / 256 * 256 + 255 - i % 256);
  }
  EXPECT_TRUE(recording.report().lines.empty());
}

__global__ void reversed_ahead(int* out, const int* in, int tiles, int prior) {
  __shared__ int s[2][256];
  const unsigned t = threadIdx.x;
  s[0][t] = s[1][t] = -1;
  __syncthreads();
  __pipeline_memcpy_async(&s[0][t], &in[t], 4);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    const bool more = i + 1 < tiles;
    __pipeline_memcpy_async(&s[(i + 1) % 2][t], &in[(i + 1) * 256 + t], 4, more ? 0 : 4);
    __pipeline_commit();
    __pipeline_wait_prior(prior);
    __syncthreads();
    out[i * 256 + t] = s[i % 2][255 - t];
    __syncthreads();
  }
  __pipeline_wait_prior(0);
  out[tiles * 256 + t] = s[tiles % 2][t];
}
TEST(Plain, CopiesArriveAtTheWait) {
  std::vector<int> in(1024);
  for (int i = 0; i < 1024; ++i) in[i] = i;
  const DeviceArray<int> device_in(in), out(1280);
  for (const Order order : kOrders) {
    const Settings settings({.order = order, .check = true});
    ASSERT_EQ(launch({1, 256}, reversed_ahead, out, device_in, 4, 1), cudaSuccess) << last_fault();
    std::vector<int> values = out.values();
    for (int i = 0; i < 1024; ++i) ASSERT_EQ(values[i], i / 256 * 256 + 255 - i % 256);
    for (int i = 1024; i < 1280; ++i) ASSERT_EQ(values[i], 0);
    // Waits for too little read what was there before.
    ASSERT_EQ(launch({1, 256}, reversed_ahead, out, device_in, 4, 2), cudaSuccess) << last_fault();
    values = out.values();
    for (int i = 0; i < 512; ++i) ASSERT_EQ(values[i], -1);
    for (int i = 512; i < 1024; ++i) ASSERT_EQ(values[i], (i / 256 - 2) * 256 + 255 - i % 256);
  }
}

template <class K>
std::string fault_of(K kernel) {
  const DeviceArray<int> data(64);
  EXPECT_EQ(launch({1, 64}, kernel, data.data()), cudaErrorLaunchFailure);
  clear_fault();
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  return last_fault();
}
#define EXPECT_FAULT(kernel, what)                                               \
  do {                                                                           \
    const std::string text = fault_of(kernel);                                   \
    EXPECT_EQ(text.find(what), 0u) << text;                                      \
    EXPECT_NE(text.find("kernel " #kernel), std::string::npos) << text;          \
    EXPECT_NE(text.find("plain_test.cpp:"), std::string::npos) << text;          \
    EXPECT_NE(text.find("block (0, 0, 0) thread ("), std::string::npos) << text; \
  } while (false)

__global__ void two_barriers(int* data) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  data[threadIdx.x] = 1;
}
// Equal functions, which the compiler could make one.
__device__ __attribute__((noinline)) void one_barrier() { __syncthreads(); }
__device__ __attribute__((noinline)) void another_barrier() { __syncthreads(); }
__global__ void barriers_of_equal_functions(int* data) {
  threadIdx.x < 32 ? one_barrier() : another_barrier();
  data[threadIdx.x] = 1;
}
TEST(Plain, FindsFaultsOfBarriersAndWarps) {
  EXPECT_FAULT(two_barriers, "divergent barrier");
  EXPECT_FAULT(barriers_of_equal_functions, "divergent barrier");
}

__global__ void shift_by_the_width(int* data) { data[0] = 1 << (threadIdx.x + 32); }
__global__ void cast_of_a_negative(int* data) { data[unsigned(-1.f - threadIdx.x) & 1] = 1; }
TEST(Plain, FindsUndefinedArithmetic) {
  EXPECT_FAULT(shift_by_the_width, "shift count is negative, or not less than the width");
  EXPECT_FAULT(cast_of_a_negative, "the floating-point value does not fit the integer type");
}

__global__ void copy_of_a_bad_size(int* data) {
  __shared__ int s[256];
  __pipeline_memcpy_async(&s[4 * threadIdx.x], data, 12);
}
__global__ void copy_to_global_memory(int* data) { __pipeline_memcpy_async(&data[1], &data[0], 4); }
__global__ void misaligned_copy(int* data) {
  __shared__ int4 s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &data[1], 16);
}
__global__ void copy_from_far_away(int* data) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], data + (1ull << 40), 4);
}
TEST(Plain, FindsFaultsOfCopies) {
  EXPECT_FAULT(copy_of_a_bad_size, "asynchronous copy of 12 bytes: only 4, 8 and 16");
  EXPECT_FAULT(copy_to_global_memory, "asynchronous copy of 4 bytes: its destination is not");
  EXPECT_FAULT(misaligned_copy, "asynchronous copy of 16 bytes: its source is misaligned");
  EXPECT_FAULT(copy_from_far_away, "out-of-bounds access: not device memory");
}

__global__ void far_out_of_bounds(int* data) { data[threadIdx.x + (1ull << 40)] = 1; }
__global__ void misaligned_store(int* data) {
  *reinterpret_cast<float4*>(data + threadIdx.x + 1) = float4(1, 2, 3, 4);
}
__global__ void misaligned_load(int* data) {
  *reinterpret_cast<float4*>(data) = *reinterpret_cast<float4*>(data + threadIdx.x + 1);
}
__global__ void division_by_zero(int* data) { data[threadIdx.x] = 100 / data[threadIdx.x + 1]; }

__device__ __attribute__((noinline)) int of_a_device_function() {
  __shared__ int s[64];
  return s[threadIdx.x];
}
__global__ void reads_what_nothing_wrote(int* out, const int* in) {
  __shared__ int s[64];
  const int* dynamic = static_cast<const int*>(dynamic_shared());
  const unsigned t = threadIdx.x;
  out[blockIdx.x * 64 + t] = in[t] & s[t] & dynamic[t] & of_a_device_function();
  __syncthreads();
  s[t] = static_cast<int*>(dynamic_shared())[t] = 0;  // for the next block
}
TEST(Plain, WhatNothingWroteShows) {
  const DeviceArray<int> out(256);
  int* in = nullptr;
  ASSERT_EQ(cudaMalloc(&in, 256), cudaSuccess);
  ASSERT_EQ(launch({4, 64, 256}, reads_what_nothing_wrote, out, in), cudaSuccess);
  EXPECT_EQ(out.values(), std::vector<int>(256, -1));
  cudaFree(in);
}
__device__ __attribute__((noinline)) int deep(int n) {
  volatile int local[1024];
  for (int i = 0; i < 1024; ++i) local[i] = n;
  return n == 0 ? 0 : deep(n - 1) + local[n];
}
__global__ void deep_recursion(int* data) { data[threadIdx.x] = deep(100); }
TEST(Plain, FindsWhatTheProcessorTraps) {
  EXPECT_FAULT(far_out_of_bounds, "out-of-bounds access: not device memory");
#ifdef __x86_64__  // others do not trap them
  EXPECT_FAULT(misaligned_store, "misaligned address");
  EXPECT_FAULT(misaligned_load, "misaligned address");
  EXPECT_FAULT(division_by_zero, "division of an integer by zero");
#endif
  EXPECT_FAULT(deep_recursion, "a thread needs more than 128 KiB of local memory");
  // Nothing is left behind.
  const DeviceArray<int> in(2048), out(2048);
  EXPECT_EQ(launch({8, 256}, reversed, out, in), cudaSuccess) << last_fault();
}

}  // namespace
}  // namespace emulator
