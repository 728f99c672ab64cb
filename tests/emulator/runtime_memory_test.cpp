// SPDX-License-Identifier: MIT
//
// Memory: buffers, pinned memory, rows of a pitch and symbols. The runtime API's answers are those
// of the CUDA runtime on an H200.
#include "support.hpp"

namespace emulator {
namespace {

TEST(RuntimeApi, KeepsCopiesInsideBuffers) {
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

TEST(RuntimeApi, GivesAndTakesMemory) {
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

__global__ void add_one(int* data, int pitch, int width) {
  const int row = static_cast<int>(blockIdx.x), column = static_cast<int>(threadIdx.x);
  if (column < width) data[row * pitch / 4 + column] += 1;
}
TEST(RuntimeApi, PinnedMemoryIsTheDevicesToo) {
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

TEST(RuntimeApi, CopiesRowsOfAPitch) {
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
  EXPECT_EQ(at(5), -1);  // beside the row
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
TEST(RuntimeApi, KeepsCopiesInsideSymbols) {
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

}  // namespace
}  // namespace emulator
