// SPDX-License-Identifier: MIT
//
// What the scripts and the names of rows rely on.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "gpu.hpp"
#include "model/ladder.hpp"
#include "program/context.hpp"
#include "program/registration.hpp"

namespace ladders {
namespace {

const std::regex kName("[a-z][a-z0-9]*(_[a-z0-9]+)*");

// What check_ladder() says of a ladder; empty if nothing.
std::string complaint(const Ladder& ladder) {
  try {
    check_ladder(ladder);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Catalogue, NamesAreSnakeCaseAndUnique) {
  for (const Ladder& ladder : catalogue()) {
    EXPECT_TRUE(std::regex_match(ladder.name, kName)) << ladder.name;
    EXPECT_EQ(complaint(ladder), "");
    std::set<std::string> names;
    for (const Rung& rung : ladder.rungs)
      EXPECT_TRUE(names.insert(rung.name).second) << ladder.name << '/' << rung.name;
  }
  for (const Shapes shapes : {Shapes::measured, Shapes::small}) {
    std::set<std::string> rows_seen;
    for (const Ladder& ladder : catalogue())
      for (const Row& row : rows(ladder, shapes))
        EXPECT_TRUE(rows_seen.insert(row.name()).second) << row.name();
  }
}

TEST(Catalogue, TextsThatFilesCannotHoldAreRefused) {
  const auto refused = [](const std::string& name, const std::string& idea) {
    return complaint({.name = "a", .rungs = {{.name = name, .idea = idea}}});
  };
  EXPECT_EQ(refused("mine_2", "An idea."), "");
  const std::string words = ": the name of a rung is lower_case_words";
  EXPECT_EQ(refused("my rung", "An idea."), "a/my rung" + words);
  EXPECT_EQ(refused("mine/2", "An idea."), "a/mine/2" + words);
  EXPECT_EQ(refused("Mine", "An idea."), "a/Mine" + words);
  const std::string sentence = "a/mine: an idea is one sentence of ASCII, 140 characters at most";
  EXPECT_EQ(refused("mine", std::string(140, 'x')), "");
  EXPECT_EQ(refused("mine", std::string(141, 'x')), sentence);
  EXPECT_EQ(refused("mine", "Gr\u00f6\u00dfer."), sentence);
  EXPECT_EQ(refused("mine", ""), sentence);
}

TEST(Catalogue, StepsMakeATree) {
  const auto refused = [](std::vector<Rung> rungs) {
    for (Rung& rung : rungs) rung.idea = "An idea.";
    return complaint({.name = "l", .rungs = std::move(rungs)});
  };
  const Rung first{.name = "first"}, second{.name = "second", .builds_on = "first"};
  EXPECT_EQ(refused({first, second, {.name = "third", .builds_on = "first"}}), "");
  EXPECT_EQ(refused({{.name = "roof", .role = Role::ceiling}, first, second}), "");
  EXPECT_EQ(refused({first, {.name = "a", .builds_on = "b"}}),
            "l/a: builds on b, which does not exist");
  EXPECT_EQ(refused({second, first}), "l/second: builds on first, which stands later");
  EXPECT_EQ(refused({first, {.name = "a", .builds_on = "a"}}),
            "l/a: builds on a, which stands later");
  EXPECT_EQ(refused({first, {.name = "a"}}),
            "l/a: names no rung that it builds on, and is not the first step");
  EXPECT_EQ(refused({first, first}), "l/first: two rungs have this name");
  const Rung aimless{
      .name = "a", .builds_on = "first", .meant_for = [](const Case&) { return false; }};
  EXPECT_EQ(refused({first, aimless}), "l/a: is meant for no measured shape");
  EXPECT_EQ(refused({first, {.name = "a", .role = Role::peer, .builds_on = "first"}}),
            "l/a: only a step of a ladder builds on another");
  EXPECT_EQ(refused({{.name = "roof", .role = Role::ceiling}, {.name = "a", .builds_on = "roof"}}),
            "l/a: builds on roof, which is no step");
  Ladder experiment{.name = "l",
                    .factors = {"width"},
                    .rungs = {{.name = "a", .idea = "An idea.", .factors = {{"width", "4"}}},
                              {.name = "b", .idea = "An idea.", .factors = {{"width", "8"}}}}};
  EXPECT_EQ(complaint(experiment), "");
  experiment.rungs[1].factors = {{"height", "8"}};
  EXPECT_EQ(complaint(experiment), "l/b: height is no factor of the experiment");
  experiment.rungs[1].factors.clear();
  EXPECT_EQ(complaint(experiment), "l/b: needs a level of each factor of the experiment");
}

TEST(Catalogue, PathsLeadToTheFirstStep) {
  const Ladder ladder{.rungs = {{.name = "a"},
                                {.name = "b", .builds_on = "a"},
                                {.name = "c", .builds_on = "a"},
                                {.name = "d", .builds_on = "b"}}};
  std::string names;
  for (const Rung* rung : path_to_root(ladder, ladder.rungs[3])) names += rung->name;
  EXPECT_EQ(names, "dba");
  EXPECT_EQ(path_to_root(ladder, ladder.rungs[0]).size(), 1u);
}

TEST(Catalogue, CeilingsAreTheRungsOwnOrTheLadders) {
  const Ladder ladder{
      .ceiling = "roof/fma",
      .other_ceiling = "roof/dram_copy",
      .rungs = {{.name = "a"},
                {.name = "b", .ceiling = Ceiling{.rung = "roof/bf16", .products = 3}},
                {.name = "c", .precision = "tf32"},
                {.name = "d", .role = Role::choice}}};
  const auto of = [&](int i) { return ceilings_of(ladder, ladder.rungs[i]); };
  ASSERT_EQ(of(0).size(), 2u);
  EXPECT_EQ(of(0)[0].rung, "roof/fma");
  EXPECT_FALSE(of(0)[0].other_quantity);
  EXPECT_EQ(of(0)[1].rung, "roof/dram_copy");
  EXPECT_TRUE(of(0)[1].other_quantity);
  ASSERT_EQ(of(1).size(), 1u);
  EXPECT_EQ(of(1)[0].products, 3);
  EXPECT_TRUE(of(2).empty());
  EXPECT_TRUE(of(3).empty());
}

TEST(Catalogue, EveryRungIsMeasuredSomewhere) {
  for (const Ladder& ladder : catalogue()) {
    std::set<std::string> missing;
    for (const Rung& rung : ladder.rungs) missing.insert(rung.name);
    for (const Row& row : rows(ladder, Shapes::measured)) missing.erase(row.rung->name);
    EXPECT_TRUE(missing.empty()) << ladder.name << '/' << *missing.begin();
  }
}

TEST(Catalogue, IdeasAreOneSentenceAndDifferent) {
  std::set<std::string> ideas;
  for (const Ladder& ladder : catalogue())
    for (const Rung& rung : ladder.rungs) {
      EXPECT_TRUE(std::regex_match(rung.idea, std::regex("[A-Z0-9c][^\\n]*[A-Za-z0-9)]\\.")))
          << rung.idea;
      EXPECT_TRUE(ideas.insert(ladder.name + rung.idea).second) << rung.idea;
    }
}

TEST(Catalogue, HeadlinesAndCeilingsExist) {
  EXPECT_NO_THROW(check_catalogue(catalogue()));
  const auto complaint = [](auto change) {
    Ladder ladder{.name = "l",
                  .measured = {{1}, {2}},
                  .small = {{1}},
                  .headline = {2},
                  .small_headline = {1},
                  .rungs = {{.name = "a", .idea = "An idea."}}};
    change(ladder);
    try {
      check_catalogue({ladder});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint([](Ladder&) {}), "");
  EXPECT_EQ(complaint([](Ladder& l) { l.headline = {3}; }), "l: the headline is no measured shape");
  EXPECT_EQ(complaint([](Ladder& l) { l.small_headline = {2}; }),
            "l: the small headline is no small shape");
  const std::string no_ceiling = "l: a has the ceiling l/b, which is none";
  EXPECT_EQ(complaint([](Ladder& l) { l.ceiling = "l/b"; }), no_ceiling);
  EXPECT_EQ(complaint([](Ladder& l) { l.rungs[0].ceiling = Ceiling{.rung = "l/b"}; }), no_ceiling);
}

TEST(Catalogue, ShapesHaveAValueForEachAxis) {
  for (const Ladder& ladder : catalogue())
    for (const auto* shapes : {&ladder.measured, &ladder.small, &ladder.tested}) {
      EXPECT_FALSE(shapes->empty());
      for (const Shape& shape : *shapes) EXPECT_EQ(shape.size(), ladder.axes.size()) << ladder.name;
    }
}

TEST(Catalogue, EveryRungCanBeLaunchedAndVerified) {
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::tested)) {
      const Implementation implementation = row.rung->at(row.point, kH200);
      const bool needs_gpu = row.rung->role == Role::peer || !row.rung->needs.hardware_only.empty();
      if (kEmulated && needs_gpu && !implementation.launch) continue;
      EXPECT_TRUE(implementation.launch) << row.name();
      EXPECT_EQ(implementation.kernel != nullptr, bool(implementation.plan)) << row.name();
      EXPECT_TRUE(row.rung->work || ladder.work || (kEmulated && needs_gpu)) << row.name();
    }
}

// An emulator is to be done with a row in a second or two.
TEST(Catalogue, SmallCasesAreSmall) {
  const Device device{.compute_capability = 90, .sms = 132, .threads_per_sm = 2048};
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::small)) {
      if (!row.rung->needs.hardware_only.empty()) continue;
      EXPECT_LE(work(row, device).bytes(), 40e6) << row.name();
      EXPECT_LE(work(row, device).flops, 100e6) << row.name();
    }
}

TEST(Catalogue, WorkIsAlgorithmic) {
  const Device device;
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::measured)) {
      if (kEmulated && !row.rung->needs.hardware_only.empty()) continue;
      const Work done = work(row, device);
      if (ladder.name == "sgemm") {
        const double m = row.point["m"], n = row.point["n"], k = row.point["k"];
        EXPECT_EQ(done.flops, 2 * m * n * k);
        EXPECT_EQ(done.bytes(), 4 * (m * k + k * n + m * n));
      } else if (ladder.name == "transpose") {
        EXPECT_EQ(done.bytes(),
                  2.0 * row.point["rows"] * row.point["columns"] * row.point["element"]);
      } else if (ladder.name == "convolution") {
        const double pixels = double(row.point["rows"]) * row.point["columns"];
        EXPECT_EQ(done.flops, 2 * pixels * row.point["filter"] * row.point["filter"]);
        EXPECT_EQ(done.bytes(), 8 * pixels);
      } else if (ladder.name == "scan") {
        EXPECT_EQ(done.bytes(), 8. * row.point["elements"]);
      } else if (ladder.name == "reduction") {
        EXPECT_NEAR(done.bytes(), 4. * row.point["elements"], 8);  // and its result
      } else if (ladder.name == "histogram") {
        EXPECT_EQ(done.bytes(), 4. * (row.point["keys"] + row.point["bins"]));
      } else if (ladder.name == "byte_histogram") {
        EXPECT_EQ(done.bytes(), row.point["keys"] + 4. * 256);
      } else if (ladder.name == "lookup") {
        EXPECT_EQ(done.bytes(), 4. * (2 * row.point["lookups"] + row.point["entries"]));
      }
    }
}

TEST(Catalogue, PredictsTheKnownWavefronts) {
  // Rows and columns of 32 x 32 and 32 x 16 tiles, vectors, broadcasts: worked out by hand.
  const std::map<std::string, std::pair<int, int>> known = {
      {"row_row", {1, 1}},
      {"column_column", {32, 32}},
      {"row_column", {1, 32}},
      {"column_row", {32, 1}},
      {"row_column_dynamic", {1, 32}},
      {"row_column_padded", {1, 1}},
      {"row_column_dynamic_padded", {1, 1}},
      {"rectangle_row_row", {1, 1}},
      {"rectangle_row_column", {1, 16}},
      {"rectangle_dynamic", {1, 16}},
      {"rectangle_padded", {1, 2}},
      {"rectangle_padded_two", {1, 1}},
      {"rectangle_dynamic_padded", {1, 2}},
      {"row_column_swizzled", {1, 1}},
      {"row_row_8_bytes", {2, 2}},
      {"row_column_8_bytes", {2, 32}},
      {"row_column_8_bytes_padded", {2, 2}},
      {"row_row_16_bytes", {4, 4}},
      {"row_column_16_bytes", {4, 32}},
      {"row_column_16_bytes_padded", {4, 4}},
      {"row_column_16_bytes_swizzled", {4, 4}},
      {"broadcast", {1, 1}},
      {"broadcast_two_banks", {1, 1}},
      {"broadcast_one_bank", {1, 2}},
  };
  // Sectors of another block's memory.
  const std::map<std::string, int> sectors = {
      {"remote_row", 4},           {"remote_column", 32},          {"remote_column_padded", 32},
      {"remote_row_16_bytes", 16}, {"remote_column_16_bytes", 32}, {"remote_broadcast", 1},
  };
  for (const Ladder& ladder : catalogue()) {
    if (ladder.name != "smem_layout") continue;
    EXPECT_EQ(ladder.rungs.size(), known.size() + sectors.size());
    for (const auto& [name, wavefronts] : known) {
      const auto rung = std::ranges::find(ladder.rungs, name, &Rung::name);
      ASSERT_NE(rung, ladder.rungs.end()) << name;
      EXPECT_EQ(rung->predictions.at("predicted_store_wavefronts"), wavefronts.first) << name;
      EXPECT_EQ(rung->predictions.at("predicted_load_wavefronts"), wavefronts.second) << name;
    }
    for (const auto& [name, count] : sectors) {
      const auto rung = std::ranges::find(ladder.rungs, name, &Rung::name);
      ASSERT_NE(rung, ladder.rungs.end()) << name;
      EXPECT_EQ(rung->predictions.at("predicted_distributed_sectors_per_request"), count) << name;
    }
  }
}

TEST(Catalogue, JsonIsOneLineOfPrintableText) {
  const std::string json = to_json(catalogue());
  for (const char c : json) EXPECT_TRUE(c >= ' ' && c <= '~') << int(c);
  for (const Ladder& ladder : catalogue())
    for (const Rung& rung : ladder.rungs) {
      EXPECT_NE(json.find("\"name\":\"" + rung.name + "\""), std::string::npos) << rung.name;
      EXPECT_NE(json.find(rung.idea), std::string::npos) << rung.name;
    }
}

}  // namespace
}  // namespace ladders
