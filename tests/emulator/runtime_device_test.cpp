// SPDX-License-Identifier: MIT
//
// The device, and errors. The runtime API's answers are those of the CUDA runtime on an H200.
#include <cuda_profiler_api.h>
#include <math_functions.h>

#include "support.hpp"

namespace emulator {
namespace {

__global__ void nothing() {}

TEST(RuntimeApi, RemembersTheLastError) {
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(5), cudaErrorInvalidDevice);
  EXPECT_EQ(launch({1, 32}, nothing), cudaSuccess);  // what works forgets nothing
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

TEST(RuntimeApi, DescribesTheModelledDevice) {
  int count = 0, value = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "NVIDIA H200");
  EXPECT_EQ(properties.major * 10 + properties.minor, 90);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 227u * 1024);
  EXPECT_EQ(properties.maxGridSize[1], 65535);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.clockRate, 1980000);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, 132);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0),
            cudaErrorInvalidValue);
  const Settings settings({.gpu = find_gpu("t4")});
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Tesla T4");
}

TEST(RuntimeApi, TakesWhatHasNoEffect) {
  EXPECT_EQ(cudaSetDeviceFlags(cudaDeviceMapHost | cudaDeviceScheduleSpin), cudaSuccess);
  EXPECT_EQ(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1), cudaSuccess);
  EXPECT_EQ(cudaFuncSetCacheConfig(nothing, cudaFuncCachePreferShared), cudaSuccess);
  EXPECT_EQ(cudaProfilerStart(), cudaSuccess);
  const cudaError error = cudaProfilerStop();  // the type's older name
  EXPECT_EQ(error, cudaSuccess);
}

TEST(RuntimeApi, TellsAttributes) {
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  cudaDeviceProp properties;
  for (const char* name : {"h200", "t4"}) {
    const Settings settings({.gpu = find_gpu(name)});
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), properties.major);
    EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMinor), properties.minor);
    EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), properties.multiProcessorCount);
    EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerMultiProcessor),
              properties.maxThreadsPerMultiProcessor);
    EXPECT_EQ(attribute(cudaDevAttrMaxBlocksPerMultiprocessor),
              properties.maxBlocksPerMultiProcessor);
    EXPECT_EQ(attribute(cudaDevAttrMaxRegistersPerMultiprocessor),
              properties.regsPerMultiprocessor);
    EXPECT_EQ(static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)),
              properties.sharedMemPerMultiprocessor);
    EXPECT_EQ(static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
              properties.sharedMemPerBlockOptin);
    EXPECT_EQ(attribute(cudaDevAttrL2CacheSize), properties.l2CacheSize);
  }
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerBlock), 1024);
  EXPECT_EQ(attribute(cudaDevAttrMaxBlockDimZ), 64);
  EXPECT_EQ(attribute(cudaDevAttrMaxGridDimX), 0x7FFFFFFF);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlock), 48 * 1024);
  EXPECT_EQ(attribute(cudaDevAttrWarpSize), 32);
  EXPECT_EQ(attribute(cudaDevAttrCooperativeLaunch), 1);
  EXPECT_EQ(cudaDevAttrMaxBlocksPerMultiprocessor, 106);
}

}  // namespace
}  // namespace emulator
