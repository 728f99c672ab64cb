// SPDX-License-Identifier: MIT
//
// The model of GPUs that are not here against the toolkit's formula, which needs no device, and
// against the runtime's answers on the GPU that is here.
#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "emulator/gpu.hpp"
#include "gpu.hpp"
#include "model/cuda_check.hpp"
#include "model/ladder.hpp"
#include "model/launch.hpp"

namespace ladders {
namespace {

using emulator::Gpu;
using emulator::OccupancyLimits;

OccupancyLimits toolkit(const Gpu& gpu, int threads, int registers, size_t shared_bytes) {
  cudaOccDeviceProp device;
  device.computeMajor = gpu.compute_capability / 10;
  device.computeMinor = gpu.compute_capability % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = gpu.threads_per_sm;
  device.regsPerBlock = device.regsPerMultiprocessor = gpu.registers_per_sm;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = gpu.shared_bytes_per_sm;
  device.numSms = gpu.sms;
  device.sharedMemPerBlockOptin = gpu.shared_bytes_per_block;
  device.reservedSharedMemPerBlock = gpu.reserved_shared_bytes_per_block;
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024;
  kernel.numRegs = registers;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = gpu.shared_bytes_per_block;
  kernel.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                    shared_bytes),
            CUDA_OCC_SUCCESS);
  const OccupancyLimits limits{result.blockLimitBlocks, result.blockLimitWarps,
                               result.blockLimitRegs, result.blockLimitSharedMem};
  EXPECT_EQ(limits.blocks_per_sm(), result.activeBlocksPerMultiprocessor);
  return limits;
}

TEST(Occupancy, IsTheToolkitsOnRandomKernels) {
  for (const Gpu& gpu : emulator::gpus()) {
    SCOPED_TRACE(gpu.name);
    std::mt19937 random(1);
    const auto upto = [&](size_t most) { return static_cast<int>(random() % (most + 1)); };
    for (int i = 0; i < 100000 && !testing::Test::HasFailure(); ++i) {
      const int threads = 1 + upto(1024), registers = upto(255);
      const int shared = i % 3 == 0 ? 0 : upto(gpu.shared_bytes_per_block + 512);
      const OccupancyLimits o = emulator::occupancy_limits(gpu, threads, registers, shared);
      const OccupancyLimits expected = toolkit(gpu, threads, registers, shared);
      EXPECT_TRUE(o.blocks == expected.blocks && o.warps == expected.warps &&
                  o.registers == expected.registers && o.shared == expected.shared)
          << threads << " threads, " << registers << " registers, " << shared << " bytes: blocks "
          << o.blocks << ' ' << expected.blocks << ", warps " << o.warps << ' ' << expected.warps
          << ", registers " << o.registers << ' ' << expected.registers << ", shared " << o.shared
          << ' ' << expected.shared;
    }
  }
}

// The GPU that is here, in the model's terms.
Gpu here() {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
  return {.name = "here",
          .sms = p.multiProcessorCount,
          .l2_bytes = static_cast<size_t>(p.l2CacheSize),
          .memory_bytes = p.totalGlobalMem,
          .compute_capability = p.major * 10 + p.minor,
          .threads_per_sm = p.maxThreadsPerMultiProcessor,
          .blocks_per_sm = p.maxBlocksPerMultiProcessor,
          .registers_per_sm = p.regsPerMultiprocessor,
          .shared_bytes_per_sm = p.sharedMemPerMultiprocessor,
          .shared_bytes_per_block = p.sharedMemPerBlockOptin,
          .reserved_shared_bytes_per_block = p.reservedSharedMemPerBlock,
          .blocks_per_cluster = p.major >= 9 ? 16 : 0};
}

TEST(Gpus, AreAsTheDriverDescribesThem) {
  NEED_GPU();
  const Device device = Device::open(0);
  const Gpu gpu = here();
  for (const Gpu& model : emulator::gpus()) {
    if (model.product != device.name) continue;
    EXPECT_EQ(model.compute_capability, gpu.compute_capability);
    EXPECT_EQ(model.sms, gpu.sms);
    EXPECT_EQ(model.threads_per_sm, gpu.threads_per_sm);
    EXPECT_EQ(model.blocks_per_sm, gpu.blocks_per_sm);
    EXPECT_EQ(model.registers_per_sm, gpu.registers_per_sm);
    EXPECT_EQ(model.shared_bytes_per_sm, gpu.shared_bytes_per_sm);
    EXPECT_EQ(model.shared_bytes_per_block, gpu.shared_bytes_per_block);
    EXPECT_EQ(model.reserved_shared_bytes_per_block, gpu.reserved_shared_bytes_per_block);
    EXPECT_EQ(model.l2_bytes, gpu.l2_bytes);
    EXPECT_NEAR(double(model.memory_bytes) / double(gpu.memory_bytes), 1, 0.1);
    return;
  }
  GTEST_SKIP() << device.name << " is not modelled";
}

struct Kernel {
  std::string name;  ///< of a rung that launches it
  bool clusters;
};

// Every kernel of the catalogue that runs on this device.
std::map<const void*, Kernel> kernels(const Device& device) {
  std::map<const void*, Kernel> result;
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::tested)) {
      const void* kernel = row.rung->at(row.point, device).kernel;
      if (!kernel || row.rung->needs.compute_capability > device.compute_capability) continue;
      const bool clusters = std::ranges::any_of(
          row.rung->sweeps, [](const Sweep& sweep) { return sweep.axis.name == "cluster"; });
      result[kernel] = {ladder.name + "/" + row.rung->name, clusters};
    }
  return result;
}

cudaFuncAttributes attributes(const void* kernel) {
  cudaFuncAttributes result{};
  check(cudaFuncGetAttributes(&result, kernel), "cudaFuncGetAttributes");
  return result;
}

// Whether `kernel` may have so much dynamic shared memory beside its static.
bool allowed(const void* kernel, size_t shared_bytes) {
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

TEST(Occupancy, IsTheRuntimesForEveryKernel) {
  NEED_GPU();
  const Device device = Device::open(0);
  const Gpu gpu = here();
  const size_t most = gpu.shared_bytes_per_block;
  for (const auto& [kernel, about] : kernels(device)) {
    SCOPED_TRACE(about.name);
    const cudaFuncAttributes a = attributes(kernel);
    for (const size_t shared : {size_t{0}, size_t{1}, size_t{1000}, size_t{16384}, size_t{40000},
                                most / 3, most / 2, most - 32768, most}) {
      const bool fits = allowed(kernel, shared);
      for (int threads = 32; threads <= 1024; threads += 32) {
        const OccupancyLimits o =
            emulator::occupancy_limits(gpu, threads, a.numRegs, a.sharedSizeBytes + shared);
        if (!fits) {
          EXPECT_EQ(o.shared, 0) << shared << " bytes";
          continue;
        }
        if (threads > a.maxThreadsPerBlock) continue;  // launch bounds
        int blocks = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        EXPECT_EQ(o.blocks_per_sm(), blocks) << threads << " threads, " << shared << " bytes";
      }
    }
  }
}

TEST(Occupancy, ClustersAreTheRuntimesOnHopper) {
  NEED_GPU();
  const Device device = Device::open(0);
  const Gpu gpu = here();
  if (gpu.compute_capability != 90 || gpu.sms != 132) GTEST_SKIP() << "not modelled";
  for (const auto& [kernel, about] : kernels(device)) {
    if (!about.clusters) continue;
    for (const unsigned cluster : {1u, 2u, 4u, 8u, 16u})
      for (const unsigned threads : {512u, 1024u})
        for (const size_t shared : {size_t{0}, size_t{60000}, size_t{100000}, size_t{200000}}) {
          const LaunchPlan plan{
              .grid = cluster, .block = threads, .shared_bytes = shared, .cluster = cluster};
          allow(kernel, plan);
          int blocks = 0, clusters = 0;
          check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared),
                "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
          if (cluster == 1) {
            clusters = blocks * gpu.sms;
          } else {
            const LaunchConfig config(plan, nullptr);
            check(cudaOccupancyMaxActiveClusters(&clusters, kernel, config.get()),
                  "cudaOccupancyMaxActiveClusters");
          }
          // Which SMs are fused off differs from die to die, and moves clusters of more than a TPC.
          const int modelled = emulator::resident_clusters(gpu, blocks, static_cast<int>(cluster));
          EXPECT_NEAR(modelled, clusters, cluster <= 2 ? 0 : std::ceil(0.1 * modelled))
              << about.name << ": " << cluster << " blocks of " << threads << " threads, " << blocks
              << " an SM";
        }
  }
}

TEST(Occupancy, ClustersThatFillSmsAreAllAtOnceOnADevice) {
  NEED_GPU();
  const Device device = Device::open(0);
  const auto& clusters = device.clusters_at_once;
  EXPECT_EQ(clusters[0], 0);
  EXPECT_EQ(clusters[1], device.sms);
  for (int blocks = 2; blocks < std::ssize(clusters); ++blocks) {
    const bool used = blocks <= 4 || blocks % 2 == 0;
    if (device.compute_capability >= 90 && device.sms >= 16 && used) {
      EXPECT_GT(clusters[blocks], 0) << blocks;
    }
    EXPECT_LE(blocks * clusters[blocks], used ? device.sms : 0) << blocks;
  }
}

TEST(KernelResources, AreWhatTheRuntimeSays) {
  NEED_GPU();
  for (const auto& [kernel, about] : kernels(Device::open(0))) {
    const char* symbol = nullptr;
    check(cudaFuncGetName(&symbol, kernel), "cudaFuncGetName");
    const cudaFuncAttributes a = attributes(kernel);
    const auto r = emulator::resources(symbol, a.binaryVersion);
    ASSERT_TRUE(r.has_value()) << about.name << ": " << symbol;
    EXPECT_EQ(r->registers, a.numRegs) << about.name;
    EXPECT_EQ(r->static_shared_bytes, a.sharedSizeBytes) << about.name;
    EXPECT_EQ(r->local_bytes, a.localSizeBytes) << about.name;
  }
}

}  // namespace
}  // namespace ladders
