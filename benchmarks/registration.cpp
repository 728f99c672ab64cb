// SPDX-License-Identifier: MIT
#include "registration.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <regex>
#include <set>
#include <string>

#include "cuda_check.hpp"
#include "statistics.hpp"

namespace ladders {
namespace {

// The library's loop: one iteration of the given time. Which samples it stands for has been decided
// before, and repetitions that differ in their iterations (an errored one too) would be the end of
// the library.
void run_once(benchmark::State& state, double seconds) {
  for (auto _ : state) state.SetIterationTime(seconds);
}

// Google Benchmark has told skipped from failed since 1.8.0; older versions know errors only, and
// the prefix tells them apart.
template <class State>
void skip(State& state, const std::string& reason) {
  run_once(state, 0);
  if constexpr (requires { state.SkipWithMessage(reason); }) {
    state.SkipWithMessage(reason);
  } else {
    state.SkipWithError(("skipped: " + reason).c_str());
  }
}

void set_times(benchmark::UserCounters& counters, const Row& row, Study& study,
               const Measurement& m) {
  const std::vector<double>& seconds = m.samples.seconds;
  const Work done = work(row, study.device());
  using benchmark::Counter;
  // The library's rates are work x iterations over time; the plain kIsRate would lose the factor.
  if (done.flops > 0)
    counters["flops_per_second"] = Counter(done.flops, Counter::kIsIterationInvariantRate);
  if (done.bytes() > 0)
    counters["bytes_per_second"] = Counter(done.bytes(), Counter::kIsIterationInvariantRate);
  if (done.atomics > 0)
    counters["atomics_per_second"] = Counter(done.atomics, Counter::kIsIterationInvariantRate);
  if (done.flops > 0 && done.bytes() > 0)
    counters["arithmetic_intensity"] = done.flops / done.bytes();
  if (const auto ceiling = study.ceiling(row))
    counters["percent_of_ceiling"] = 100 * study.speed(row, m, row.ladder->quantity) / *ceiling;
  counters["samples"] = static_cast<double>(seconds.size());
  counters["measuring_seconds"] = m.samples.measuring_seconds;
  counters["min_seconds"] = *std::min_element(seconds.begin(), seconds.end());
  counters["q1_seconds"] = quantile(seconds, 0.25);
  counters["median_seconds"] = quantile(seconds, 0.5);
  counters["q3_seconds"] = quantile(seconds, 0.75);
  counters["median_noise"] = median_noise(seconds);
  if (const double clock = m.samples.sm_clock_hz; clock > 0) {
    counters["sm_clock_hz"] = clock;
    if (clock < 0.9 * study.device().sm_clock_hz) counters["throttled"] = 1;
  }
}

void set_counters(benchmark::State& state, const Row& row, Study& study, const Measurement& m) {
  auto& counters = state.counters;
  if (!m.samples.seconds.empty()) set_times(counters, row, study, m);
  for (const auto& [name, value] : m.samples.counters) counters[name] = value;
  counters["relative_error"] = m.verdict.relative_error;
  if (m.verdict.worst_error > 0) counters["worst_error"] = m.verdict.worst_error;
  if (const auto error = m.verdict.library_relative_error)
    counters["library_relative_error"] = *error;
  if (const auto error = m.verdict.library_worst_error) counters["library_worst_error"] = *error;
  if (const auto ratio = m.verdict.error_over_library) counters["error_over_library"] = *ratio;
  for (const auto& [name, value] : row.rung->predictions) counters[name] = value;
  if (!m.plan) return;
  const LaunchPlan& plan = *m.plan;
  counters["grid_blocks"] = double(plan.grid.x) * plan.grid.y * plan.grid.z;
  counters["block_threads"] = double(plan.block.x) * plan.block.y * plan.block.z;
  counters["static_shared_bytes"] = static_cast<double>(m.occupancy->static_shared_bytes);
  counters["dynamic_shared_bytes"] = static_cast<double>(plan.shared_bytes);
  counters["cluster_size"] = plan.cluster;
  // On the emulator, of a kernel that no nvcc has seen: nothing follows from them either.
  if (m.occupancy->registers == 0) return;
  counters["registers"] = m.occupancy->registers;
  counters["spilled_bytes"] = static_cast<double>(m.occupancy->local_bytes);
  counters["blocks_per_sm"] = m.occupancy->blocks_per_sm;
  counters["theoretical_occupancy"] = m.occupancy->theoretical;
  counters["waves"] = m.occupancy->waves;
  if (plan.cluster > 1) counters["resident_clusters"] = m.occupancy->resident_clusters;
}

// What the row came to in this pass, or in the one before.
Timed measure(const Row& row, Study& study, Outcome& outcome) {
  const auto start = std::chrono::steady_clock::now();
  std::deque<Timed>& timed = outcome.timed[row.name()];
  Timed now;
  if (outcome.pass == Outcome::counting) {
    now = timed.front();
    if (timed.size() > 1) timed.pop_front();
    if (!now.failure) try {
        now.measurement.samples.counters = study.count(row);
      } catch (const std::exception& error) {  // the times are right
        std::fprintf(stderr, "%s: no counters: %s\n", row.name().c_str(), error.what());
        ++outcome.failed;
      }
  } else {
    try {
      now.measurement = study.measure(row);
    } catch (...) {
      now.failure = std::current_exception();
    }
  }
  now.wall_seconds += seconds_since(start);
  if (outcome.pass == Outcome::timing) timed.push_back(now);
  if (now.failure) std::rethrow_exception(now.failure);
  return now;
}

void run(benchmark::State& state, const Row& row, Study& study, const Options& options,
         Outcome& outcome) {
  const bool profile = options.sampling.profile;
  try {
    std::string reason = skip_reason(row, study.device());
    if (reason.empty() && profile && !row.rung->at(row.point).kernel)
      reason = "launches no kernel of its own to profile";
    if (!reason.empty()) {
      ++outcome.skipped;
      return skip(state, reason);
    }
    Timed timed = measure(row, study, outcome);
    Measurement& m = timed.measurement;
    ++outcome.measured;
    // Skipped rather than measured in no time: the time of the row is not known.
    if (profile) return skip(state, "profiled, not timed");
    const Samples& samples = m.samples;
    run_once(state, kEmulated ? samples.host_seconds : quantile(samples.seconds, 0.5));
    set_counters(state, row, study, m);
    if (!kEmulated) state.counters["wall_seconds"] = timed.wall_seconds;
    if (!row.rung->precision.empty()) state.SetLabel(row.rung->precision);
    // The console reporter prints it below the row; the other formats own stdout.
    if (options.per_line && options.format != "console")
      std::fprintf(stderr, "%s\n%s", row.name().c_str(), m.samples.details.text.c_str());
    outcome.details[row.name()] = std::move(m.samples.details);
  } catch (const DoesNotFit& reason) {
    ++outcome.skipped;
    skip(state, reason.what());
  } catch (const std::exception& error) {
    ++outcome.failed;
    run_once(state, 0);
    state.SkipWithError(error.what());
  }
}

}  // namespace

void check_texts(const Ladder& ladder) {
  static const std::regex words("[a-z][a-z0-9]*(_[a-z0-9]+)*"), ascii("[ -~]{1,140}");
  for (const Rung& rung : ladder.rungs) {
    const std::string name = ladder.name + "/" + rung.name;
    if (!std::regex_match(rung.name, words))
      throw UsageError(name + ": the name of a rung is lower_case_words");
    if (!std::regex_match(rung.idea, ascii))
      throw UsageError(name + ": an idea is one sentence of ASCII, 140 characters at most");
  }
}

void register_rows(const Options& options, const std::function<Study&()>& study, Outcome& outcome) {
  std::set<std::string> names;
  for (const Ladder& ladder : catalogue()) {
    check_texts(ladder);
    for (const Row& row : rows(ladder, options.cases)) {
      const std::string name = row.name();
      if (!names.insert(name).second) throw UsageError(name + ": two rungs have this name");
      benchmark::RegisterBenchmark(name.c_str(), [row, study, &options,
                                                  &outcome](benchmark::State& state) {
        run(state, row, study(), options, outcome);
      })->UseManualTime();
    }
  }
}

std::vector<std::string> counter_names() {
  std::vector<std::string> names = {
      "block_threads", "blocks_per_sm",       "cluster_size",          "dynamic_shared_bytes",
      "grid_blocks",   "registers",           "relative_error",        "resident_clusters",
      "spilled_bytes", "static_shared_bytes", "theoretical_occupancy", "waves",
      "worst_error"};
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const char* name :
       {"arithmetic_intensity", "atomics_per_second", "bytes_per_second", "error_over_library",
        "flops_per_second", "library_relative_error", "library_worst_error", "measuring_seconds",
        "median_noise", "median_seconds", "min_seconds", "percent_of_ceiling", "q1_seconds",
        "q3_seconds", "samples", "sm_clock_hz", "throttled", "wall_seconds"})
    if (!kEmulated) add(name);
  for (const std::string& name : counted_names()) add(name);
  for (const Ladder& ladder : catalogue())
    for (const Rung& rung : ladder.rungs)
      for (const auto& [name, value] : rung.predictions) add(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace ladders
