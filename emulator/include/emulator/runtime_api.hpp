// SPDX-License-Identifier: MIT
//
// The part of the CUDA runtime API that programs of plain kernels use, with the modelled GPU
// (emulator::options().gpu) as the only device. Launches are done when the call returns, streams
// therefore in order. What is not declared here is not emulated, and does not compile.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/language.hpp"

#define EMULATOR_ERRORS(ROW)                                                        \
  ROW(Success, 0, "no error")                                                       \
  ROW(ErrorInvalidValue, 1, "invalid argument")                                     \
  ROW(ErrorMemoryAllocation, 2, "out of memory")                                    \
  ROW(ErrorInvalidConfiguration, 9, "invalid configuration argument")               \
  ROW(ErrorInvalidPitchValue, 12, "invalid pitch argument")                         \
  ROW(ErrorInvalidDeviceFunction, 98, "invalid device function")                    \
  ROW(ErrorInvalidDevice, 101, "invalid device ordinal")                            \
  ROW(ErrorNoKernelImageForDevice, 209,                                             \
      "no kernel image is available for execution on the device")                   \
  ROW(ErrorInvalidResourceHandle, 400, "invalid resource handle")                   \
  ROW(ErrorNotReady, 600, "device not ready")                                       \
  ROW(ErrorLaunchOutOfResources, 701, "too many resources requested for launch")    \
  ROW(ErrorLaunchFailure, 719, "unspecified launch failure")                        \
  ROW(ErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch") \
  ROW(ErrorNotSupported, 801, "operation not supported")                            \
  ROW(ErrorInvalidClusterSize, 912,                                                 \
      "a kernel launch error has occurred due to cluster misconfiguration")
#define EMULATOR_ENUMERATOR(NAME, NUMBER, ...) cuda##NAME = NUMBER,
typedef enum cudaError { EMULATOR_ERRORS(EMULATOR_ENUMERATOR) } cudaError_t;
/// After a fault of a kernel, calls that launch, allocate, copy or synchronize return
/// cudaErrorLaunchFailure, as on a GPU, until cudaDeviceReset or emulator::clear_fault.
const char* cudaGetErrorName(cudaError_t error);
/// For cudaErrorLaunchFailure the whole of emulator::last_fault().
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- the device

// clang-format off: (type, name, what it is of the modelled GPU)
struct cudaUUID_t { char bytes[16]; };
#define EMULATOR_DEVICE_PROPERTIES(ROW)                                                           \
  ROW(size_t, totalGlobalMem, gpu().memory_bytes) ROW(size_t, totalConstMem, 64 * 1024)           \
  ROW(size_t, sharedMemPerBlock, 48 * 1024) ROW(int, warpSize, 32)                                \
  ROW(size_t, sharedMemPerBlockOptin, gpu().shared_bytes_per_block)                               \
  ROW(size_t, sharedMemPerMultiprocessor, gpu().shared_bytes_per_sm)                              \
  ROW(size_t, reservedSharedMemPerBlock, gpu().reserved_shared_bytes_per_block)                   \
  ROW(int, regsPerBlock, 65536) ROW(int, regsPerMultiprocessor, gpu().registers_per_sm)           \
  ROW(int, major, gpu().compute_capability / 10) ROW(int, minor, gpu().compute_capability % 10)   \
  ROW(int, multiProcessorCount, gpu().sms) ROW(int, l2CacheSize, gpu().l2_bytes)                  \
  ROW(int, maxThreadsPerBlock, 1024) ROW(int, maxBlocksPerMultiProcessor, gpu().blocks_per_sm)    \
  ROW(int, maxThreadsPerMultiProcessor, gpu().threads_per_sm)                                     \
  ROW(int, clockRate, gpu().sm_clock_hz / 1e3) ROW(int, memoryClockRate, 0)                       \
  ROW(int, memoryBusWidth, 0) ROW(int, unifiedAddressing, 1) ROW(int, canMapHostMemory, 1)        \
  ROW(int, managedMemory, 1) ROW(int, concurrentManagedAccess, 1) ROW(int, concurrentKernels, 1)  \
  ROW(int, asyncEngineCount, 1) ROW(int, cooperativeLaunch, 1) ROW(int, integrated, 0)
#define EMULATOR_MEMBER(T, NAME, VALUE) T NAME;
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int maxThreadsDim[3] = {1024, 1024, 64}, maxGridSize[3] = {0x7FFFFFFF, 65535, 65535};
  EMULATOR_DEVICE_PROPERTIES(EMULATOR_MEMBER)
};
// (name, number, what it is of the modelled GPU)
#define EMULATOR_DEVICE_ATTRIBUTES(ROW)                                                           \
  ROW(MaxThreadsPerBlock, 1, 1024) ROW(MaxBlockDimX, 2, 1024) ROW(MaxBlockDimY, 3, 1024)          \
  ROW(MaxBlockDimZ, 4, 64) ROW(MaxGridDimX, 5, INT_MAX) ROW(MaxGridDimY, 6, 65535)                \
  ROW(MaxGridDimZ, 7, 65535) ROW(MaxSharedMemoryPerBlock, 8, 48 * 1024) ROW(WarpSize, 10, 32)     \
  ROW(TotalConstantMemory, 9, 64 * 1024) ROW(MaxRegistersPerBlock, 12, 65536)                     \
  ROW(ClockRate, 13, gpu().sm_clock_hz / 1e3) ROW(MultiProcessorCount, 16, gpu().sms)             \
  ROW(MemoryClockRate, 36, 0) ROW(L2CacheSize, 38, gpu().l2_bytes) ROW(ManagedMemory, 83, 1)      \
  ROW(MaxThreadsPerMultiProcessor, 39, gpu().threads_per_sm) ROW(CooperativeLaunch, 95, 1)        \
  ROW(ComputeCapabilityMajor, 75, gpu().compute_capability / 10)                                  \
  ROW(ComputeCapabilityMinor, 76, gpu().compute_capability % 10)                                  \
  ROW(MaxSharedMemoryPerMultiprocessor, 81, gpu().shared_bytes_per_sm)                            \
  ROW(MaxRegistersPerMultiprocessor, 82, gpu().registers_per_sm)                                  \
  ROW(MaxSharedMemoryPerBlockOptin, 97, gpu().shared_bytes_per_block)                             \
  ROW(MaxBlocksPerMultiprocessor, 106, gpu().blocks_per_sm)
#define EMULATOR_ATTRIBUTE(NAME, NUMBER, VALUE) cudaDevAttr##NAME = NUMBER,
enum cudaDeviceAttr { EMULATOR_DEVICE_ATTRIBUTES(EMULATOR_ATTRIBUTE) };
// The cache's configuration and how the host waits are not modelled.
constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1;
constexpr unsigned cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4;
constexpr unsigned cudaDeviceMapHost = 8;
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1,
                     cudaFuncCachePreferEqual };
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
// Calls that do nothing here:
#define EMULATOR_IDLE(NAME, ...) inline cudaError_t cuda##NAME(__VA_ARGS__) { return cudaSuccess; }
EMULATOR_IDLE(DeviceSetCacheConfig, cudaFuncCache) EMULATOR_IDLE(SetDeviceFlags, unsigned)
EMULATOR_IDLE(FuncSetCacheConfig, auto*, cudaFuncCache) EMULATOR_IDLE(ProfilerStart)
EMULATOR_IDLE(ProfilerStop) EMULATOR_IDLE(StreamDestroy, cudaStream_t)
EMULATOR_IDLE(StreamWaitEvent, cudaStream_t, cudaEvent_t, int = 0)
EMULATOR_IDLE(MemPrefetchAsync, const void*, size_t, int, cudaStream_t = nullptr)
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }

// ---- memory

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                      cudaMemcpyDeviceToDevice, cudaMemcpyDefault };

cudaError_t cudaFree(void* data);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* data, int value, size_t bytes);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemset2D(void* data, size_t pitch, int value, size_t width, size_t height);
constexpr unsigned cudaMemAttachGlobal = 1, cudaMemAttachHost = 2;
/// `pointer` is where a pointer to the memory goes, null if there is none.
namespace emulator { cudaError_t allocate(void* pointer, size_t bytes, bool on_host); }
cudaError_t cudaMalloc(auto** p, size_t n) { return emulator::allocate(p, n, false); }
cudaError_t cudaMallocManaged(auto** p, size_t n, unsigned = cudaMemAttachGlobal) {
  return emulator::allocate(p, n, true);
}
// Calls that do what another one does. Pinned memory is the device's too.
inline cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cudaFree(data); }
cudaError_t cudaMallocAsync(auto** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaMallocHost(auto** p, size_t n, unsigned = 0) { return cudaMallocManaged(p, n); }
cudaError_t cudaHostAlloc(auto** p, size_t n, unsigned) { return cudaMallocManaged(p, n); }
cudaError_t cudaHostGetDevicePointer(auto** device, void* host, unsigned) {
  return *reinterpret_cast<void**>(device) = host, cudaSuccess;
}
cudaError_t cudaMallocPitch(auto** data, size_t* pitch, size_t width, size_t height) {
  return cudaMalloc(data, (*pitch = (width + 511) / 512 * 512) * height);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) { return cudaMemcpy(to, from, n, kind); }
inline cudaError_t cudaMemsetAsync(void* data, int value, size_t n, cudaStream_t = nullptr) {
  return cudaMemset(data, value, n);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

namespace emulator {
/// A kernel's address, from its name or from a void*.
struct Kernel {
  const void* value;
  Kernel(const void* address) : value(address) {}
  template <class... P>
  Kernel(void (*kernel)(P...)) : value(reinterpret_cast<const void*>(kernel)) {}
  operator const void*() const { return value; }
};
/// Keeps `error` for cudaGetLastError and returns it.
cudaError_t remember(cudaError_t error);
/// The address of a variable, which kernels may be given from now on.
void* device_address(void* variable, size_t bytes);
/// Where `offset` is in a symbol; null if fewer than `bytes` follow.
void* in_symbol(const auto& symbol, size_t bytes, size_t offset) {
  if (offset > sizeof(symbol) || bytes > sizeof(symbol) - offset) return nullptr;
  return const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol)) + offset;
}
}  // namespace emulator
cudaError_t cudaMemcpyToSymbol(const auto& symbol, const void* from, size_t bytes,
                               size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return cudaMemcpy(emulator::in_symbol(symbol, bytes, offset), from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const auto& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return cudaMemcpy(to, emulator::in_symbol(symbol, bytes, offset), bytes, kind);
}
cudaError_t cudaGetSymbolAddress(void** address, const auto& symbol) {
  *address = emulator::device_address(emulator::in_symbol(symbol, 0, 0), sizeof(symbol));
  return cudaSuccess;
}
cudaError_t cudaGetSymbolSize(size_t* n, const auto& s) { return *n = sizeof(s), cudaSuccess; }

// ---- streams and events

constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2;
constexpr unsigned cudaHostAllocWriteCombined = 4;

inline cudaError_t cudaStreamCreate(cudaStream_t* s) { return *s = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, int) { return cudaStreamCreate(s); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) {
  return cudaStreamCreate(s);
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = *greatest = 0, cudaSuccess;
}
#define CUDART_CB
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* data);
typedef void (*cudaHostFn_t)(void* data);
inline cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* p, unsigned) {
  const cudaError_t error = cudaDeviceSynchronize();
  return f(s, error, p), error;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t f, void* data) {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) f(data);
  return error;
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
inline cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaDeviceSynchronize(); }
/// The host's time between two records: how long emulation took, which says nothing of a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// ---- kernels

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, maxDynamicSharedSizeBytes;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
                         cudaFuncAttributePreferredSharedMemoryCarveout = 9,
                         cudaFuncAttributeNonPortableClusterSizeAllowed = 13 };
enum cudaLaunchAttributeID { cudaLaunchAttributeCooperative = 2,
                             cudaLaunchAttributeClusterDimension = 4 };
union cudaLaunchAttributeValue { uint3 clusterDim; int cooperative; };
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; };
// clang-format on
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
/// Registers, shared and local memory are those of the table made from the device compiler's
/// report; 0 for kernels that are not in it.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, emulator::Kernel kernel);
cudaError_t cudaFuncSetAttribute(emulator::Kernel kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetName(const char** name, emulator::Kernel kernel);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, emulator::Kernel kernel,
                                                          int threads, size_t dynamic_bytes);
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, emulator::Kernel kernel,
                                           const cudaLaunchConfig_t* config);
/// The largest block of those with the most threads on an SM, and how many blocks fill the device.
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, emulator::Kernel kernel,
                                               size_t dynamic_bytes = 0, int limit = 0);

namespace emulator {

/// A kernel with its arguments: `thread(data)` runs one thread, whose reads of the `bytes` there
/// are no accesses of global memory. The kernel's address names it.
struct BoundKernel {
  const void* kernel;
  void (*thread)(void*);
  void* data;
  size_t bytes;
  std::vector<const volatile void*> pointers;  ///< among the arguments
  int arch;                                    ///< __CUDA_ARCH__ of the kernel's source, 0: none
};
cudaError_t run(const cudaLaunchConfig_t& config, const BoundKernel& kernel);

// A launch copies an argument's bytes to the device, and runs no constructor or destructor there. A
// type that has a nontrivial one is passed by address (Itanium C++ ABI): the address of such a
// copy.
template <class T>
constexpr bool kByAddress =
    !std::is_reference_v<T> &&
    (!std::is_trivially_destructible_v<T> ||
     (std::is_copy_constructible_v<T> && !std::is_trivially_copy_constructible_v<T>) ||
     (std::is_move_constructible_v<T> && !std::is_trivially_move_constructible_v<T>));
template <class T>
struct Bytes {
  EMULATOR_INLINE explicit Bytes(const T& from) {
    __builtin_memcpy(copy, static_cast<const void*>(&from), sizeof(T));
  }
  EMULATOR_INLINE operator T&() { return reinterpret_cast<T&>(copy); }
  alignas(T) unsigned char copy[sizeof(T)];
};
template <class T>
using Parameter = std::conditional_t<kByAddress<T>, T&, T>;
template <class T>
using Argument = std::conditional_t<kByAddress<T>, Bytes<T>, T&>;

// Each thread gets a copy of the arguments of its own, as on the device; what is passed by
// reference stays where it is. Not instrumented: reads of plain arguments need no look at where
// they are.
template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<P...> arguments;

  __attribute__((no_sanitize("thread"))) static void thread(void* self) {
    unpack(static_cast<Call*>(self), std::index_sequence_for<P...>{});
  }
  template <size_t... I>
  __attribute__((no_sanitize("thread"))) static void unpack(Call* call, std::index_sequence<I...>) {
    const auto kernel = reinterpret_cast<void (*)()>(call->kernel);
    reinterpret_cast<void (*)(Parameter<P>...)>(kernel)(
        static_cast<Argument<P>>(std::get<I>(call->arguments))...);
  }
  cudaError_t run(const cudaLaunchConfig_t& config) {
    std::vector<const volatile void*> pointers;
    std::apply([&](auto&... each) { (note<P>(pointers, each), ...); }, arguments);
    return emulator::run(config, {reinterpret_cast<const void*>(kernel), thread, this,
                                  sizeof(*this), std::move(pointers), CUDA_EMULATOR_ARCH});
  }
  template <class T>
  static void note(std::vector<const volatile void*>& pointers, auto& argument) {
    if constexpr (std::is_reference_v<T>)
      pointers.push_back(&argument);
    else if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
      pointers.push_back(argument);
  }
};

/// kernel<<<grid, block, shared_bytes, stream>>>(arguments...)
struct Shape {
  dim3 grid, block;
  __extension__ __int128 shared_bytes = 0;  // wide enough that no integer in braces narrows
  cudaStream_t stream = nullptr;
  operator cudaLaunchConfig_t() const {
    return {grid, block, static_cast<size_t>(shared_bytes), stream};
  }
};
// As in a call of the kernel, 0 and NULL are pointers too.
template <class... P>
cudaError_t launch(const Shape& shape, void (*kernel)(P...), std::type_identity_t<P>... arguments) {
  return Call<P...>{kernel, {static_cast<P&&>(arguments)...}}.run(shape);
}
// A template or overload whose parameters have the types of these arguments.
template <class... P>
  requires(sizeof...(P) > 0)
cudaError_t launch(const Shape& shape, void (*kernel)(P...), P... arguments) {
  return Call<P...>{kernel, {static_cast<P&&>(arguments)...}}.run(shape);
}
template <class... P>
cudaError_t launch_with(void** arguments, const cudaLaunchConfig_t& config, void (*kernel)(P...)) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return Call<P...>{kernel, {*static_cast<std::remove_reference_t<P>*>(arguments[I])...}}.run(
        config);
  }(std::index_sequence_for<P...>{});
}

}  // namespace emulator

template <class... P>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               std::type_identity_t<P>... arguments) {
  return emulator::Call<P...>{kernel, {static_cast<P&&>(arguments)...}}.run(*config);
}
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return emulator::launch_with(arguments, {grid, block, shared_bytes, stream}, kernel);
}
template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  cudaLaunchAttribute cooperative{cudaLaunchAttributeCooperative, {.cooperative = 1}};
  return emulator::launch_with(arguments, {grid, block, shared_bytes, stream, &cooperative, 1},
                               kernel);
}
