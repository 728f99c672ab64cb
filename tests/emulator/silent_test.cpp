// SPDX-License-Identifier: MIT
//
// Code that a GPU runs without a word, or other than a CPU does: each is found, with its line.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <cstdlib>
#include <limits>

#include "support.hpp"

namespace emulator {
namespace {

template <class... A>
void expect_fault(const char* kernel, void (*function)(int*, A...), const char* what,
                  A... arguments) {
  expect_planted(__FILE__, kernel, {what, {1, 32}}, Named::one_line, [&] {
    const DeviceArray<int> data(std::vector<int>(64, 0));
    return launch({1, 32}, function, data.data(), arguments...);
  });
}

// ---- memory that is not what it seems

int host_array[64];
__global__ void reads_host_array(int* data, const int* host) {
  data[threadIdx.x] = host[threadIdx.x];  // fault
}
__device__ int device_array[64];
__managed__ int managed_array[32];
__global__ void reads_device_array(int* data) { data[threadIdx.x] = device_array[threadIdx.x]; }
TEST(Silent, HostArray) {
  expect_fault<const int*>("reads_host_array", reads_host_array,
                           "host memory: .* host's address of host_array", host_array);
  const DeviceArray<int> data(64);
  ASSERT_RUNS(launch({1, 32}, reads_device_array, data.data()));
  // The address that the host sees is not the device's.
  expect_fault<const int*>("reads_host_array", reads_host_array, "host memory: ", device_array);
  void* address = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&address, device_array), cudaSuccess);
  ASSERT_RUNS(launch({1, 32}, reads_host_array, data.data(), static_cast<const int*>(address)));
  ASSERT_RUNS(
      launch({1, 32}, reads_host_array, data.data(), static_cast<const int*>(address) + 32));
  const Settings settings({.check = true});
  managed_array[5] = 7;
  ASSERT_RUNS(launch({1, 32}, reads_host_array, data.data(), managed_array));
  EXPECT_EQ(data.values()[5], 7);
}

__device__ int short_array[10];
__global__ void overruns_device_array(int* data) {
  data[threadIdx.x] = short_array[threadIdx.x % 11];  // fault
}
__global__ void overruns_device_array_in_a_store(int* data) {
  short_array[threadIdx.x % 11] = data[threadIdx.x];  // fault
}
__constant__ int constants[10];
__global__ void overruns_constants(int* data) {
  data[threadIdx.x] = constants[threadIdx.x / 4 + 3];  // fault
}
__global__ void stores_to_constants(int* data) {
  if (threadIdx.x == 0) const_cast<volatile int*>(constants)[1] = data[0];  // fault
}
TEST(Silent, VariablesOfTheDevice) {
  // Which variable is named depends on where the compiler puts others.
  expect_fault("overruns_device_array", overruns_device_array,
               "out-of-bounds load: byte \\d+ of \\w+, a variable of");
  expect_fault("overruns_device_array_in_a_store", overruns_device_array_in_a_store,
               "out-of-bounds store: byte \\d+ of \\w+, a variable of");
  expect_fault("overruns_constants", overruns_constants,
               "out-of-bounds load: byte 43 of constants, a variable of 40");
  expect_fault("stores_to_constants", stores_to_constants, "read-only memory: store");
}

__global__ void reads_what_nothing_wrote(int* data, const int* in) {
  data[threadIdx.x] = in[threadIdx.x];  // fault
}
__global__ void adds_to_nothing(int* data, int* sums) {
  sums[threadIdx.x] += data[threadIdx.x];  // fault
}
__global__ void counts_from_nothing(int* data, int* counts) {
  atomicAdd(&counts[data[threadIdx.x]], 1);  // fault
}
TEST(Silent, GlobalMemoryThatNothingWrote) {
  int *none = nullptr, *other = nullptr;
  ASSERT_EQ(cudaMalloc(&none, 128), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&other, 128), cudaSuccess);
  expect_fault<const int*>("reads_what_nothing_wrote", reads_what_nothing_wrote,
                           "uninitialised global memory: load of byte 0 of a buffer of 128", none);
  expect_fault<int*>("counts_from_nothing", counts_from_nothing,
                     "uninitialised global memory: atomic of byte 0 of a buffer of 128", none);
  expect_fault<int*>("adds_to_nothing", adds_to_nothing, "uninitialised global memory: load", none);
  ASSERT_EQ(cudaMemset(none, 0, 124), cudaSuccess);
  expect_fault<const int*>("reads_what_nothing_wrote", reads_what_nothing_wrote,
                           "uninitialised global memory: load of byte 124 of a buffer of 128",
                           none);
  // Copies and kernels write.
  const Settings settings({.check = true});
  ASSERT_EQ(cudaMemset(none, 0, 128), cudaSuccess);
  ASSERT_RUNS(launch({1, 32}, reads_what_nothing_wrote, other, static_cast<const int*>(none)));
  ASSERT_RUNS(launch({1, 32}, reads_what_nothing_wrote, none, static_cast<const int*>(other)));
  cudaFree(none);
  cudaFree(other);
}
// Who reads may be seen before who wrote, on another host thread.
__global__ void hands_over(int* flags, int* values) {
  const unsigned b = blockIdx.x;
  if (threadIdx.x != 0) return;
  if (b > 0)
    while (atomicAdd(&flags[b - 1], 0) == 0) {
    }
  __threadfence();
  values[b] = b == 0 ? 1 : values[b - 1] + 1;
  __threadfence();
  atomicExch(&flags[b], 1);
}
TEST(Silent, GlobalMemoryThatAnotherBlockWrote) {
  everywhere(
      [] {
        const DeviceArray<int> flags(std::vector<int>(8, 0)), values(8);
        ASSERT_RUNS(launch({8, 64}, hands_over, flags.data(), values.data()));
        EXPECT_EQ(values.values()[7], 8);
      },
      Same::results);
}

__global__ void adds_one(int* data) { data[blockIdx.x * 32 + threadIdx.x] += 1; }
// The emulator takes its protection key before main().
constexpr const char* kTakeKeys = "TAKE_PROTECTION_KEYS";
[[gnu::constructor(101)]] void take_keys() {
  for (int key = 0; std::getenv(kTakeKeys) && key >= 0;) key = pkey_alloc(0, 0);
}

class SilentDeathTest : public testing::TestWithParam<bool> {};
TEST_P(SilentDeathTest, HostCodeMustNotTouchDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process dies
  const auto launch_then_touch = [] {
    const DeviceArray<int> numbers(std::vector<int>(64, 7));
    launch({2, 32}, adds_one, numbers.data());
    if (numbers.values() != std::vector<int>(64, 8)) std::exit(1);
    volatile int* const touched = numbers.data();
    touched[3] = 7;
  };
  if (GetParam()) setenv(kTakeKeys, "1", 1);
  EXPECT_DEATH(
      launch_then_touch(),
      "host code touches device memory: byte 12 of a buffer of 256, at silent_test.cpp:[0-9]+");
  unsetenv(kTakeKeys);
}
INSTANTIATE_TEST_SUITE_P(Keys, SilentDeathTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "AreTaken" : "AreLeft"; });
TEST(Silent, HostCodeMayTouchManagedMemory) {
  int* managed = nullptr;
  ASSERT_EQ(cudaMallocManaged(&managed, 400), cudaSuccess);
  managed[3] = 7;
  EXPECT_EQ(managed[3], 7);
  cudaFree(managed);
}

// ---- memory that kernels allocate

struct Node {
  int value;
  Node* next;
};
__global__ void builds_a_list(Node** heads) {
  Node* head = nullptr;
  for (int i = 0; i < 3; ++i) head = new Node{i, head};
  auto* last = static_cast<Node*>(malloc(sizeof(Node)));
  *last = {3, head};
  heads[threadIdx.x] = last;
}
__global__ void sums_the_list(Node** heads, int* sums) {
  int sum = 0;
  for (Node* node = heads[threadIdx.x]; node;) {
    Node* next = node->next;
    sum += node->value;
    if (next) delete node;
    node = next;
  }
  sums[threadIdx.x] = sum;
}
__global__ void frees_twice(int* data) {
  int* volatile mine = new int(data[threadIdx.x]);  // else compilers may leave it all out
  data[threadIdx.x] = *mine;
  delete mine;
  if (threadIdx.x == 3) delete mine;
}
__global__ void overruns_what_it_allocated(int* data) {
  volatile int* mine = new int[4];
  mine[threadIdx.x] = data[0];  // fault
  delete[] mine;
}
TEST(Silent, MemoryThatKernelsAllocate) {
  everywhere([] {
    const DeviceArray<Node*> heads(40);
    const DeviceArray<int> sums(40);
    ASSERT_RUNS(launch({1, 40}, builds_a_list, heads.data()));
    ASSERT_RUNS(launch({1, 40}, sums_the_list, heads.data(), sums.data()));
    EXPECT_EQ(sums.values(), std::vector<int>(40, 6));
  });
  std::size_t before = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  {
    const Settings settings({.check = true});
    const DeviceArray<int> data(32);
    EXPECT_EQ(launch({1, 32}, frees_twice, data.data()), cudaErrorLaunchFailure);
    EXPECT_EQ(last_fault(), "kernel frees_twice frees what no kernel allocated");
    clear_fault();
    cudaGetLastError();
  }
  cudaMemGetInfo(&after, &total);
  EXPECT_EQ(before, after);
  expect_fault("overruns_what_it_allocated", overruns_what_it_allocated,
               "out-of-bounds global store: byte 16 of a buffer of 16");
}

// ---- arithmetic

__global__ void shifts_by(int* data, int bits) {
  data[threadIdx.x] = 1 << bits;  // fault
}
__global__ void shifts_right_by(int* data, unsigned long long bits) {
  data[threadIdx.x] = static_cast<int>(1ull >> bits);  // fault
}
__global__ void converts(int* data, float value) {
  data[threadIdx.x] = static_cast<int>(value);  // fault
}
__global__ void converts_to_unsigned(int* data, double value) {
  data[threadIdx.x] = static_cast<int>(static_cast<unsigned>(value));  // fault
}
TEST(Silent, ArithmeticThatCLeavesOpen) {
  for (const int bits : {-1, 32, 100}) expect_fault("shifts_by", shifts_by, "shift count", bits);
  expect_fault("shifts_right_by", shifts_right_by, "shift count", 64ull);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value : {3e9f, -3e9f, inf, std::numeric_limits<float>::quiet_NaN()})
    expect_fault("converts", converts, "floating-point value does not fit", value);
  expect_fault("converts_to_unsigned", converts_to_unsigned, "does not fit", -1.0);
  const DeviceArray<int> data(32);
  ASSERT_RUNS(launch({1, 32}, shifts_by, data.data(), 31));
  EXPECT_EQ(data.values()[0], std::numeric_limits<int>::min());
  ASSERT_RUNS(launch({1, 32}, converts, data.data(), -2147483648.0f));
  ASSERT_RUNS(launch({1, 32}, converts_to_unsigned, data.data(), -0.5));
}

// A product and a sum are rounded each, as nvcc does with -fmad=false; fmaf rounds once.
__global__ void multiplies_and_adds(float* out, float a, float b, float c) {
  out[0] = a * b + c;
  out[1] = fmaf(a, b, c);
}
TEST(Silent, ProductsAreRoundedBeforeTheyAreAdded) {
  const DeviceArray<float> out(2);
  const float a = 1 + 0x1p-12f;
  ASSERT_RUNS(launch({1, 1}, multiplies_and_adds, out.data(), a, a, -1 - 0x1p-11f));
  EXPECT_EQ(out.values(), (std::vector{0.0f, 0x1p-24f}));
}

#ifndef __CUDA_ARCH__
#error "device code would take the host's way"
#endif
__global__ void tells_its_architecture(int* out) { *out = __CUDA_ARCH__; }
TEST(Silent, ArchitectureOfTheModelledGpu) {
  const DeviceArray<int> out(1);
  ASSERT_RUNS(launch({1, 1}, tells_its_architecture, out.data()));
  EXPECT_EQ(out.values()[0], 900);
  const Settings settings({.gpu = find_gpu("a100")});
  EXPECT_EQ(launch({1, 1}, tells_its_architecture, out.data()), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
}

// ---- errors stay

__global__ void stores_too_far(int* data) { data[40] = 1; }
TEST(Silent, AFaultStays) {
  const Settings settings({.check = true});
  const DeviceArray<int> data(std::vector<int>(32, 0));
  EXPECT_EQ(launch({1, 1}, stores_too_far, data.data()), cudaErrorLaunchFailure);
  int* more = nullptr;
  int value = 0;
  EXPECT_EQ(cudaMalloc(&more, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost), cudaErrorLaunchFailure);
  EXPECT_EQ(launch({1, 32}, reads_device_array, data.data()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  clear_fault();
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "the last error is asked for once";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_RUNS(launch({1, 32}, reads_device_array, data.data()));
}
TEST(SilentDeathTest, AFaultGoesWithTheDevicesState) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto reset = [] {
    const Settings settings({.check = true});
    const DeviceArray<int> data(32);
    if (launch({1, 1}, stores_too_far, data.data()) != cudaErrorLaunchFailure) std::_Exit(1);
    if (cudaDeviceReset() != cudaSuccess || cudaGetLastError() != cudaSuccess) std::_Exit(2);
    std::_Exit(0);
  };
  EXPECT_EXIT(reset(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace emulator
