// SPDX-License-Identifier: MIT
//
// The runtime API's answers, which are those of the CUDA runtime on an H200, but for two: grids and
// blocks out of range get the code that is documented (CUDA 13 has cudaErrorInvalidValue for them),
// and the process survives its kernels' faults.
#include <cstring>

#include "support.hpp"

namespace emulator {
namespace {

__global__ void nothing(int* data) {
  if (data) *data = 1;
}
__global__ void trouble(int*) { __shfl_sync(1u << (threadIdx.x + 1) % 32, 0, 0); }

constexpr int* kNull = nullptr;

class RuntimeApi : public ::testing::Test {
 protected:
  ~RuntimeApi() override { cudaGetLastError(); }
};

TEST_F(RuntimeApi, RefusesLaunches) {
  const auto answer = [](dim3 grid, dim3 block, std::size_t shared = 0) {
    const cudaError_t error = launch({grid, block, shared}, nothing, kNull);
    EXPECT_EQ(cudaGetLastError(), error);
    return error;
  };
  EXPECT_EQ(answer(1, 32), cudaSuccess);
  EXPECT_EQ(answer(1, 1024), cudaSuccess);
  EXPECT_EQ(answer(1, {1, 1, 64}), cudaSuccess);
  EXPECT_EQ(answer(0, 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer({1, 0}, 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(1, {32, 33}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(1, {1, 1, 65}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer({1, 65536}, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer({1, 1, 65536}, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(0x80000000u, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(answer(1, 32, 48 * 1024), cudaSuccess);
  EXPECT_EQ(answer(1, 32, 48 * 1024 + 1), cudaErrorInvalidValue);
}

TEST_F(RuntimeApi, LimitsDynamicSharedMemory) {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 227 * 1024), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 227 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, -1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 64 * 1024), cudaSuccess);
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, trouble), cudaSuccess);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 64 * 1024);
  EXPECT_EQ(launch({1, 32, 64 * 1024 + 1}, trouble, kNull), cudaErrorInvalidValue);
  // Smaller GPUs have less.
  const Settings settings({.gpu = find_gpu("t4")});
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 64 * 1024), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 64 * 1024 + 1), cudaErrorInvalidValue);
}

__global__ void forty_kilobytes(int* data) {
  __shared__ int s[10 * 1024];
  s[threadIdx.x] = 1;
  __syncthreads();
  if (data) *data = s[31 - threadIdx.x];
}
TEST_F(RuntimeApi, CountsStaticSharedMemoryToo) {
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, forty_kilobytes), cudaSuccess);
  EXPECT_EQ(attributes.sharedSizeBytes, 40u * 1024);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 8 * 1024);
  EXPECT_EQ(launch({1, 32, 8 * 1024}, forty_kilobytes, kNull), cudaSuccess);
  EXPECT_EQ(launch({1, 32, 8 * 1024 + 1}, forty_kilobytes, kNull), cudaErrorInvalidValue);
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(forty_kilobytes, kAttribute, 187 * 1024 + 1),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(forty_kilobytes, kAttribute, 20000), cudaSuccess);
  EXPECT_EQ(launch({1, 32, 20000}, forty_kilobytes, kNull), cudaSuccess);
  // Four of them and what the runtime takes fit an SM of 228 KiB, with 8 KiB more each.
  int blocks = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, forty_kilobytes, 32, 8 * 1024),
            cudaSuccess);
  EXPECT_EQ(blocks, 4);
}

__global__ void fifty_kilobytes(int* data) {
  __shared__ int s[12 * 1024 + 256];
  s[threadIdx.x] = 1;
  if (data) *data = s[threadIdx.x];
}
TEST_F(RuntimeApi, RefusesMoreStaticSharedMemoryThanNvcc) {
  EXPECT_EQ(launch({1, 32}, fifty_kilobytes, kNull), cudaErrorLaunchOutOfResources);
}

__global__ void small_cluster(int*) {}
TEST_F(RuntimeApi, LimitsClusters) {
  const auto answer = [](unsigned cluster, unsigned grid) {
    return launch_clusters(cluster, {grid, 32}, small_cluster, kNull);
  };
  EXPECT_EQ(answer(8, 16), cudaSuccess);
  EXPECT_EQ(answer(3, 4), cudaErrorInvalidClusterSize);  // does not divide the grid
  EXPECT_EQ(answer(16, 16), cudaErrorInvalidClusterSize);
  EXPECT_EQ(cudaFuncSetAttribute(small_cluster, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
            cudaSuccess);
  EXPECT_EQ(answer(16, 16), cudaSuccess);
  EXPECT_EQ(answer(9, 9), cudaSuccess);
  EXPECT_EQ(answer(17, 17), cudaErrorInvalidClusterSize);
  const Settings settings({.gpu = find_gpu("a100")});
  EXPECT_EQ(answer(2, 2), cudaErrorNoKernelImageForDevice);  // compiled for Hopper
}

TEST_F(RuntimeApi, KeepsCopiesInsideBuffers) {
  const DeviceArray<int> data(16);
  std::vector<int> host(64);
  const auto to_device = cudaMemcpyHostToDevice, to_host = cudaMemcpyDeviceToHost;
  EXPECT_EQ(cudaMemcpy(host.data(), data, 64, to_host), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host.data(), data, 65, to_host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(data + 1, host.data(), 64, to_device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(data, nullptr, 4, to_device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), data + 15, 5, to_host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(data, 1, 64), cudaSuccess);
  EXPECT_EQ(cudaMemset(data, 1, 65), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 1, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 1, 4), cudaErrorInvalidValue);
  EXPECT_EQ(data.values(), std::vector<int>(16, 0x01010101));
  EXPECT_EQ(host[0], 0);
}

TEST_F(RuntimeApi, GivesAndTakesMemory) {
  std::size_t before = 0, total = 0, after = 0;
  EXPECT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  EXPECT_EQ(total, options().gpu->memory_bytes);
  char *data = nullptr, *more = nullptr;
  // As much as there is: pages come when they are touched.
  ASSERT_EQ(cudaMalloc(&data, before - 4096), cudaSuccess);
  EXPECT_EQ(cudaMemset(data + before - 4097, 1, 1), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 8192), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, 4096u);
  EXPECT_EQ(cudaFree(data + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&data, std::size_t{1} << 62), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&data, 0), cudaSuccess);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before);
  const Settings settings({.gpu = find_gpu("t4")});
  EXPECT_EQ(cudaMalloc(&data, std::size_t{20} << 30), cudaErrorMemoryAllocation);
}

TEST_F(RuntimeApi, RemembersTheLastError) {
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(5), cudaErrorInvalidDevice);
  EXPECT_EQ(launch({1, 32}, nothing, kNull), cudaSuccess);  // what works forgets nothing
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  int on_the_host = 0;
  EXPECT_EQ(cudaFree(&on_the_host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST_F(RuntimeApi, DescribesTheModelledDevice) {
  int count = 0, value = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "NVIDIA H200");
  EXPECT_EQ(properties.major * 10 + properties.minor, 90);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 227u * 1024);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, 132);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0),
            cudaErrorInvalidValue);
  const Settings settings({.gpu = find_gpu("t4")});
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Tesla T4");
}

}  // namespace
}  // namespace emulator
