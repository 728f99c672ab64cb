// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ladders {

/// When to stop sampling, and in which state of the caches to sample. With the defaults a thousand
/// rows take two minutes on an H200.
struct Sampling {
  bool cold = true;                 ///< L2 holds nothing of the problem at a launch
  double device_seconds = 0.02;     ///< of all launches together, at least
  int least = 20;                   ///< samples, unless the wall limit comes first
  double noise = 0.001;             ///< relative standard error of the median that is good enough
  double wall_seconds = 0.5;        ///< stop by then, but with 5 samples at least
  double warmup_seconds = 0;        ///< of launches before the first sample, at least one launch
  double small_kernel_seconds = 0;  ///< as another process had it (0: a quick context will do)
  int exactly = 0;                  ///< this many samples, whatever the rest says (0: not set)
  bool profile = false;             ///< no samples: one launch, shown to an outside profiler
  bool hardware_counters = false;   ///< counted once all rows are timed, where the meter can
  bool ceilings = true;             ///< those of a row are measured too, for its percentage
};

/// What a counting meter has to say of a row beside its counters.
struct Details {
  std::string text;                ///< for people: a line for each source line
  std::vector<std::string> lines;  ///< the same as JSON objects
  std::string occupancy;           ///< a JSON object: occupancy for other launches of the kernel
};

/// What a meter makes of a row's launches. Without `seconds` the row was not timed.
struct Samples {
  std::vector<double> seconds;             ///< of a launch, or the mean of several, as taken
  double measuring_seconds = 0;            ///< all of them, and what the device flushes before
  double sm_clock_hz = 0;                  ///< meanwhile; 0 if it could not be read
  double host_seconds = 0;                 ///< that the CPU took to emulate the launch
  std::map<std::string, double> counters;  ///< what was counted
  Details details;
};

/// Whether `seconds`, each the mean of so many launches, taken in `wall` seconds, will do.
bool enough(const std::vector<double>& seconds, int launches, const Sampling& sampling,
            double wall);

/// Whether the CUDA context is one to measure in, by how long small kernels took in each of those
/// `seen`, it being the last. Their time is to be as `wanted`, or where that is 0, or not met by
/// the first 32, as the slowest of the quickest quarter of at least 12: a quick one, but not the
/// quickest, which other processes would look for in vain. The more were seen, the less near.
bool will_do(const std::vector<double>& seen, double wanted);

/// Samples work on the CPU with the host's clock; `work` returns when it is done.
Samples sample_host(const std::function<void()>& work, const Sampling& sampling);

/// The host's clock since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

}  // namespace ladders
