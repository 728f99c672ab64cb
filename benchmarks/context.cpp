// SPDX-License-Identifier: MIT
#include "context.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>

#include "build_info.hpp"
#include "cuda_check.hpp"
#include "json.hpp"
#include "program.hpp"

namespace ladders {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", value);
  return std::string(text);
}

std::string to_json(const Axis& axis) {
  std::string json = "{\"name\":" + quoted(axis.name);
  if (!axis.labels.empty()) json += ",\"labels\":" + array(axis.labels, quoted);
  if (axis.facet) json += ",\"facet\":true";
  return json + '}';
}

std::string to_json(const Rung& rung) {
  static const char* const kRoles[] = {"step", "peer", "ceiling"};
  std::string json = "{\"name\":" + quoted(rung.name) + ",\"idea\":" + quoted(rung.idea) +
                     ",\"role\":" + quoted(kRoles[static_cast<int>(rung.role)]) +
                     ",\"precision\":" + quoted(rung.precision);
  if (!rung.moves.empty()) json += ",\"moves\":" + quoted(rung.moves);
  if (!rung.ceiling.empty())
    json += ",\"ceiling\":" + quoted(rung.ceiling) + ",\"products\":" + number(rung.products);
  if (!rung.sweeps.empty())
    json += ",\"sweeps\":" + array(rung.sweeps, [](const Sweep& s) { return quoted(s.axis.name); });
  return json + '}';
}

std::string to_json(const Ladder& ladder) {
  return "{\"name\":" + quoted(ladder.name) + ",\"title\":" + quoted(ladder.title) +
         ",\"quantity\":" + quoted(ladder.quantity == Quantity::flops ? "flops" : "bytes") +
         ",\"axes\":" + array(ladder.axes, [](const Axis& axis) { return to_json(axis); }) +
         ",\"headline\":" + quoted(Case(ladder.axes, ladder.headline).name()) +
         ",\"small_headline\":" + quoted(Case(ladder.axes, ladder.small_headline).name()) +
         ",\"ceiling\":" + quoted(ladder.ceiling) +
         (ladder.other_ceiling.empty() ? ""
                                       : ",\"other_ceiling\":" + quoted(ladder.other_ceiling)) +
         ",\"input\":" + quoted(ladder.input) + ",\"error_unit\":" + quoted(ladder.error_unit) +
         ",\"rungs\":" + array(ladder.rungs, [](const Rung& rung) { return to_json(rung); }) + '}';
}

// The driver's own version ("580.65.06"); the runtime only knows the CUDA version it supports.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::smatch match;
  return std::regex_search(text, match, std::regex(R"(\d+\.\d+(\.\d+)?)")) ? match.str()
                                                                           : "unknown";
}

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string to_json(const std::vector<Ladder>& ladders) {
  return array(ladders, [](const Ladder& ladder) { return to_json(ladder); });
}

std::string describe(const Device& device) {
  char text[160];
  std::snprintf(text, sizeof(text), "%s: compute capability %d.%d, %d SMs at %.0f MHz, %.1f MB L2",
                device.name.c_str(), device.compute_capability / 10, device.compute_capability % 10,
                device.sms, device.sm_clock_hz / 1e6, double(device.l2_bytes) / 1e6);
  return kEmulated ? "emulated: " + std::string(text) : text;
}

void add_context(Study& study, const Options& options) {
  const Device& device = study.device();
  std::vector<std::pair<const char*, std::string>> entries = {
      {"suite", "cuda-ladders"},
      {"emulated", kEmulated ? "true" : "false"},
      {"gpu_name", device.name},
      {"compute_capability", std::to_string(device.compute_capability / 10) + "." +
                                 std::to_string(device.compute_capability % 10)},
      {"sms", std::to_string(device.sms)},
      {"l2_bytes", std::to_string(device.l2_bytes)},
      {"memory_bytes", std::to_string(device.memory_bytes)},
      {"compiler", kCompiler},
      {"cuda_flags", kCudaFlags},
      {"build_type", kBuildType},
      {"git_commit", kGitCommit},
      {"git_dirty", kGitDirty},
      {"cases", options.cases == Shapes::small ? "small" : "full"},
      {"input_distribution", "each ladder's own, in \"ladders\""},
      {"ladders", to_json(catalogue())},
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
  for (const auto& [key, value] : entries) benchmark::AddCustomContext(key, value);
}

}  // namespace ladders
