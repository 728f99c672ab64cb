// SPDX-License-Identifier: MIT
//
// Every rung on the emulator with its eyes open: free of races, of reads of what nobody wrote and
// of accesses out of bounds on the awkward shapes, whatever the order of threads; and its figures
// the same however many host threads ran it.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/report.hpp"
#include "measure/study.hpp"
#include "model/cuda_check.hpp"
#include "model/ladder.hpp"
#include "model/launch.hpp"

namespace ladders {

struct Named {
  const Ladder* ladder;
  const Rung* rung;
  friend void PrintTo(const Named& n, std::ostream* out) {
    *out << n.ladder->name << '/' << n.rung->name;
  }
};

namespace {

// An H200 with few SMs: rungs that fill the device do the same with fewer blocks, sooner.
const emulator::Gpu& small_gpu() {
  static const emulator::Gpu gpu = [] {
    emulator::Gpu few = *emulator::find_gpu("h200");
    few.sms = 16;
    return few;
  }();
  return gpu;
}

// For the rung's own launches, not for those that fill its inputs and look at its output.
struct Settings {
  explicit Settings(emulator::Order order = emulator::Order::forward, int workers = 0,
                    bool check = false, const emulator::Schedule& schedule = {}) {
    emulator::options() = {.gpu = &small_gpu(),
                           .order = order,
                           .workers = workers,
                           .check = check,
                           .schedule = schedule};
  }
  ~Settings() { emulator::options() = {.gpu = &small_gpu()}; }
};

// What shrinks its stages where shared memory is less than Hopper's still runs there, by the
// registers that ptxas reported for that architecture.
TEST(EmulatedOccupancy, OfAsyncCopiesOnSmallerGpus) {
  const Ladder& sgemm = *std::ranges::find(catalogue(), "sgemm", &Ladder::name);
  const Case headline(sgemm.axes, sgemm.headline);
  for (const char* name : {"a100", "rtx4090", "h200"}) {
    SCOPED_TRACE(name);
    emulator::options() = {.gpu = emulator::find_gpu(name)};
    const Device device = Device::open(0);
    const Implementation rung = find_rung(sgemm, "async_copies")->at(headline, device);
    const Occupancy found =
        occupancy(rung.kernel, rung.plan(headline, device, rung.kernel), device);
    EXPECT_GT(found.registers, 0);
    EXPECT_EQ(found.blocks_per_sm, 1);
  }
  emulator::options() = {.gpu = &small_gpu()};
}

Study& study() {
  emulator::options().gpu = &small_gpu();
  static Study study(Device::open(0), {});
  return study;
}

std::vector<Named> kernel_rungs() {
  std::vector<Named> result;
  for (const Ladder& ladder : catalogue()) {
    const std::vector<Row> tested = rows(ladder, Shapes::tested);
    for (const Rung& rung : ladder.rungs) {
      if (!rung.needs.hardware_only.empty()) continue;
      if (rung.role == Role::choice) continue;  // a kernel of another rung
      const auto row = std::ranges::find(tested, &rung, &Row::rung);
      if (row == tested.end()) throw std::logic_error("a rung without a tested shape");
      if (rung.at(row->point, study().device()).kernel) result.push_back({&ladder, &rung});
    }
  }
  return result;
}

LaunchPlan plan_of(const Row& row) {
  const Implementation implementation = row.rung->at(row.point, study().device());
  return implementation.plan(row.point, study().device(), implementation.kernel);
}

// A shape of tens of millions of threads takes minutes with its accesses checked. What is new there
// is that blocks go on where the grid is at its limit along y, which is tried with a lower limit
// instead.
constexpr double kMostThreads = 2.5e5;
constexpr unsigned kLimit = 65535, kLowerLimit = 2;
double threads(const LaunchPlan& plan) {
  return double(plan.grid.x) * plan.grid.y * plan.grid.z * plan.block.x * plan.block.y;
}

class EveryKernel : public testing::TestWithParam<Named> {
 protected:
  // Calls f(row) for the shapes of at most kMostThreads.
  template <class F>
  void for_each_row(F f) {
    int ran = 0;
    for (const Row& row : rows(*GetParam().ladder, Shapes::tested)) {
      if (row.rung != GetParam().rung) continue;
      if (!skip_reason(row, study().device()).empty()) continue;
      SCOPED_TRACE(row.name());
      try {
        if (threads(plan_of(row)) > kMostThreads) continue;
        f(row);
        ++ran;
      } catch (const DoesNotFit&) {
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
    EXPECT_GT(ran, 0) << "no row of it can run";
  }
};

bool reaches_the_limit(const Named& named) {
  return std::ranges::any_of(rows(*named.ladder, Shapes::tested), [&](const Row& row) {
    if (row.rung != named.rung || !skip_reason(row, study().device()).empty()) return false;
    try {
      return plan_of(row).grid.y == kLimit;
    } catch (const DoesNotFit&) {
      return false;
    }
  });
}

// The rung with its launches checked, with so many blocks along y at most.
Rung checked(const Rung& rung, emulator::Order order, unsigned limit = kLimit,
             const emulator::Schedule& schedule = {}) {
  Rung result = rung;
  result.choose = [=, &rung](const Case& point, const Device& device) {
    Implementation implementation = rung.at(point, device);
    implementation.plan = [limit, plan = implementation.plan](auto&&... arguments) {
      LaunchPlan limited = plan(arguments...);
      limited.grid.y = std::min(limited.grid.y, limit);
      return limited;
    };
    implementation.launch = [=, launch = implementation.launch](auto&&... arguments) {
      const Settings settings(order, 0, true, schedule);
      launch(arguments...);
    };
    return implementation;
  };
  return result;
}

TEST_P(EveryKernel, IsCleanInAnyOrder) {
  using emulator::Order;
  std::vector<unsigned> limits = {kLimit};
  if (reaches_the_limit(GetParam())) limits.push_back(kLowerLimit);
  // Forward is all else's. Shapes take turns: a sixth in one of the others, a sixth in the other.
  // All in both take six times as long.
  for (const Order order : {Order::reverse, Order::random})
    for (const unsigned limit : limits) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << ", " << limit
                                      << " blocks along y at most");
      const Rung in_order = checked(*GetParam().rung, order, limit);
      int index = order == Order::reverse ? 0 : 1;
      for_each_row([&](Row row) {
        if (index++ % 6 != 0) return;
        row.rung = &in_order;
        study().verify(row, 1);  // one input is enough to find races
      });
    }
}

// Where blocks signal each other, hand over sums or are in clusters: the turn changes among them in
// the middle.
class KernelWithFlags : public EveryKernel {};
bool has_flags(const Named& n) {
  // Scans of several kernels have none.
  if (std::set<std::string>{"naive", "work_efficient", "padded"}.contains(n.rung->name))
    return false;
  return std::set<std::string>{"reduction", "scan", "byte_histogram"}.contains(n.ladder->name);
}
bool hands_over(const Named& n) {
  return std::set<std::string>{"sgemm/stream_k",          "sgemm/split_k",
                               "sgemm/few_tiles",         "sgemm/thin",
                               "histogram/cluster_merge", "histogram/cluster_carries",
                               "histogram/distributed",   "lookup/distributed"}
      .contains(n.ladder->name + "/" + n.rung->name);
}
std::vector<Named> rungs_with_flags() {
  std::vector<Named> result = kernel_rungs();
  std::erase_if(result, [](const Named& n) { return !has_flags(n) && !hands_over(n); });
  return result;
}

TEST_P(KernelWithFlags, IsCleanUnderAnySchedule) {
  using Kind = emulator::Schedule::Kind;
  // Clusters are slow: fewer of them, by a number that is no divisor of that of the shapes.
  const bool flags = has_flags(GetParam());
  const int step = flags ? 4 : 23;
  int index = 0;
  for (const Kind kind : {Kind::random, Kind::priorities})
    for (const unsigned seed : {1u, 2u}) {
      if (!flags && seed > 1) break;
      SCOPED_TRACE(testing::Message()
                   << "schedule " << static_cast<int>(kind) << ", seed " << seed);
      const Rung scheduled =
          checked(*GetParam().rung, emulator::Order::forward, kLimit, {.kind = kind, .seed = seed});
      for_each_row([&](Row row) {
        if (index++ % step != 0) return;  // a shape under some of them
        row.rung = &scheduled;
        study().verify(row, 2);  // the second finds what the first launch has left behind
      });
    }
}

// Everything that a report says, in a form that compares.
auto key(const emulator::Line& l) {
  return std::tuple(l.kernel, l.file, l.line, l.space, l.operation, l.bytes, l.worst);
}
auto key(const emulator::Traffic& t) {
  return std::tuple(t.requests, t.lanes, t.bytes, t.transactions, t.ideal, t.worst, t.serialised);
}
auto key(const emulator::Report& r) {
  return std::tuple(r.launches, r.blocks, r.threads, r.barriers, r.cluster_barriers,
                    r.warp_operations, r.warp_steps, r.lane_steps, r.compulsory_read,
                    r.compulsory_written);
}

TEST_P(EveryKernel, CountsTheSameOnAnyNumberOfWorkers) {
  int index = 0;
  for_each_row([&](const Row& row) {
    if (index++ % 20 != 0) return;  // some shapes: how threads share work is not of these
    const Implementation implementation = row.rung->at(row.point, study().device());
    const LaunchPlan plan = implementation.plan(row.point, study().device(), implementation.kernel);
    occupancy(implementation.kernel, plan, study().device());  // allows what the plan asks for
    const auto count = [&](int workers) {
      // A launch may continue where the one before ended, so each has a problem of its own.
      const std::unique_ptr<Problem> problem = row.ladder->problem(row.shape, study().device());
      implementation.launch(plan, *problem, nullptr);  // inputs may be made when first read
      const Settings settings(emulator::Order::forward, workers);
      const emulator::Recording recording;
      implementation.launch(plan, *problem, nullptr);
      return recording.report();
    };
    const emulator::Report one = count(1), several = count(5);
    EXPECT_EQ(key(one), key(several));
    ASSERT_EQ(one.lines.size(), several.lines.size());
    for (size_t i = 0; i < one.lines.size(); ++i) {
      EXPECT_EQ(key(one.lines[i]), key(several.lines[i]));
      EXPECT_EQ(key(one.lines[i].traffic), key(several.lines[i].traffic));
    }
  });
}

const auto kNameOfRung = [](const auto& info) {
  return info.param.ladder->name + "_" + info.param.rung->name;
};
INSTANTIATE_TEST_SUITE_P(Emulated, EveryKernel, testing::ValuesIn(kernel_rungs()), kNameOfRung);
INSTANTIATE_TEST_SUITE_P(Emulated, KernelWithFlags, testing::ValuesIn(rungs_with_flags()),
                         kNameOfRung);

__global__ void without_bounds_test(char* out) { out[threadIdx.x] = 1; }

// What a ladder's problem allocates ends where its last element does.
TEST(Emulated, ARungWithoutItsBoundsTestIsReported) {
  const std::regex reported(R"(out-of-bounds global store.* of a buffer of \d+; kernel .*without)"
                            R"(_bounds_test.* at counted_rungs_test\.cpp:\d+, block .* thread )");
  for (const Ladder& ladder : catalogue()) {
    Rung wrong = ladder.rungs.at(0);
    wrong.needs.hardware_only = {};
    wrong.choose = [](const Case&, const Device&) {
      return Implementation{.launch = [](const LaunchPlan&, Problem& problem, cudaStream_t stream) {
        const auto [data, bytes] = problem.output();
        const Settings settings(emulator::Order::forward, 0, true);
        launch({.grid = 1, .block = 64}, stream, without_bounds_test,
               static_cast<char*>(data) + bytes - 1);
      }};
    };
    Row row = rows(ladder, Shapes::small).at(0);
    row.rung = &wrong;
    SCOPED_TRACE(row.name());
    try {
      study().verify(row);
      ADD_FAILURE() << "passed verification";
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::regex_search(error.what(), reported)) << error.what();
    }
    emulator::clear_fault();  // or the next ladder's first call would tell the same
  }
}

TEST(Emulated, CountsAreSeen) { EXPECT_TRUE(emulator::counted()); }

}  // namespace
}  // namespace ladders
