// SPDX-License-Identifier: MIT
//
// Launches: what is refused, and what a kernel may have. The runtime API's answers are those of the
// CUDA runtime on an H200, but for two: grids and blocks out of range get the code that is
// documented (CUDA 13 has cudaErrorInvalidValue for them), and a program may clear_fault its
// kernels' faults.
#include "support.hpp"

namespace emulator {
namespace {

__global__ void nothing(int* data) {
  if (data) *data = 1;
}
__global__ void trouble(int*) { __shfl_sync(1u << (threadIdx.x + 1) % 32, 0, 0); }

TEST(RuntimeApi, RefusesLaunches) {
  const auto answer = [](dim3 grid, dim3 block, std::size_t shared = 0) {
    const cudaError_t error = launch({grid, block, shared}, nothing, nullptr);
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

TEST(RuntimeApi, RefusesMoreThreadsThanTheLaunchBounds) {
  const auto most = [](void (*kernel)(int*), unsigned threads) {
    EXPECT_EQ(launch({1, threads}, kernel, nullptr), cudaSuccess);
    EXPECT_EQ(launch({1, threads + 1}, kernel, nullptr), cudaErrorInvalidValue);
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

template <class T, int more = 1>
__global__ void raised(T* to, T by) {
  to[threadIdx.x] += by * more;
}
__global__ void overloaded(int* to) { to[threadIdx.x] = 1; }
__global__ void overloaded(float* to) { to[threadIdx.x] = 2; }
__global__ void overloaded(float* to, const float& by) { to[threadIdx.x] += by; }
TEST(RuntimeApi, LaunchesTemplatesAndOverloads) {
  const DeviceArray<int> ints(32);
  const DeviceArray<float> floats(32);
  EXPECT_EQ(launch({1, 32}, overloaded, ints.data()), cudaSuccess);
  EXPECT_EQ(launch({1, 32}, overloaded, floats.data()), cudaSuccess);
  EXPECT_EQ(launch({1, 32}, raised, ints.data(), 4), cudaSuccess);
  EXPECT_EQ(launch({1, 32}, raised, floats.data(), .5f), cudaSuccess);
  EXPECT_EQ(launch({1, 32}, raised<float, 2>, floats.data(), 1), cudaSuccess);
  EXPECT_EQ(ints.values(), std::vector(32, 5));
  EXPECT_EQ(floats.values(), std::vector(32, 4.5f));
}

// An object of the program that launches before main.
int of_the_host[1];
__global__ void idle(int*) {}
const cudaError_t kBeforeMain = launch({1, 1}, idle, of_the_host);
TEST(RuntimeApi, LaunchesBeforeMain) { EXPECT_EQ(kBeforeMain, cudaSuccess); }

TEST(RuntimeApi, LimitsDynamicSharedMemory) {
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 227 * 1024), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 227 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, -1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(trouble, kAttribute, 64 * 1024), cudaSuccess);
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, trouble), cudaSuccess);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 64 * 1024);
  EXPECT_EQ(launch({1, 32, 64 * 1024 + 1}, trouble, nullptr), cudaErrorInvalidValue);
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
TEST(RuntimeApi, CountsStaticSharedMemoryToo) {
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, forty_kilobytes), cudaSuccess);
  EXPECT_EQ(attributes.sharedSizeBytes, 40u * 1024);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 8 * 1024);
  EXPECT_EQ(launch({1, 32, 8 * 1024}, forty_kilobytes, nullptr), cudaSuccess);
  EXPECT_EQ(launch({1, 32, 8 * 1024 + 1}, forty_kilobytes, nullptr), cudaErrorInvalidValue);
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(forty_kilobytes, kAttribute, 187 * 1024 + 1),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(forty_kilobytes, kAttribute, 20000), cudaSuccess);
  EXPECT_EQ(launch({1, 32, 20000}, forty_kilobytes, nullptr), cudaSuccess);
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
TEST(RuntimeApi, RefusesMoreStaticSharedMemoryThanNvcc) {
  EXPECT_EQ(launch({1, 32}, fifty_kilobytes, nullptr), cudaErrorLaunchOutOfResources);
}

__global__ void small_cluster(int*) {}
TEST(RuntimeApi, LimitsClusters) {
  const auto answer = [](unsigned cluster, unsigned grid) {
    return launch_clusters(cluster, {grid, 32}, small_cluster, nullptr);
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

TEST(RuntimeApi, FindsTheLargestBlocks) {
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
