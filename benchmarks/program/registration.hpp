// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <exception>
#include <fstream>
#include <map>
#include <vector>

#include "measure/study.hpp"
#include "program/options.hpp"

namespace ladders {

/// A row that was timed, or why it could not be.
struct Timed {
  Measurement measurement;
  double wall_seconds = 0;
  std::exception_ptr failure;
};

/// What became of all rows of a run.
struct Outcome {
  int measured = 0, skipped = 0, failed = 0;   ///< rows, in this pass
  std::map<std::string, std::string> lacking;  ///< rows without energy or counters, and why
  std::string broken;                          ///< why nothing more can run on the device, if so
  std::string broken_by;                       ///< the row that broke it, if it was counted
  /// Registered rows that are not counted yet, by ladder and shape: these share passes.
  std::map<std::string, std::vector<Row>> cases;
  bool one_by_one = false;  ///< since counting rows together does not work
  /// Hardware counters by row, until they are told.
  std::map<std::string, std::map<std::string, double>> counted;
  bool repeats = false;                    ///< this pass says again what is known, and runs nothing
  std::map<std::string, Details> details;  ///< by row
  std::ofstream samples;                   ///< a line for each repetition, if open
  /// All rows are timed before any runs for its energy, which heats the GPU, and all of those
  /// before any is counted: a profiler slows rows.
  enum Pass { timing, energy, counting } pass = timing;
  std::map<std::string, std::deque<Timed>> timed;  ///< by row, one for each repetition

  /// Sets `broken` after an error that stays with the process.
  void look_at_device();
};

/// Registers the rows that `options` ask for with Google Benchmark. `study` is called when a row
/// runs, so that listing needs no GPU. All must outlive the run.
void register_rows(const Options& options, const std::function<Study&()>& study, Outcome& outcome);

}  // namespace ladders
