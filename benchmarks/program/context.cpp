// SPDX-License-Identifier: MIT
#include "program/context.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "build_info.hpp"
#include "program/json.hpp"

namespace ladders {
namespace {

// Members that are left out of an object where they are false or empty.
std::string flag(bool value) { return value ? "true" : ""; }
std::string text(const std::string& value) { return value.empty() ? "" : quoted(value); }
template <class Range, class F>
std::string list(const Range& items, F element) {
  return items.empty() ? "" : array(items, element);
}

std::string to_json(Quantity quantity) {
  return quoted(quantity == Quantity::flops ? "flops" : "bytes");
}

std::string to_json(const Ladder& ladder, const Ceiling& ceiling) {
  const bool flops = ladder.quantity == Quantity::flops;
  const std::string other = to_json(flops ? Quantity::bytes : Quantity::flops);
  return object({{"rung", quoted(ceiling.rung)},
                 {"products", ceiling.products == 1 ? "" : number(ceiling.products)},
                 {"quantity", ceiling.other_quantity ? other : ""}});
}

std::string to_json(const Ladder& ladder, const Rung& rung) {
  static const char* const kRoles[] = {"step", "choice", "peer", "ceiling"};
  std::vector<std::pair<std::string, std::string>> factors;
  for (const auto& [factor, level] : rung.factors) factors.emplace_back(factor, quoted(level));
  return object(
      {{"name", quoted(rung.name)},
       {"idea", quoted(rung.idea)},
       {"role", quoted(kRoles[static_cast<int>(rung.role)])},
       {"builds_on", text(rung.builds_on)},
       {"shows", text(rung.shows)},
       {"precision", text(rung.precision)},
       {"target", text(rung.target)},
       {"by_name_only", flag(rung.by_name_only)},
       {"factors", factors.empty() ? "" : object(factors)},
       {"meant_for", list(meant_for(ladder, rung), quoted)},
       {"ceilings",
        list(ceilings_of(ladder, rung), [&](const Ceiling& c) { return to_json(ladder, c); })},
       {"sweeps", list(rung.sweeps, [](const Sweep& s) { return quoted(s.axis.name); })}});
}

std::string to_json(const Ladder& ladder) {
  const auto axis = [](const Axis& axis) {
    return object({{"name", quoted(axis.name)},
                   {"labels", list(axis.labels, quoted)},
                   {"facet", flag(axis.facet)}});
  };
  return object(
      {{"name", quoted(ladder.name)},
       {"title", quoted(ladder.title)},
       {"quantity", to_json(ladder.quantity)},
       {"axes", array(ladder.axes, axis)},
       {"headline", quoted(Case(ladder.axes, ladder.headline).name())},
       {"small_headline", quoted(Case(ladder.axes, ladder.small_headline).name())},
       {"ceiling", quoted(ladder.ceiling)},
       {"other_ceiling", text(ladder.other_ceiling)},
       {"input", quoted(ladder.input)},
       {"error_unit", quoted(ladder.error_unit)},
       {"factors", list(ladder.factors, quoted)},
       {"rungs", array(ladder.rungs, [&](const Rung& rung) { return to_json(ladder, rung); })}});
}

// The driver's own version ("580.65.06"); the runtime only knows the CUDA version it supports.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::smatch match;
  return std::regex_search(text, match, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? match.str()
                                                                           : "unknown";
}

// Which shapes were asked for.
std::string cases(const Options& options) {
  std::string text = options.cases == Shapes::small ? "small" : "full";
  for (const std::string& shape : options.shapes) text += " " + shape;
  return text;
}

std::string capability(const Device& device) {
  return dotted(device.compute_capability / 10, device.compute_capability % 10);
}
std::string cuda_version(int version) { return dotted(version / 1000, version % 1000 / 10); }

}  // namespace

std::string to_json(const std::vector<Ladder>& ladders) {
  return array(ladders, [](const Ladder& ladder) { return to_json(ladder); });
}

std::string describe(const Device& device) {
  char text[160];
  std::snprintf(text, sizeof(text), "%s%s: compute capability %s, %d SMs at %.0f MHz, %.1f MB L2",
                kEmulated ? "emulated: " : "", device.name.c_str(), capability(device).c_str(),
                device.sms, device.sm_clock_hz / 1e6, double(device.l2_bytes) / 1e6);
  return text;
}

void check_targets(const std::vector<Ladder>& ladders) {
  const std::string lines = kCounters;  // each begins with a counter's name
  for (const Ladder& ladder : ladders)
    for (const Rung& rung : ladder.rungs)
      if (!rung.target.empty() && lines.find("\n" + rung.target + ",") == std::string::npos)
        throw std::invalid_argument(ladder.name + "/" + rung.name + ": its target " + rung.target +
                                    " is no counter");
}

void add_context(Study& study, const Options& options) {
  const Device& device = study.device();
  std::vector<std::pair<const char*, std::string>> entries = {
      {"suite", "cuda-ladders"},
      {"emulated", kEmulated ? "true" : "false"},
      {"gpu_name", device.name},
      {"compute_capability", capability(device)},
      {"sms", std::to_string(device.sms)},
      {"l2_bytes", std::to_string(device.l2_bytes)},
      {"memory_bytes", std::to_string(device.memory_bytes)},
      {"compiler", kCompiler},
      {"cuda_flags", kCudaFlags},
      {"build_type", kBuildType},
      {"git_commit", kGitCommit},
      {"git_dirty", kGitDirty},
      {"cases", cases(options)},
      {"input_distribution", "each ladder's own, in \"ladders\""},
      {"ladders", to_json(options.ladders)},
      {"counter_registry", kCounters},
  };
  if (kEmulated) {
    entries.emplace_back("modelled_gpu", options.gpu);
  } else {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    entries.insert(
        entries.end(),
        {{"gpu_uuid", device.uuid},
         {"sm_clock_max_hz", number(device.sm_clock_hz)},
         {"memory_clock_max_hz", number(device.memory_clock_hz)},
         {"driver_version", driver_version()},
         {"driver_cuda_version", cuda_version(driver)},
         {"runtime_version", cuda_version(runtime)},
         {"launch_nanoseconds", number(std::round(1e9 * study.launch_seconds()))},
         {"small_kernel_nanoseconds", number(std::round(1e9 * study.small_kernel_seconds()))},
         {"cache_mode", study.sampling().cold ? "cold" : "warm"}});
  }
  std::ranges::copy(origins(), std::back_inserter(entries));
  for (const auto& [key, value] : entries) benchmark::AddCustomContext(key, value);
}

}  // namespace ladders
