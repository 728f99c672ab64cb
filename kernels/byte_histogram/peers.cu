// SPDX-License-Identifier: MIT
#include "byte_histogram/ladder.hpp"
#include "byte_histogram/problem.cuh"
#include "common/cub.hpp"
#ifdef __CUDACC__
#include <cub/device/device_histogram.cuh>
#endif

namespace ladders::byte_histogram {
std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceHistogram::HistogramEven on samples of 8 bits.",
           .implementation = LADDERS_GPU_ONLY(calls_cub<ByteHistogram>(
               [](auto& problem, void* memory, size_t& bytes, auto stream) {
                 const auto [keys, count, bins] = problem.arguments();
                 return cub::DeviceHistogram::HistogramEven(
                     memory, bytes, keys, bins, kByteBins + 1, 0, kByteBins, count, stream);
               })),
           .role = Role::peer}};
}

}  // namespace ladders::byte_histogram
