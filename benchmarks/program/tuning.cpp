// SPDX-License-Identifier: MIT
#include "program/tuning.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "build_info.hpp"
#include "program/options.hpp"

namespace ladders {
namespace {

constexpr char kBuiltInGpu[] = "NVIDIA H200";  // on which the built-in values were measured

struct TuningFile {
  std::string gpu;
  int64_t compute_capability = 0;
  Tuning tuning;
};

bool is_crossover(const std::string& name) {
  return std::ranges::any_of(catalogue(), [&](const Ladder& ladder) {
    return std::ranges::count(ladder.crossovers, name, &Crossover::name) > 0;
  });
}

// Parses a TOML file of `ladder tune`: the GPU, then a table of values per ladder. `name` stands
// before messages. Throws UsageError.
TuningFile parse(std::string_view text, const std::string& name) {
  const auto refuse = [&](const std::string& why) { throw UsageError(name + ": " + why); };
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::ostringstream where;
    where << "line " << error.source().begin.line << ": " << error.description();
    refuse(where.str());
  }
  TuningFile file{.gpu = table["gpu"].value_or(std::string()),
                  .compute_capability = table["compute_capability"].value_or(int64_t{0})};
  if (file.gpu.empty() || file.compute_capability <= 0)
    refuse("names no gpu and compute_capability: not what `ladder tune` writes");
  file.tuning.source = file.gpu;
  for (const auto& [ladder, entries] : table) {
    const toml::table* values = entries.as_table();
    if (!values || ladder == "measured") continue;
    for (const auto& [crossover, entry] : *values) {
      const std::string full = std::string(ladder.str()) + "." + std::string(crossover.str());
      if (!is_crossover(full)) refuse("there is no crossover " + full);
      const auto value = entry.value<double>();
      if (!value || !(*value >= 0)) refuse(full + " is not a number of at least 0");
      file.tuning.values[full] = *value;
    }
  }
  return file;
}

}  // namespace

Tuning read_tuning(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw UsageError("--tuning=" + file + ": is a directory");
  if (!in) throw UsageError("--tuning=" + file + ": cannot be read");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  return parse(text, "--tuning=" + file).tuning;
}

std::vector<std::string> unexpected(const Tuning& tuning, const Device& device) {
  std::vector<std::string> warnings;
  if (tuning.source != device.name)
    warnings.push_back("was tuned on another GPU, " + tuning.source);
  std::string missing;
  for (const Ladder& ladder : catalogue())
    for (const Crossover& crossover : ladder.crossovers)
      if (!tuning.values.contains(crossover.name))
        missing += (missing.empty() ? "" : ", ") + crossover.name;
  if (!missing.empty()) warnings.push_back("lacks " + missing + ", whose built-in values are used");
  return warnings;
}

Tuning tuning_of(const Device& device) { return tuning_of(device, kTunings); }

Tuning tuning_of(const Device& device, const TuningFiles& files) {
  // Whether the major version differs, the difference, the name: the first key is the nearest GPU.
  std::map<std::tuple<bool, int64_t, std::string>, Tuning> others;
  for (const auto& [name, text] : files) {
    const TuningFile file = parse(text, std::string(name) + " (compiled into this program)");
    if (file.gpu == device.name) return file.tuning;
    const int64_t theirs = file.compute_capability, ours = device.compute_capability;
    others[{theirs / 10 != ours / 10, std::abs(theirs - ours), file.gpu}] = file.tuning;
  }
  if (device.name == kBuiltInGpu || others.empty())
    return {.source = std::string("built in, of ") + kBuiltInGpu};
  return others.begin()->second;
}

std::vector<Ladder> both_sides(const std::vector<Ladder>& ladders) {
  std::vector<Ladder> result = ladders;
  for (Ladder& ladder : result) {
    const std::vector<Rung> rungs = ladder.rungs;
    ladder.measured.clear();
    for (Rung& rung : ladder.rungs) rung.measured = [](const Case&) { return false; };
    for (const Crossover& crossover : ladder.crossovers) {
      const std::string name = crossover.name.substr(crossover.name.find('.') + 1);
      for (const Shape& probe : crossover.probes)
        if (!std::ranges::count(ladder.measured, probe)) ladder.measured.push_back(probe);
      for (Rung rung : rungs) {
        if (rung.role != Role::choice) continue;
        rung.sweeps = {{{name, {"below", "above"}}, {0, 1}, {0, 1}}};
        rung.measured = [axes = ladder.axes, probes = crossover.probes](const Case& c) {
          return std::ranges::any_of(
              probes, [&](const Shape& probe) { return Case(axes, probe).name() == c.name(); });
        };
        rung.choose = [choose = rung.choose, name, full = crossover.name](const Case& point,
                                                                          const Device& device) {
          // No shape reaches a crossover of infinity, and every shape reaches 0.
          Device tuned = device;
          tuned.crossovers[full] = point[name] == 0 ? INFINITY : 0;
          return choose(point, tuned);
        };
        ladder.rungs.push_back(rung);
      }
    }
    if (!ladder.measured.empty()) ladder.headline = ladder.measured.front();
    ladder.small = ladder.measured;
  }
  return result;
}

const Crossover& crossover_of(const Row& row) {
  const std::string name = row.ladder->name + "." + row.rung->sweeps.front().axis.name;
  return *std::ranges::find(row.ladder->crossovers, name, &Crossover::name);
}

}  // namespace ladders
