// SPDX-License-Identifier: MIT
//
// Libraries that count keys.
#include "histogram/ladder.hpp"
#include "histogram/problem.cuh"
#include "model/launch.hpp"
#ifdef __CUDACC__
#include <cub/device/device_histogram.cuh>

#include "common/cub.hpp"
#endif

namespace ladders::histogram {

#ifdef __CUDACC__
namespace {

void even(Histogram& problem, cudaStream_t stream) {
  const auto [keys, count, bins, bin_count] = problem.arguments();
  with_workspace(problem, "cub::DeviceHistogram::HistogramEven", [&](void* memory, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, bins, bin_count + 1, 0,
                                               bin_count, count, stream);
  });
}

}  // namespace
#endif

std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceHistogram::HistogramEven.",
           .implementation = LADDERS_GPU_ONLY(library<Histogram>(even)),
           .role = Role::peer,
           .skip =
               [](const Case& c, const Device&) {
                 return distributed_as(c, {out_of_range}) ? "CUB drops keys out of range" : "";
               },
           .measured = [](const Case& c) { return distributed_as(c, {uniform, constant, zipf}); }}};
}

}  // namespace ladders::histogram
