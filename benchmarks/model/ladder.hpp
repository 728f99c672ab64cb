// SPDX-License-Identifier: MIT
//
// The ladder as data: the table of rungs at the end of each kernels/<ladder>/ladder.cu, which
// registration, launch, occupancy, tests, JSON context, plots and README tables all read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "model/cuda_check.hpp"
#include "model/device.hpp"

namespace ladders {

/// One dimension of a ladder's cases.
struct Axis {
  std::string name;
  std::vector<std::string> labels = {};  ///< of the values 0, 1 and so on, for the names of cases
  bool facet = false;                    ///< splits plots instead of running along them
  int64_t least = 0, most = 1 << 30;     ///< what it takes ...
  std::vector<int64_t> only = {};        ///< ... or the only values, if any
};

/// The values of a ladder's axes, in their order.
using Shape = std::vector<int64_t>;

/// One shape of a ladder, with the value of the rung's own sweep if it has one.
class Case {
 public:
  Case(const std::vector<Axis>& axes, const Shape& shape);
  Case with(const Axis& axis, int64_t value) const;

  /// The value of an axis; throws std::out_of_range if there is none of that name.
  int64_t operator[](std::string_view axis) const;
  /// "rows:4096/columns:4096/element:4"; empty without axes.
  std::string name() const;

 private:
  struct Entry {
    std::string axis, text;
    int64_t value;
  };
  std::vector<Entry> entries_;
};

/// Where one way to launch a choice takes over from another: at shapes whose size is at least
/// `value`. Built in as measured on an H200, unless it says otherwise; `ladder tune` measures it.
struct Crossover {
  std::string name;  ///< "reduction.bulk_ring_from"
  double value;
  std::function<double(const Case&, const Device&)> size;
  std::vector<Shape> probes;  ///< shapes at which both ways are measured to find it

  /// Its value on a device.
  double on(const Device& device) const {
    const auto tuned = device.crossovers.find(name);
    return tuned == device.crossovers.end() ? value : tuned->second;
  }
  bool reached(const Case& c, const Device& device) const { return size(c, device) >= on(device); }
};

/// The size of a shape along an axis.
inline auto along(std::string axis) {
  return [axis](const Case& c, const Device&) { return double(c[axis]); };
}

/// The shapes that take each axis at each of its values.
std::vector<Shape> every(const std::vector<std::vector<int64_t>>& values);

/// How a kernel is launched; its occupancy is computed from the same plan.
struct LaunchPlan {
  dim3 grid = 1, block = 1;
  size_t shared_bytes = 0;  ///< dynamic shared memory per block
  unsigned cluster = 1;     ///< blocks per cluster, along x
};

/// The algorithmic work of one launch, whichever rung does it.
struct Work {
  double flops = 0;
  double bytes_read = 0, bytes_written = 0;
  double atomics = 0;  ///< only of roofs of atomics
  double loads = 0;    ///< each of which waits for the one before: only where latency is measured
  double bytes() const { return bytes_read + bytes_written; }
};

/// A row passes if nothing is wrong and both errors are within the limit (a NaN is not).
struct Verdict {
  double relative_error = 0;  ///< in Ladder::error_unit, 0 for exact results
  double worst_error = 0;     ///< of the worst element, relative to its own scale
  /// A library's errors on the same inputs, if one is compared, and the largest ratio to them.
  std::optional<double> library_relative_error = {}, library_worst_error = {};
  std::optional<double> error_over_library = {};
  std::string wrong = {};  ///< what is wrong, with the first wrong element; empty if nothing

  /// Takes the larger of each error.
  void join(const Verdict& other) {
    for (const auto error : {&Verdict::relative_error, &Verdict::worst_error})
      this->*error = std::max(this->*error, other.*error);
    for (const auto error : {&Verdict::library_relative_error, &Verdict::library_worst_error,
                             &Verdict::error_over_library})
      this->*error = std::max(this->*error, other.*error);
  }
};

/// The device buffers of one case and the reference its rungs are verified against.
class Problem {
 public:
  explicit Problem(const Device& device) : device_(device) {}
  virtual ~Problem() = default;

  const Device& device() const { return device_; }

  struct Memory {
    void* data;
    size_t bytes;
  };
  /// What a launch writes: poisoned before a verification, zeroed for rungs that accumulate.
  virtual Memory output() const = 0;

  /// The number of inputs. Rungs are verified on all of them and timed on the last.
  virtual int inputs() const { return 1; }
  /// Prepares input 0, 1, ... for a launch; the output has been poisoned.
  virtual void prepare(int /*input*/) {}
  /// Compares every element of the output with an exact or FP64 reference for this input.
  virtual Verdict compare();

  /// Fills the output with 0xFF: NaN as floating point, -1 as integer.
  virtual void poison();

  /// The workspace of each library call. Its size is asked for once: asking again would be timed.
  std::map<const void*, DeviceBuffer<char>> workspaces;

 private:
  Device device_;
};

/// A kernel or a library call, ready to run on the problems of its ladder.
struct Implementation {
  const void* kernel = nullptr;  ///< null for library calls and host code
  std::function<LaunchPlan(const Case&, const Device&, const void* kernel)> plan = {};
  std::function<void(const LaunchPlan&, Problem&, cudaStream_t)> launch = {};
  bool on_host = false;  ///< runs on the CPU: timed by the host's clock
  /// Replaces Problem::compare where the rungs of a ladder compute different things.
  std::function<Verdict(const Problem&)> check = {};
  /// After the output is poisoned: writes the input of an in-place rung into it, or clears what
  /// else is written; not timed.
  std::function<void(Problem&)> fill = {};
  /// Adds to its output or works in place, so only the first launch gives the right result.
  bool not_idempotent = false;
  std::string chosen = {};  ///< of a choice: the name of the rung whose kernel this is
};

/// A step of the climb, a choice of a step for each shape, a library, or a measured limit.
enum class Role { step, choice, peer, ceiling };

/// A limit of a rung: the best row of "ladder/rung", or in its own ladder that of the same case.
struct Ceiling {
  std::string rung;
  double products = 1;          ///< its operations per operation of the limited rung
  bool other_quantity = false;  ///< counts bytes where the ladder's speed is FLOP/s, or vice versa
};

/// An extra axis of one rung; the best of its values represents the rung.
struct Sweep {
  Axis axis;
  std::vector<int64_t> measured, tested;
  std::vector<int64_t> small = {};  ///< as measured, if empty
};

/// What not every GPU has.
struct Feature {
  int compute_capability = 0;           ///< the least that has it, 90 for 9.0
  std::string_view hardware_only = {};  ///< its name, if no emulator has it: rows are skipped there
  std::string_view only_there = {};  ///< its name, if the project has it for that generation alone
};
inline constexpr Feature kClusters{90}, kTma{90}, kTensorCores{80, "tensor cores"},
    kWgmma{90, "wgmma", "wgmma"}, kSetmaxnreg{90, {}, "setmaxnreg"};

/// A row of the table: one idea, one kernel.
struct Rung {
  std::string name;
  std::string idea;  ///< one sentence
  Implementation implementation;
  Role role = Role::step;
  std::string builds_on = {};  ///< its parent: the rung that it improves on; empty for the first
  /// The measured shapes at which it should not be slower than its parent; all, if empty.
  std::function<bool(const Case&)> meant_for = {};
  std::string shows = {};  ///< one sentence: its lesson, where it should not be faster
  /// A choice may not take it, since it requires more of its inputs.
  bool by_name_only = false;
  bool zero_output = false;        ///< each launch zeroes the output first, which is timed
  std::vector<Sweep> sweeps = {};  ///< every combination of their values is a row
  std::string target = {};         ///< the counter that the idea should change, if any
  Feature needs = {};              ///< what the GPU must have
  /// Why a case cannot run, or empty: its row is skipped for that reason.
  std::function<std::string(const Case&, const Device&)> skip = {};
  /// The measured shapes that have a row of this rung; all, if empty.
  std::function<bool(const Case&)> measured = {};
  std::string precision = {};                       ///< if not the ladder's ("tf32")
  std::optional<Ceiling> ceiling = {};              ///< if not the ladder's
  double error_limit = 0;                           ///< of relative_error, if not the ladder's
  std::map<std::string, double> predictions = {};   ///< counters known before measuring
  std::map<std::string, std::string> factors = {};  ///< in an experiment: its level of each factor
  /// The implementation, where it depends on the case or on the GPU.
  std::function<Implementation(const Case&, const Device&)> choose = {};
  /// The work, where the rungs are different measurements; otherwise the ladder's.
  std::function<Work(const Case&, const Device&)> work = {};

  Implementation at(const Case& point, const Device& device) const {
    return choose ? choose(point, device) : implementation;
  }
};

enum class Quantity { flops, bytes };

/// One problem, climbed from the naive kernel up. Its steps form a tree.
struct Ladder {
  std::string name, title;
  Quantity quantity = Quantity::bytes;  ///< the speed is this per second
  std::string ceiling;                  ///< "ladder/rung" that percent_of_ceiling refers to
  /// In the other quantity, converted by a row's arithmetic intensity: the lower of both counts.
  std::string other_ceiling = {};
  std::string input;                 ///< the distribution of the inputs
  std::string error_unit = "exact";  ///< what relative_error is relative to, if it need not be 0
  double error_limit = 0;
  std::vector<Axis> axes;
  /// Makes it an experiment: its steps are combinations of these factors, with no parents.
  std::vector<std::string> factors = {};
  std::vector<Shape> measured;
  std::vector<Shape> small;  ///< emulated, and measured to compare with the emulator
  std::vector<Shape> tested;
  Shape headline, small_headline;
  std::function<Work(const Case&, const Device&)> work;
  std::function<std::unique_ptr<Problem>(const Case&, const Device&)> problem;
  std::vector<Crossover> crossovers = {};  ///< what its choices depend on
  /// Bytes of device memory that a problem and its verification take, if more than its work's.
  std::function<double(const Case&)> memory = {};
  std::vector<Rung> rungs;
};

/// A ladder's `problem`, if that is a P at all cases.
template <class P>
std::unique_ptr<Problem> problem_of(const Case& c, const Device& device) {
  return std::make_unique<P>(c, device);
}

/// The same rungs for several values of an axis: implementations, or what chooses them, are those
/// of the i-th list at values[i]; all else is the first list's.
std::vector<Rung> by_axis(const std::string& axis, const std::vector<int64_t>& values,
                          std::vector<std::vector<Rung>> instantiations);

/// `rungs`, followed by `more`.
std::vector<Rung> joined(std::vector<Rung> rungs, std::vector<Rung> more);

/// Throws std::invalid_argument if its steps form no tree, or files cannot hold its texts.
void check_ladder(const Ladder& ladder);

/// Throws std::invalid_argument if a ladder is wrong or names a shape or a ceiling that is not
/// there.
void check_catalogue(const std::vector<Ladder>& ladders);

/// The rung of that name; null if there is none.
const Rung* find_rung(const Ladder& ladder, std::string_view name);

/// The rung, its parent and so on, to the first rung of its ladder.
std::vector<const Rung*> path_to_root(const Ladder& ladder, const Rung& rung);

/// The ceilings of a rung's rows, the lowest of which counts. None for a rung of another precision,
/// and none for a choice: a row of a choice has the ceilings of the rung that was chosen.
std::vector<Ceiling> ceilings_of(const Ladder& ladder, const Rung& rung);

/// Every ladder, in the order of tables and plots.
const std::vector<Ladder>& catalogue();

/// One benchmark: a rung at a case.
struct Row {
  const Ladder* ladder;
  const Rung* rung;
  Case shape;  ///< without the sweep: determines the problem
  Case point;  ///< with it
  /// "sgemm/tiled/m:512/n:512/k:512"
  std::string name() const;
};

/// Which shapes of a ladder: those measured on GPUs, small ones that can be emulated, or awkward
/// ones for tests.
enum class Shapes { measured, small, tested };

/// The rows of a ladder, case by case, so that rungs of one case run after one another.
std::vector<Row> rows(const Ladder& ladder, Shapes shapes);

/// The names of the measured cases that a rung is meant for; empty if that is all.
std::vector<std::string> meant_for(const Ladder& ladder, const Rung& rung);

/// Why a row cannot run on this device, or empty.
std::string skip_reason(const Row& row, const Device& device);

/// Bytes of device memory that a problem takes, about.
double memory(const Ladder& ladder, const Case& shape, const Device& device);

/// The work of one launch of a row.
Work work(const Row& row, const Device& device);

}  // namespace ladders
