// SPDX-License-Identifier: MIT
//
// Lanes that part must meet again where the branch ends, however long that takes.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "emulator/report.hpp"

namespace {

using emulator::Operation;
using emulator::Recording;
using emulator::Report;
using emulator::Space;

// A buffer of 64 Ki floats, zero, which the host may touch.
float* data() {
  static float* const buffer = [] {
    float* memory = nullptr;
    cudaMallocManaged(&memory, sizeof(float) << 16);
    return memory;
  }();
  return buffer;
}

Report run(void (*kernel)(float*, int), int n, unsigned threads = 32) {
  const Recording recording;
  EXPECT_EQ(emulator::launch({.grid = 1, .block = threads}, kernel, data(), n), cudaSuccess)
      << emulator::last_fault();
  return recording.report();
}

void expect_whole_warps(const emulator::Traffic& traffic, std::uint64_t requests) {
  EXPECT_EQ(traffic.requests, requests);
  EXPECT_EQ(traffic.lanes, 32 * requests);
}

__global__ void branches_in_a_loop(float* data, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    if ((i + threadIdx.x) & 1)
      sum += data[i % 64 + 1];
    else
      sum *= data[i % 64 + 2];
    sum += data[i % 64 + threadIdx.x + 1024];  // all lanes again
  }
  data[threadIdx.x] = sum;
}
TEST(Reconvergence, InALoopThatOutlastsALog) {
  for (const int n : {100, 1000, 20000}) {
    SCOPED_TRACE(n);
    const Report report = run(branches_in_a_loop, n);
    const auto loads = report.total(Space::global, Operation::load);
    EXPECT_EQ(loads.requests, 3u * n);
    EXPECT_EQ(loads.lanes, 64u * n);
    expect_whole_warps(report.total(Space::global, Operation::store), 1);
  }
}

__global__ void shuffles_in_a_branch(float* data, int) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x < 16) value += __shfl_xor_sync(0xFFFFu, value, 1);
  data[threadIdx.x] = value;
}
__global__ void shuffles_in_both(float* data, int) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x < 16)
    value += __shfl_xor_sync(0xFFFFu, value, 1);
  else
    value += __shfl_xor_sync(0xFFFF0000u, value, 2);
  data[threadIdx.x] = value;
}
TEST(Reconvergence, AfterAWarpFunctionInABranch) {
  expect_whole_warps(run(shuffles_in_a_branch, 0).total(Space::global, Operation::store), 1);
  expect_whole_warps(run(shuffles_in_both, 0).total(Space::global, Operation::store), 1);
}

// One warp asks again and again, another one answers.
__global__ void waits_by_vote(float* data, int) {
  volatile float* flag = data + 2048;
  if (threadIdx.x < 32) {
    while (!__any_sync(~0u, *flag != 0)) {
    }
  } else {
    *flag = 1;
  }
}
TEST(Progress, IsMadeByWarpsThatVoteForIt) {
  data()[2048] = 0;
  run(waits_by_vote, 0, 64);
  EXPECT_EQ(data()[2048], 1);
}

__global__ void shuffles_of_odd_widths(float* data, int width) {
  data[threadIdx.x] = __shfl_sync(~0u, 1.0f, 40, width);
}
TEST(WarpFunctions, WantAWidthThatIsAPowerOfTwo) {
  for (const int width : {0, -1, 3, 64}) {
    EXPECT_EQ(emulator::launch({.grid = 1, .block = 32}, shuffles_of_odd_widths, data(), width),
              cudaErrorLaunchFailure);
    EXPECT_NE(emulator::last_fault().find("width"), std::string::npos);
    emulator::clear_fault();
  }
  cudaGetLastError();
}

}  // namespace
