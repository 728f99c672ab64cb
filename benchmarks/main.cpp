// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "context.hpp"
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

std::unique_ptr<benchmark::BenchmarkReporter> display(const Options& options) {
  if (options.format == "json") return nullptr;  // the library's own
  if (options.format == "csv") return csv_reporter(counter_names());
  return console_reporter(options.color == "auto" ? isatty(STDOUT_FILENO) : options.color == "true",
                          options.tabular);
}

/// Google Benchmark exits 0 on errored rows and on filters that match nothing; this does not.
int run(const Options& options) {
  std::vector<char*> argv;
  for (const std::string& argument : options.benchmark_arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  int argc = static_cast<int>(argv.size());
  benchmark::SetDefaultTimeUnit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv.data(), print_help);
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;

  std::unique_ptr<Study> study;
  if (!options.list) {
    if (options.device >= Device::count())
      throw UsageError("no CUDA device " + std::to_string(options.device) + " (there are " +
                       std::to_string(Device::count()) + ")");
    study = Study::open(options.device, options.sampling);
    add_context(*study);
    if (options.format == "console")
      std::fprintf(stderr, "%s\n", describe(study->device()).c_str());
  }
  Outcome outcome;
  register_rows([&]() -> Study& { return *study; }, outcome);
  const auto screen = display(options);
  const auto file = !options.result_file.empty() && options.result_format == "csv"
                        ? csv_reporter(counter_names())
                        : nullptr;
  const size_t matched = benchmark::RunSpecifiedBenchmarks(screen.get(), file.get());
  benchmark::Shutdown();
  if (matched == 0) return 2;  // the library has said so
  if (!options.list && !options.result_file.empty()) publish(options);
  if (outcome.failed == 0) return 0;
  std::fprintf(stderr, "ladder_bench: %d of %d rows failed\n", outcome.failed,
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
    std::fprintf(stderr, "ladder_bench: %s\n", error.what());
    status = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ladder_bench: %s\n", error.what());
  }
  if (!options.partial_file.empty()) std::filesystem::remove(options.partial_file);
  return status;
}
