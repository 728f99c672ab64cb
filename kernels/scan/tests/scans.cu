// SPDX-License-Identifier: MIT
//
// The reference of the scan against the host, groups of tiles smaller than those that are timed,
// and what scans promise of floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu.hpp"
#include "model/catalogue.hpp"
#include "scan/01_textbook.cuh"
#include "scan/03_single_pass.cuh"
#include "scan/04_bulk_ring.cuh"
#include "scan/schedule.cuh"

namespace ladders::scan {
namespace {

Case elements(int64_t count, int64_t type) { return Case(ladder().axes, {count, type}); }

template <class Type>
std::vector<typename Type::Value> scanned(Scan<Type>& problem, const Implementation& how,
                                          const Case& c) {
  const LaunchPlan plan = how.plan(c, problem.device(), how.kernel);
  problem.poison();
  how.launch(plan, problem, nullptr);
  return to_host(static_cast<const typename Type::Value*>(problem.output().data), c["elements"]);
}

template <class Type>
void expect_the_host_agrees() {
  constexpr size_t kCount = 100003;
  const Case c = elements(kCount, Type::kLabel);
  Scan<Type> problem(c, Device::open(0));
  problem.prepare(1);
  const auto out = scanned(problem, in_one_pass<Type, 512, 4, Groups>(), c);
  EXPECT_EQ(problem.compare().wrong, "");
  std::conditional_t<Scan<Type>::kExact, typename Type::Value, double> sum{};
  double magnitude = 0;
  for (size_t i = 0; i < kCount; ++i) {
    typename Type::Value x{};
    if constexpr (std::is_integral_v<decltype(x)>)
      x = random_bits(i);
    else
      x = random_float(i);
    sum += x;
    magnitude += std::abs(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(sum),
                Scan<Type>::kExact ? 0 : 1e-6 * magnitude)
        << i;
  }
}

TEST(Gpu, ScansAreThoseOfTheHost) {
  NEED_GPU();
  expect_the_host_agrees<Ints>();
  expect_the_host_agrees<Floats>();
}

// The reference sees any single element that is off.
TEST(Gpu, ScanReferenceNamesTheFirstWrongElement) {
  NEED_GPU();
  const Case c = elements(5000, 0);
  Scan<Ints> problem(c, Device::open(0));
  problem.prepare(1);
  auto out = scanned(problem, hillis_steele<Ints>(), c);
  for (const size_t wrong : {4999, 1024, 1023, 1}) {
    out[wrong] += 1;
    check(cudaMemcpy(problem.output().data, out.data(), problem.output().bytes,
                     cudaMemcpyHostToDevice),
          "spoil");
    EXPECT_EQ(problem.compare().wrong, "sum up to element " + std::to_string(wrong));
  }
}

// Groups of 64 tiles of 1024 elements; windows of 32 of them.
template <class Type, class TilePrefix>
void expect_right_over_many_groups() {
  for (const int64_t count : {65535, 65536, 65537, 131072, 299999}) {
    SCOPED_TRACE(count);
    const Case c = elements(count, Type::kLabel);
    Scan<Type> problem(c, Device::open(0));
    for (int input = 0; input < problem.inputs(); ++input)
      for (int run = 0; run < 3; ++run) {
        problem.prepare(input);
        scanned(problem, in_one_pass<Type, 64, 4, TilePrefix>(), c);
        const Verdict verdict = problem.compare();
        EXPECT_EQ(verdict.wrong, "");
        EXPECT_LE(verdict.relative_error, ladder().error_limit);
      }
  }
}

TEST(Gpu, ScansGoOnFromGroupToGroup) {
  NEED_GPU();
  expect_right_over_many_groups<Ints, Groups>();
  expect_right_over_many_groups<Floats, Groups>();
  expect_right_over_many_groups<Ints, LookBack>();
  expect_right_over_many_groups<Floats, LookBack>();
  expect_right_over_many_groups<Floats, Chain>();
}

// What one leaves in the words is nothing to another, whatever its tiles.
TEST(Gpu, SinglePassesFollowEachOther) {
  NEED_GPU();
  const Case c = elements(299999, 0);
  Scan<Ints> problem(c, Device::open(0));
  problem.prepare(1);
  std::vector<Implementation> passes = {
      in_one_pass<Ints, 64, 4, Groups>(), in_one_pass<Ints, 256, 4, Chain>(),
      in_one_pass<Ints, 64, 4, LookBack>(), in_one_pass<Ints, 512, 4, Groups>()};
  if (problem.device().has_bulk_copies(kRingRoom))
    passes.insert(passes.begin() + 1, in_a_ring<Ints>());
  for (int round = 0; round < 3; ++round)
    for (const Implementation& how : passes) {
      scanned(problem, how, c);
      EXPECT_EQ(problem.compare().wrong, "");
    }
}

// All elements have a tile, no tile is too large, and blocks that go by the schedule leave the
// counter of tickets at zero.
TEST(Scan, SchedulesCoverAllElements) {
  constexpr unsigned kStages = 10, kLargest = 4608;
  for (const size_t count : {1, 31, 1027, 135169, 299999, 1510410, 9999991, 1 << 28})
    for (const unsigned blocks : {1, 2, 33, 131, 132}) {
      SCOPED_TRACE(std::to_string(count) + " in " + std::to_string(blocks));
      const Schedule schedule = make_schedule(count, kLargest, blocks, kStages);
      EXPECT_LE(schedule.tile_elements, kLargest);
      EXPECT_GE(size_t{schedule.tiles} * schedule.tile_elements, count);
      EXPECT_LT((schedule.tiles - size_t{1}) * schedule.tile_elements, count);
      std::vector<bool> takes;  // a ticket: blocks with a tile for each stage, until none is left
      for (unsigned block = 0; block < blocks; ++block)
        takes.push_back(block + (kStages - 1) * blocks < schedule.tiles);
      unsigned counter = 0, next = kStages * blocks;
      while (std::ranges::count(takes, true) > 0)
        for (auto&& more : takes) {
          if (!more) continue;
          const unsigned tile = kStages * blocks + counter;
          counter = counter >= schedule.last_ticket ? 0 : counter + 1;  // atomicInc
          more = tile < schedule.tiles;
          if (more) {
            EXPECT_EQ(tile, next++);
          }
        }
      EXPECT_EQ(counter, 0u);
      EXPECT_EQ(next, std::max(schedule.tiles, kStages * blocks));
    }
}

// A few blocks that draw many tiles: the stages of the ring are used again and again.
template <class Type>
void expect_right_of_few_blocks() {
  for (const int64_t count :
       {1, 3, 4, 1027, 24575, 24577, 73728, 299999, 1000002, 1510410, 9999991}) {
    if (kEmulated && count > 1 << 17) continue;  // takes long there
    const Case c = elements(count, Type::kLabel);
    Scan<Type> problem(c, Device::open(0));
    const Implementation ring = in_a_ring<Type>();
    for (const unsigned blocks : {1, 2, 3, 33}) {
      SCOPED_TRACE(std::to_string(count) + " in " + std::to_string(blocks));
      Implementation how = ring;
      how.plan = [=](const Case& c, const Device& device, const void* kernel) {
        LaunchPlan plan = ring.plan(c, device, kernel);
        plan.grid.x = std::min(plan.grid.x, blocks);
        return plan;
      };
      for (int run = 0; run < (kEmulated ? 1 : 4); ++run) {
        problem.prepare(run % 2);
        scanned(problem, how, c);
        const Verdict verdict = problem.compare();
        EXPECT_EQ(verdict.wrong, "");
        EXPECT_LE(verdict.relative_error, ladder().error_limit);
      }
    }
  }
}

TEST(Gpu, RingsGoOnFromTileToTile) {
  NEED_GPU();
  if (!Device::open(0).has_bulk_copies(kRingRoom)) GTEST_SKIP() << "no bulk copies";
  expect_right_of_few_blocks<Ints>();
  expect_right_of_few_blocks<Floats>();
}

// All but the library's, `lookback`, whose order of adding depends on who comes first, and
// `fastest`, which may be that.
TEST(Gpu, FloatScansAreTheSameInEveryRun) {
  NEED_GPU();
  const Ladder ladder = scan::ladder();
  const Device device = Device::open(0);
  for (const int64_t count : kEmulated ? std::vector<int64_t>{4097, 65537}
                                       : std::vector<int64_t>{4097, 65537, 1 << 20, 9999991}) {
    SCOPED_TRACE(count);
    const Case c = elements(count, 1);
    Scan<Floats> problem(c, device);
    for (const Rung& rung : ladder.rungs) {
      if (rung.role == Role::peer || rung.role == Role::ceiling) continue;
      if (rung.name == "lookback" || rung.name == "fastest") continue;
      if (rung.needs.compute_capability > device.compute_capability) continue;
      if (kEmulated && !rung.needs.hardware_only.empty()) continue;
      const Implementation how = rung.at(c, device);
      const auto first = scanned(problem, how, c);
      EXPECT_LE(problem.compare().relative_error, ladder.error_limit) << rung.name;
      for (int run = 0; run < 5; ++run) {
        const auto again = scanned(problem, how, c);
        EXPECT_EQ(std::memcmp(first.data(), again.data(), count * sizeof(float)), 0) << rung.name;
      }
    }
  }
}

}  // namespace
}  // namespace ladders::scan
