// SPDX-License-Identifier: MIT
#include "emulator/runtime_api.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "emulator/report.hpp"
#include "global_memory.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<bool> stuck = false;

// What cudaFuncSetAttribute has allowed a kernel.
struct Allowed {
  std::size_t dynamic_bytes;
  bool large_clusters = false;
};
std::mutex mutex;
std::map<const void*, Allowed>& allowed() {
  static std::map<const void*, Allowed> kernels;
  return kernels;
}

const Gpu& gpu() { return *options().gpu; }

KernelResources resources_of(const void* kernel) {
  const std::string symbol = Symbols::get().function(kernel);
  const auto known = resources(symbol, gpu().compute_capability);
  return known ? *known : KernelResources{.static_shared_bytes = static_shared_bytes(symbol)};
}

// Unless it is asked for more, a block gets 48 KiB in all. Call with the mutex held.
constexpr std::size_t kMost = 48 * 1024;
Allowed& allowed(const void* kernel) {
  const std::size_t taken = std::min(kMost, resources_of(kernel).static_shared_bytes);
  return allowed().try_emplace(kernel, Allowed{kMost - taken}).first->second;
}

OccupancyLimits limits(const void* kernel, int threads, std::size_t dynamic_bytes) {
  const KernelResources needs = resources_of(kernel);
  return occupancy_limits(gpu(), threads, needs.registers,
                          needs.static_shared_bytes + dynamic_bytes);
}

const Buffer* buffer_of(const void* data) {
  return GlobalMemory::get().find(reinterpret_cast<std::uintptr_t>(data));
}

// Copies between a buffer and anything else stay inside the buffer.
bool inside(const void* data, std::size_t bytes) {
  const Buffer* buffer = buffer_of(data);
  return data && (!buffer || buffer->holds(reinterpret_cast<std::uintptr_t>(data), bytes));
}

void note_written(void* data, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (Buffer* buffer = GlobalMemory::get().find(address)) buffer->note_written(address, bytes);
}

bool on_device(const void* data) {
  return buffer_of(data) || in_image(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace

void stick() { stuck = true; }
void forgive() { stuck = false; }

cudaError_t remember(cudaError_t error) {
  if (stuck) error = cudaErrorLaunchFailure;
  if (error != cudaSuccess) last_error = error;
  return error;
}

unsigned cluster_blocks(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto& dim = config.attrs[i].val.clusterDim;
      return std::max(1u, dim.x * dim.y * dim.z);
    }
  return 1;
}

cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const unsigned cluster = cluster_blocks(config);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT_MAX || grid.y > 65535 ||
      grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64) return cudaErrorInvalidConfiguration;
  const Allowed may = [&] {
    const std::lock_guard lock(mutex);
    return allowed(kernel);
  }();
  if (config.dynamicSmemBytes > may.dynamic_bytes) return cudaErrorInvalidValue;
  // nvcc would not have compiled it.
  if (resources_of(kernel).static_shared_bytes > kMost) return cudaErrorLaunchOutOfResources;
  if (limits(kernel, static_cast<int>(threads), config.dynamicSmemBytes).blocks_per_sm() == 0)
    return cudaErrorLaunchOutOfResources;
  for (unsigned i = 0; i < config.numAttrs; ++i) {  // clusters lie along x here
    const auto& attribute = config.attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension &&
        (attribute.val.clusterDim.y > 1 || attribute.val.clusterDim.z > 1))
      return cudaErrorNotSupported;
  }
  if (cluster == 1) return cudaSuccess;
  if (static_cast<int>(cluster) > gpu().blocks_per_cluster || grid.x % cluster != 0)
    return cudaErrorInvalidClusterSize;
  return cluster > 8 && !may.large_clusters ? cudaErrorInvalidClusterSize : cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorLaunchOutOfResources:
      return "cudaErrorLaunchOutOfResources";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorInvalidClusterSize:
      return "cudaErrorInvalidClusterSize";
  }
  return "unknown error";
}

const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string fault;
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice:
      return "no kernel image is available for execution on the device";
    case cudaErrorLaunchOutOfResources:
      return "too many resources requested for launch";
    case cudaErrorLaunchFailure:
      fault = last_fault();
      return fault.c_str();
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorInvalidClusterSize:
      return "a kernel launch error has occurred due to cluster misconfiguration";
  }
  return "unknown error";
}

cudaError_t cudaPeekAtLastError() { return remember(last_error); }
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, stuck ? last_error : cudaSuccess);
}

// ---- the device

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return remember(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "%.*s",
                static_cast<int>(gpu().product.size()), gpu().product.data());
  properties->totalGlobalMem = gpu().memory_bytes;
  properties->sharedMemPerBlock = 48 * 1024;
  properties->sharedMemPerBlockOptin = gpu().shared_bytes_per_block;
  properties->sharedMemPerMultiprocessor = gpu().shared_bytes_per_sm;
  properties->reservedSharedMemPerBlock = gpu().reserved_shared_bytes_per_block;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = gpu().registers_per_sm;
  properties->warpSize = 32;
  properties->major = gpu().compute_capability / 10;
  properties->minor = gpu().compute_capability % 10;
  properties->multiProcessorCount = gpu().sms;
  properties->l2CacheSize = static_cast<int>(gpu().l2_bytes);
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = gpu().threads_per_sm;
  properties->maxBlocksPerMultiProcessor = gpu().blocks_per_sm;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrClockRate:
      *value = static_cast<int>(gpu().sm_clock_hz / 1e3);
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = gpu().sms;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = 0;
      break;
    default:
      return remember(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
// Of kernels; what the runtime refused before they ran is no matter of theirs.
cudaError_t cudaDeviceSynchronize() { return remember(cudaSuccess); }
cudaError_t cudaDeviceReset() {
  GlobalMemory::get().free_all();
  last_error = cudaSuccess;
  forgive();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = bytes == 0 ? nullptr : GlobalMemory::get().allocate(bytes);
  return remember(*data || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocManaged(void** data, size_t bytes) {
  *data = bytes == 0 ? nullptr : GlobalMemory::get().allocate(bytes, true);
  return remember(*data || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* data) {
  return remember(!data || GlobalMemory::get().free(data) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = gpu().memory_bytes;
  *free = *total - GlobalMemory::get().allocated();
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  if (!inside(to, bytes) || !inside(from, bytes)) return remember(cudaErrorInvalidValue);
  if (kind == cudaMemcpyHostToDevice && !on_device(to)) return remember(cudaErrorInvalidValue);
  if (kind == cudaMemcpyDeviceToHost && !on_device(from)) return remember(cudaErrorInvalidValue);
  if (kind == cudaMemcpyDeviceToDevice && !(on_device(to) && on_device(from)))
    return remember(cudaErrorInvalidValue);
  const GlobalMemory::Open open;
  std::memmove(to, from, bytes);
  note_written(to, bytes);
  return remember(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!inside(data, bytes) || !on_device(data)) return remember(cudaErrorInvalidValue);
  const GlobalMemory::Open open;
  std::memset(data, value, bytes);
  note_written(data, bytes);
  return remember(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(data, value, bytes);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }

// ---- kernels

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  register_kernel(Symbols::get().function(kernel));
  const KernelResources needs = resources_of(kernel);
  const std::lock_guard lock(mutex);
  *attributes = {.sharedSizeBytes = needs.static_shared_bytes,
                 .constSizeBytes = 0,
                 .localSizeBytes = needs.local_bytes,
                 .maxThreadsPerBlock = 1024,
                 .numRegs = needs.registers,
                 .maxDynamicSharedSizeBytes = static_cast<int>(allowed(kernel).dynamic_bytes)};
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(mutex);
  Allowed& may = allowed(kernel);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    const std::size_t most =
        gpu().shared_bytes_per_block - resources_of(kernel).static_shared_bytes;
    if (value < 0 || static_cast<std::size_t>(value) > most) return remember(cudaErrorInvalidValue);
    may.dynamic_bytes = static_cast<std::size_t>(value);
  } else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    if (gpu().blocks_per_cluster == 0) return remember(cudaErrorInvalidValue);
    may.large_clusters = value != 0;
  }
  return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  static thread_local std::string symbol;
  symbol = Symbols::get().function(kernel);
  *name = symbol.c_str();
  return symbol.empty() ? remember(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, size_t dynamic_bytes) {
  if (threads <= 0) return remember(cudaErrorInvalidValue);
  *blocks = limits(kernel, threads, dynamic_bytes).blocks_per_sm();
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config) {
  const int size = static_cast<int>(cluster_blocks(*config));
  if (size > gpu().blocks_per_cluster) return remember(cudaErrorInvalidConfiguration);
  const dim3 block = config->blockDim;
  const int per_sm =
      limits(kernel, static_cast<int>(block.x * block.y * block.z), config->dynamicSmemBytes)
          .blocks_per_sm();
  *clusters = resident_clusters(gpu(), per_sm, size);
  return cudaSuccess;
}
