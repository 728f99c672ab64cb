// SPDX-License-Identifier: MIT
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.hpp"
#include "ladder.hpp"
#include "meter.hpp"

namespace ladders {

/// What one row came to.
struct Measurement {
  Samples samples;
  Verdict verdict;
  std::optional<LaunchPlan> plan;      ///< none for library calls and host code
  std::optional<Occupancy> occupancy;  ///< likewise
};

/// Where the time of a study went, in seconds.
struct Spent {
  double filling = 0;    ///< memory, inputs and references of new problems
  double verifying = 0;  ///< launches whose results are compared, and the comparisons
  double measuring = 0;  ///< of the device: samples, and L2 flushes between them
  double counting = 0;   ///< launches for the hardware counters
};

/// Measures rows on one device, by the program's meter. Each is verified before its first sample,
/// and what the last one has left is compared again: a kernel that leaves something behind is right
/// once and wrong ever after. Problems are kept while memory allows, so that a case is filled once
/// for all its rungs. Of small ones there are several alike, which the launches take in turn: where
/// its buffers lie makes most short rows up to 1 % quicker or slower, some up to 6 %, measured on
/// an H200, each time they are allocated anew.
class Study {
 public:
  Study(const Device& device, const Sampling& sampling);

  /// A study of device `index` in a context of its own choosing: on an H200 a kernel takes some 0.1
  /// us more (2 %) in one context than in another, for as long as they live, which no repetition
  /// within one can show. It is the same for all short rows, so contexts are made anew until the
  /// time of small kernels will_do(), 64 of them at most; nothing is to be chosen where nothing is
  /// timed. To be called before anything else holds device memory. Throws CudaError.
  static std::unique_ptr<Study> open(int index, const Sampling& sampling);

  const Device& device() const { return device_; }
  const Sampling& sampling() const { return sampling_; }
  const Spent& spent() const { return spent_; }
  /// See Meter. 0 where nothing is timed.
  double launch_seconds() { return sampling_.profile ? 0 : meter_->launch_seconds(); }
  /// What the context was chosen by, see Meter. 0 where none was chosen.
  double small_kernel_seconds() const { return small_kernel_seconds_; }
  std::string hardware_counters() { return meter_->hardware_counters(); }

  /// Throws DoesNotFit when the device is too small for the row, std::runtime_error when the row
  /// is wrong or fails to run.
  Measurement measure(const Row& row);

  /// What the hardware counts while the row runs again; throws as measure(). Once counted, later
  /// times may be others: a profiler takes device memory and stays attached.
  std::map<std::string, double> count(const Row& row);

  /// Runs the row once on each input and compares; throws as measure().
  Verdict verify(const Row& row) { return verify(row, problem(row)); }

  /// Quantity a second, from the median.
  double speed(const Row& row, const Measurement& measurement, Quantity quantity) const;

  /// Speed of the ceiling of this row's ladder, the lower one of two, measured at the first need.
  /// Empty if there is none or it cannot be measured, or is not to be, or if the row works in
  /// another precision.
  std::optional<double> ceiling(const Row& row);

 private:
  // Problems alike, as their launches are to take turns at.
  using Problems = std::vector<Problem*>;
  struct Kept {
    std::string name;
    size_t bytes = 0;  // of device memory that one has taken
    std::vector<std::unique_ptr<Problem>> problems = {};
  };

  std::optional<double> best_at(const std::string& path, const Row& row, Quantity quantity);
  Problem& problem(const Row& row) { return *kept(row, 1).problems.front(); }
  Problems problems_to_time(const Row& row);
  Kept& kept(const Row& row, size_t problems);
  std::unique_ptr<Problem> filled(const Row& row);
  Verdict verify(const Row& row, Problem& data);
  Verdict judge(const Row& row, const Implementation& implementation, Problem& problem);
  Launch launcher(const Row& row, const Implementation& implementation, const LaunchPlan& plan,
                  const Problems& problems);
  Subject subject(const Row& row, const Implementation& implementation, const Problems& problems);

  Device device_;
  Sampling sampling_;
  std::unique_ptr<Meter> meter_;
  double small_kernel_seconds_ = 0;
  Spent spent_;
  std::list<Kept> kept_;                                        // newest first
  std::map<std::string, Verdict> verdicts_;                     // of the rows that were right
  std::map<std::string, std::optional<Measurement>> ceilings_;  // empty where that failed
};

}  // namespace ladders
