// SPDX-License-Identifier: MIT
#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "cuda_check.hpp"
#include "ladder.hpp"
#include "launch.hpp"
#include "program.hpp"

namespace ladders {
namespace {

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
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
  // Clocks left cudaDeviceProp in CUDA 13; the attributes are there in every version, in kHz.
  return {.index = index,
          .name = properties.name,
          .uuid = format_uuid(properties.uuid),
          .compute_capability = properties.major * 10 + properties.minor,
          .sms = properties.multiProcessorCount,
          .threads_per_sm = properties.maxThreadsPerMultiProcessor,
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<size_t>(properties.l2CacheSize),
          .shared_bytes_per_block = properties.sharedMemPerBlockOptin,
          .sm_clock_hz = 1e3 * attribute(cudaDevAttrClockRate, index),
          .memory_clock_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, index)};
}

const Device& current_gpu() {
  static const Device h200 = {.compute_capability = 90,
                              .sms = 132,
                              .threads_per_sm = 2048,
                              .shared_bytes_per_block = 232448};
  static thread_local std::map<int, Device> opened;
  int index = 0;
  if (Device::count() == 0 || cudaGetDevice(&index) != cudaSuccess) return h200;
  const auto found = opened.find(index);
  return found != opened.end() ? found->second
                               : opened.emplace(index, Device::open(index)).first->second;
}

bool has_bulk_copies(size_t shared_bytes) {
  return !kEmulated && current_gpu().compute_capability >= 90 &&
         current_gpu().shared_bytes_per_block >= shared_bytes;
}

Occupancy occupancy(const void* kernel, const LaunchPlan& plan, const Device& device) {
  allow(kernel, plan);
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  const int threads = static_cast<int>(plan.block.x * plan.block.y * plan.block.z);
  const double blocks = double(plan.grid.x) * plan.grid.y * plan.grid.z;
  Occupancy result{.registers = attributes.numRegs,
                   .static_shared_bytes = attributes.sharedSizeBytes,
                   .local_bytes = attributes.localSizeBytes};
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&result.blocks_per_sm, kernel, threads,
                                                      plan.shared_bytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  double resident_blocks = double(result.blocks_per_sm) * device.sms;
  result.theoretical = double(result.blocks_per_sm) * threads / device.threads_per_sm;
  if (plan.cluster > 1) {
    LaunchConfig config(plan, nullptr);
    const cudaError_t status =
        cudaOccupancyMaxActiveClusters(&result.resident_clusters, kernel, config.get());
    if (status != cudaSuccess) {
      cudaGetLastError();
      throw DoesNotFit("no clusters of " + std::to_string(plan.cluster) +
                       " blocks: " + cudaGetErrorString(status));
    }
    resident_blocks = double(result.resident_clusters) * plan.cluster;
    result.theoretical = resident_blocks * threads / (double(device.threads_per_sm) * device.sms);
  }
  if (resident_blocks == 0) throw DoesNotFit("no block or cluster of this size fits on the device");
  if (plan.grid.y > 65535 || plan.grid.z > 65535)
    throw DoesNotFit("needs more than 65535 blocks along y or z");
  result.waves = blocks / resident_blocks;
  return result;
}

LaunchPlan fill_device(LaunchPlan plan, const void* kernel, const Device& device) {
  plan.grid = plan.cluster;  // a legal grid to ask about
  const Occupancy o = occupancy(kernel, plan, device);
  const int blocks = plan.cluster > 1 ? o.resident_clusters * static_cast<int>(plan.cluster)
                                      : o.blocks_per_sm * device.sms;
  plan.grid = static_cast<unsigned>(blocks);
  return plan;
}

}  // namespace ladders
