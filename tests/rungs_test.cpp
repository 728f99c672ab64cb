// SPDX-License-Identifier: MIT
//
// Every rung over the awkward shapes of its ladder, and its verification: it must refuse a rung
// that does nothing and one that gets a single element wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "gpu.hpp"
#include "measure/study.hpp"
#include "model/cuda_check.hpp"
#include "model/launch.hpp"

namespace ladders {
namespace {

Study& study() {
  allocation_granularity = 1;
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

double threads(const Row& row) {
  const Implementation implementation = row.rung->at(row.point, study().device());
  if (!implementation.plan) return 0;
  const auto [grid, block, bytes, cluster] =
      implementation.plan(row.point, study().device(), implementation.kernel);
  return double(grid.x) * grid.y * grid.z * block.x * block.y * block.z;
}
// Shapes beyond the limits of a grid take an emulator or racecheck seconds per launch. For rungs at
// the limit of a grid along y counted_rungs_test.cpp lowers that limit instead.
bool takes_seconds(const Row& row) { return threads(row) > 4e6; }

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
    try {
      if (kEmulated && takes_seconds(row)) {
        reason = "takes an emulator seconds";
        continue;
      }
      study().verify(row);
      ++verified;
    } catch (const DoesNotFit& why) {
      reason = why.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  if (verified == 0 && !HasFailure()) GTEST_SKIP() << reason;
}

// For racecheck, which would take many minutes over all shapes and the references.
TEST_P(EveryRung, DISABLED_LaunchesAtSomeShapes) {
  NEED_GPU();
  const Device& device = study().device();
  std::vector<std::function<void()>> launches;
  for (const Row& row : rows(*GetParam().ladder, Shapes::tested)) try {
      if (row.rung != GetParam().rung || !skip_reason(row, device).empty() || takes_seconds(row))
        continue;
      const Implementation rung = row.rung->at(row.point, device);
      LaunchPlan plan;
      if (rung.kernel) {
        plan = rung.plan(row.point, device, rung.kernel);
        occupancy(rung.kernel, plan, device);  // throws if the plan asks for too much
      }
      launches.push_back([=, &device] {
        SCOPED_TRACE(row.name());
        if (rung.kernel) allow(rung.kernel, plan);  // another shape may have allowed it less
        const auto problem = row.ladder->problem(row.shape, device);
        problem->prepare(0);
        if (rung.fill) rung.fill(*problem);
        rung.launch(plan, *problem, nullptr);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      });
    } catch (const DoesNotFit&) {
    }
  if (launches.empty()) GTEST_SKIP() << "no case of it can run here";
  const size_t most = GetParam().rung->role == Role::ceiling ? 1 : 6;
  for (size_t i = 0; i < launches.size(); i += (launches.size() + most - 1) / most) launches[i]();
}

INSTANTIATE_TEST_SUITE_P(Gpu, EveryRung, testing::ValuesIn(all_rungs()), [](const auto& info) {
  return info.param.ladder->name + "_" + info.param.rung->name;
});

// What refuses a wrong output is the same for all rungs of a ladder: an emulator, which is slow, is
// given the first two.
class TamperedRung : public EveryRung {};
std::vector<Named> tampered_rungs() {
  std::vector<Named> result = all_rungs();
  if (kEmulated)
    std::erase_if(result, [](const Named& n) { return n.rung - n.ladder->rungs.data() > 1; });
  return result;
}
INSTANTIATE_TEST_SUITE_P(Gpu, TamperedRung, testing::ValuesIn(tampered_rungs()),
                         [](const auto& info) {
                           return info.param.ladder->name + "_" + info.param.rung->name;
                         });

using Tampered =
    std::function<void(const Implementation& real, const LaunchPlan&, Problem&, cudaStream_t)>;

// The rows of a rung over the tested shapes, with its launch replaced. `changed` must outlive them.
std::vector<Row> tampered(const Named& named, Rung& changed, const Tampered& launch) {
  changed = *named.rung;
  changed.zero_output = false;
  changed.choose = [rung = named.rung, launch](const Case& point, const Device& device) {
    Implementation implementation = rung->at(point, device);
    implementation.launch = [launch, real = implementation](const LaunchPlan& plan,
                                                            Problem& problem, cudaStream_t stream) {
      launch(real, plan, problem, stream);
    };
    return implementation;
  };
  std::vector<Row> result;
  for (Row row : rows(*named.ladder, Shapes::tested)) {
    if (row.rung != named.rung || !skip_reason(row, study().device()).empty()) continue;
    if (row.ladder->problem(row.shape, study().device())->output().bytes < 4) continue;
    try {
      if (kEmulated && takes_seconds(row)) continue;
    } catch (const DoesNotFit&) {
      continue;
    }
    row.rung = &changed;
    result.push_back(row);
    if (kEmulated && result.size() == 3) break;  // what refuses them is the same for all
  }
  return result;
}

void expect_refused(const std::vector<Row>& rows_of_rung) {
  int refused = 0;
  for (const Row& row : rows_of_rung) {
    SCOPED_TRACE(row.name());
    try {
      study().verify(row);
      ADD_FAILURE() << "passed verification";
    } catch (const DoesNotFit&) {
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  if (refused == 0) GTEST_SKIP() << "no case of it can run here";
}

TEST_P(TamperedRung, IsRefusedIfItDoesNothing) {
  NEED_GPU();
  Rung changed;
  expect_refused(tampered(GetParam(), changed, [](auto&&...) {}));
}

TEST_P(TamperedRung, IsRefusedIfOneElementIsWrong) {
  NEED_GPU();
  const auto spoil = [](const Implementation& real, const LaunchPlan& plan, Problem& problem,
                        cudaStream_t stream) {
    const auto [data, bytes] = problem.output();
    check(cudaMemset(data, 0, bytes), "spoil");  // for rungs that accumulate
    real.launch(plan, problem, stream);
    check(cudaStreamSynchronize(stream), "spoil");
    // A high bit of the first word: of an exponent, or of a number too large to be missed.
    auto* byte = static_cast<unsigned char*>(data) + 3;
    unsigned char value = 0;
    check(cudaMemcpy(&value, byte, 1, cudaMemcpyDeviceToHost), "spoil");
    value ^= 0x40;
    check(cudaMemcpy(byte, &value, 1, cudaMemcpyHostToDevice), "spoil");
  };
  Rung changed;
  std::vector<Row> wrong = tampered(GetParam(), changed, spoil);
  std::erase_if(wrong, [](const Row& row) {  // what runs on the host leaves no result to spoil
    return row.rung->at(row.point, study().device()).on_host;
  });
  expect_refused(wrong);
}

// The first launches are verified; what the samples leave is looked at too.
TEST(Gpu, IsRefusedIfItGoesWrongLater) {
  NEED_GPU();
  Study quick(Device::open(0), {.exactly = 3});
  for (const Ladder& ladder : catalogue()) {
    const auto tested = rows(ladder, Shapes::tested);
    const auto found = std::ranges::find_if(tested, [&](const Row& row) {
      return skip_reason(row, quick.device()).empty() &&
             !row.rung->at(row.point, study().device()).not_idempotent;
    });
    ASSERT_NE(found, tested.end());
    const Row row = *found;
    const int inputs = ladder.problem(row.shape, quick.device())->inputs();
    int launches = 0, before = inputs;
    const Tampered later = [&](const Implementation& real, const LaunchPlan& plan, Problem& problem,
                               cudaStream_t stream) {
      if (++launches <= before) return real.launch(plan, problem, stream);
      check(cudaMemsetAsync(problem.output().data, 0xFF, problem.output().bytes, stream), "spoil");
    };
    Rung changed;
    std::set<const void*> kernels;
    const std::vector<Row> wrong_later = tampered({&ladder, row.rung}, changed, later);
    changed.zero_output = row.rung->zero_output;  // its first launches are right
    for (const Row& wrong : wrong_later) {
      SCOPED_TRACE(wrong.name());
      // Emulated, the last input's launch is counted, and later rows of a kernel run on the first.
      const bool first = kernels.insert(wrong.rung->at(wrong.point, quick.device()).kernel).second;
      if (kEmulated) before = first ? std::max(1, inputs - 1) : std::min(1, inputs - 1);
      launches = 0;
      EXPECT_THROW(quick.measure(wrong), std::runtime_error);
      EXPECT_GT(launches, before);
    }
  }
}

// Samples take turns at several problems alike, of which only the first is verified before.
TEST(Gpu, IsRefusedIfAnotherOfTheProblemsAlikeGoesWrong) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed, so there is one of each";
  Study quick(Device::open(0), {.exactly = 3});
  const Ladder& ladder = *std::ranges::find(catalogue(), "transpose", &Ladder::name);
  const auto tested = rows(ladder, Shapes::tested);
  const auto row = std::ranges::find_if(tested, [&](const Row& row) {
    return !row.rung->at(row.point, study().device()).not_idempotent;
  });
  ASSERT_NE(row, tested.end());
  const Problem* first = nullptr;
  const Tampered others = [&](const Implementation& real, const LaunchPlan& plan, Problem& problem,
                              cudaStream_t stream) {
    if (first == nullptr) first = &problem;
    if (&problem == first) return real.launch(plan, problem, stream);
    check(cudaMemsetAsync(problem.output().data, 0xFF, problem.output().bytes, stream), "spoil");
  };
  Rung changed;
  const auto wrong = tampered({&ladder, row->rung}, changed, others);
  ASSERT_FALSE(wrong.empty());
  EXPECT_THROW(quick.measure(wrong.front()), std::runtime_error);
}

TEST(Gpu, MeasuresARowWithItsOccupancyAndItsCeiling) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed";
  Study quick(Device::open(0), {.exactly = 3});
  for (const Ladder& ladder : catalogue()) {
    const std::vector<Row> all = rows(ladder, Shapes::measured);
    for (const Row& row : {all.front(), all.back()}) {
      SCOPED_TRACE(row.name());
      const Measurement m = quick.measure(row);
      EXPECT_EQ(m.samples.seconds.size(), 3u);
      EXPECT_LT(m.samples.late, 3);                // a busy host may be late for some
      if (work(row, quick.device()).loads == 0) {  // a latency has no speed
        EXPECT_GT(quick.speed(row, m, ladder.quantity), 0);
      }
      const Rung* chosen = find_rung(ladder, m.chosen);
      const auto ceilings = ceilings_of(ladder, chosen ? *chosen : *row.rung);
      EXPECT_EQ(m.ceiling.has_value(), !ceilings.empty());
      if (!m.plan) continue;
      const Occupancy& o = *m.occupancy;
      const double resident = double(o.blocks_per_sm) * quick.device().sms;
      EXPECT_GT(o.theoretical, 0);
      EXPECT_LE(o.theoretical, 1);
      EXPECT_LE(o.resident_clusters * m.plan->cluster, resident);
      if (m.plan->cluster > 1) continue;
      const auto [x, y, z] = m.plan->grid;
      EXPECT_DOUBLE_EQ(o.waves, double(x) * y * z / resident);
    }
  }
}

// Of two ceilings in different quantities the one that allows less.
TEST(Gpu, TheLowerCeilingCounts) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed";
  Study quick(Device::open(0), {.exactly = 3});
  int ladders = 0;
  for (const Ladder& ladder : catalogue()) {
    if (ladder.other_ceiling.empty()) continue;
    ++ladders;
    int lower_own = 0, lower_other = 0;
    const bool flops = ladder.quantity == Quantity::flops;
    Ladder own = ladder, other = ladder;
    own.other_ceiling = other.other_ceiling = "";
    other.ceiling = ladder.other_ceiling;
    other.quantity = flops ? Quantity::bytes : Quantity::flops;
    for (Row row : rows(ladder, Shapes::measured)) {
      SCOPED_TRACE(row.name());
      if (!skip_reason(row, quick.device()).empty()) continue;
      const double ceiling = quick.measure(row).ceiling.value();
      const Work done = work(row, quick.device());
      row.ladder = &own;
      const double its_own = quick.measure(row).ceiling.value();
      row.ladder = &other;
      const double per_other = flops ? done.flops / done.bytes() : done.bytes() / done.flops;
      const double others = quick.measure(row).ceiling.value() * per_other;
      EXPECT_DOUBLE_EQ(ceiling, std::min(its_own, others));
      ++(its_own < others ? lower_own : lower_other);
    }
    EXPECT_GT(lower_own, 0) << ladder.name;
    EXPECT_GT(lower_other, 0) << ladder.name;
  }
  EXPECT_GT(ladders, 0);
}

TEST(Gpu, AnEmptyKernelIsQuickerThanASum) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed";
  const auto meter = make_meter(Device::open(0));
  const double empty = meter->launch_seconds(), small = meter->small_kernel_seconds(128);
  EXPECT_GT(empty, 1e-7);
  EXPECT_GT(small, empty);
  EXPECT_LT(small, 1e-3);
}

TEST(Gpu, ACeilingIsItsOwnHundredPercent) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed";
  Study quick(Device::open(0), {.exactly = 3});
  for (const Ladder& ladder : catalogue()) {
    const Row row = rows(ladder, Shapes::measured).at(0);
    if (ladder.ceiling != ladder.name + "/" + row.rung->name) continue;
    const Measurement m = quick.measure(row);
    EXPECT_EQ(quick.speed(row, m, ladder.quantity), m.ceiling);
  }
}

// A launch that waits for the device lets no flush wait for what is queued behind it.
TEST(Gpu, SamplesThatMayHoldTimeOfTheHostAreCounted) {
  NEED_GPU();
  if (kEmulated) GTEST_SKIP() << "nothing is timed";
  Study quick(Device::open(0), {.exactly = 3});
  const Ladder& ladder = *std::ranges::find(catalogue(), "transpose", &Ladder::name);
  Row row = rows(ladder, Shapes::tested).at(1);
  Rung changed = *row.rung;
  changed.choose = [rung = row.rung](const Case& point, const Device& device) {
    Implementation implementation = rung->at(point, device);
    implementation.launch = [launch = implementation.launch](
                                const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
      launch(plan, problem, stream);
      check(cudaStreamSynchronize(stream), "a launch that waits");
    };
    return implementation;
  };
  row.rung = &changed;
  EXPECT_EQ(quick.measure(row).samples.late, 3);
}

// What a choice says that it chose is a rung of its ladder, and a step.
TEST(Gpu, ChoicesNameARung) {
  NEED_GPU();
  for (const Ladder& ladder : catalogue())
    for (const Shapes shapes : {Shapes::measured, Shapes::small, Shapes::tested})
      for (const Row& row : rows(ladder, shapes)) {
        if (!skip_reason(row, study().device()).empty()) continue;
        const std::string name = row.rung->at(row.point, study().device()).chosen;
        const Rung* chosen = find_rung(ladder, name);
        EXPECT_EQ(chosen != nullptr, row.rung->role == Role::choice) << row.name() << ": " << name;
        if (!chosen) continue;
        EXPECT_EQ(chosen->role, Role::step) << row.name();
        EXPECT_FALSE(chosen->by_name_only) << row.name();
      }
}

}  // namespace
}  // namespace ladders
