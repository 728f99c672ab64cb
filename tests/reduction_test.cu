// SPDX-License-Identifier: MIT
//
// The reference of the reduction against numbers known without it. The ladder's own file is
// included, to have its inside.
#include "../kernels/reduction.cu"  // NOLINT
#include "gpu.hpp"

namespace ladders {
namespace {

Case elements(int64_t count, int64_t operation) {
  return Case(reduction().axes, {count, operation});
}

TEST(Gpu, SumOfSquaresOfTheLastDigits) {
  NEED_GPU();
  Reduction<SumOfSquares> problem(elements(1 << 20, 0));
  problem.fill<ExactInput>();
  EXPECT_EQ(problem.expectation().first, 29884300u);
  const Ladder ladder = reduction();
  for (const Rung& rung : rungs<SumOfSquares>()) {
    const Case c = elements(1 << 20, 0);
    const Device device = Device::open(0);
    if (!skip_reason({&ladder, &rung, c, c}, device).empty()) continue;
    const Implementation& implementation = rung.implementation;
    const LaunchPlan plan =
        implementation.plan ? implementation.plan(c, device, implementation.kernel) : LaunchPlan{};
    problem.poison();
    if (rung.zero_output) check(cudaMemset(problem.output().data, 0, 8), "zero");
    implementation.launch(plan, problem, nullptr);
    EXPECT_EQ(problem.result(), 29884300u) << rung.name;
  }
}

TEST(Gpu, ReductionReferenceAgreesWithTheHost) {
  NEED_GPU();
  constexpr size_t kCount = 100003;
  Reduction<Sum> sum(elements(kCount, 1));
  Reduction<SumOfSquares> squares(elements(kCount, 0));
  double expected = 0, magnitude = 0;
  unsigned long long expected_squares = 0;
  for (size_t i = 0; i < kCount; ++i) {
    expected += random_float(i);
    magnitude += std::abs(random_float(i));
    const auto x = static_cast<long long>(static_cast<int>(random_bits(i)));
    expected_squares += static_cast<unsigned long long>(x * x);
  }
  EXPECT_NEAR(sum.expectation().first, expected, 1e-9 * magnitude);
  EXPECT_NEAR(sum.expectation().second, magnitude, 1e-9 * magnitude);
  EXPECT_EQ(squares.expectation().first, expected_squares);
}

}  // namespace
}  // namespace ladders
