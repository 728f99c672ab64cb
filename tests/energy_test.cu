// SPDX-License-Identifier: MIT
//
// Energy of launches; and rows that stay cold whatever a kernel does to the L2.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu.hpp"
#include "gpu/nvml.hpp"
#include "measure/study.hpp"

namespace ladders {
namespace {

TEST(Energy, WithoutADriverThereIsAReason) {
  if (dlopen("libnvidia-ml.so.1", RTLD_NOW)) GTEST_SKIP() << "there is a driver";
  try {
    open_nvml("0000:01:00.0");
    FAIL() << "no exception";
  } catch (const NoNvml& reason) {
    EXPECT_STREQ(reason.what(), "libnvidia-ml.so.1 cannot be loaded");
  }
}

TEST(GpuEnergy, OfALaunchIsPowerTimesItsTime) {
  NEED_GPU();
  Study study(Device::open(0), {.exactly = 3});
  auto source = study.energy_source();
  if (source["energy_source"].starts_with("none")) GTEST_SKIP() << source["energy_source"];
  const Ladder& ladder = *std::ranges::find(catalogue(), "transpose", &Ladder::name);
  int rows_read = 0;
  for (const Row& row : rows(ladder, Shapes::small)) {
    if (row.rung->name != "padded") continue;
    auto energy = study.energy(row);
    ++rows_read;
    EXPECT_NEAR(energy["joules"], energy["watts"] * energy["energy_launch_seconds"],
                1e-9 * energy["joules"]);
    EXPECT_GT(energy["watts"], 5);
    EXPECT_LT(energy["watts"], 1.2 * std::stod(source["watts_limit"]));
    EXPECT_GT(energy["celsius"], 0);
    EXPECT_GT(energy["energy_clock_hz"], 1e8);
    EXPECT_NEAR(energy["power_over_energy"], 1, 0.2);  // two sources of the driver
  }
  EXPECT_GT(rows_read, 0);
}

__global__ void add_up(const unsigned* data, size_t count, unsigned* sum) {
  unsigned own = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    own += data[i];
  if (own != 0) atomicAdd(sum, own);
}

// Its input persists in a part of the L2 that reading other memory does not reach.
TEST(GpuCounters, RowsAreColdThoughTheirLinesPersist) {
  NEED_GPU();
  const Device device = Device::open(0);
  if (device.compute_capability < 80) GTEST_SKIP() << "no lines of this L2 can persist";
  constexpr size_t kBytes = 8 << 20;
  check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 2 * kBytes), "the limit");
  const auto data = zeros<unsigned>(kBytes / sizeof(unsigned));
  const auto sum = zeros<unsigned>(1);
  cudaLaunchAttribute window{.id = cudaLaunchAttributeAccessPolicyWindow};
  window.val.accessPolicyWindow = {.base_ptr = const_cast<unsigned*>(data.data()),
                                   .num_bytes = kBytes,
                                   .hitRatio = 1,
                                   .hitProp = cudaAccessPropertyPersisting,
                                   .missProp = cudaAccessPropertyStreaming};
  const Subject planted{.row = "planted", .launch = [&](cudaStream_t stream) {
                          const cudaLaunchConfig_t config{.gridDim = unsigned(device.sms),
                                                          .blockDim = 512,
                                                          .stream = stream,
                                                          .attrs = &window,
                                                          .numAttrs = 1};
                          check(cudaLaunchKernelEx(&config, add_up, data.data(), data.size(),
                                                   const_cast<unsigned*>(sum.data())),
                                "launch");
                        }};
  const auto meter = make_meter(device);
  const Counted planted_once{.prepare = [] {}, .launch = [&] { planted.launch(nullptr); }};
  auto cold = meter->count({planted_once}, {.cold = true}).front();
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
  cudaCtxResetPersistingL2Cache();
  if (cold.empty()) GTEST_SKIP() << meter->hardware_counters();
  EXPECT_GT(cold["dram_read_bytes"], 0.95 * kBytes);
}

}  // namespace
}  // namespace ladders
