// SPDX-License-Identifier: MIT
//
// Rungs that work in place find their input before each verified launch, but not before timed ones,
// whose output proves nothing.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "measure/study.hpp"
#include "model/catalogue.hpp"
#include "model/cuda_check.hpp"
#include "model/ladder.hpp"

namespace ladders {
namespace {

std::vector<Row> in_place(const Study& study) {
  std::vector<Row> result;
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::tested))
      if (row.rung->name == "in_place" && skip_reason(row, study.device()).empty())
        result.push_back(row);
  return result;
}

TEST(Gpu, IsRightInPlaceHoweverOftenItIsSampled) {
  NEED_GPU();
  for (const int samples : {2, 3}) {
    Study quick(Device::open(0), {.exactly = samples});
    for (const Row& row : in_place(quick)) {
      SCOPED_TRACE(row.name());
      EXPECT_NO_THROW(quick.measure(row));
      EXPECT_NO_THROW(quick.measure(row));
    }
  }
}

TEST(Gpu, IsRefusedIfItGoesWrongLaterInPlace) {
  NEED_GPU();
  Study quick(Device::open(0), {.exactly = 3});
  const std::vector<Row> all = in_place(quick);
  ASSERT_FALSE(all.empty());
  Row row = all.front();
  int launches = 0;
  Rung changed = *row.rung;
  changed.choose = [&launches, rung = row.rung](const Case& point, const Device& device) {
    Implementation implementation = rung->at(point, device);
    implementation.launch = [&launches, real = implementation.launch](
                                const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
      if (++launches == 1) real(plan, problem, stream);
    };
    return implementation;
  };
  row.rung = &changed;
  EXPECT_THROW(quick.measure(row), std::runtime_error);
}

TEST(Gpu, TellsRowAndColumnOfAWrongElement) {
  NEED_GPU();
  const Device device = Device::open(0);
  const Ladder ladder = transpose::ladder();
  int told = 0;
  for (const Row& row : rows(ladder, Shapes::tested)) {
    const int64_t columns = row.shape["rows"];  // of the output
    if (row.rung->name != "tiled" || columns < 2 || row.shape["columns"] < 3) continue;
    SCOPED_TRACE(row.name());
    const std::unique_ptr<Problem> problem = ladder.problem(row.shape, device);
    const Implementation tiled = row.rung->at(row.point, device);
    tiled.launch(tiled.plan(row.point, device, tiled.kernel), *problem, nullptr);
    check(cudaDeviceSynchronize(), "tiled");
    auto* wrong = static_cast<unsigned char*>(problem->output().data) +
                  (2 * columns + 1) * row.shape["element"];
    unsigned char byte = 0;
    check(cudaMemcpy(&byte, wrong, 1, cudaMemcpyDeviceToHost), "spoil");
    byte ^= 1;
    check(cudaMemcpy(wrong, &byte, 1, cudaMemcpyHostToDevice), "spoil");
    EXPECT_TRUE(problem->compare().wrong.starts_with("element (2, 1): "))
        << problem->compare().wrong;
    if (++told == 3) break;
  }
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace ladders
