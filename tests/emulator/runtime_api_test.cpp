// SPDX-License-Identifier: MIT
//
// The runtime API's answers, which are those of the CUDA runtime on an H200, but for two: grids and
// blocks out of range get the code that is documented (CUDA 13 has cudaErrorInvalidValue for them),
// and a program may clear_fault its kernels' faults.
#include <cuda_profiler_api.h>
#include <driver_types.h>
#include <math_functions.h>

#include <chrono>
#include <cstring>
#include <thread>

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

#if !defined(__clang__) && defined(__x86_64__)
constexpr unsigned kWarps = 3;
__global__ void __launch_bounds__(32 * kWarps) bounded(int*) {}
__global__ void __launch_bounds__(1) one_thread(int*) {}
template <int most>
__global__ void __launch_bounds__(most, 2) bounded_by(int*) {}

TEST_F(RuntimeApi, RefusesMoreThreadsThanTheLaunchBounds) {
  const auto most = [](void (*kernel)(int*), unsigned threads) {
    EXPECT_EQ(launch({1, threads}, kernel, kNull), cudaSuccess);
    EXPECT_EQ(launch({1, threads + 1}, kernel, kNull), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    cudaFuncAttributes attributes;
    EXPECT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaSuccess);
    EXPECT_EQ(attributes.maxThreadsPerBlock, int(threads));
  };
  most(bounded, 96);
  most(one_thread, 1);
  most(bounded_by<64>, 64);
  most(bounded_by<1000>, 1000);
}
#endif

// An object of the program that launches before main.
int of_the_host[1];
__global__ void idle(int*) {}
const cudaError_t kBeforeMain = launch({1, 1}, idle, of_the_host);
TEST_F(RuntimeApi, LaunchesBeforeMain) { EXPECT_EQ(kBeforeMain, cudaSuccess); }

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
  EXPECT_EQ(cudaMalloc(&data, static_cast<std::size_t>(-4)), cudaErrorMemoryAllocation);
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

TEST_F(RuntimeApi, TakesWhatHasNoEffect) {
  EXPECT_EQ(cudaSetDeviceFlags(cudaDeviceMapHost | cudaDeviceScheduleSpin), cudaSuccess);
  EXPECT_EQ(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1), cudaSuccess);
  EXPECT_EQ(cudaFuncSetCacheConfig(nothing, cudaFuncCachePreferShared), cudaSuccess);
  EXPECT_EQ(cudaProfilerStart(), cudaSuccess);
  const cudaError error = cudaProfilerStop();  // the type's older name
  EXPECT_EQ(error, cudaSuccess);
}

TEST_F(RuntimeApi, EventsHaveTheHostsTime) {
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

TEST_F(RuntimeApi, StreamsAreInOrder) {
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  cudaEvent_t event;
  EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

__global__ void store(int* to, const int* from, int more) { to[threadIdx.x] = *from + more; }
void CUDART_CB add_to_order(cudaStream_t, cudaError_t status, void* data) {
  static_cast<std::vector<int>*>(data)->push_back(status);
}
TEST_F(RuntimeApi, StreamsAndWhatIsInThem) {
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

__global__ void add_one(int* data, int pitch, int width) {
  const int row = static_cast<int>(blockIdx.x), column = static_cast<int>(threadIdx.x);
  if (column < width) data[row * pitch / 4 + column] += 1;
}
TEST_F(RuntimeApi, PinnedMemoryIsTheDevicesToo) {
  int *pinned = nullptr, *mapped = nullptr, *ordered = nullptr;
  EXPECT_EQ(cudaMallocHost(&pinned, 128), cudaSuccess);
  EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&mapped), 128, cudaHostAllocMapped),
            cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&ordered, 128, nullptr), cudaSuccess);
  for (int i = 0; i < 32; ++i) pinned[i] = mapped[i] = i;
  EXPECT_EQ(launch({1, 32}, add_one, pinned, 0, 32), cudaSuccess) << last_fault();
  EXPECT_EQ(pinned[31], 32);
  EXPECT_EQ(cudaMemcpyAsync(ordered, mapped, 128, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(pinned, ordered, 128, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(pinned[31], 31);
  EXPECT_EQ(cudaMemPrefetchAsync(mapped, 128, 0), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(mapped), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(ordered, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
}

TEST_F(RuntimeApi, CopiesRowsOfAPitch) {
  constexpr std::size_t kWidth = 5 * sizeof(int), kHeight = 3;
  int* data = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&data, &pitch, kWidth, kHeight), cudaSuccess);
  EXPECT_GE(pitch, kWidth);
  EXPECT_EQ(pitch % 512, 0u);
  std::vector<int> in(15), out(15), wide(18, -1);
  for (int i = 0; i < 15; ++i) in[i] = i;
  const auto to_device = cudaMemcpyHostToDevice, to_host = cudaMemcpyDeviceToHost;
  const auto at = [&](std::size_t i) {
    int value = 0;
    EXPECT_EQ(cudaMemcpy(&value, data + i, sizeof(value), to_host), cudaSuccess);
    return value;
  };
  EXPECT_EQ(cudaMemset2D(data, pitch, 1, kWidth, kHeight), cudaSuccess);
  EXPECT_EQ(at(2 * pitch / 4 + 4), 0x01010101);
  EXPECT_EQ(at(5), 0);  // beside the row
  EXPECT_EQ(cudaMemcpy2D(data, pitch, in.data(), kWidth, kWidth, kHeight, to_device), cudaSuccess);
  EXPECT_EQ(launch({kHeight, 32}, add_one, data, static_cast<int>(pitch), 5), cudaSuccess)
      << last_fault();
  EXPECT_EQ(cudaMemcpy2DAsync(out.data(), kWidth, data, pitch, kWidth, kHeight, to_host),
            cudaSuccess);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(out[i], i + 1);
  EXPECT_EQ(cudaMemcpy2D(wide.data(), 24, data, pitch, kWidth, kHeight, to_host), cudaSuccess);
  EXPECT_EQ(wide[6], 6);
  EXPECT_EQ(wide[5], -1);
  // Rows that do not fit a pitch, and rows beyond the buffer, of which none is copied.
  EXPECT_EQ(cudaMemcpy2D(data, pitch, in.data(), 16, kWidth, kHeight, to_device),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemset2D(data, 16, 0, kWidth, kHeight), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset2D(data, pitch, 0, kWidth, kHeight + 1), cudaErrorInvalidValue);
  EXPECT_EQ(at(0), 1);
  in.assign(20, 7);
  EXPECT_EQ(cudaMemcpy2D(data, pitch, in.data(), kWidth, kWidth, kHeight + 1, to_device),
            cudaErrorInvalidValue);
  EXPECT_EQ(at(0), 1);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

__constant__ float factors[8];
__device__ int counter;
__global__ void scale(float* out) {
  out[threadIdx.x] = 2 * factors[threadIdx.x];
  if (threadIdx.x == 0) counter += 5;
}
TEST_F(RuntimeApi, KeepsCopiesInsideSymbols) {
  const std::vector<float> in{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data(), 32), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data() + 6, 8, 24, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data(), 33), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data(), 12, 24), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data(), 4, ~std::size_t{0}), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(factors, in.data(), 4, 0, cudaMemcpyDeviceToDevice),
            cudaErrorInvalidValue);
  const int start = 3;
  EXPECT_EQ(cudaMemcpyToSymbol(counter, &start, sizeof(int)), cudaSuccess);
  const DeviceArray<float> out(8);
  EXPECT_EQ(launch({1, 8}, scale, out), cudaSuccess) << last_fault();
  EXPECT_EQ(out.values(), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
  int end = 0;
  EXPECT_EQ(cudaMemcpyFromSymbol(&end, counter, sizeof(int)), cudaSuccess);
  EXPECT_EQ(end, 8);
  EXPECT_EQ(cudaMemcpyFromSymbol(&end, counter, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyFromSymbol(&end, counter, 4, 1), cudaErrorInvalidValue);
  float one = 0;
  EXPECT_EQ(cudaMemcpyFromSymbol(&one, factors, 4, 20, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(one, 5);
  void* address = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(cudaGetSymbolAddress(&address, factors), cudaSuccess);
  EXPECT_EQ(address, static_cast<void*>(factors));
  EXPECT_EQ(cudaGetSymbolSize(&bytes, factors), cudaSuccess);
  EXPECT_EQ(bytes, 32u);
}

TEST_F(RuntimeApi, TellsAttributes) {
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

TEST_F(RuntimeApi, FindsTheLargestBlocks) {
  int grid = 0, block = 0;
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing), cudaSuccess);
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 2 * 132);
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 0, 200), cudaSuccess);
  EXPECT_EQ(block, 128);  // 16 are 2048 threads, ten of 192 only 1920
  EXPECT_EQ(grid, 16 * 132);
  // One block of 160 KiB to an SM, or none.
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 160 * 1024), cudaSuccess);
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 132);
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 300 * 1024),
            cudaErrorInvalidValue);
  const Settings settings({.gpu = find_gpu("t4")});
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 0, 40), cudaSuccess);
  EXPECT_EQ(block, 40);  // at most 16, of however many threads
  EXPECT_EQ(grid, 16 * 40);
}

}  // namespace
}  // namespace emulator
