// SPDX-License-Identifier: MIT
#include "common/cub.hpp"
#include "histogram/ladder.hpp"
#include "histogram/problem.cuh"
#ifdef __CUDACC__
#include <cub/device/device_histogram.cuh>
#endif

namespace ladders::histogram {
std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceHistogram::HistogramEven.",
           .implementation = LADDERS_GPU_ONLY(
               calls_cub<Histogram>([](auto& problem, void* memory, size_t& bytes, auto stream) {
                 const auto [keys, count, bins, bin_count] = problem.arguments();
                 return cub::DeviceHistogram::HistogramEven(
                     memory, bytes, keys, bins, bin_count + 1, 0, bin_count, count, stream);
               })),
           .role = Role::peer,
           .skip =
               [](const Case& c, const Device&) {
                 return distributed_as(c, {out_of_range}) ? "CUB drops keys out of range" : "";
               },
           .measured = [](const Case& c) { return distributed_as(c, {uniform, constant, zipf}); }}};
}

}  // namespace ladders::histogram
