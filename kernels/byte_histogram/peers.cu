// SPDX-License-Identifier: MIT
//
// A library that counts bytes.
#include "byte_histogram/ladder.hpp"
#include "byte_histogram/problem.cuh"
#include "model/launch.hpp"
#ifdef __CUDACC__
#include <cub/device/device_histogram.cuh>

#include "common/cub.hpp"
#endif

namespace ladders::byte_histogram {

#ifdef __CUDACC__
namespace {

void histogram_even(ByteHistogram& problem, cudaStream_t stream) {
  const auto [keys, count, bins] = problem.arguments();
  with_workspace(problem, "cub::DeviceHistogram::HistogramEven", [&](void* memory, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, bins, kByteBins + 1, 0,
                                               kByteBins, count, stream);
  });
}

}  // namespace
#endif

std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceHistogram::HistogramEven on samples of 8 bits.",
           .implementation = LADDERS_GPU_ONLY(library<ByteHistogram>(histogram_even)),
           .role = Role::peer}};
}

}  // namespace ladders::byte_histogram
