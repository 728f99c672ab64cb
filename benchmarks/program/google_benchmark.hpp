// SPDX-License-Identifier: MIT
//
// What is added to Google Benchmark, in its versions from 1.7 on: two consoles, and skipped rows.
// Before 1.8.0 these are failed rows whose error begins with "skipped: ", and --benchmark_min_time
// has no unit.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>

namespace ladders {

template <class State>
constexpr bool kTellsSkipped = requires(State& state) { state.SkipWithMessage(""); };

/// Makes the library run a row once: Study decides how long to sample.
constexpr const char* kOneEntryFlag =
    kTellsSkipped<benchmark::State> ? "--benchmark_min_time=1e-9s" : "--benchmark_min_time=1e-9";

/// One iteration of this time: the library aborts where repetitions differ in their iterations.
inline void run_once(benchmark::State& state, double seconds) {
  for (auto _ : state) state.SetIterationTime(seconds);
}

/// Ends a row that has no figures, which is no failure.
template <class State>
void skip(State& state, const std::string& reason) {
  run_once(state, 0);
  if constexpr (kTellsSkipped<State>)
    state.SkipWithMessage(reason);
  else
    state.SkipWithError(("skipped: " + reason).c_str());
}

/// Of timed rows it prints the speed and the percent of the ceiling. (The library would print all
/// counters, and the whole context with the ladders in it.) Of counted rows it prints transactions
/// per request, occupancy, and below the row of a name what `text_of` returns.
using TextOf = std::function<std::string(const std::string& row)>;
std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(TextOf text_of);

}  // namespace ladders
