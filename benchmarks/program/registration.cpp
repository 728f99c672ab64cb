// SPDX-License-Identifier: MIT
#include "program/registration.hpp"

#include <algorithm>
#include <cstdio>

#include "gpu/hardware_counters.hpp"
#include "program/google_benchmark.hpp"
#include "program/json.hpp"
#include "program/tuning.hpp"

namespace ladders {
namespace {

void set_times(benchmark::UserCounters& counters, const Row& row, const Study& study,
               const Measurement& m) {
  const std::vector<double>& seconds = m.samples.seconds;
  const Work done = work(row, study.device());
  // The library multiplies by iterations and divides by time; plain kIsRate only divides.
  const auto rate = [&](const char* name, double amount) {
    using benchmark::Counter;
    if (amount > 0) counters[name] = Counter(amount, Counter::kIsIterationInvariantRate);
  };
  rate("flops_per_second", done.flops);
  rate("bytes_per_second", done.bytes());
  rate("atomics_per_second", done.atomics);
  rate("loads_per_second", done.loads);
  if (done.flops > 0 && done.bytes() > 0)
    counters["arithmetic_intensity"] = done.flops / done.bytes();
  if (m.ceiling)
    counters["percent_of_ceiling"] = 100 * study.speed(row, m, row.ladder->quantity) / *m.ceiling;
  counters["samples"] = double(seconds.size());
  if (m.samples.late > 0) counters["late_samples"] = m.samples.late;
  if (m.samples.settled) counters["settled"] = 1;
  counters["measuring_seconds"] = m.samples.measuring_seconds;
  counters["min_seconds"] = std::ranges::min(seconds);
  counters["q1_seconds"] = quantile(seconds, 0.25);
  counters["median_seconds"] = m.samples.launch_seconds();
  counters["q3_seconds"] = quantile(seconds, 0.75);
  counters["median_noise"] = m.samples.noise();
  if (const double clock = m.samples.sm_clock_hz; clock > 0) {
    counters["sm_clock_hz"] = clock;
    if (done.loads > 0)
      counters["cycles_per_load"] = m.samples.launch_seconds() * clock / done.loads;
    if (clock < 0.9 * study.device().sm_clock_hz) counters["throttled"] = 1;
  }
}

void set_counters(benchmark::UserCounters& counters, const Row& row, const Study& study,
                  const Measurement& m, bool verified) {
  if (!m.samples.seconds.empty()) set_times(counters, row, study, m);
  for (const auto& [name, value] : m.samples.counters) counters[name] = value;
  if (const auto joules = m.samples.counters.find("joules"); joules != m.samples.counters.end()) {
    const Work done = work(row, study.device());
    if (done.flops > 0) counters["flops_per_joule"] = done.flops / joules->second;
    if (done.bytes() > 0) counters["bytes_per_joule"] = done.bytes() / joules->second;
  }
  if (verified) counters["relative_error"] = m.verdict.relative_error;
  if (m.verdict.worst_error > 0) counters["worst_error"] = m.verdict.worst_error;
  if (m.verdict.library_relative_error) {
    counters["library_relative_error"] = *m.verdict.library_relative_error;
    counters["library_worst_error"] = *m.verdict.library_worst_error;
  }
  if (m.verdict.error_over_library) counters["error_over_library"] = *m.verdict.error_over_library;
  for (const auto& [name, value] : row.rung->predictions) counters[name] = value;
  if (!m.plan) return;
  const auto& [grid, block, shared_bytes, cluster] = *m.plan;
  counters["grid_blocks"] = double(grid.x) * grid.y * grid.z;
  counters["block_threads"] = double(block.x) * block.y * block.z;
  counters["static_shared_bytes"] = double(m.occupancy->static_shared_bytes);
  counters["dynamic_shared_bytes"] = double(shared_bytes);
  counters["cluster_size"] = cluster;
  if (m.occupancy->registers == 0) return;  // not known to the emulator, nor what follows from them
  counters["registers"] = m.occupancy->registers;
  counters["spilled_bytes"] = double(m.occupancy->local_bytes);
  counters["blocks_per_sm"] = m.occupancy->blocks_per_sm;
  counters["theoretical_occupancy"] = m.occupancy->theoretical;
  counters["waves"] = m.occupancy->waves;
  if (cluster > 1) counters["resident_clusters"] = m.occupancy->resident_clusters;
}

// At once, since the process may not live to its end.
void write_samples(const Row& row, const std::vector<double>& seconds, std::ofstream& out) {
  const auto nanoseconds = [](double s) { return number(1e9 * s, 6); };
  out << object({{"name", quoted(row.name())}, {"nanoseconds", array(seconds, nanoseconds)}})
      << std::endl;
}

std::string case_of(const Row& row) { return row.ladder->name + "/" + row.shape.name(); }

// The row, and others of its case that are not counted yet: it takes long to begin a pass.
std::vector<Row> counted_with(const Row& row, Outcome& outcome) {
  std::vector<Row>& left = outcome.cases[case_of(row)];
  std::vector<Row> together = {row};
  std::erase_if(left, [&](const Row& other) {
    if (other.name() == row.name()) return true;
    const auto timed = outcome.timed.find(other.name());
    const bool runs =
        timed != outcome.timed.end() && !timed->second.empty() && !timed->second.front().failure;
    const bool taken = runs && together.size() < kCountedTogether;
    if (taken) together.push_back(other);
    return taken;
  });
  return together;
}

// The hardware counters of a row, counted with others or alone.
std::map<std::string, double> counters_of(const Row& row, Study& study, Outcome& outcome) {
  const auto count = [&](const std::vector<Row>& rows) {
    const auto counted = study.count(rows);
    for (size_t i = 0; i < rows.size(); ++i) outcome.counted[rows[i].name()] = counted[i];
  };
  if (!outcome.one_by_one && !outcome.counted.contains(row.name())) try {
      count(counted_with(row, outcome));
    } catch (const std::exception& error) {
      outcome.look_at_device();
      if (!outcome.broken.empty()) {
        outcome.broken_by = study.under_way();
        throw;
      }
      outcome.one_by_one = dynamic_cast<const NoCounters*>(&error) != nullptr;
      std::fprintf(stderr, "%s: counted row by row: %s\n", case_of(row).c_str(), error.what());
    }
  if (!outcome.counted.contains(row.name())) count({row});  // a repetition, too
  return outcome.counted.extract(row.name()).mapped();
}

// Adds energy or counters. Times stay where these cannot be read; a wrong result fails the row.
void read_more(const Row& row, Study& study, Outcome& outcome, Timed& now) {
  const bool energy = outcome.pass == Outcome::energy;
  std::map<std::string, double>& counters = now.measurement.samples.counters;
  if (!outcome.broken.empty() && (energy || !outcome.counted.contains(row.name()))) {
    outcome.lacking.try_emplace(row.name(), outcome.broken);
    counters.try_emplace("incomplete", row.name() == outcome.broken_by ? 1 : 2);
    return;
  }
  try {
    counters.merge(energy ? study.energy(row) : counters_of(row, study, outcome));
  } catch (const WrongResult&) {
    now.failure = std::current_exception();
  } catch (const std::exception& error) {
    const std::string why = std::string(energy ? "no energy: " : "no counters: ") + error.what();
    std::fprintf(stderr, "%s: %s\n", row.name().c_str(), why.c_str());
    outcome.lacking.try_emplace(row.name(), why);
    const bool by_another = !outcome.broken_by.empty() && outcome.broken_by != row.name();
    counters["incomplete"] = by_another ? 2 : 1;
  }
  outcome.look_at_device();
}

// Whether the row has the shape that tables and figures show first, or one that was asked for.
bool at_headline(const Row& row, const Options& options) {
  const Ladder& ladder = *row.ladder;
  const bool small = options.cases == Shapes::small;
  return !options.shapes.empty() ||
         row.shape.name() ==
             Case(ladder.axes, small ? ladder.small_headline : ladder.headline).name();
}

// Whether the driver named a power limit in at least half of its readings: tables tell the watts.
bool is_held_by_power(const Measurement& measurement) {
  const auto found = measurement.samples.counters.find("clock_held_by_power");
  return found != measurement.samples.counters.end() && found->second >= 0.5;
}

// The row's result in this pass, or in the one before.
Timed measure(const Row& row, Study& study, const Options& options, Outcome& outcome) {
  const auto start = std::chrono::steady_clock::now();
  std::deque<Timed>& timed = outcome.timed[row.name()];
  Timed now;
  if (outcome.pass == Outcome::timing) {
    try {
      now.measurement = study.measure(row);
    } catch (...) {
      now.failure = std::current_exception();
    }
    if (outcome.samples.is_open() && !now.failure)
      write_samples(row, now.measurement.samples.seconds, outcome.samples);
  } else {  // repetitions come in the same order in each pass
    now = timed.front();
    timed.pop_front();
    const bool asked = outcome.pass != Outcome::energy || options.energy_of_all ||
                       at_headline(row, options) || is_held_by_power(now.measurement);
    if (asked && !now.failure && !outcome.repeats) read_more(row, study, outcome, now);
  }
  now.wall_seconds += seconds_since(start);
  timed.push_back(now);
  if (now.failure) std::rethrow_exception(now.failure);
  return now;
}

void run(benchmark::State& state, const Row& row, Study& study, const Options& options,
         Outcome& outcome) {
  const bool profile = options.sampling.profile;
  try {
    std::string reason = skip_reason(row, study.device());
    if (reason.empty() && profile && !row.rung->at(row.point, study.device()).kernel)
      reason = "launches no kernel of its own to profile";
    if (!reason.empty()) throw DoesNotFit(reason);
    Timed timed;
    if (options.plans) {
      timed.measurement = study.plan(row);
      timed.measurement.samples.host_seconds = 1e-6;  // the library repeats what takes no time
    } else {
      timed = measure(row, study, options, outcome);
    }
    Measurement& m = timed.measurement;
    ++outcome.measured;
    if (profile) return skip(state, "profiled, not timed");
    run_once(state, kEmulated ? m.samples.host_seconds : m.samples.launch_seconds());
    set_counters(state.counters, row, study, m, !options.plans);
    if (options.tune) {
      const Crossover& crossover = crossover_of(row);
      state.counters["crossover_size"] = crossover.size(row.shape, study.device());
      state.counters["crossover_value"] = crossover.on(study.device());
    }
    if (!kEmulated) state.counters["wall_seconds"] = timed.wall_seconds;
    if (!m.chosen.empty())
      state.SetLabel("chosen:" + m.chosen);
    else if (!row.rung->precision.empty())
      state.SetLabel(row.rung->precision);
    // The console reporter prints the text itself; other formats own stdout.
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

void Outcome::look_at_device() {
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess)
    broken = std::string("the device is in error: ") + cudaGetErrorString(error);
}

void register_rows(const Options& options, const std::function<Study&()>& study, Outcome& outcome) {
  for (const Ladder& ladder : options.ladders)
    for (const Row& row : rows(ladder, options.cases)) {
      const auto function = [row, study, &options, &outcome](benchmark::State& state) {
        run(state, row, study(), options, outcome);
      };
      outcome.cases[case_of(row)].push_back(row);
      benchmark::RegisterBenchmark(row.name().c_str(), function)->UseManualTime();
    }
}

}  // namespace ladders
