// SPDX-License-Identifier: MIT
//
// The ladder as data. A ladder file in kernels/ ends in one table of rungs; registration, launch,
// occupancy, tests, JSON context, plots and README tables all read that table and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_check.hpp"
#include "device.hpp"

namespace ladders {

/// One dimension of a ladder's cases. Values are integers; with labels a value is an index into
/// them and names print the label. A facet splits plots instead of running along them.
struct Axis {
  std::string name;
  std::vector<std::string> labels = {};
  bool facet = false;
};

/// The values of a ladder's axes, in their order.
using Shape = std::vector<int64_t>;

/// One shape of one ladder, with the value of the rung's own sweep if it has one.
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

/// How a kernel is launched. The timed launch and the occupancy figures both come from it.
struct LaunchPlan {
  dim3 grid = 1, block = 1;
  size_t shared_bytes = 0;  ///< dynamic shared memory a block
  unsigned cluster = 1;     ///< blocks a cluster, along x
};

/// What one launch must do, whichever rung does it: algorithmic, not what a kernel happens to do.
struct Work {
  double flops = 0;
  double bytes_read = 0, bytes_written = 0;
  double atomics = 0;  ///< counted in a ladder of atomics alone
  double bytes() const { return bytes_read + bytes_written; }
};

/// The outcome of a verification. A row passes if nothing is wrong and both errors are within the
/// limit (a NaN is not).
struct Verdict {
  double relative_error = 0;  ///< 0 for exact results; Ladder::error_unit says what it relates to
  double worst_error = 0;     ///< of the worst element, relative to its own scale
  /// A library's errors on the same inputs, where it has any to be held against.
  std::optional<double> library_relative_error = {}, library_worst_error = {};
  /// The larger of both errors over the library's, of the input where it is largest.
  std::optional<double> error_over_library = {};
  std::string wrong = {};  ///< what is wrong, with the first wrong element; empty if nothing
};

/// The device buffers of one case and the reference its rungs are verified against.
class Problem {
 public:
  virtual ~Problem() = default;

  struct Memory {
    void* data;
    size_t bytes;
  };
  /// What a launch writes: poisoned before a verification, zeroed for rungs that accumulate.
  virtual Memory output() const = 0;

  /// The inputs that rungs are verified on, in turn; what the last leaves is what is timed.
  virtual int inputs() const { return 1; }
  /// Makes ready input 0, 1, ... for a launch; the output has been poisoned.
  virtual void prepare(int /*input*/) {}
  /// Compares every element of the output with an exact or FP64 reference for the input that was
  /// prepared last. Not needed where each rung has a check of its own.
  virtual Verdict compare();

  /// Fills the output with 0xFF: NaN as floating point, -1 as integer.
  virtual void poison();

  /// Scratch memory for a library call: `bytes` of it asked for at the first call, then kept.
  struct Workspace {
    DeviceBuffer<char> memory;
    bool sized = false;  ///< asking again would be inside the time
  } workspace;
};

/// A kernel or a library call, ready to run on the problems of its ladder.
struct Implementation {
  /// The kernel's address for occupancy and attributes; null for library calls and host code.
  const void* kernel = nullptr;
  std::function<LaunchPlan(const Case&, const Device&, const void* kernel)> plan = {};
  std::function<void(const LaunchPlan&, Problem&, cudaStream_t)> launch = {};
  bool on_host = false;  ///< runs on the CPU: timed by the host's clock
  /// The comparison after one launch on a poisoned output, where the rungs of a ladder compute
  /// different things; otherwise Problem::compare.
  std::function<Verdict(const Problem&)> check = {};
  /// Puts into the poisoned output what a rung that works in place is to find there; not timed.
  std::function<void(Problem&)> fill = {};
  /// Works on what is there (adds to it, or in place): right once, and no more.
  bool adds = false;
};

enum class Role { step, peer, ceiling };

/// An extra axis that one rung has alone; the best of its values stands for the rung.
struct Sweep {
  Axis axis;
  std::vector<int64_t> measured, tested;
  std::vector<int64_t> small = {};  ///< as measured, if empty
};

/// A row of the table: one idea, one kernel.
struct Rung {
  std::string name;
  std::string idea;  ///< one sentence
  Implementation implementation;
  Role role = Role::step;
  bool zero_output = false;        ///< the output is zeroed by each launch, inside the time
  std::vector<Sweep> sweeps = {};  ///< every combination of their values is a row
  std::string moves = {};          ///< the counter that the idea is to move, empty if none
  int compute_capability = 0;      ///< the least needed, 90 for 9.0
  /// Why no emulator can run it ("TMA"), or empty: it becomes a skipped row there.
  std::string hardware_only = {};
  /// Why a case cannot run, or empty: it becomes a skipped row with that reason.
  std::function<std::string(const Case&, const Device&)> skip = {};
  /// Which of the measured shapes have rows of this rung; all of them, if empty.
  std::function<bool(const Case&)> measured = {};
  std::string precision = {};  ///< set where it is not the ladder's own ("tf32")
  std::string ceiling = {};    ///< "ladder/rung", where it is not the ladder's,
  double products = 1;         ///< and how many operations there make one of this rung
  double error_limit = 0;      ///< relative error allowed, where it is not the ladder's own
  std::map<std::string, double> predictions = {};  ///< counters known before measuring
  /// The implementation for a case, where it depends on one of the axes (see by_axis).
  std::function<Implementation(const Case&)> choose = {};
  /// The work, where the rungs are different measurements; otherwise the ladder's.
  std::function<Work(const Case&, const Device&)> work = {};

  Implementation at(const Case& point) const { return choose ? choose(point) : implementation; }
};

enum class Quantity { flops, bytes };

/// One problem, climbed from the naive kernel up.
struct Ladder {
  std::string name, title;
  Quantity quantity;    ///< the rate that is this ladder's speed
  std::string ceiling;  ///< "ladder/rung" that percent_of_ceiling is taken against
  /// One that counts the other quantity, where which of the two is lower depends on the case: the
  /// percentage is of the lower one, a row's FLOPs a byte making one quantity of the other.
  std::string other_ceiling = {};
  std::string input;       ///< what the inputs are drawn from
  std::string error_unit;  ///< what relative_error is relative to; "exact" where it must be 0
  double error_limit = 0;
  std::vector<Axis> axes;
  std::vector<Shape> measured;
  std::vector<Shape> small;  ///< what is emulated, and measured where the two are compared
  std::vector<Shape> tested;
  Shape headline, small_headline;
  std::function<Work(const Case&, const Device&)> work;
  std::function<std::unique_ptr<Problem>(const Case&, const Device&)> problem;
  std::vector<Rung> rungs;
};

/// The same rungs instantiated for several values of an axis: the i-th list serves values[i]. Only
/// the implementations, or what chooses them, may differ; everything else is taken from the first
/// list.
std::vector<Rung> by_axis(const std::string& axis, const std::vector<int64_t>& values,
                          std::vector<std::vector<Rung>> instantiations);

/// Every ladder, in the order of tables and plots.
const std::vector<Ladder>& catalogue();

/// One benchmark: a rung on a case.
struct Row {
  const Ladder* ladder;
  const Rung* rung;
  Case shape;  ///< without the sweep: what the problem is made from
  Case point;  ///< with it
  /// "sgemm/tiled/m:512/n:512/k:512"
  std::string name() const;
};

/// The rows of a ladder, case by case, so that rungs to be compared run side by side.
enum class Shapes { measured, small, tested };
std::vector<Row> rows(const Ladder& ladder, Shapes shapes);

/// Why a row cannot run on this device, or empty.
std::string skip_reason(const Row& row, const Device& device);

/// The work of one launch of a row.
Work work(const Row& row, const Device& device);

}  // namespace ladders
