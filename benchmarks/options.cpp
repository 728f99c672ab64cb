// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace ladders {
namespace {

/// The value of --name=value, if `argument` is that flag.
std::optional<std::string> value_of(const std::string& argument, const std::string& name) {
  const std::string prefix = "--" + name + "=";
  if (argument.rfind(prefix, 0) != 0) return std::nullopt;
  return argument.substr(prefix.size());
}

template <class T>
T number(const std::string& text, const std::string& flag) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < T{})
    throw UsageError("--" + flag + "=" + text + ": not a number");
  return value;
}

/// Whether --name or --name=value switches on, if `argument` is that flag.
std::optional<bool> switch_of(const std::string& argument, const std::string& name) {
  if (argument == "--" + name) return true;
  const auto text = value_of(argument, name);
  if (!text) return std::nullopt;
  return *text != "false" && *text != "0" && *text != "no" && *text != "off";
}

// The library's own loop is satisfied by the first entry: how long to sample is decided here, where
// the flag is read ("2", "0.5s" or "100x"), since manual time knows no wall limit.
void set_min_time(Sampling& sampling, std::string text) {
  if (!text.empty() && text.back() == 'x') {
    text.pop_back();
    sampling.exactly = number<int>(text, "benchmark_min_time");
    if (sampling.exactly == 0) throw UsageError("--benchmark_min_time=0x: no samples");
    return;
  }
  if (!text.empty() && text.back() == 's') text.pop_back();
  sampling.device_seconds = number<double>(text, "benchmark_min_time");
  sampling.wall_seconds = std::max(sampling.wall_seconds, 10 * sampling.device_seconds);
}

// 1.7 takes a plain number, later versions want a unit (and have SkipWithMessage).
template <class State>
const char* enough_for_one_entry() {
  constexpr bool has_units = requires(State& state) { state.SkipWithMessage(""); };
  return has_units ? "--benchmark_min_time=1e-9s" : "--benchmark_min_time=1e-9";
}

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  auto& pass = options.benchmark_arguments;
  pass.assign(argv, argv + 1);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (const auto text = value_of(argument, "device")) {
      options.device = number<int>(*text, "device");
    } else if (const auto mode = value_of(argument, "cache")) {
      if (*mode != "cold" && *mode != "warm") throw UsageError(argument + ": not cold or warm");
      options.sampling.cold = *mode == "cold";
    } else if (const auto text = value_of(argument, "noise")) {
      options.sampling.noise = number<double>(*text, "noise");
    } else if (const auto text = value_of(argument, "wall_limit")) {
      options.sampling.wall_seconds = number<double>(*text, "wall_limit");
    } else if (const auto text = value_of(argument, "benchmark_min_time")) {
      set_min_time(options.sampling, *text);
    } else if (const auto file = value_of(argument, "benchmark_out")) {
      options.result_file = *file;
    } else if (const auto text = value_of(argument, "benchmark_min_warmup_time")) {
      // Left to the library, each entry of its warm-up would sample the whole row.
      options.sampling.warmup_seconds = number<double>(*text, "benchmark_min_warmup_time");
    } else {
      if (const auto value = switch_of(argument, "benchmark_list_tests")) options.list = *value;
      if (const auto value = switch_of(argument, "benchmark_counters_tabular"))
        options.tabular = *value;
      if (const auto value = switch_of(argument, "benchmark_dry_run"); value && *value)
        options.sampling.exactly = 1;
      if (const auto value = value_of(argument, "benchmark_format")) options.format = *value;
      if (const auto value = value_of(argument, "benchmark_out_format"))
        options.result_format = *value;
      if (const auto value = value_of(argument, "benchmark_color")) options.color = *value;
      pass.push_back(argument);
    }
  }
  if (!options.list) pass.emplace_back(enough_for_one_entry<benchmark::State>());
  if (!options.result_file.empty()) {
    options.partial_file = options.result_file + ".partial";
    pass.push_back("--benchmark_out=" + options.partial_file);
  }
  return options;
}

void print_help() {
  std::printf(
      "ladder_bench: CUDA kernels climbed rung by rung\n"
      "\n"
      "  --device=N             the GPU to measure (0)\n"
      "  --cache=cold|warm      L2 flushed before each sample, or launches back to back (cold)\n"
      "  --noise=X              relative standard error of the median to reach (0.002)\n"
      "  --wall_limit=SECONDS   stop sampling a row by then (1)\n"
      "\n"
      "--benchmark_min_time is the time on the device to sample a row for at least (0.02s), or\n"
      "<N>x for N samples. Rows are named ladder/rung/axis:value/..., so filters read like\n"
      "--benchmark_filter='^sgemm/.*/n:4096/'. Google Benchmark's flags:\n"
      "\n");
  benchmark::PrintDefaultHelp();
}

}  // namespace ladders
