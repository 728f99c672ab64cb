// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

namespace ladders {
namespace {

constexpr char kSmallKernelVariable[] = "LADDER_SMALL_KERNEL_NANOSECONDS";

/// The value of --name=value, if `argument` is that flag. Throws UsageError if it has none.
std::optional<std::string> value_of(const std::string& argument, const std::string& name) {
  const std::string prefix = "--" + name + "=";
  if (argument == prefix || argument + "=" == prefix)
    throw UsageError(argument + " needs a value: " + prefix + "...");
  if (argument.rfind(prefix, 0) != 0) return std::nullopt;
  return argument.substr(prefix.size());
}

template <class T>
T number(const std::string& text, const std::string& name) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= T{}) ||
      value > std::numeric_limits<T>::max())  // neither NaN nor infinity
    throw UsageError(name + "=" + text + ": not a number");
  return value;
}

/// Whether --name or --name=value switches on, if `argument` is that flag.
std::optional<bool> switch_of(const std::string& argument, const std::string& name) {
  if (argument == "--" + name) return true;
  const auto text = value_of(argument, name);
  if (!text) return std::nullopt;
  return *text != "false" && *text != "0" && *text != "no" && *text != "off";
}

template <class T>
T choice(const std::string& text, const std::string& flag,
         const std::vector<std::pair<std::string, T>>& values) {
  std::string names;
  for (const auto& [name, value] : values) {
    if (text == name) return value;
    names += (names.empty() ? "" : " or ") + name;
  }
  throw UsageError("--" + flag + "=" + text + ": not " + names);
}

// The flags that one of the two programs has alone.
void refuse_flags_of_the_other(const std::string& argument) {
  static const char* const kTiming[] = {"cache",   "noise",    "wall_limit",
                                        "profile", "ceilings", "hardware_counters"};
  static const char* const kCounting[] = {"gpu",   "order",    "workers",
                                          "check", "per_line", "details_out"};
  const std::string name = argument.substr(0, argument.find('='));
  for (const std::string flag : kTiming)
    if (kEmulated && name == "--" + flag)
      throw UsageError(argument + ": nothing is timed here, only ladder_bench takes --" + flag);
  for (const std::string flag : kCounting)
    if (!kEmulated && name == "--" + flag)
      throw UsageError(argument + ": only ladder_bench_emulated takes --" + flag);
}

// The library's own loop is satisfied by the first entry: how long to sample is decided here, where
// the flag is read ("2", "0.5s" or "100x"), since manual time knows no wall limit.
void set_min_time(Sampling& sampling, std::string text) {
  if (text.size() > 1 && text.back() == 'x') {
    text.pop_back();
    sampling.exactly = number<int>(text, "--benchmark_min_time");
    if (sampling.exactly == 0) throw UsageError("--benchmark_min_time=0x: no samples");
    return;
  }
  if (text.size() > 1 && text.back() == 's') text.pop_back();
  sampling.device_seconds = number<double>(text, "--benchmark_min_time");
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
  std::optional<double> wall_limit;
  if (const char* text = std::getenv(kSmallKernelVariable); text && *text && !kEmulated)
    options.sampling.small_kernel_seconds = 1e-9 * number<double>(text, kSmallKernelVariable);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    refuse_flags_of_the_other(argument);
    if (const auto text = value_of(argument, "device")) {
      options.device = number<int>(*text, "--device");
    } else if (const auto mode = value_of(argument, "cache")) {
      options.sampling.cold = choice<bool>(*mode, "cache", {{"cold", true}, {"warm", false}});
    } else if (const auto cases = value_of(argument, "cases")) {
      options.cases =
          choice<Shapes>(*cases, "cases", {{"full", Shapes::measured}, {"small", Shapes::small}});
    } else if (const auto on = switch_of(argument, "profile")) {
      options.sampling.profile = *on;
    } else if (const auto on = switch_of(argument, "ceilings")) {
      options.sampling.ceilings = *on;
    } else if (const auto on = switch_of(argument, "hardware_counters")) {
      options.sampling.hardware_counters = *on;
    } else if (const auto gpu = value_of(argument, "gpu")) {
      options.gpu = *gpu;
    } else if (const auto order = value_of(argument, "order")) {
      options.order = choice<std::string>(
          *order, "order", {{"forward", "forward"}, {"reverse", "reverse"}, {"random", "random"}});
    } else if (const auto text = value_of(argument, "workers")) {
      options.workers = number<int>(*text, "--workers");
    } else if (const auto on = switch_of(argument, "check")) {
      options.check = *on;
    } else if (const auto on = switch_of(argument, "per_line")) {
      options.per_line = *on;
    } else if (const auto file = value_of(argument, "details_out")) {
      options.details_file = *file;
    } else if (const auto text = value_of(argument, "noise")) {
      options.sampling.noise = number<double>(*text, "--noise");
    } else if (const auto text = value_of(argument, "wall_limit")) {
      wall_limit = number<double>(*text, "--wall_limit");
    } else if (const auto text = value_of(argument, "benchmark_min_time")) {
      set_min_time(options.sampling, *text);
    } else if (const auto file = value_of(argument, "benchmark_out")) {
      options.result_file = *file;
    } else if (const auto text = value_of(argument, "benchmark_min_warmup_time")) {
      // Left to the library, each entry of its warm-up would sample the whole row.
      options.sampling.warmup_seconds = number<double>(*text, "--benchmark_min_warmup_time");
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
  // A limit that was asked for holds; else it leaves room for the time that was.
  Sampling& sampling = options.sampling;
  sampling.wall_seconds =
      wall_limit.value_or(std::max(sampling.wall_seconds, 10 * sampling.device_seconds));
  if (!options.list) pass.emplace_back(enough_for_one_entry<benchmark::State>());
  if (!options.result_file.empty()) {
    options.partial_file = options.result_file + ".partial";
    pass.push_back("--benchmark_out=" + options.partial_file);
  }
  return options;
}

void print_help() {
  std::printf(
      "%s: CUDA kernels climbed rung by rung, %s\n"
      "\n"
      "  --cases=full|small     the shapes that GPUs are measured at, or those that an emulator\n"
      "                         manages too (%s)\n",
      program_name(), kEmulated ? "counted on an emulated GPU" : "timed",
      kEmulated ? "small" : "full");
  std::printf(
      kEmulated
          ? "  --gpu=NAME             the GPU to emulate (h200): t4, a100, a10, rtx3090, l4,\n"
            "                         l40s, rtx4090, h100, h200, b200, rtx5090\n"
            "  --per_line             print the requests of each source line after each row\n"
            "  --details_out=FILE     the same and occupancy curves as JSON\n"
            "  --check                look for races, unwritten memory, accesses out of bounds\n"
            "  --order=forward|reverse|random\n"
            "                         order of threads where CUDA leaves it open (forward)\n"
            "  --workers=N            host threads (0: one a core)\n"
          : "  --device=N             the GPU to measure (0)\n"
            "  --cache=cold|warm      L2 flushed before each launch, or launches back to back "
            "(cold)\n"
            "  --noise=X              relative standard error of the median to reach (0.001)\n"
            "  --wall_limit=SECONDS   stop sampling a row by then (0.5, or 10 times the time\n"
            "                         that --benchmark_min_time asks for, if that is more)\n"
            "  --ceilings=false       do without percent_of_ceiling: measure no row's ceilings\n"
            "  --hardware_counters    count each row once more, after its samples, by CUPTI\n"
            "  --profile              no times: verify each kernel's row, then launch it once\n"
            "                         between cudaProfilerStart and cudaProfilerStop\n"
            "\n"
            "--benchmark_min_time is the time on the device to sample a row for at least (0.02s),\n"
            "or <N>x for N samples, each the mean of 16 launches where a row is short.\n"
            "\n"
            "LADDER_SMALL_KERNEL_NANOSECONDS in the environment: look for a CUDA context in which\n"
            "small kernels take so long, as they did in another process\n"
            "(small_kernel_nanoseconds in its results).\n");
  std::printf(
      "\n"
      "Rows are named ladder/rung/axis:value/..., so filters read like\n"
      "--benchmark_filter='^sgemm/.*/n:4096/'. Google Benchmark's flags:\n"
      "\n");
  benchmark::PrintDefaultHelp();
}

}  // namespace ladders
