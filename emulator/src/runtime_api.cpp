// SPDX-License-Identifier: MIT
#include <chrono>
#include <climits>
#include <map>

#include "block.hpp"

namespace emulator {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<bool> stuck = false;

// What cudaFuncSetAttribute has allowed a kernel.
struct Allowed {
  std::size_t dynamic_bytes;
  bool large_clusters = false;
};
std::mutex state_mutex;
// By cudaGetSymbolAddress. Inside, since objects of the program may launch before main.
auto& device_variables() {
  static std::map<std::uintptr_t, std::uintptr_t> ends;  // by start
  return ends;
}

const Gpu& gpu() { return *options().gpu; }

KernelResources resources_of(const void* kernel) {
  const std::string symbol = Symbols::get().function(kernel);
  const auto known = resources(symbol, gpu().compute_capability);
  return known ? *known : KernelResources{.static_shared_bytes = static_shared_bytes(symbol)};
}

// Unless it is asked for more, a block gets 48 KiB in all. Call with state_mutex held.
constexpr std::size_t kUnasked = 48 * 1024;
Allowed& allowed(const void* kernel) {
  static std::map<const void*, Allowed> kernels;
  const std::size_t taken = std::min(kUnasked, resources_of(kernel).static_shared_bytes);
  return kernels.try_emplace(kernel, Allowed{kUnasked - taken}).first->second;
}

int blocks_per_sm(const void* kernel, std::uint64_t threads, std::size_t dynamic_bytes) {
  if (threads > 1024) return 0;
  const KernelResources needs = resources_of(kernel);
  return occupancy_limits(gpu(), static_cast<int>(threads), needs.registers,
                          needs.static_shared_bytes + dynamic_bytes)
      .blocks_per_sm();
}

std::uint64_t product(uint3 v) { return std::uint64_t{v.x} * v.y * v.z; }

Buffer* buffer_of(const void* data) { return GlobalMemory::get().find(address_of(data)); }

// Copies between a buffer and anything else stay inside the buffer.
bool inside(const void* data, std::size_t bytes) {
  const Buffer* buffer = buffer_of(data);
  return data && (!buffer || buffer->holds(address_of(data), bytes));
}

void note_written(void* data, std::size_t bytes) {
  if (Buffer* buffer = buffer_of(data)) buffer->note_written(address_of(data), bytes);
}

bool on_device(const void* data) { return buffer_of(data) || in_image(address_of(data)); }

}  // namespace

void* device_address(void* variable, std::size_t bytes) {
  const std::lock_guard lock(state_mutex);
  device_variables()[address_of(variable)] = address_of(variable) + bytes;
  return variable;
}
bool is_device_address(std::uintptr_t address) {
  const std::lock_guard lock(state_mutex);
  const std::uintptr_t* end = last_before(device_variables(), address);
  return end && address <= *end;
}

void stick() { stuck = true; }
void clear_fault() { stuck = false; }

cudaError_t remember(cudaError_t error) {
  if (stuck) error = cudaErrorLaunchFailure;
  if (error != cudaSuccess) last_error = error;
  return error;
}

uint3 cluster_of(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension)
      return config.attrs[i].val.clusterDim;
  return {1, 1, 1};
}

bool is_cooperative(const cudaLaunchConfig_t& config) {
  return std::any_of(config.attrs, config.attrs + config.numAttrs, [](const auto& attribute) {
    return attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative != 0;
  });
}

cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const uint3 cluster = cluster_of(config);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT_MAX || grid.y > 65535 ||
      grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  const std::uint64_t threads = product(block);
  if (threads == 0 || threads > 1024 || block.z > 64) return cudaErrorInvalidConfiguration;
  const Allowed may = [&] {
    const std::lock_guard lock(state_mutex);
    return allowed(kernel);
  }();
  if (threads > launch_bound(kernel)) return cudaErrorInvalidValue;
  if (config.dynamicSmemBytes > may.dynamic_bytes) return cudaErrorInvalidValue;
  // nvcc would not have compiled it.
  if (resources_of(kernel).static_shared_bytes > kUnasked) return cudaErrorLaunchOutOfResources;
  const int at_once = blocks_per_sm(kernel, threads, config.dynamicSmemBytes);
  if (at_once == 0) return cudaErrorLaunchOutOfResources;
  if (is_cooperative(config)) {
    if (cluster.x > 1) return cudaErrorNotSupported;
    const auto room = static_cast<std::uint64_t>(at_once) * static_cast<unsigned>(gpu().sms);
    if (product(grid) > room) return cudaErrorCooperativeLaunchTooLarge;
  }
  if (cluster.y > 1 || cluster.z > 1) return cudaErrorNotSupported;  // they lie along x here
  if (cluster.x <= 1) return cudaSuccess;
  if (static_cast<int>(cluster.x) > gpu().blocks_per_cluster || grid.x % cluster.x != 0)
    return cudaErrorInvalidClusterSize;
  return cluster.x > 8 && !may.large_clusters ? cudaErrorInvalidClusterSize : cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

#define CASE(NAME, NUMBER, TEXT) \
  if (error == cuda##NAME) return std::pair("cuda" #NAME, TEXT);
static std::pair<const char*, const char*> known(cudaError_t error) {
  EMULATOR_ERRORS(CASE)
  return {"unknown error", "unknown error"};
}
const char* cudaGetErrorName(cudaError_t error) { return known(error).first; }
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string fault;
  if (error == cudaErrorLaunchFailure) return (fault = last_fault()).c_str();
  return known(error).second;
}

cudaError_t cudaPeekAtLastError() { return remember(last_error); }
cudaError_t cudaGetLastError() {
  remember(cudaSuccess);
  return std::exchange(last_error, stuck ? last_error : cudaSuccess);
}

// ---- the device

cudaError_t cudaSetDevice(int device) {
  return remember(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  *properties = {};
  gpu().product.copy(properties->name, sizeof(properties->name) - 1);
#define PROPERTY(T, NAME, VALUE) properties->NAME = static_cast<T>(VALUE);
  EMULATOR_DEVICE_PROPERTIES(PROPERTY)
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  switch (attribute) {
#define ATTRIBUTE(NAME, NUMBER, VALUE) \
  case cudaDevAttr##NAME:              \
    return *value = static_cast<int>(VALUE), cudaSuccess;
    EMULATOR_DEVICE_ATTRIBUTES(ATTRIBUTE)
  }
  return remember(cudaErrorInvalidValue);
}
// Of kernels; what the runtime refused before they ran is no matter of theirs.
cudaError_t cudaDeviceSynchronize() { return remember(cudaSuccess); }
cudaError_t cudaDeviceReset() {
  GlobalMemory::get().free_all();
  last_error = cudaSuccess;
  clear_fault();
  return cudaSuccess;
}

// ---- memory

cudaError_t emulator::allocate(void* pointer, size_t bytes, bool on_host) {
  void*& data = *static_cast<void**>(pointer) = nullptr;
  if (bytes == 0 || stuck) return remember(cudaSuccess);
  data = GlobalMemory::get().allocate(bytes, on_host);
  return remember(data ? cudaSuccess : cudaErrorMemoryAllocation);
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
  const bool both = kind == cudaMemcpyDeviceToDevice;
  if (((both || kind == cudaMemcpyHostToDevice) && !on_device(to)) ||
      ((both || kind == cudaMemcpyDeviceToHost) && !on_device(from)))
    return remember(cudaErrorInvalidValue);
  const GlobalMemory::Open open;
  std::memmove(to, from, bytes);
  note_written(to, bytes);
  return remember(cudaSuccess);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!inside(data, bytes) || !on_device(data)) return remember(cudaErrorInvalidValue);
  const GlobalMemory::Open open;
  std::memset(data, value, bytes);
  note_written(data, bytes);
  return remember(cudaSuccess);
}
// From the last row back: if one is out of bounds, the last is, and nothing has been done.
static cudaError_t each_row(size_t height, auto work) {
  cudaError_t error = cudaSuccess;
  while (height-- > 0 && error == cudaSuccess) error = work(height);
  return error;
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return remember(cudaErrorInvalidPitchValue);
  return each_row(height, [&](size_t row) {
    return cudaMemcpy(static_cast<char*>(to) + row * to_pitch,
                      static_cast<const char*>(from) + row * from_pitch, width, kind);
  });
}
cudaError_t cudaMemset2D(void* data, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return remember(cudaErrorInvalidValue);
  return each_row(height, [&](size_t row) {
    return cudaMemset(static_cast<char*>(data) + row * pitch, value, width);
  });
}

// ---- events

// On the clock of the host, in milliseconds; not a number before it is recorded, or without timing.
struct CUevent_st {
  bool timed;
  double at = NAN;
};
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0}, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  const std::chrono::duration<double, std::milli> now =
      std::chrono::steady_clock::now().time_since_epoch();
  if (event->timed) event->at = now.count();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const double elapsed = start && end ? end->at - start->at : NAN;
  if (std::isnan(elapsed)) return remember(cudaErrorInvalidResourceHandle);
  return *milliseconds = static_cast<float>(elapsed), cudaSuccess;
}

// ---- kernels

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel kernel) {
  register_kernel(Symbols::get().function(kernel));
  const KernelResources needs = resources_of(kernel);
  const std::lock_guard lock(state_mutex);
  *attributes = {.sharedSizeBytes = needs.static_shared_bytes,
                 .constSizeBytes = 0,
                 .localSizeBytes = needs.local_bytes,
                 .maxThreadsPerBlock = static_cast<int>(launch_bound(kernel)),
                 .numRegs = needs.registers,
                 .maxDynamicSharedSizeBytes = static_cast<int>(allowed(kernel).dynamic_bytes)};
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(state_mutex);
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
cudaError_t cudaFuncGetName(const char** name, Kernel kernel) {
  static thread_local std::string symbol;
  symbol = Symbols::get().function(kernel);
  *name = symbol.c_str();
  return symbol.empty() ? remember(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel kernel, int threads,
                                                          size_t dynamic_bytes) {
  if (threads <= 0) return remember(cudaErrorInvalidValue);
  *blocks = blocks_per_sm(kernel, static_cast<unsigned>(threads), dynamic_bytes);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel kernel,
                                               size_t dynamic_bytes, int limit) {
  int most = 0;
  for (int threads = limit > 0 ? std::min(limit, 1024) : 1024; threads > 0;
       threads = (threads - 1) / 32 * 32) {
    const int blocks = blocks_per_sm(kernel, static_cast<unsigned>(threads), dynamic_bytes);
    if (blocks * threads > most) most = blocks * (*block = threads), *grid = blocks * gpu().sms;
  }
  return remember(most > 0 ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel kernel,
                                           const cudaLaunchConfig_t* config) {
  const int size = static_cast<int>(product(cluster_of(*config)));
  if (size > gpu().blocks_per_cluster) return remember(cudaErrorInvalidConfiguration);
  const int per_sm = blocks_per_sm(kernel, product(config->blockDim), config->dynamicSmemBytes);
  *clusters = resident_clusters(gpu(), per_sm, size);
  return cudaSuccess;
}
