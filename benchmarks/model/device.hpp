// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

namespace ladders {

struct LaunchPlan;

/// A version of these numbers: "12.6".
std::string dotted(auto first, auto... others) {
  std::string text = std::to_string(first);
  ((text += '.', text += std::to_string(others)), ...);
  return text;
}

/// The measured GPU, as the CUDA runtime describes it.
struct Device {
  int index = 0;
  std::string name, uuid;
  int compute_capability = 0;  ///< 90 for 9.0
  int sms = 0;
  int threads_per_sm = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
  size_t shared_bytes_per_block = 0;  ///< the opt-in limit
  size_t shared_bytes_per_sm = 0;     ///< of all its blocks, each with 1 KiB reserved
  /// Resident clusters by blocks per cluster (1, 2, 3, 4, 6 or 8; 0 for others) if each block fills
  /// an SM. The SMs of a cluster are neighbours, so some are left over.
  std::array<int, 9> clusters_at_once = {};
  double sm_clock_hz = 0, memory_clock_hz = 0;
  std::map<std::string, double> crossovers = {};  ///< tuned for it, by "ladder.name"

  /// Whether kernels may use TMA with this much shared memory per block.
  bool has_bulk_copies(size_t shared_bytes = 0) const;

  /// The number of devices, 0 without a driver or a GPU.
  static int count();
  /// Makes device `index` current and describes it. Throws CudaError if there is none.
  static Device open(int index);
};

/// How a kernel occupies a device with a launch plan.
struct Occupancy {
  int registers = 0;  ///< per thread
  size_t static_shared_bytes = 0;
  size_t local_bytes = 0;     ///< per thread: spills and indexed arrays
  int blocks_per_sm = 0;      ///< resident, ignoring clusters
  double theoretical = 0;     ///< resident threads over the SM's limit, 0..1
  double waves = 0;           ///< grid over resident blocks
  int resident_clusters = 0;  ///< on the whole device, 0 without clusters
};

/// Occupancy of `kernel` launched as planned. Allows the kernel the dynamic shared memory and the
/// cluster size that the plan asks for. Throws DoesNotFit if no block of the plan can run.
Occupancy occupancy(const void* kernel, const LaunchPlan& plan, const Device& device);

/// `plan` with as many blocks, in whole clusters, as are resident at once. Throws DoesNotFit.
LaunchPlan fill_device(LaunchPlan plan, const void* kernel, const Device& device);

}  // namespace ladders
