// SPDX-License-Identifier: MIT
#pragma once

#include <list>
#include <set>

#include "measure/meter.hpp"

namespace ladders {

/// The result of one row.
struct Measurement {
  Samples samples;
  Verdict verdict;
  std::optional<LaunchPlan> plan;      ///< none for library calls and host code
  std::optional<Occupancy> occupancy;  ///< likewise
  std::string chosen;                  ///< by a choice: the name of the rung
  /// The lowest of the row's ceilings that could be measured, in its ladder's quantity per second.
  std::optional<double> ceiling;
};

/// A row whose result is not the reference's.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The time of a study by activity, in seconds.
struct Spent {
  double filling = 0;    ///< memory, inputs and references of new problems
  double verifying = 0;  ///< launches whose results are compared, and the comparisons
  double measuring = 0;  ///< device time of samples and L2 flushes
  double energy = 0;     ///< launches for the driver's energy counter
  double counting = 0;   ///< launches for the hardware counters
};

/// Measures rows on one device, by the program's meter. Each is verified before its first sample,
/// and after the last, to find kernels that are not idempotent. On the emulator a row has one
/// launch that is counted; only a kernel's first row runs on all other inputs before. Problems are
/// kept while memory allows, so that one serves all rungs of a case. Launches rotate over several
/// equal problems where these are small, since the speed of a short row depends on where its
/// buffers lie.
class Study {
 public:
  Study(const Device& device, const Sampling& sampling);

  /// A study of device `index` in a CUDA context whose short kernels are as fast as
  /// context_is_fast_enough() asks, since in some all are slower. Contexts are recreated at most 64
  /// times, and not at all where nothing is timed. Call this before anything else holds device
  /// memory. Throws CudaError.
  static std::unique_ptr<Study> open(int index, const Sampling& sampling);

  const Device& device() const { return device_; }
  /// Sets where choices change kernels.
  void set_crossovers(const std::map<std::string, double>& crossovers) {
    device_.crossovers = crossovers;
  }
  const Sampling& sampling() const { return sampling_; }
  const Spent& spent() const { return spent_; }
  /// See Meter. 0 where nothing is timed.
  double launch_seconds() { return sampling_.profile ? 0 : meter_->launch_seconds(); }
  /// See Meter: what the context was chosen by. 0 where none was chosen.
  double small_kernel_seconds() const { return small_kernel_seconds_; }
  std::map<std::string, std::string> energy_source() { return meter_->energy_source(); }
  std::string hardware_counters() { return meter_->hardware_counters(); }

  /// Throws DoesNotFit when the device is too small, WrongResult when the row is wrong.
  Measurement measure(const Row& row);

  /// How the row would be launched, without a run; throws DoesNotFit.
  Measurement plan(const Row& row) const {
    const Subject planned = subject(row);
    return {.plan = planned.plan,
            .occupancy = planned.occupancy,
            .chosen = planned.implementation.chosen};
  }

  /// Joules of a launch and what belongs to them, of another run of the row; throws as measure().
  std::map<std::string, double> energy(const Row& row);

  /// Hardware counters of other runs of these rows, all of one ladder and shape. A profiler may
  /// slow later rows. Throws as measure(), and NoCounters.
  std::vector<std::map<std::string, double>> count(const std::vector<Row>& rows);
  /// The row that was launched last by count().
  const std::string& under_way() const { return under_way_; }

  /// Launches the row on its inputs in turn, and compares each time; throws as measure(). By
  /// default on each once, and twice at least, which finds what the first launch has left behind.
  Verdict verify(const Row& row, int launches = kEach) {
    return verify(row, subject(row), problem(row), launches);
  }

  /// Quantity per second, from the median.
  double speed(const Row& row, const Measurement& measurement, Quantity quantity) const;

 private:
  struct Kept {
    std::string name;
    size_t bytes = 0;     // of device memory, per problem
    bool is_all = false;  // there is no room for more
    std::vector<std::unique_ptr<Problem>> problems = {};
  };

  Subject subject(const Row& row) const;  // all but its launch
  std::vector<Row> rows_of(const Ceiling& ceiling, const Row& row) const;
  std::optional<double> ceiling(const Row& row, const Implementation& implementation);
  Problem& problem(const Row& row) { return *kept(row, 1).problems.front(); }
  std::vector<Problem*> problems_to_time(const Row& row);
  void prepare_all(const std::vector<Problem*>& problems, const Subject& subject, bool has_input);
  Verdict judge_all(const Row& row, const std::vector<Problem*>& problems, const Subject& subject);
  Kept& kept(const Row& row, size_t problems);
  static constexpr int kEach = -1;
  Verdict verify(const Row& row, const Subject& subject, Problem& data, int launches = kEach);

  Device device_;
  Sampling sampling_;
  std::unique_ptr<Meter> meter_;
  double small_kernel_seconds_ = 0;
  Spent spent_;
  std::string under_way_;
  std::list<Kept> kept_;                                        // newest first
  std::map<std::string, Verdict> verdicts_;                     // of the rows that were right
  std::set<const void*> verified_kernels_;                      // of these rows
  std::map<std::string, std::optional<Measurement>> ceilings_;  // empty where that failed
};

}  // namespace ladders
