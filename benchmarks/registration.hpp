// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "study.hpp"

namespace ladders {

/// A row that was timed, or why it could not be.
struct Timed {
  Measurement measurement;
  double wall_seconds = 0;
  std::exception_ptr failure;
};

/// How many rows came to what, over the whole run, and what was counted in detail, by row.
struct Outcome {
  int measured = 0, skipped = 0, failed = 0;
  std::map<std::string, Details> details;
  /// With hardware counters all rows are timed before the first is counted, since a profiler
  /// changes the times of what comes after it: the library runs all of them twice.
  enum { whole, timing, counting } pass = whole;
  std::map<std::string, std::deque<Timed>> timed;  ///< by row, one for each repetition
};

/// Registers the rows of the catalogue that `options` asks for with Google Benchmark. `study` is
/// called when the first row runs, so that listing needs no GPU; `outcome` is counted up as rows
/// run. All must outlive the run. Throws UsageError where two rows have one name, and as
/// check_texts().
void register_rows(const Options& options, const std::function<Study&()>& study, Outcome& outcome);

/// Throws UsageError where a rung's name or idea is not what files, tables and plots can hold.
void check_texts(const Ladder& ladder);

/// Every counter that a row may have.
std::vector<std::string> counter_names();

}  // namespace ladders
