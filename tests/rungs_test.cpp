// SPDX-License-Identifier: MIT
//
// Every rung over the awkward shapes of its ladder, and the verification itself: it must refuse a
// rung that does nothing and one that gets a single element wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_check.hpp"
#include "gpu.hpp"
#include "ladder.hpp"
#include "study.hpp"

namespace ladders {
namespace {

Study& study() {
  static Study study(Device::open(0), {});
  return study;
}

struct Named {
  const Ladder* ladder;
  const Rung* rung;
  friend void PrintTo(const Named& n, std::ostream* out) {
    *out << n.ladder->name << '/' << n.rung->name;
  }
};

std::vector<Named> all_rungs() {
  std::vector<Named> result;
  for (const Ladder& ladder : catalogue())
    for (const Rung& rung : ladder.rungs) result.push_back({&ladder, &rung});
  return result;
}

std::vector<std::string> all_ladders() {
  std::vector<std::string> result;
  for (const Ladder& ladder : catalogue()) result.push_back(ladder.name);
  return result;
}

class EveryRung : public testing::TestWithParam<Named> {};

TEST_P(EveryRung, IsRightOnAwkwardShapes) {
  NEED_GPU();
  int verified = 0;
  std::string reason;
  for (const Row& row : rows(*GetParam().ladder, Shapes::tested)) {
    if (row.rung != GetParam().rung) continue;
    if (const auto why = skip_reason(row, study().device()); !why.empty()) {
      reason = why;
      continue;
    }
    SCOPED_TRACE(row.name());
    EXPECT_NO_THROW(study().verify(row));
    // A second launch finds what the first has left behind.
    EXPECT_NO_THROW(study().verify(row));
    ++verified;
  }
  if (verified == 0) GTEST_SKIP() << reason;
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryRung, testing::ValuesIn(all_rungs()), [](const auto& info) {
  return info.param.ladder->name + "_" + info.param.rung->name;
});

class EveryLadder : public testing::TestWithParam<std::string> {
 protected:
  static const Ladder& ladder() {
    return *std::ranges::find(catalogue(), GetParam(), &Ladder::name);
  }
};

// The rows of one rung with its implementation replaced.
std::vector<Row> with_implementation(
    const Ladder& ladder, Rung& rung,
    std::function<void(const Implementation&, const LaunchPlan&, Problem&, cudaStream_t)> launch) {
  std::vector<Row> result;
  for (Row row : rows(ladder, Shapes::tested)) {
    if (row.rung->name != rung.name || !skip_reason(row, study().device()).empty()) continue;
    rung.choose = [original = *row.rung, launch](const Case& point) {
      Implementation changed = original.at(point);
      changed.launch = [launch, real = original.at(point)](const LaunchPlan& plan, Problem& problem,
                                                           cudaStream_t stream) {
        launch(real, plan, problem, stream);
      };
      return changed;
    };
    row.rung = &rung;
    result.push_back(row);
  }
  return result;
}

// The rung to tamper with: the first step, or for the roofs the first of them.
Rung victim(const Ladder& ladder) {
  for (const Rung& rung : ladder.rungs)
    if (rung.role == Role::step) return rung;
  return ladder.rungs.front();
}

TEST_P(EveryLadder, RefusesARungThatDoesNothing) {
  NEED_GPU();
  Rung rung = victim(ladder());
  rung.zero_output = false;
  int tried = 0;
  for (const Row& row : with_implementation(ladder(), rung, [](auto&&...) {})) {
    if (row.ladder->problem(row.shape, study().device())->output().bytes == 0) continue;
    SCOPED_TRACE(row.name());
    EXPECT_THROW(study().verify(row), std::runtime_error);
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

TEST_P(EveryLadder, RefusesARungThatGetsOneElementWrong) {
  NEED_GPU();
  Rung rung = victim(ladder());
  int tried = 0;
  const auto spoil = [&](const Implementation& real, const LaunchPlan& plan, Problem& problem,
                         cudaStream_t stream) {
    real.launch(plan, problem, stream);
    check(cudaStreamSynchronize(stream), "spoil");
    // The highest byte of the last 4-byte word: a sign or an exponent, or a large number.
    const auto [data, bytes] = problem.output();
    if (bytes < 4) return;
    auto* last = static_cast<unsigned char*>(data) + bytes / 4 * 4 - 1;
    unsigned char value = 0;
    check(cudaMemcpy(&value, last, 1, cudaMemcpyDeviceToHost), "spoil");
    value ^= 0x40;
    check(cudaMemcpy(last, &value, 1, cudaMemcpyHostToDevice), "spoil");
  };
  for (const Row& row : with_implementation(ladder(), rung, spoil)) {
    if (row.ladder->problem(row.shape, study().device())->output().bytes < 4) continue;
    SCOPED_TRACE(row.name());
    EXPECT_THROW(study().verify(row), std::runtime_error);
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryLadder, testing::ValuesIn(all_ladders()),
                         [](const auto& info) { return info.param; });

TEST(Gpu, MeasuresARowWithItsOccupancyAndItsCeiling) {
  NEED_GPU();
  Study quick(Device::open(0), {.exactly = 3});
  for (const Ladder& ladder : catalogue()) {
    const Row row = rows(ladder, Shapes::measured).at(1);
    SCOPED_TRACE(row.name());
    const Measurement m = quick.measure(row);
    EXPECT_EQ(m.samples.seconds.size(), 3u);
    EXPECT_GT(quick.speed(row, m, ladder.quantity), 0);
    if (m.plan) {
      EXPECT_GT(m.occupancy->theoretical, 0);
    }
    EXPECT_EQ(quick.ceiling(row).has_value(), !ladder.ceiling.empty());
  }
}

TEST(Gpu, ACeilingIsItsOwnHundredPercent) {
  NEED_GPU();
  Study quick(Device::open(0), {.exactly = 3});
  for (const Ladder& ladder : catalogue()) {
    const Row row = rows(ladder, Shapes::measured).at(0);
    if (ladder.ceiling != ladder.name + "/" + row.rung->name) continue;
    const Measurement m = quick.measure(row);
    EXPECT_EQ(quick.speed(row, m, ladder.quantity), quick.ceiling(row));
  }
}

}  // namespace
}  // namespace ladders
