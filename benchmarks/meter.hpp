// SPDX-License-Identifier: MIT
//
// What differs between the two programs that are built from these sources: ladder_bench times rows
// on a GPU (sampler.cu), ladder_bench_emulated counts what they do on an emulated one (emulated/).
// Each links its own definition of everything declared here.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.hpp"
#include "ladder.hpp"
#include "options.hpp"
#include "program.hpp"  // IWYU pragma: export
#include "sampling.hpp"

namespace ladders {

/// Enqueues a launch of a row.
using Launch = std::function<void(cudaStream_t)>;

/// What is measured.
struct Subject {
  std::string row;                     ///< its name
  const void* kernel = nullptr;        ///< null for library calls and host code
  std::optional<LaunchPlan> plan;      ///< likewise empty
  std::optional<Occupancy> occupancy;  ///< likewise
  Launch launch;
};

/// Takes the figures of launches on one device.
class Meter {
 public:
  virtual ~Meter() = default;

  /// Launches `subject` as often as it takes. Throws CudaError.
  virtual Samples sample(const Subject& subject, const Sampling& sampling) = 0;

  /// The cold time of a kernel that does nothing, in seconds. 0 where nothing is timed.
  virtual double launch_seconds() = 0;

  /// The cold time of one block's sum, the median of so many samples, each over several kernels of
  /// one source: by it CUDA contexts are told apart, in some of which all short kernels take
  /// longer.
  virtual double small_kernel_seconds(int samples) = 0;

  /// How this meter reads hardware counters, or why it cannot: for the results. From the first call
  /// on a profiler may be attached, which the times of later samples can show.
  virtual std::string hardware_counters() = 0;

  /// What the hardware counts in launches of `subject`, empty where it cannot. Throws CudaError.
  virtual std::map<std::string, double> count(const Subject& subject, const Sampling& sampling) = 0;
};

std::unique_ptr<Meter> make_meter(const Device& device);

/// Every counter that the meter may add to a row beside its times.
std::vector<std::string> counted_names();

/// Adapts the process to the command line, before a device is opened. Throws UsageError.
void configure(const Options& options);

}  // namespace ladders
