// SPDX-License-Identifier: MIT
//
// Choices by a tuning file: right with any, and a bad file is told in one line.
#include "program/tuning.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gpu.hpp"
#include "measure/study.hpp"
#include "program/options.hpp"
#include "scratch.hpp"

namespace ladders {
namespace {

// What is said of a file with this text, after its name.
std::string complaint(const std::string& text) {
  const ScratchFile scratch("tuning.toml");
  const std::string& file = scratch.path;
  std::ofstream(file) << text;
  try {
    read_tuning(file);
  } catch (const UsageError& error) {
    const std::string said = error.what(), name = "--tuning=" + file + ": ";
    EXPECT_EQ(said.rfind(name, 0), 0u) << said;
    return said.substr(name.size());
  }
  return "";
}

const std::string kGpu = "gpu = 'NVIDIA T4'\ncompute_capability = 75\n";

TEST(Tuning, IsReadFromAFile) {
  const ScratchFile file("tuning.toml");
  std::ofstream(file.path) << kGpu << "[transpose]\nbands_from = 0.5\nvectors_from = inf\n"
                           << "[reduction]\nbulk_ring_from = 7\n[[measured]]\nsize = 1\n";
  const Tuning tuning = read_tuning(file.path);
  EXPECT_EQ(tuning.source, "NVIDIA T4");
  EXPECT_EQ(tuning.values.size(), 3u);
  EXPECT_EQ(tuning.values.at("transpose.bands_from"), 0.5);
  EXPECT_TRUE(std::isinf(tuning.values.at("transpose.vectors_from")));
  EXPECT_EQ(tuning.values.at("reduction.bulk_ring_from"), 7);
}

TEST(Tuning, ABadFileIsToldInOneLine) {
  EXPECT_EQ(complaint(kGpu), "");
  const std::string none = "names no gpu and compute_capability: not what `ladder tune` writes";
  EXPECT_EQ(complaint(""), none);
  EXPECT_EQ(complaint("[transpose]\nbands_from = 1\n"), none);
  EXPECT_EQ(complaint(kGpu + "[transpose]\nstripes_from = 1\n"),
            "there is no crossover transpose.stripes_from");
  const std::string number = "transpose.bands_from is not a number of at least 0";
  for (const char* value : {"-1", "nan", "-inf", "'1'", "[1]", "true"})
    EXPECT_EQ(complaint(kGpu + "[transpose]\nbands_from = " + value + "\n"), number) << value;
  for (const char* cut :
       {"[transpo", "[transpose]\nbands_from =", "[transpose]\nbands_from = 1 2"}) {
    const std::string said = complaint(kGpu + cut);
    EXPECT_EQ(said.rfind("line ", 0), 0u) << said;
    EXPECT_EQ(said.find('\n'), said.npos) << said;
  }
  EXPECT_THROW(read_tuning("/nowhere/tuning.toml"), UsageError);
  EXPECT_THROW(read_tuning("/"), UsageError);
}

TEST(Tuning, WhatUsersMayNotKnowOfAFileIsTold) {
  const Device device = {.name = "NVIDIA T4"};
  Tuning tuning = {.source = "NVIDIA T4"};
  for (const Ladder& ladder : catalogue())
    for (const Crossover& crossover : ladder.crossovers) tuning.values[crossover.name] = 1;
  EXPECT_EQ(unexpected(tuning, device), std::vector<std::string>());
  tuning.values.erase("transpose.bands_from");
  tuning.values.erase("scan.bulk_ring_from");
  EXPECT_EQ(
      unexpected(tuning, {.name = "NVIDIA L4"}),
      (std::vector<std::string>{
          "was tuned on another GPU, NVIDIA T4",
          "lacks transpose.bands_from, scan.bulk_ring_from, whose built-in values are used"}));
}

TEST(Tuning, AFileIsForItsGpuAndThoseThatItIsNearestTo) {
  TuningFiles files = {{"a", "gpu = 'A'\ncompute_capability = 90\n[scan]\nbulk_ring_from = 1\n"},
                       {"b", "gpu = 'B'\ncompute_capability = 86\n[scan]\nbulk_ring_from = 2\n"},
                       {"c", "gpu = 'C'\ncompute_capability = 80\n[scan]\nbulk_ring_from = 3\n"},
                       {"d", "gpu = 'D'\ncompute_capability = 100\n[scan]\nbulk_ring_from = 4\n"},
                       {"e", "gpu = 'E'\ncompute_capability = 90\n[scan]\nbulk_ring_from = 5\n"}};
  const auto of = [&](const std::string& gpu, int compute_capability) {
    return tuning_of({.name = gpu, .compute_capability = compute_capability}, files);
  };
  const std::vector<std::tuple<std::string, int, std::string>> taken = {
      {"E", 90, "E"},       // its own, though A is as near
      {"B", 100, "B"},      // its own, whatever its architecture
      {"none", 87, "B"},    // nearer than C, which has the same major version too
      {"none", 82, "C"},    // likewise the other way round
      {"none", 89, "B"},    // A is nearer, but has another major version
      {"none", 83, "B"},    // as far from B as from C
      {"none", 90, "A"},    // as far from A as from E
      {"none", 75, "C"},    // no file has its major version
      {"none", 120, "D"}};  // likewise
  for (int order = 0; order < 2; ++order, std::ranges::reverse(files)) {
    for (const auto& [gpu, compute_capability, source] : taken)
      EXPECT_EQ(of(gpu, compute_capability).source, source) << gpu << ' ' << compute_capability;
    EXPECT_EQ(of("none", 90).values.at("scan.bulk_ring_from"), 1);
  }
  const Tuning own = of("NVIDIA H200", 90);
  files.clear();
  for (const Tuning& none : {own, of("none", 90)}) {
    EXPECT_EQ(none.source, "built in, of NVIDIA H200");
    EXPECT_TRUE(none.values.empty());
  }
}

TEST(Tuning, WhatWasBuiltInCanBeRead) {
  EXPECT_NO_THROW(tuning_of({.name = "none of these", .compute_capability = 10}));
}

TEST(Tuning, CrossoversAreOfTheirLaddersAndHaveProbesOnBothSides) {
  for (const Ladder& ladder : catalogue()) {
    std::set<std::string> names;
    for (const Crossover& crossover : ladder.crossovers) {
      EXPECT_EQ(crossover.name.rfind(ladder.name + ".", 0), 0u) << crossover.name;
      EXPECT_TRUE(names.insert(crossover.name).second) << crossover.name;
      std::set<double> sizes;
      for (const Shape& probe : crossover.probes)
        sizes.insert(crossover.size(Case(ladder.axes, probe), kH200));
      EXPECT_GE(sizes.size(), 4u) << crossover.name;
    }
  }
}

TEST(Tuning, BothSidesOfCrossoversAreRowsOfTheChoices) {
  std::set<std::string> names;
  for (const std::vector<Ladder> ladders = both_sides(catalogue()); const Ladder& ladder : ladders)
    for (const Row& row : rows(ladder, Shapes::measured)) {
      EXPECT_EQ(row.rung->role, Role::choice);
      EXPECT_TRUE(names.insert(row.name()).second) << row.name();
      EXPECT_EQ(crossover_of(row).name, ladder.name + "." + row.rung->sweeps.front().axis.name);
    }
  for (const char* side : {"below", "above"})
    EXPECT_EQ(
        names.count(std::string("scan/fastest/elements:1048576/type:int/bulk_ring_from:") + side),
        1u);
}

TEST(Tuning, ChoicesAreRightWithAnyValue) {
  NEED_GPU();
  Study study(Device::open(0), {});
  const auto takes_seconds = [&](const Row& row) {
    return kEmulated && work(row, study.device()).bytes() > 4e6;
  };
  // Many values make the same choice.
  std::set<std::tuple<std::string, std::string, const void*, unsigned, unsigned>> verified;
  for (const double value : {0., double(INFINITY)})
    for (const Ladder& ladder : catalogue()) {
      std::vector<std::map<std::string, double>> tunings;
      if (!kEmulated)
        for (const Crossover& crossover : ladder.crossovers)
          tunings.push_back({{crossover.name, value}});
      else if (!ladder.crossovers.empty())  // one by one takes a minute: all alike, and in turn
        tunings.resize(ladder.crossovers.size() == 1 ? 1 : 2);
      for (size_t i = 0; kEmulated && i < ladder.crossovers.size(); ++i)
        for (size_t t = 0; t < tunings.size(); ++t)
          tunings[t][ladder.crossovers[i].name] = t * i % 2 == 0 ? value
                                                  : value == 0   ? INFINITY
                                                                 : 0;
      for (const auto& tuning : tunings) {
        study.set_crossovers(tuning);
        for (const Row& row : rows(ladder, Shapes::tested)) {
          if (row.rung->role != Role::choice || takes_seconds(row)) continue;
          if (!skip_reason(row, study.device()).empty()) continue;
          const Implementation found = row.rung->at(row.point, study.device());
          const auto plan = study.plan(row).plan.value_or(LaunchPlan());
          if (!verified.emplace(row.name(), found.chosen, found.kernel, plan.grid.x, plan.block.x)
                   .second)
            continue;
          EXPECT_NO_THROW(study.verify(row, 1))
              << row.name() << " with " << testing::PrintToString(tuning);
        }
      }
    }
}

}  // namespace
}  // namespace ladders
