// SPDX-License-Identifier: MIT
//
// Additions to Google Benchmark 1.7 and later: reporters for the console, and skipped rows.
// Versions before 1.8.0 lack State::SkipWithMessage(), so a skipped row has an error that begins
// with "skipped: ", and their --benchmark_min_time has no unit.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>

namespace ladders {

template <class State>
constexpr bool kHasSkipWithMessage = requires(State& state) { state.SkipWithMessage(""); };

/// The flag that makes Google Benchmark run each row once. Study decides how often it launches.
constexpr const char* kRunOnceFlag = kHasSkipWithMessage<benchmark::State>
                                         ? "--benchmark_min_time=1e-9s"
                                         : "--benchmark_min_time=1e-9";

/// Reports one iteration of `seconds`. It is always one, since Google Benchmark aborts if the
/// repetitions of a row have different numbers of iterations.
inline void run_once(benchmark::State& state, double seconds) {
  for (auto _ : state) state.SetIterationTime(seconds);
}

/// Ends a row without a result for `reason`. The row counts as skipped, not as failed.
template <class State>
void skip(State& state, const std::string& reason) {
  run_once(state, 0);
  if constexpr (kHasSkipWithMessage<State>)
    state.SkipWithMessage(reason);
  else
    state.SkipWithError(("skipped: " + reason).c_str());
}

/// Returns the text to print below the row of this name.
using TextOf = std::function<std::string(const std::string& row)>;

/// A reporter for the console. ladder_bench prints the speed of a row and its percent of ceiling:
/// Google Benchmark's own reporter would print all counters, and the whole context.
/// ladder_bench_emulated prints transactions per request, the occupancy, and `text_of(row)`.
std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(TextOf text_of);

}  // namespace ladders
