// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace ladders {

struct LaunchPlan;

/// The GPU that is measured, as the CUDA runtime describes it.
struct Device {
  int index = 0;
  std::string name, uuid;
  int compute_capability = 0;  ///< 90 for 9.0
  int sms = 0;
  int threads_per_sm = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
  size_t shared_bytes_per_block = 0;  ///< the opt-in limit
  double sm_clock_hz = 0, memory_clock_hz = 0;

  /// The number of devices, 0 without a driver or a GPU.
  static int count();
  /// Makes device `index` current and describes it. Throws CudaError if there is none.
  static Device open(int index);
};

/// The GPU that is current; without one, what an H200 has of what rungs choose by.
const Device& current_gpu();

/// Whether kernels may copy in bulk on it, to so much shared memory of a block: from Hopper on, but
/// not on the emulator.
bool has_bulk_copies(size_t shared_bytes = 0);

/// What the launch plan makes of a kernel on a device.
struct Occupancy {
  int registers = 0;  ///< a thread
  size_t static_shared_bytes = 0;
  size_t local_bytes = 0;     ///< a thread: spills and indexed arrays
  int blocks_per_sm = 0;      ///< resident, were there no clusters
  double theoretical = 0;     ///< resident threads over the SM's limit, 0..1
  double waves = 0;           ///< grid over resident blocks
  int resident_clusters = 0;  ///< on the whole device, 0 without clusters
};

/// Occupancy of `kernel` launched as planned; allows the kernel the dynamic shared memory and the
/// cluster size that the plan asks for. Throws DoesNotFit if no block of the plan can run.
Occupancy occupancy(const void* kernel, const LaunchPlan& plan, const Device& device);

/// `plan` with a grid of as many blocks as are resident at once (whole clusters). Throws
/// DoesNotFit if that is none.
LaunchPlan fill_device(LaunchPlan plan, const void* kernel, const Device& device);

}  // namespace ladders
