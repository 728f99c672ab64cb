// SPDX-License-Identifier: MIT
//
// The reference of the reduction against numbers known without it, how work is divided, and what
// sums of floats promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "model/catalogue.hpp"
#include "reduction/03_flags.cuh"

namespace ladders::reduction {
namespace {

Case elements(int64_t count, int64_t operation) { return Case(ladder().axes, {count, operation}); }

// Launches each of `rungs` that can run on `c` and hands its result to `look`.
template <class Op, class Look>
void with_results(Reduction<Op>& problem, const std::vector<Rung>& rungs, const Case& c,
                  Look look) {
  const Ladder ladder = reduction::ladder();
  const Device& device = problem.device();
  for (const Rung& rung : rungs) {
    if (rung.role == Role::ceiling) continue;  // it has only a part of the sum
    if (!skip_reason({&ladder, &rung, c, c}, device).empty()) continue;
    const Implementation implementation = rung.at(c, device);
    LaunchPlan plan;
    if (implementation.plan) {
      plan = implementation.plan(c, device, implementation.kernel);
      occupancy(implementation.kernel, plan, device);  // allows it what it needs
    }
    problem.poison();
    if (rung.zero_output)
      check(cudaMemset(problem.output().data, 0, problem.output().bytes), "zero");
    implementation.launch(plan, problem, nullptr);
    look(rung, problem.result());
  }
}

TEST(Gpu, SumOfSquaresOfTheLastDigits) {
  NEED_GPU();
  const Case c = elements(1 << 20, 0);
  Reduction<SumOfSquares> problem(c, Device::open(0));
  problem.prepare(0);
  EXPECT_EQ(problem.expectation().sum, 29884300u);
  with_results(problem, ladder().rungs, c, [](const Rung& rung, unsigned long long result) {
    EXPECT_EQ(result, 29884300u) << rung.name;
  });
}

TEST(Gpu, ReductionReferenceAgreesWithTheHost) {
  NEED_GPU();
  constexpr size_t kCount = 100003;
  const Device device = Device::open(0);
  Reduction<Sum> sum(elements(kCount, 1), device);
  Reduction<SumOfSquares> squares(elements(kCount, 0), device);
  Reduction<SumOfSquaresOfFloats> float_squares(elements(kCount, 2), device);
  double expected = 0, magnitude = 0, expected_float_squares = 0;
  unsigned long long expected_squares = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double value = random_float(i);
    expected += value;
    magnitude += std::abs(value);
    expected_float_squares += value * value;
    const auto x = static_cast<long long>(static_cast<int>(random_bits(i)));
    expected_squares += static_cast<unsigned long long>(x * x);
  }
  EXPECT_NEAR(sum.expectation().sum, expected, 1e-9 * magnitude);
  EXPECT_NEAR(sum.expectation().magnitude, magnitude, 1e-9 * magnitude);
  EXPECT_NEAR(float_squares.expectation().sum, expected_float_squares,
              1e-9 * expected_float_squares);
  EXPECT_EQ(float_squares.expectation().sum, float_squares.expectation().magnitude);
  EXPECT_EQ(squares.expectation().sum, expected_squares);
}

// The rungs without atomics on the result, and what they take: one_block, few elements.
std::vector<Rung> single_pass() {
  const std::set<std::string> names = {"last_block", "in_flight", "flagged",
                                       "warp_votes", "one_block", "cluster",
                                       "bulk_ring",  "fastest",   "partial_sums"};
  std::vector<Rung> result;
  for (const Rung& rung : ladder().rungs)
    if (names.contains(rung.name)) result.push_back(rung);
  EXPECT_EQ(result.size(), names.size());
  return result;
}

TEST(Gpu, FloatSumsAreTheSameInEveryRun) {
  NEED_GPU();
  const Device device = Device::open(0);
  for (const int64_t count : {4096, 65536, 262147, 4194307, 33554433}) {
    SCOPED_TRACE(count);
    const Case c = elements(count, 1);
    Reduction<Sum> problem(c, device);
    std::map<std::string, std::set<unsigned>> bits;
    for (int run = 0; run < (kEmulated ? 3 : 20); ++run)
      with_results(problem, single_pass(), c, [&](const Rung& rung, float result) {
        bits[rung.name].insert(std::bit_cast<unsigned>(result));
      });
    for (const auto& [name, seen] : bits) EXPECT_EQ(seen.size(), 1u) << name;
  }
}

// Rounding the exact sum would be off by half of what is allowed.
TEST(Gpu, FloatSquaresAreAllButRightlyRounded) {
  NEED_GPU();
  const Device device = Device::open(0);
  for (const int64_t count : {4096, 1 << 16, 1 << 20, 1 << 24}) {
    SCOPED_TRACE(count);
    const Case c = elements(count, 2);
    Reduction<SumOfSquaresOfFloats> problem(c, device);
    const double expected = problem.expectation().sum;
    with_results(problem, single_pass(), c, [&](const Rung& rung, float result) {
      EXPECT_NEAR(result, expected, 0x1p-23 * expected) << rung.name;
    });
  }
}

// More blocks than the last looks at in one go; the second launch finds what the first has left.
TEST(Gpu, ManyBlocksLeaveTheirSums) {
  NEED_GPU();
  const Case c = elements(300001, 0);
  Reduction<SumOfSquares> problem(c, Device::open(0));
  constexpr GridRule kMany = {.loads_per_thread = 1, .blocks_per_sm = 512};
  const std::vector<Rung> rungs = {
      {.name = "lanes", .implementation = flagged_with<SumOfSquares, 128, 8, false>(kMany)},
      {.name = "votes", .implementation = flagged_with<SumOfSquares, 128, 8, true>(kMany)}};
  for (int launches = 0; launches < 2; ++launches)
    with_results(problem, rungs, c, [&](const Rung& rung, unsigned long long result) {
      EXPECT_EQ(result, problem.expectation().sum) << rung.name;
      EXPECT_GT(rung.implementation.plan(c, problem.device(), rung.implementation.kernel).grid.x,
                2 * 128u + 1);
    });
}

// Every vector is some block's, and no block has much more than another.
TEST(Reduction, DividesWorkEvenly) {
  for (const size_t count : {0, 3, 4, 100, 65536, 999983, 9000013})
    for (const size_t tile : {1024, 2048})
      for (const unsigned blocks : {1, 3, 132, 264, 4096}) {
        const Division d = divide(count, tile, blocks);
        EXPECT_EQ(d.vectors, count / 4);
        EXPECT_LE(d.chunk, tile);
        const size_t dealt = d.rounds * tile * blocks;
        EXPECT_LE(dealt, d.vectors);
        EXPECT_GE(dealt + blocks * d.chunk, d.vectors);
        EXPECT_LT(blocks * d.chunk, d.vectors - dealt + 8 * blocks + 1);
      }
}

// All that launches leave their sums in has to have room for them.
TEST(Reduction, GridsFitTheirSlots) {
  NEED_GPU();
  const Device device = Device::open(0);
  for (const int64_t operation : {0, 1, 2})
    for (int64_t count = 0; count <= int64_t{1} << 31; count = std::max<int64_t>(1, 2 * count))
      for (const Rung& rung : single_pass()) {
        const Case c = elements(count, operation);
        if (device.compute_capability < rung.needs.compute_capability) continue;
        if (rung.skip && !rung.skip(c, device).empty()) continue;
        const Implementation implementation = rung.at(c, device);
        if (!implementation.plan) continue;  // only hardware can run it
        const LaunchPlan plan = implementation.plan(c, device, implementation.kernel);
        EXPECT_GE(plan.grid.x, 1u) << rung.name;
        EXPECT_LE(plan.grid.x, kMostSlots) << rung.name;
      }
}

}  // namespace
}  // namespace ladders::reduction
