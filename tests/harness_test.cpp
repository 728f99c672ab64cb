// SPDX-License-Identifier: MIT
//
// The harness's own logic, none of which needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/sampling.hpp"
#include "model/ladder.hpp"
#include "program/json.hpp"
#include "program/options.hpp"

namespace ladders {
namespace {

Options parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ladder_bench");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse(static_cast<int>(argv.size()), argv.data());
}

bool passes_on(const Options& options, const std::string& argument) {
  const auto& arguments = options.benchmark_arguments;
  return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
}

TEST(Case, IsNamedByItsAxesInOrder) {
  const std::vector<Axis> axes = {{"bins"}, {.name = "kind", .labels = {"flat", "steep"}}};
  const Case c(axes, {256, 1});
  EXPECT_EQ(c.name(), "bins:256/kind:steep");
  EXPECT_EQ(c.with({"cluster"}, 4).name(), "bins:256/kind:steep/cluster:4");
  EXPECT_EQ(c["kind"], 1);
  EXPECT_EQ(c.with({"cluster"}, 4)["cluster"], 4);
  EXPECT_THROW(c["cluster"], std::out_of_range);
  EXPECT_EQ(Case({}, {}).name(), "");
  EXPECT_THROW(Case(axes, {1}), std::invalid_argument);
  EXPECT_THROW(Case(axes, {1, 2}), std::out_of_range);
}

TEST(Rows, RunCaseByCaseAndSweepByValue) {
  Ladder ladder{.name = "l",
                .axes = {{"n"}},
                .measured = {{1}, {2}},
                .small = {{3}},
                .tested = {{7}},
                .rungs = {{.name = "a"}, {.name = "b", .sweeps = {{{"cluster"}, {2, 4}, {8}}}}}};
  std::vector<std::string> names;
  for (const Row& row : rows(ladder, Shapes::measured)) names.push_back(row.name());
  EXPECT_EQ(names, (std::vector<std::string>{"l/a/n:1", "l/b/n:1/cluster:2", "l/b/n:1/cluster:4",
                                             "l/a/n:2", "l/b/n:2/cluster:2", "l/b/n:2/cluster:4"}));
  names.clear();
  for (const Row& row : rows(ladder, Shapes::small)) names.push_back(row.name());
  EXPECT_EQ(names, (std::vector<std::string>{"l/a/n:3", "l/b/n:3/cluster:2", "l/b/n:3/cluster:4"}));
  ladder.rungs[0].measured = [](const Case& c) { return c["n"] == 2; };
  EXPECT_EQ(rows(ladder, Shapes::measured).front().name(), "l/b/n:1/cluster:2");
  EXPECT_EQ(rows(ladder, Shapes::measured).size(), 5u);
  EXPECT_EQ(rows(ladder, Shapes::small).size(), 3u);  // no matter which are measured
  const std::vector<Row> tested = rows(ladder, Shapes::tested);
  ASSERT_EQ(tested.size(), 2u);
  EXPECT_EQ(tested[1].shape.name(), "n:7");
  EXPECT_EQ(tested[1].point.name(), "n:7/cluster:8");
}

TEST(Rows, AreSkippedWithAReason) {
  const int kernel = 0;
  Ladder ladder{.name = "l",
                .axes = {{"n"}},
                .measured = {{1}, {2}},
                .rungs = {{.name = "a",
                           .implementation = {.kernel = &kernel},
                           .needs = kClusters,
                           .skip = [](const Case& c, const Device&) {
                             return c["n"] > 1 ? "too large" : "";
                           }}}};
  const std::vector<Row> all = rows(ladder, Shapes::measured);
  EXPECT_EQ(skip_reason(all[0], {.compute_capability = 90}), "");
  EXPECT_EQ(skip_reason(all[1], {.compute_capability = 90}), "too large");
  EXPECT_EQ(skip_reason(all[0], {.compute_capability = 89}), "needs compute capability 9.0");
}

TEST(Rows, AreSkippedWhereNothingCanEmulateThem) {
  const int kernel = 0;
  Ladder ladder{
      .name = "l",
      .axes = {{"n"}},
      .measured = {{1}},
      .rungs = {
          {.name = "library"},
          {.name = "cpu", .implementation = {.on_host = true}},
          {.name = "ring", .implementation = {.kernel = &kernel}, .needs = kTma},
          {.name = "tensor_cores", .implementation = {.kernel = &kernel}, .needs = kTensorCores}}};
  std::vector<std::string> reasons;
  for (const Row& row : rows(ladder, Shapes::measured))
    reasons.push_back(skip_reason(row, {.compute_capability = 90}));
  EXPECT_EQ(reasons, kEmulated ? (std::vector<std::string>{"a library call: needs a GPU", "", "",
                                                           "needs tensor cores: not emulated"})
                               : (std::vector<std::string>{"", "", "", ""}));
}

TEST(Json, TextIsEscaped) {
  EXPECT_EQ(quoted("a \"b\" \\ \n"), R"("a \"b\" \\ \u000a")");
  EXPECT_EQ(array(std::vector<int>{1, 2}, [](int i) { return std::to_string(i); }), "[1,2]");
  EXPECT_EQ(array(std::vector<int>{}, [](int) { return "?"; }), "[]");
}

TEST(ByAxis, ChoosesTheInstantiation) {
  int dummy[2] = {};
  const auto rung = [&](int i) {
    return std::vector<Rung>{{.name = "a", .implementation = {.kernel = &dummy[i]}}};
  };
  const std::vector<Rung> merged = by_axis("size", {4, 8}, {rung(0), rung(1)});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0].at(Case({{"size"}}, {4}), Device{}).kernel, &dummy[0]);
  EXPECT_EQ(merged[0].at(Case({{"size"}}, {8}), Device{}).kernel, &dummy[1]);
  EXPECT_THROW(merged[0].at(Case({{"size"}}, {2}), Device{}), std::out_of_range);
}

TEST(ByAxis, KeepsWhatARungChoosesByItself) {
  int dummy[2] = {};
  const auto rung = [&](int i) {
    return std::vector<Rung>{{.name = "a", .choose = [&dummy, i](const Case& c, const Device&) {
                                return Implementation{.kernel = c["n"] > 1 ? &dummy[i] : nullptr};
                              }}};
  };
  const std::vector<Axis> axes = {{"size"}, {"n"}};
  const std::vector<Rung> merged = by_axis("size", {4, 8}, {rung(0), rung(1)});
  EXPECT_EQ(merged[0].at(Case(axes, {8, 2}), Device{}).kernel, &dummy[1]);
  EXPECT_EQ(merged[0].at(Case(axes, {8, 1}), Device{}).kernel, nullptr);
}

TEST(Statistics, QuantilesInterpolate) {
  EXPECT_EQ(quantile({3}, 0.5), 3);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(quantile({5, 1, 2, 3, 4}, 0.25), 2);
  EXPECT_EQ(quantile({5, 1}, 0), 1);
  EXPECT_EQ(quantile({5, 1}, 1), 5);
}

TEST(Statistics, TiesAreSpreadOverTheirStep) {
  // The median of grouped data: the ones cover 0.5 to 1.5, and 3 of 6 lie below 3/4 of that.
  EXPECT_NEAR(quantile({1, 2, 1, 1, 2, 1}, 0.5), 1.25, 1e-12);
  // One sample moving from one tick to the next moves the median by a part of a tick.
  std::vector<double> ticks(100, 5.0);
  std::fill(ticks.begin() + 52, ticks.end(), 5.032);
  const double before = quantile(ticks, 0.5);
  ticks[51] = ticks[50] = ticks[49] = ticks[48] = 5.032;
  EXPECT_LT(quantile(ticks, 0.5) - before, 0.004);
  EXPECT_GT(quantile(ticks, 0.5), before);
}

TEST(Statistics, NoiseFallsWithTheSquareRootOfTheCount) {
  std::vector<double> few, many;
  for (int i = 0; i < 100; ++i) few.push_back(100 + i % 5);
  for (int i = 0; i < 400; ++i) many.push_back(100 + i % 5);
  EXPECT_NEAR(median_noise(few) / median_noise(many), 2, 0.05);
  EXPECT_EQ(median_noise({1, 1, 1}), 0);
  // One outlier is not noise of the median.
  few.back() = 1e6;
  EXPECT_LT(median_noise(few), 0.01);
  // Between two modes it is anywhere, however many samples each of them has.
  std::vector<double> modes;
  for (int i = 0; i < 401; ++i) modes.push_back((i < 202 ? 1 : 2) + 1e-4 * i);
  EXPECT_GT(median_noise(modes), 0.1);
}

TEST(Statistics, ARowUnderAPowerLimitTakesTheMeanOfItsSamples) {
  Samples samples{.seconds = {1, 2, 6}};
  EXPECT_EQ(samples.launch_seconds(), 2);
  EXPECT_EQ(samples.noise(), median_noise({1, 2, 6}));
  samples.settled = true;
  EXPECT_EQ(samples.launch_seconds(), 3);
  EXPECT_NEAR(samples.noise(), std::sqrt(7. / 3) / 3, 1e-12);  // of variance 7
}

TEST(Sampling, TheTimeOnTheDeviceIsThatOfAllLaunches) {
  const std::vector<double> samples(20, 1e-3);
  EXPECT_FALSE(enough_samples(samples, 1, {.device_seconds = 0.1}, 0));
  EXPECT_TRUE(enough_samples(samples, 16, {.device_seconds = 0.1}, 0));
}

TEST(Sampling, FewMeansMustHaveASmallerErrorThanMany) {
  const auto means = [](int count, double spread) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(1 + (i % 2 ? spread : -spread));
    return values;
  };
  const Sampling sampling = {.noise = 0.001, .settle_seconds = 10};
  EXPECT_FALSE(enough_means({1, 1, 1, 1}, sampling, 60));
  EXPECT_TRUE(enough_means({1, 1, 1, 1, 1}, sampling, 5));
  // An error of 0.08 %:
  EXPECT_FALSE(enough_means(means(6, 0.0018), sampling, 6));
  EXPECT_TRUE(enough_means(means(10, 0.0024), sampling, 10));
  // An error of 0.13 %:
  EXPECT_FALSE(enough_means(means(10, 0.0039), sampling, 29));
  EXPECT_TRUE(enough_means(means(10, 0.0039), sampling, 30));
}

TEST(Settling, EndsWhenTwoIntervalsHaveTheSameClock) {
  std::vector<double> clocks = {1.98e9, 1.7e9, 1.5e9, 1.45e9, 1.451e9, 1.3e9};
  std::size_t taken = 0;
  settle(0, 60, [&] { return clocks.at(taken++); });
  EXPECT_EQ(taken, 5u);
}

TEST(Settling, LastsAsLongAsItMustAtLeast) {
  const auto start = std::chrono::steady_clock::now();
  settle(0.01, 60, [] { return 1.4e9; });
  EXPECT_GE(seconds_since(start), 0.01);
}

TEST(Settling, GivesUpOnAClockThatMovesToAndFro) {
  int taken = 0;
  settle(0, 0.01, [&] { return taken++ % 2 ? 1.4e9 : 1.5e9; });
  EXPECT_GT(taken, 2);
  settle(0, 0, [&] { return taken = 0, 1.4e9; });
  EXPECT_GT(taken, 2);  // no interval at all
}

TEST(Contexts, AQuickOneWillDoOnceTwelveWereSeen) {
  std::vector<double> seen = {4.30, 4.31, 4.20, 4.32, 4.21, 4.33, 4.34, 4.22, 4.35, 4.36};
  EXPECT_FALSE(context_is_fast_enough({4.2}, 0));
  seen.push_back(4.21);
  EXPECT_FALSE(context_is_fast_enough(seen, 0));  // the eleventh
  seen.push_back(4.21);
  EXPECT_TRUE(context_is_fast_enough(seen, 0));
  seen.back() = 4.10;
  EXPECT_FALSE(context_is_fast_enough(seen, 0));  // the quickest
  seen.back() = 4.40;
  EXPECT_FALSE(context_is_fast_enough(seen, 0));
}

TEST(Contexts, OneAsWantedWillDoAtOnce) {
  EXPECT_TRUE(context_is_fast_enough({4.2}, 4.2005));
  EXPECT_FALSE(context_is_fast_enough({4.2}, 4.21));
  EXPECT_TRUE(context_is_fast_enough({4.3, 4.3, 4.3, 4.2}, 4.203));
  std::vector<double> seen(32, 4.2);
  EXPECT_FALSE(context_is_fast_enough(seen, 4.4));
  seen.push_back(4.2);
  EXPECT_TRUE(context_is_fast_enough(seen, 4.4));  // what is wanted is not to be had
}

TEST(HostSampling, StopsAtTheCountOrTheWallLimit) {
  EXPECT_EQ(sample_host([] {}, {.exactly = 7}).seconds.size(), 7u);
  EXPECT_EQ(sample_host([] {}, {.device_seconds = 1e9, .wall_seconds = 0}).seconds.size(), 5u);
  EXPECT_GE(sample_host([] {}, {.device_seconds = 0, .least = 20, .noise = 1e9}).seconds.size(),
            20u);
}

TEST(Options, OwnFlagsAreTakenOut) {
  const Options options = parsed({"--device=3", "--cases=full", "--benchmark_filter=x"});
  EXPECT_EQ(options.device, 3);
  EXPECT_EQ(options.cases, Shapes::measured);
  EXPECT_TRUE(passes_on(options, "--benchmark_filter=x"));
  EXPECT_FALSE(passes_on(options, "--device=3"));
  EXPECT_EQ(parsed({"--cases=small"}).cases, Shapes::small);
  EXPECT_EQ(parsed({}).cases, kEmulated ? Shapes::small : Shapes::measured);
}

TEST(Options, TimingHasFlagsOfItsOwn) {
  const std::vector<std::string> flags = {"--cache=warm", "--noise=0.01", "--wall_limit=2",
                                          "--profile", "--ceilings=false"};
  if (kEmulated) {
    for (const std::string& flag : flags) EXPECT_THROW(parsed({flag}), UsageError) << flag;
    return;
  }
  const Sampling sampling = parsed(flags).sampling;
  EXPECT_FALSE(sampling.cold);
  EXPECT_EQ(sampling.noise, 0.01);
  EXPECT_EQ(sampling.wall_seconds, 2);
  EXPECT_TRUE(sampling.profile);
  EXPECT_FALSE(sampling.ceilings);
  EXPECT_TRUE(parsed({}).sampling.ceilings);
  EXPECT_TRUE(parsed({}).sampling.cold);
  EXPECT_FALSE(parsed({}).sampling.profile);
}

TEST(Options, AWallLimitHoldsWhereverItStands) {
  EXPECT_EQ(parsed({"--benchmark_min_time=2s"}).sampling.wall_seconds, 20);
  EXPECT_EQ(parsed({"--benchmark_min_time=0.01s"}).sampling.wall_seconds, Sampling{}.wall_seconds);
  if (kEmulated) return;
  const std::string limit = "--wall_limit=1", time = "--benchmark_min_time=2s";
  EXPECT_EQ(parsed({limit, time}).sampling.wall_seconds, 1);
  EXPECT_EQ(parsed({time, limit}).sampling.wall_seconds, 1);
}

TEST(Options, EmulationHasFlagsOfItsOwn) {
  const std::vector<std::string> flags = {"--gpu=a100", "--order=random", "--workers=3",
                                          "--check",    "--per_line",     "--details_out=d.json"};
  if (!kEmulated) {
    for (const std::string& flag : flags) EXPECT_THROW(parsed({flag}), UsageError) << flag;
    return;
  }
  const Options options = parsed(flags);
  EXPECT_EQ(options.gpu, "a100");
  EXPECT_EQ(options.order, "random");
  EXPECT_EQ(options.workers, 3);
  EXPECT_TRUE(options.check);
  EXPECT_TRUE(options.per_line);
  EXPECT_EQ(options.details_file, "d.json");
  EXPECT_THROW(parsed({"--order=sideways"}), UsageError);
  EXPECT_THROW(parsed({"--workers=-1"}), UsageError);
  EXPECT_FALSE(parsed({"--check=false"}).check);
}

TEST(Options, MinTimeIsReadInEveryDialect) {
  EXPECT_EQ(parsed({"--benchmark_min_time=0.5"}).sampling.device_seconds, 0.5);
  EXPECT_EQ(parsed({"--benchmark_min_time=0.5s"}).sampling.device_seconds, 0.5);
  EXPECT_EQ(parsed({"--benchmark_min_time=12x"}).sampling.exactly, 12);
  EXPECT_FALSE(passes_on(parsed({"--benchmark_min_time=12x"}), "--benchmark_min_time=12x"));
}

TEST(Options, ResultsAreWrittenBesideFirst) {
  const Options options = parsed({"--benchmark_out=a.json"});
  EXPECT_EQ(options.result_file, "a.json");
  EXPECT_TRUE(passes_on(options, "--benchmark_out=a.json.partial"));
}

TEST(Options, ListingIsRecognised) {
  EXPECT_THROW(parsed({"--benchmark_format=csv"}), UsageError);
  EXPECT_THROW(parsed({"--benchmark_out_format=csv"}), UsageError);
  EXPECT_TRUE(parsed({"--benchmark_list_tests"}).list);
  EXPECT_TRUE(parsed({"--benchmark_list_tests=true"}).list);
  EXPECT_FALSE(parsed({"--benchmark_list_tests=false"}).list);
}

TEST(Options, NonsenseIsRefused) {
  for (const char* argument :
       {"--device=x", "--device=-1", "--device=", "--device=1.5", "--cache=lukewarm",
        "--cases=tiny", "--benchmark_min_time=soon", "--benchmark_min_time=0x",
        "--benchmark_min_time=", "--noise=-1", "--wall_limit=1h"})
    EXPECT_THROW(parsed({argument}), UsageError) << argument;
}

TEST(Options, WhatIsNoNumberIsToldAsItWasWritten) {
  for (const std::string argument : {"--benchmark_min_time=x", "--benchmark_min_time=s"}) try {
      parsed({argument});
      ADD_FAILURE() << argument;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(), argument + ": not a number");
    }
}

}  // namespace
}  // namespace ladders
