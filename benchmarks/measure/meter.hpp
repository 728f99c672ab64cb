// SPDX-License-Identifier: MIT
//
// What differs between the two programs, each of which links its own definitions: ladder_bench
// times rows on a GPU (sampler.cu), ladder_bench_emulated counts what they do on an emulated one.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "measure/sampling.hpp"
#include "model/ladder.hpp"

namespace ladders {

/// Enqueues a launch of a row.
using Launch = std::function<void(cudaStream_t)>;

/// A row, ready to be launched.
struct Subject {
  std::string row;  ///< its name
  Implementation implementation;
  std::optional<LaunchPlan> plan;      ///< none for library calls and host code
  std::optional<Occupancy> occupancy;  ///< likewise
  Launch launch;
  int buffers = 1;  ///< that launches take in turn
};

using Action = std::function<void()>;
/// A launch to count, which several passes repeat.
struct Counted {
  Action prepare;  ///< before each launch, not counted
  Action launch;   ///< all that it enqueues is counted
};

/// Measures launches on one device.
class Meter {
 public:
  virtual ~Meter() = default;

  /// Launches `subject` as often as needed. Throws CudaError.
  virtual Samples sample(const Subject& subject, const Sampling& sampling) = 0;

  /// The cold time of an empty kernel, in seconds. 0 where nothing is timed.
  virtual double launch_seconds() { return 0; }

  /// The same of a one-block sum, the median of `samples`: it distinguishes CUDA contexts.
  virtual double small_kernel_seconds(int /*samples*/) { return 0; }

  /// How this meter reads power and energy, or why it cannot: entries of the context of results.
  virtual std::map<std::string, std::string> energy_source() { return {}; }

  /// Joules and watts of launches of the subject, back to back, apart from the samples: by the
  /// names of docs/power.md. Throws CudaError, std::runtime_error where they cannot be read.
  virtual std::map<std::string, double> energy(const Subject&) { return {}; }

  /// How this meter reads hardware counters, or why it cannot. A profiler may slow later samples.
  virtual std::string hardware_counters() = 0;

  /// Hardware counters of each of these launches, with the caches as for samples; all empty without
  /// any. Throws CudaError, NoCounters.
  virtual std::vector<std::map<std::string, double>> count(std::vector<Counted> launches,
                                                           const Sampling&) {
    return std::vector<std::map<std::string, double>>(launches.size());
  }
};

std::unique_ptr<Meter> make_meter(const Device& device);

/// What results depend on beside the sources, by its key in the context: the versions of libraries,
/// or the compiler and commit of the table of registers.
std::vector<std::pair<const char*, std::string>> origins();

}  // namespace ladders
