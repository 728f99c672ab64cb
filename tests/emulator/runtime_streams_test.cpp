// SPDX-License-Identifier: MIT
//
// Streams and events. The runtime API's answers are those of the CUDA runtime on an H200.
#include <driver_types.h>

#include <chrono>
#include <thread>

#include "support.hpp"

namespace emulator {
namespace {

TEST(RuntimeApi, EventsHaveTheHostsTime) {
  cudaEvent_t start, end, untimed;
  EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&end, cudaEventBlockingSync), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventRecord(start), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  const auto before = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto after = std::chrono::steady_clock::now();
  EXPECT_EQ(cudaEventRecord(end, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(untimed), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  const std::chrono::duration<float, std::milli> slept = after - before;
  EXPECT_GE(milliseconds, slept.count() - 0.01f);
  EXPECT_LT(milliseconds, 20000);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, end, start), cudaSuccess);
  EXPECT_LT(milliseconds, 0);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidResourceHandle), "cudaErrorInvalidResourceHandle");
  for (const cudaEvent_t event : {start, end, untimed})
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(RuntimeApi, StreamsTakeEvents) {
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  cudaEvent_t event;
  EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  while (cudaStreamQuery(stream) == cudaErrorNotReady || cudaEventQuery(event) == cudaErrorNotReady)
    FAIL() << cudaGetErrorString(cudaErrorNotReady);  // launches are done when the call returns
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

__global__ void store(int* to, const int* from, int more) { to[threadIdx.x] = *from + more; }
void CUDART_CB add_to_order(cudaStream_t, cudaError_t status, void* data) {
  static_cast<std::vector<int>*>(data)->push_back(status);
}
TEST(RuntimeApi, StreamsAreInOrder) {
  int least = -1, greatest = -1;
  EXPECT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), cudaSuccess);
  int *data = nullptr, *there = nullptr;
  ASSERT_EQ(cudaHostAlloc(&data, 8, cudaHostAllocMapped | cudaHostAllocWriteCombined), cudaSuccess);
  ASSERT_EQ(cudaHostGetDevicePointer(&there, data, 0), cudaSuccess);
  data[0] = 1;
  const int bytes = 64;  // no size_t, as in much code
  EXPECT_EQ(launch({1, 1, bytes, stream}, store, there + 1, there, 2), cudaSuccess);
  std::vector<int> order;
  EXPECT_EQ(cudaStreamAddCallback(stream, add_to_order, &order, 0), cudaSuccess);
  const cudaHostFn_t last = [](void* o) { static_cast<std::vector<int>*>(o)->push_back(7); };
  EXPECT_EQ(cudaLaunchHostFunc(stream, last, &order), cudaSuccess);
  EXPECT_EQ(order, (std::vector<int>{cudaSuccess, 7}));
  EXPECT_EQ(cudaThreadSynchronize(), cudaSuccess);
  EXPECT_EQ(data[1], 3);
  int more = 4;
  void* arguments[] = {&there, &there, &more};
  EXPECT_EQ(cudaLaunchKernel(store, dim3(1), dim3(1), arguments, 0, stream), cudaSuccess);
  EXPECT_EQ(data[0], 5);
  EXPECT_EQ(cudaFreeHost(data), cudaSuccess);
}

}  // namespace
}  // namespace emulator
