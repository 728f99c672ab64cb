// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ladders {

/// How rows are measured: the state of the caches, when sampling stops, and what else is measured.
struct Sampling {
  bool cold = true;                 ///< L2 holds nothing of the problem before a launch
  double device_seconds = 0.02;     ///< of all launches together, at least
  int least = 20;                   ///< samples, unless the wall limit comes first
  double noise = 0.001;             ///< relative standard error of the time to reach
  double wall_seconds = 0.5;        ///< stop by then, but with kFewest samples at least
  double settle_seconds = 10;       ///< to wait for a steady clock at most; 0: do not
  double warmup_seconds = 0;        ///< of launches before the first sample, at least one launch
  double small_kernel_seconds = 0;  ///< to reproduce another process's context (0: a fast one)
  int exactly = 0;                  ///< take this many samples, whatever the rest says (0: not set)
  bool profile = false;             ///< no samples: one launch, for an external profiler
  bool energy = false;              ///< after all rows are timed, if the driver tells
  bool hardware_counters = false;   ///< count after all rows are timed, if the meter can
  bool ceilings = true;             ///< measure a row's ceilings too, for its percentage
};

constexpr int kFewest = 5;  ///< samples of a row, whatever the limits say

/// What a counting meter reports of a row besides its counters.
struct Details {
  std::string text;                ///< for people: a line for each source line
  std::vector<std::string> lines;  ///< the same as JSON objects
  std::string occupancy;           ///< a JSON object: occupancy for other launches of the kernel
};

/// A meter's figures of a row's launches. Without `seconds` the row was not timed.
struct Samples {
  std::vector<double> seconds;   ///< of a launch, or the mean of several, in the order taken
  double measuring_seconds = 0;  ///< all of them, with the L2 flushes
  bool settled = false;          ///< taken while the driver held the clock down: means
  int late = 0;                  ///< samples that may include host time
  double sm_clock_hz = 0;        ///< meanwhile; 0 if it could not be read
  double host_seconds = 0;       ///< CPU time to emulate the launch
  std::map<std::string, double> counters;  ///< also of the energy and the hardware
  Details details;

  /// The time of a launch: the median or, under a power limit, the mean. There the clock swings
  /// about once per second, so that a mean over 5 s varies less than the median of five means.
  double launch_seconds() const;
  double noise() const;  ///< its relative standard error
};

/// Order statistics with linear interpolation; `fraction` in 0..1, `values` not empty. Ties are
/// spread over the step they were rounded to, as in grouped data: a median may not jump by a tick
/// of the events, 0.5 % of the shortest kernels on Hopper.
double quantile(std::vector<double> values, double fraction);

/// The relative standard error of the median: a quarter of its 95 % confidence interval, from order
/// statistic n / 2 - sqrt(n) to n / 2 + sqrt(n). Large where the median lies between two modes.
double median_noise(std::vector<double> values);

/// The relative standard error of the mean of at least two `values`.
double mean_noise(const std::vector<double>& values);

/// Whether these `seconds` suffice, each the mean of `launches`, all taken in `wall` seconds.
bool enough_samples(const std::vector<double>& seconds, int launches, const Sampling& sampling,
                    double wall);

/// The wall time, in seconds, over which each sample is a mean while the driver holds the clock
/// down.
double mean_seconds(const Sampling& sampling);

/// Whether these means, taken in `wall` seconds, suffice: their standard error is small, or three
/// times `settle_seconds` are over.
bool enough_means(const std::vector<double>& means, const Sampling& sampling, double wall);

/// Whether to measure in the last of the CUDA contexts in which small kernels took the times
/// `seen`: the `wanted` time or, if that is 0 or not among the first 32, the 25th percentile of at
/// least 12, which is fast, but common enough for other processes to find too. Tolerance grows with
/// their number.
bool context_is_fast_enough(const std::vector<double>& seen, double wanted);

/// Takes intervals until two in succession have the same SM clock within 0.5 %, for `least` seconds
/// or more, and `most` at most. `clock_of_interval` works for an interval and returns its clock in
/// Hz.
void settle(double least, double most, const std::function<double()>& clock_of_interval);

/// Samples work on the CPU with the host's clock; `work` returns when it is done.
Samples sample_host(const std::function<void()>& work, const Sampling& sampling);

double seconds_since(std::chrono::steady_clock::time_point start);

}  // namespace ladders
