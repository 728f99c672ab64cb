// SPDX-License-Identifier: MIT
#include "model/device.hpp"

#include <cstdio>

#include "model/launch.hpp"

namespace ladders {
namespace {

double clock_hz(cudaDeviceAttr name, int device) {
  int khz = 0;
  check(cudaDeviceGetAttribute(&khz, name, device), "cudaDeviceGetAttribute");
  return 1e3 * khz;
}

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

// What clusters_at_once is asked of: any kernel that may use all shared memory of an SM.
__global__ void fill_an_sm() {}

std::array<int, 9> clusters_on(const Device& device) {
  std::array<int, 9> clusters = {0, device.sms};
  if (device.compute_capability < 90) return clusters;
  for (const unsigned blocks : {2, 3, 4, 6, 8}) try {
      const LaunchPlan plan{
          .block = 128, .shared_bytes = device.shared_bytes_per_block, .cluster = blocks};
      clusters[blocks] =
          occupancy(reinterpret_cast<const void*>(fill_an_sm), plan, device).resident_clusters;
    } catch (const DoesNotFit&) {  // none of that size
    }
  return clusters;
}

}  // namespace

int Device::count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

Device Device::open(int index) {
  check(cudaSetDevice(index), "cudaSetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  // The clocks are not in CUDA 13's cudaDeviceProp.
  Device device = {.index = index,
                   .name = properties.name,
                   .uuid = format_uuid(properties.uuid),
                   .compute_capability = properties.major * 10 + properties.minor,
                   .sms = properties.multiProcessorCount,
                   .threads_per_sm = properties.maxThreadsPerMultiProcessor,
                   .memory_bytes = properties.totalGlobalMem,
                   .l2_bytes = size_t(properties.l2CacheSize),
                   .shared_bytes_per_block = properties.sharedMemPerBlockOptin,
                   .shared_bytes_per_sm = properties.sharedMemPerMultiprocessor,
                   .sm_clock_hz = clock_hz(cudaDevAttrClockRate, index),
                   .memory_clock_hz = clock_hz(cudaDevAttrMemoryClockRate, index)};
  device.clusters_at_once = clusters_on(device);
  return device;
}

bool Device::has_bulk_copies(size_t shared_bytes) const {
  return compute_capability >= 90 && shared_bytes_per_block >= shared_bytes;
}

Occupancy occupancy(const void* kernel, const LaunchPlan& plan, const Device& device) {
  allow(kernel, plan);
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  const int threads = int(plan.block.x * plan.block.y * plan.block.z);
  Occupancy result{.registers = attributes.numRegs,
                   .static_shared_bytes = attributes.sharedSizeBytes,
                   .local_bytes = attributes.localSizeBytes};
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&result.blocks_per_sm, kernel, threads,
                                                      plan.shared_bytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  double resident_blocks = double(result.blocks_per_sm) * device.sms;
  if (plan.cluster > 1 && result.blocks_per_sm > 0) {
    LaunchPlan one = plan;
    one.grid = plan.cluster;  // the plan's may be empty, which the question does not take
    const LaunchConfig config(one, nullptr);
    const cudaError_t status =
        cudaOccupancyMaxActiveClusters(&result.resident_clusters, kernel, config.get());
    if (status != cudaSuccess) {
      cudaGetLastError();
      throw DoesNotFit("no clusters of " + std::to_string(plan.cluster) +
                       " blocks: " + cudaGetErrorString(status));
    }
    resident_blocks = double(result.resident_clusters) * plan.cluster;
  }
  if (resident_blocks == 0) throw DoesNotFit("no block or cluster of this size fits on the device");
  if (plan.grid.y > 65535 || plan.grid.z > 65535)
    throw DoesNotFit("needs more than 65535 blocks along y or z");
  result.theoretical = resident_blocks * threads / (double(device.threads_per_sm) * device.sms);
  result.waves = double(plan.grid.x) * plan.grid.y * plan.grid.z / resident_blocks;
  return result;
}

LaunchPlan fill_device(LaunchPlan plan, const void* kernel, const Device& device) {
  plan.grid = plan.cluster;  // a legal grid to ask about
  const Occupancy o = occupancy(kernel, plan, device);
  plan.grid = plan.cluster > 1 ? o.resident_clusters * plan.cluster
                               : unsigned(o.blocks_per_sm * device.sms);
  return plan;
}

}  // namespace ladders
