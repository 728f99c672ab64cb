// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <vector>

#include "context.hpp"
#include "options.hpp"
#include "registration.hpp"

namespace {

/// Google Benchmark exits 0 on errored rows and on filters that match nothing; this does not.
int run(const ladders::Options& options) {
  std::vector<char*> argv;
  for (const std::string& argument : options.benchmark_arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data(), ladders::print_help);
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return 2;

  std::optional<ladders::Study> study;
  if (!options.list) {
    if (options.device >= ladders::Device::count())
      throw ladders::UsageError("no CUDA device " + std::to_string(options.device) +
                                " (there are " + std::to_string(ladders::Device::count()) + ")");
    const auto device = ladders::Device::open(options.device);
    study.emplace(device, options.sampling);
    ladders::add_context(device, options.sampling);
  }
  ladders::Outcome outcome;
  ladders::register_rows([&]() -> ladders::Study& { return *study; }, outcome);
  const size_t matched = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (matched == 0) throw ladders::UsageError("the filter matches no row");
  // A result file appears under its name only when it is whole.
  if (!options.list && !options.result_file.empty())
    std::filesystem::rename(options.partial_file, options.result_file);
  if (outcome.failed == 0) return 0;
  std::fprintf(stderr, "ladder_bench: %d of %d rows failed\n", outcome.failed,
               outcome.failed + outcome.measured);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  ladders::Options options;
  int status = 2;
  try {
    options = ladders::parse(argc, argv);
    status = run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ladder_bench: %s\n", error.what());
  }
  if (!options.partial_file.empty()) std::filesystem::remove(options.partial_file);
  return status;
}
