// SPDX-License-Identifier: MIT
//
// What the reference shares with the rungs, and would not find: which way round the filter is, what
// lies outside of the image, and how far a pixel reaches.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "convolution/02_sliding_sums.cuh"
#include "gpu.hpp"
#include "model/catalogue.hpp"

namespace ladders::convolution {
namespace {

using Pixels = std::vector<float>;

// What each rung that can run here makes of an image; `look` is to judge it.
template <class Look>
void for_each_rung(const Shape& shape, const Pixels& image, const Pixels& filter, Look look) {
  const Ladder ladder = convolution::ladder();
  const Device device = Device::open(0);
  const Case c(ladder.axes, shape);
  Convolution problem(c, device);
  problem.set_image(image);
  problem.set_filter(filter);
  int ran = 0;
  for (const Rung& rung : ladder.rungs) {
    if (!skip_reason({&ladder, &rung, c, c}, device).empty()) continue;
    SCOPED_TRACE(rung.name);
    const Implementation how = rung.at(c, device);
    problem.poison();
    how.launch(how.plan(c, device, how.kernel), problem, nullptr);
    look(to_host(static_cast<const float*>(problem.output().data), image.size()),
         problem.compare());
    ++ran;
  }
  EXPECT_GT(ran, 3);
}

// The filter is not turned, its middle lies on the pixel, and zeros are outside.
TEST(Gpu, ConvolutionIsTheCorrelationWithZerosOutside) {
  NEED_GPU();
  const Pixels filter = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Pixels image = {1, 10, 100, 1000, 2, 20, 200, 2000, 3, 30, 300, 3000};
  const Pixels expected = {261,   2628,  26280, 22800, 456,   4590,
                           45900, 39000, 259,   2604,  26040, 20400};
  for_each_rung({3, 4, 3}, image, filter, [&](const Pixels& out, const Verdict& verdict) {
    EXPECT_EQ(out, expected);
    EXPECT_EQ(verdict.relative_error, 0);
  });
}

// One pixel makes the filter appear, the other way round, as far as it reaches and no further:
// inside, at a corner, and at the edges of what warps and blocks have.
template <int side>
void expect_the_filter_around(float value, int columns = 1028) {
  const int rows = 70;
  Pixels filter(side * side);
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i + 1);
  for (const auto& [row, column] :
       {std::pair(0, 0), {15, 127}, {16, 128}, {64, 512}, {33, 1024}, {69, 1027}}) {
    SCOPED_TRACE(row);
    Pixels image(size_t{rows} * columns);
    image[row * columns + column] = value;
    for_each_rung({rows, columns, side}, image, filter, [&](const Pixels& out, const Verdict&) {
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
          const int y = row - r + side / 2, x = column - c + side / 2;
          const bool reached = y >= 0 && y < side && x >= 0 && x < side;
          const float found = out[r * columns + c];
          if (!reached)
            ASSERT_EQ(found, 0) << r << ", " << c;
          else if (std::isnan(value))
            ASSERT_TRUE(std::isnan(found)) << r << ", " << c;
          else
            ASSERT_EQ(found, value * filter[y * side + x]) << r << ", " << c;
        }
    });
  }
}

TEST(Gpu, ConvolutionOfOnePixelIsTheFilter) {
  NEED_GPU();
  expect_the_filter_around<5>(2);
  expect_the_filter_around<15>(2);
  expect_the_filter_around<7>(2, 1029);
}

TEST(Gpu, ConvolutionKeepsInfinityAndNanWithinReach) {
  NEED_GPU();
  expect_the_filter_around<3>(std::numeric_limits<float>::infinity());
  expect_the_filter_around<3>(std::numeric_limits<float>::quiet_NaN());
  expect_the_filter_around<11>(std::numeric_limits<float>::quiet_NaN());
  expect_the_filter_around<5>(std::numeric_limits<float>::quiet_NaN(), 1031);
}

// The reference sees a single weight that is left out of a single pixel.
TEST(Gpu, ConvolutionReferenceFindsOneProductThatIsMissing) {
  NEED_GPU();
  const Ladder ladder = convolution::ladder();
  const Device device = Device::open(0);
  const Case c(ladder.axes, {40, 50, 15});
  Convolution problem(c, device);
  const Implementation how = find_rung(ladder, "fastest")->at(c, device);
  how.launch(how.plan(c, device, how.kernel), problem, nullptr);
  EXPECT_LE(problem.compare().relative_error, ladder.error_limit);
  auto* out = static_cast<float*>(problem.output().data);
  std::vector<float> pixels = to_host(out, 2000);
  const float right = pixels[1234];
  const float product = random_float(1234, 1) * random_float(7 * 15 + 7, 2);
  pixels[1234] -= product;
  ASSERT_NE(pixels[1234], right);
  check(cudaMemcpy(out, pixels.data(), problem.output().bytes, cudaMemcpyHostToDevice), "spoil");
  EXPECT_GT(problem.compare().relative_error, ladder.error_limit);
}

// Few strips, as long as a large image makes them: all sums are under way in their middle.
template <int side>
void expect_right_in_long_strips() {
  const Ladder ladder = convolution::ladder();
  const Device device = Device::open(0);
  for (const char* name : {"from_l1", "row_ring"}) {
    const Case c(ladder.axes, {97, name == std::string("from_l1") ? 516 : 517, side});
    Convolution problem(c, device);
    const Implementation how = find_rung(ladder, name)->at(c, device);
    for (const unsigned strips : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(strips) + " strips by " + name);
      LaunchPlan plan = how.plan(c, device, how.kernel);
      plan.grid.y = strips;
      problem.poison();
      how.launch(plan, problem, nullptr);
      EXPECT_LE(problem.compare().relative_error, ladder.error_limit);
    }
  }
}

TEST(Gpu, ConvolutionGoesOnDownLongStrips) {
  NEED_GPU();
  expect_right_in_long_strips<3>();
  expect_right_in_long_strips<7>();
  expect_right_in_long_strips<9>();
  expect_right_in_long_strips<15>();
}

}  // namespace
}  // namespace ladders::convolution
