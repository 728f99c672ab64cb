// SPDX-License-Identifier: MIT
//
// The FP64 reference of SGEMM against loops on the host, and the error that is made of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"
#include "measure/study.hpp"
#include "model/catalogue.hpp"
#include "sgemm/problem.cuh"

namespace ladders::sgemm {
namespace {

TEST(Gpu, SgemmReferenceAgreesWithTheHost) {
  NEED_GPU();
  constexpr int kM = 37, kN = 53, kK = 71;
  Sgemm problem(Case(ladder().axes, {kM, kN, kK}), Device::open(0));
  const auto ab = to_host(problem.product(), kM * kN);
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      double sum = 0;
      for (int i = 0; i < kK; ++i)
        sum += double{random_float(row * kK + i, 1)} * random_float(i * kN + column, 2);
      EXPECT_NEAR(ab[row * kN + column], sum, 1e-12);
    }
}

TEST(Gpu, SgemmErrorIsThatOfTheResult) {
  NEED_GPU();
  constexpr int kSide = 64;
  Sgemm problem(Case(ladder().axes, {kSide, kSide, kSide}), Device::open(0));
  auto c = to_host(problem.product(), kSide * kSide);
  std::vector<float> scaled(c.begin(), c.end());
  for (float& value : scaled) value *= 1.001f;  // each element is off by a thousandth
  check(cudaMemcpy(problem.output().data, scaled.data(), problem.output().bytes,
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  EXPECT_NEAR(problem.compare().relative_error, 1e-3, 1e-5);
}

// Kinds of input that take turns in memory are the same each time, and as those that stay.
TEST(Gpu, SgemmInputsAreTheSameWhereTheyTakeTurns) {
  NEED_GPU();
  const Device device = Device::open(0);
  const Ladder all = ladder();
  const Case c(all.axes, {37, 53, 71});
  const Implementation how = find_rung(all, "tiled")->at(c, device);
  const LaunchPlan plan = how.plan(c, device, how.kernel);
  Sgemm staying(c, device, 1), taking_turns(c, device, 0);
  for (int i = 0; i < 2 * staying.inputs(); ++i) {
    double errors[2];
    for (Sgemm* problem : {&staying, &taking_turns}) {
      problem->poison();
      problem->prepare(i % staying.inputs());
      how.launch(plan, *problem, nullptr);
      errors[problem == &taking_turns] = problem->compare().relative_error;
    }
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_LT(errors[0], 1e-6);
  }
}

// Apart from the other shapes: too many blocks for a sanitizer's patience.
TEST(Gpu, SgemmIsRightOnTallAndWideMatrices) {
  NEED_GPU();
  Study study(Device::open(0), {});
  const Ladder all = ladder();
  // 600000 are more blocks of 8 than a grid has along y, and take an emulator a minute.
  const int64_t many = kEmulated ? 70000 : 600000;
  for (const Shape& shape : {Shape{many, 3, 2}, Shape{3, many, 2}})
    for (const Rung& rung : all.rungs) {
      const Case c(all.axes, shape);
      const Row row{&all, &rung, c, c};
      if (!skip_reason(row, study.device()).empty()) continue;
      SCOPED_TRACE(rung.name);
      EXPECT_NO_THROW(kEmulated ? study.verify(row, 1) : study.verify(row));
    }
}

// Several chunks of terms, and a last one that is short.
TEST(Gpu, SgemmIsRightWhereAThreadSumsAlone) {
  NEED_GPU();
  Study study(Device::open(0), {});
  const Ladder all = ladder();
  const Rung& rung = *find_rung(all, "thin");
  const int64_t sms = study.device().sms;  // which the choice depends on
  for (const Shape& shape :
       {Shape{1, 33 * sms + 5, 33}, Shape{2, 70 * sms, 70}, Shape{3, 100 * sms, 100},
        Shape{7, 128 * sms, 255}, Shape{100 * sms, 1, 33}, Shape{192 * sms + 3, 2, 64},
        Shape{190 * sms, 4, 61}, Shape{195 * sms, 5, 127}}) {
    const Case c(all.axes, shape);
    SCOPED_TRACE(c.name());
    const Row row{&all, &rung, c, c};
    const Implementation thin = rung.at(c, study.device());
    EXPECT_EQ(thin.plan(c, study.device(), thin.kernel).block.x, 128u);
    EXPECT_NO_THROW(kEmulated ? study.verify(row, 1) : study.verify(row));
  }
}

struct Shared {
  std::string rung;
  Shape shape;
  friend void PrintTo(const Shared& shared, std::ostream* out) {
    *out << shared.rung;
    for (const int64_t size : shared.shape) *out << ' ' << size;
  }
};

// Tiles that make no whole wave of 132: many over, one over, of a single step, so few that several
// blocks have parts of one, not quite one a block, and more than two waves, so that whole tiles
// follow.
std::vector<Shared> all_shared() {
  const std::vector<Shape> shapes = {{1700, 2600, 100}, {896, 4864, 96},   {1700, 2603, 21},
                                     {100, 300, 4100},  {128, 2048, 3001}, {1152, 3584, 96},
                                     {3000, 3000, 300}};
  const std::vector<Shape> of_halves = {{1700, 2600, 200}, {2047, 2303, 130}, {513, 515, 4100},
                                        {1025, 1030, 999}, {255, 4097, 600},  {1152, 1793, 1024},
                                        {3000, 3000, 600}};
  std::vector<Shared> result;
  for (const auto& [rung, all] :
       {std::pair{"stream_k", shapes}, {"split_k", shapes}, {"strassen", of_halves}})
    for (const Shape& shape : all) result.push_back({rung, shape});
  return result;
}

class SharedTiles : public testing::TestWithParam<Shared> {
 protected:
  void SetUp() override {
    NEED_GPU();
    if (kEmulated) GTEST_SKIP() << "takes minutes on the emulator";
    const Case c(ladder_.axes, GetParam().shape);
    row_ = Row{&ladder_, find_rung(ladder_, GetParam().rung), c, c};
    device_ = Device::open(0);
    if (const auto why = skip_reason(*row_, *device_); !why.empty()) GTEST_SKIP() << why;
  }

  const Ladder ladder_ = ladder();
  std::optional<Row> row_;
  std::optional<Device> device_;
};

// Also what racecheck has to see: a stage read too early need not show in the results.
TEST_P(SharedTiles, IsRight) { EXPECT_NO_THROW(Study(*device_, {}).verify(*row_)); }

// Later launches, some close behind each other, find all counts at zero, and a race, whose results
// are not always the same.
TEST_P(SharedTiles, RepeatsItself) {
  Sgemm problem(row_->point, *device_);
  const Implementation how = row_->rung->at(row_->point, *device_);
  const LaunchPlan plan = how.plan(row_->point, *device_, how.kernel);
  allow(how.kernel, plan);
  std::vector<uint32_t> first;
  for (int launch = 0; launch < 20; ++launch) {
    problem.poison();
    problem.prepare(problem.inputs() - 1);
    for (int again = 0; again <= launch % 3; ++again) how.launch(plan, problem, nullptr);
    auto bits =
        to_host(static_cast<const uint32_t*>(problem.output().data), problem.output().bytes / 4);
    if (launch == 0)
      first = std::move(bits);
    else
      EXPECT_EQ(first, bits);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, SharedTiles, testing::ValuesIn(all_shared()), [](const auto& info) {
  std::string name = info.param.rung;
  for (const int64_t size : info.param.shape) name += '_' + std::to_string(size);
  return name;
});

}  // namespace
}  // namespace ladders::sgemm
