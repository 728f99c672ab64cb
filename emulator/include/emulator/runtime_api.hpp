// SPDX-License-Identifier: MIT
//
// The part of the CUDA runtime API that programs of plain kernels use, with the modelled GPU
// (emulator::options().gpu) as the only device. Launches are done when the call returns, streams
// therefore in order. What is not declared here is not emulated: events and graphs above all, since
// the time that emulation takes says nothing about a GPU's.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/language.hpp"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorInvalidClusterSize = 912
};
/// After a fault of a kernel every call returns cudaErrorLaunchFailure, as on a GPU, until
/// cudaDeviceReset or emulator::forgive.
const char* cudaGetErrorName(cudaError_t error);
/// For cudaErrorLaunchFailure the whole of emulator::last_fault().
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- the device

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  size_t reservedSharedMemPerBlock;
  int regsPerBlock, regsPerMultiprocessor, warpSize;
  int major, minor, multiProcessorCount, l2CacheSize;
  int maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor;
};
enum cudaDeviceAttr {
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

// ---- memory

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
typedef struct CUstream_st* cudaStream_t;

cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaMallocManaged(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* data, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream = nullptr);
template <class T>
cudaError_t cudaMalloc(T** data, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(data), bytes);
}
template <class T>
cudaError_t cudaMallocManaged(T** data, size_t bytes) {
  return cudaMallocManaged(reinterpret_cast<void**>(data), bytes);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0) {
  return cudaMemcpy(reinterpret_cast<char*>(&symbol) + offset, from, bytes, cudaMemcpyHostToHost);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

// ---- kernels

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, maxDynamicSharedSizeBytes;
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
union cudaLaunchAttributeValue {
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
/// Registers, shared and local memory are those of the table made from the device compiler's
/// report; 0 for kernels that are not in it.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetName(const char** name, const void* kernel);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, size_t dynamic_bytes);
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config);
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(P...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(P...),
                                                          int threads, size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), threads, dynamic_bytes);
}

namespace emulator {

/// A kernel with its arguments: `thread(data)` runs one thread, whose reads of the `bytes` there
/// are no accesses of global memory. The kernel's address names it.
struct BoundKernel {
  const void* kernel;
  void (*thread)(void*);
  void* data;
  size_t bytes;
  std::vector<const void*> pointers;  ///< among the arguments
  int arch;                           ///< __CUDA_ARCH__ of the kernel's source, 0: none
};
cudaError_t run(const cudaLaunchConfig_t& config, const BoundKernel& kernel);

// Each thread gets a copy of the arguments of its own, as on the device. Not instrumented: reads of
// plain arguments need no look at where they are.
template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<std::decay_t<P>...> arguments;

  __attribute__((no_sanitize("thread"))) static void thread(void* self) {
    unpack(static_cast<Call*>(self), std::index_sequence_for<P...>{});
  }
  template <size_t... I>
  __attribute__((no_sanitize("thread"))) static void unpack(Call* call, std::index_sequence<I...>) {
    call->kernel(std::get<I>(call->arguments)...);
  }
  cudaError_t run(const cudaLaunchConfig_t& config) {
    std::vector<const void*> pointers;
    std::apply([&](const auto&... each) { (note(pointers, each), ...); }, arguments);
    return emulator::run(config, {reinterpret_cast<const void*>(kernel), thread, this,
                                  sizeof(*this), std::move(pointers), CUDA_EMULATOR_ARCH});
  }
  template <class T>
  static void note(std::vector<const void*>& pointers, const T& argument) {
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
      pointers.push_back(const_cast<const void*>(static_cast<const volatile void*>(argument)));
  }
};

/// kernel<<<grid, block, shared_bytes>>>(arguments...)
struct Shape {
  dim3 grid, block;
  size_t shared_bytes = 0;
};
template <class... P, class... A>
cudaError_t launch(const Shape& shape, void (*kernel)(P...), A&&... arguments) {
  cudaLaunchConfig_t config;
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  return Call<P...>{kernel, {std::forward<A>(arguments)...}}.run(config);
}

}  // namespace emulator

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  return emulator::Call<P...>{kernel, {std::forward<A>(arguments)...}}.run(*config);
}
