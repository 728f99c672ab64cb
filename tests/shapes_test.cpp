// SPDX-License-Identifier: MIT
//
// Shapes from the command line.
#include "model/shapes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu.hpp"
#include "model/cuda_check.hpp"

namespace ladders {
namespace {

const std::vector<Ladder> kLadders = {
    {.name = "gemm",
     .axes = {{.name = "m", .most = 4096}, {.name = "n"}, {.name = "k", .least = 1}},
     .measured = {{512, 512, 512}},
     .small = {{8, 8, 8}},
     .headline = {512, 512, 512},
     .small_headline = {8, 8, 8},
     .rungs = {{.name = "a"}, {.name = "b", .measured = [](const Case&) { return false; }}}},
    {.name = "count",
     .axes = {{.name = "keys"},
              {.name = "kind", .labels = {"uniform", "zipf"}},
              {.name = "bytes", .only = {2, 4}}},
     .measured = {{100, 0, 4}},
     .small = {{10, 0, 4}},
     .headline = {100, 0, 4},
     .small_headline = {10, 0, 4},
     .rungs = {{.name = "a"}}},
};

std::vector<Shape> shapes(const std::vector<std::string>& texts, Shapes cases = Shapes::measured) {
  std::vector<Shape> found;
  for (const Ladder& ladder : at_shapes(kLadders, texts, cases))
    found.insert(found.end(), ladder.measured.begin(), ladder.measured.end());
  return found;
}

std::string complaint(const std::string& text) {
  try {
    at_shapes(kLadders, {text}, Shapes::measured);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Shapes, AreListsAndRangesOfTheirAxes) {
  using S = std::vector<Shape>;
  EXPECT_EQ(shapes({"gemm:m=3,n=4,k=5"}), (S{{3, 4, 5}}));
  EXPECT_EQ(shapes({"gemm:k=5,m=3,7"}), (S{{3, 512, 5}, {7, 512, 5}}));
  EXPECT_EQ(shapes({"gemm:m=n=k=2^3,100"}), (S{{8, 8, 8}, {100, 100, 100}}));
  EXPECT_EQ(shapes({"gemm:m=n=k=100..500*2"}),
            (S{{100, 100, 100}, {200, 200, 200}, {400, 400, 400}}));
  EXPECT_EQ(shapes({"gemm:m=0..20+10,n=1,2,k=1"}),
            (S{{0, 1, 1}, {0, 2, 1}, {10, 1, 1}, {10, 2, 1}, {20, 1, 1}, {20, 2, 1}}));
  EXPECT_EQ(shapes({"count:keys=7,kind=zipf,uniform,bytes=2"}), (S{{7, 1, 2}, {7, 0, 2}}));
  // Of several texts: joined, each shape once.
  EXPECT_EQ(shapes({"gemm:m=1", "count:keys=2^4", "gemm:m=1,2"}),
            (S{{1, 512, 512}, {2, 512, 512}, {16, 0, 4}}));
}

TEST(Shapes, OtherAxesAreTheHeadlines) {
  EXPECT_EQ(shapes({"gemm:m=3"}, Shapes::measured), (std::vector<Shape>{{3, 512, 512}}));
  EXPECT_EQ(shapes({"gemm:m=3"}, Shapes::small), (std::vector<Shape>{{3, 8, 8}}));
}

TEST(Shapes, EveryRungOfTheNamedLaddersHasARow) {
  const std::vector<Ladder> ladders = at_shapes(kLadders, {"gemm:m=3,5"}, Shapes::measured);
  std::vector<std::string> names;
  for (const Ladder& ladder : ladders)
    for (const Shapes shapes : {Shapes::measured, Shapes::small})
      for (const Row& row : rows(ladder, shapes)) names.push_back(row.name());
  const std::vector<std::string> once = {"gemm/a/m:3/n:512/k:512", "gemm/b/m:3/n:512/k:512",
                                         "gemm/a/m:5/n:512/k:512", "gemm/b/m:5/n:512/k:512"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(names, twice);
  EXPECT_EQ(ladders[0].headline, (Shape{5, 512, 512}));
}

TEST(Shapes, WhatIsWrongIsSaid) {
  EXPECT_EQ(complaint("gemm:m=4097"), "m=4097: m takes 0 to 4096");
  EXPECT_EQ(complaint("gemm:k=0"), "k=0: k takes 1 to 1073741824");
  EXPECT_EQ(complaint("count:bytes=3"), "bytes=3: bytes takes 2, 4");
  EXPECT_EQ(complaint("count:kind=zip"), "kind=zip: kind takes uniform, zipf");
  EXPECT_EQ(complaint("gemm:x=3"), "gemm has no axis 'x': it has m, n, k");
  EXPECT_EQ(complaint("gemm:m=3,m=4"), "the axis m is given twice");
  EXPECT_EQ(complaint("gemm:m=m=4"), "the axis m is given twice");
  EXPECT_EQ(complaint("gemm:5"), "'5' names no axis, as m=4096 does");
  EXPECT_EQ(complaint("gemm:m=3x"), "'3x' is no integer");
  EXPECT_EQ(complaint("gemm:m="), "a value is missing in 'm='");
  EXPECT_EQ(complaint("gemm:"), "gemm: needs axes, such as m=7");
  EXPECT_EQ(complaint("gemm:n=2^63"), "'2^63' is too large");
  EXPECT_EQ(complaint("gemm:m=1..8"), "'1..8' needs a step, as in 1..8*2 or 1..8+100");
  for (const std::string range : {"8..1*2", "1..8*1", "0..8*2"})
    EXPECT_EQ(complaint("gemm:m=" + range), "'" + range + "' is no range, as 1..8*2 is");
  EXPECT_EQ(complaint("gemm:m=1..8+0"), "'1..8+0' is no range, as 0..100+10 is");
  EXPECT_EQ(complaint("gemm:m=1..4000+1"), "'1..4000+1': more than 1000 values");
  EXPECT_EQ(complaint("gemm:m=1..100+1,n=1..100+1"), "more than 1000 shapes");
  for (const char* text : {"gem:m=1", "gemm", "", ":m=1"})
    EXPECT_NE(complaint(text).find("must be LADDER:AXIS=VALUE"), std::string::npos) << text;
}

TEST(Shapes, ThoseThatDoNotFitAreNamed) {
  const auto copy = at_shapes(catalogue(), {"transpose:rows=columns=1000,1500"}, Shapes::measured);
  EXPECT_EQ(too_large(copy, Shapes::measured, kH200, 20'000'000), "");
  EXPECT_EQ(
      too_large(copy, Shapes::measured, kH200, 10'000'000),
      "transpose/rows:1500/columns:1500/element:4 needs 0.018 GB of memory, and 0.01 GB are free");
}

TEST(Shapes, TheMostWorkForTheEmulatorIsNamed) {
  const auto small = at_shapes(catalogue(), {"sgemm:m=n=k=512"}, Shapes::measured);
  EXPECT_EQ(takes_long(small, Shapes::measured, kH200), "");
  const auto large = at_shapes(catalogue(), {"sgemm:m=n=k=512,3072,1024"}, Shapes::measured);
  EXPECT_EQ(
      takes_long(large, Shapes::measured, kH200),
      "sgemm/m:3072/n:3072/k:3072 may take the emulator 58 minutes per row: use a GPU for such "
      "shapes");
}

TEST(Shapes, LaddersKnowTheMemoryThatTheirProblemsTake) {
  NEED_GPU();
  const Device device = Device::open(0);
  const auto free_memory = [] {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  };
  constexpr double kSlack = 8e6;  // what does not grow: each small buffer takes 2 MiB
  for (const char* text :
       {"transpose:rows=columns=2000", "sgemm:m=n=1200,k=4", "reduction:elements=2^22",
        "scan:elements=2^22", "histogram:bins=500000,keys=2^22", "byte_histogram:keys=2^24",
        "lookup:entries=lookups=2^21", "convolution:rows=columns=1000,filter=3", "roof:size=256"}) {
    const std::vector<Ladder> ladders = at_shapes(catalogue(), {text}, Shapes::measured);
    const auto ladder =
        std::ranges::find_if(ladders, [](const Ladder& l) { return !l.measured.empty(); });
    const Case shape(ladder->axes, ladder->measured.front());
    ladder->problem(shape, device);  // loads its kernels, which take memory too
    const double told = memory(*ladder, shape, device);
    double taken = 0;
    // Other processes take memory of the GPU too, so up to five differences are looked at.
    for (int i = 0; i < 5 && !(0.3 * told <= taken && taken <= told + kSlack); ++i) {
      const size_t before = free_memory();
      const auto problem = ladder->problem(shape, device);
      check(cudaDeviceSynchronize(), "inputs");
      taken = double(before) - double(free_memory());
    }
    EXPECT_LE(taken, told + kSlack) << text;
    EXPECT_GE(taken, 0.3 * told) << text;
  }
}

}  // namespace
}  // namespace ladders
