// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "context.hpp"
#include "json.hpp"
#include "meter.hpp"
#include "options.hpp"
#include "registration.hpp"
#include "reporters.hpp"

namespace {

using namespace ladders;

/// Gives the result file its name once it is whole. The library does not notice a full disk.
void publish(const Options& options) {
  std::ifstream file(options.partial_file, std::ios::ate | std::ios::binary);
  char end = 0;
  for (auto at = file.tellg(); at > 0 && (end == 0 || end == '\n');) file.seekg(at -= 1).get(end);
  if (options.result_format == "json" ? end != '}' : end == 0)
    throw std::runtime_error(options.result_file + " could not be written: is the disk full?");
  std::filesystem::rename(options.partial_file, options.result_file);
}

std::string partial(const std::string& file) { return file + ".partial"; }

/// Writes the details of all rows and gives their file its name.
void publish_details(const Outcome& outcome, std::ofstream& out, const std::string& file) {
  std::vector<std::string> lines, occupancy;
  for (const auto& [row, details] : outcome.details) {
    lines.insert(lines.end(), details.lines.begin(), details.lines.end());
    if (!details.occupancy.empty()) occupancy.push_back(details.occupancy);
  }
  const auto on_a_line = [](const std::string& json) { return "\n" + json; };
  out << "{\"lines\":" << array(lines, on_a_line)
      << ",\n\"occupancy\":" << array(occupancy, on_a_line) << "}\n";
  out.close();
  if (!out) throw std::runtime_error(file + " could not be written: is the disk full?");
  std::filesystem::rename(partial(file), file);
}

std::unique_ptr<benchmark::BenchmarkReporter> display(const Options& options,
                                                      const Outcome& outcome) {
  if (options.format == "json") return nullptr;  // the library's own
  if (options.format == "csv") return csv_reporter(counter_names());
  if (kEmulated)
    return counting_console_reporter([&](const std::string& row) {
      const auto found = outcome.details.find(row);
      return options.per_line && found != outcome.details.end() ? found->second.text : "";
    });
  return console_reporter(options.color == "auto" ? isatty(STDOUT_FILENO) : options.color == "true",
                          options.tabular);
}

/// Where the time went: the harness is to cost little.
void print_spent(const Spent& spent, int rows, double wall) {
  const double rest = wall - spent.measuring - spent.verifying - spent.filling - spent.counting;
  const auto percent = [&](double seconds) { return 100 * seconds / wall; };
  std::fprintf(stderr,
               "%d rows in %.0f s: %.0f %% measuring, %.0f %% verifying, %.0f %% filling inputs, "
               "%.0f %% hardware counters, %.0f %% the rest\n",
               rows, wall, percent(spent.measuring), percent(spent.verifying),
               percent(spent.filling), percent(spent.counting), percent(rest));
}

/// Google Benchmark exits 0 on errored rows and on filters that match nothing; this does not.
int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<char*> argv;
  for (const std::string& argument : options.benchmark_arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  int argc = static_cast<int>(argv.size());
  benchmark::SetDefaultTimeUnit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv.data(), print_help);
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;

  configure(options);
  if (!options.list && !options.partial_file.empty() && !std::ofstream(options.partial_file))
    throw UsageError("--benchmark_out=" + options.result_file + ": cannot be written");
  std::ofstream details;
  if (!options.list && !options.details_file.empty()) {
    details.open(partial(options.details_file));
    if (!details) throw UsageError("--details_out=" + options.details_file + ": cannot be written");
  }
  std::unique_ptr<Study> study;
  if (!options.list) {
    if (options.device >= Device::count())
      throw UsageError("no CUDA device " + std::to_string(options.device) + " (there are " +
                       std::to_string(Device::count()) + ")");
    study = Study::open(options.device, options.sampling);
    add_context(*study, options);
    if (options.format == "console")
      std::fprintf(stderr, "%s\n", describe(study->device()).c_str());
  }
  Outcome outcome;
  register_rows(options, [&]() -> Study& { return *study; }, outcome);
  const auto screen = display(options, outcome);
  const auto run_rows = [&](benchmark::BenchmarkReporter* shown) {
    const auto file = !options.result_file.empty() && options.result_format == "csv"
                          ? csv_reporter(counter_names())
                          : nullptr;
    const size_t matched = benchmark::RunSpecifiedBenchmarks(shown, file.get());
    if (matched > 0 && !options.list && !options.result_file.empty()) publish(options);
    return matched;
  };
  if (!options.list && options.sampling.hardware_counters && !options.sampling.profile) {
    // The times are published first: whatever the profiler does, they are not lost.
    const auto silent = silent_reporter();
    const bool shown = options.format == "console";
    outcome.pass = Outcome::timing;
    if (run_rows(shown ? screen.get() : silent.get()) == 0) return 2;  // the library has said so
    outcome.measured = outcome.skipped = outcome.failed = 0;
    outcome.pass = Outcome::counting;
    benchmark::AddCustomContext("hardware_counters", study->hardware_counters());
    if (shown) std::fprintf(stderr, "All rows are timed; each runs again for its counters.\n");
  }
  const size_t matched = run_rows(screen.get());
  const double wall = seconds_since(start);
  benchmark::Shutdown();
  if (matched == 0) return 2;
  if (details.is_open()) publish_details(outcome, details, options.details_file);
  if (outcome.measured > 0 && !kEmulated && !options.sampling.profile)
    print_spent(study->spent(), outcome.measured, wall);
  if (outcome.failed == 0) return 0;
  std::fprintf(stderr, "%s: %d of %d rows failed\n", program_name(), outcome.failed,
               outcome.failed + outcome.measured);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int status = 1;
  try {
    options = parse(argc, argv);
    status = run(options);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s: %s\n", program_name(), error.what());
    status = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program_name(), error.what());
  }
  std::error_code ignored;  // that there is nothing left to remove
  if (!options.partial_file.empty()) std::filesystem::remove(options.partial_file, ignored);
  if (!options.details_file.empty())
    std::filesystem::remove(partial(options.details_file), ignored);
  return status;
}
