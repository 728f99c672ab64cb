// SPDX-License-Identifier: MIT
//
// CUB, called as a user would call it.
#pragma once

#ifdef __CUDACC__
#include <cub/device/device_reduce.cuh>
#endif

#include "peers.hpp"
#include "reduction_problem.cuh"

namespace ladders {
namespace {

void cub(Reduction<SumOfSquares>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  peers::cub_sum_of_squares(problem, in, count, result, stream);
}

void cub(Reduction<Sum>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  peers::cub_sum(problem, in, count, result, stream);
}

#ifdef __CUDACC__
struct SquareFloat {
  __host__ __device__ float operator()(float x) const { return x * x; }
};
struct AddFloats {
  __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

void cub(Reduction<SumOfSquaresOfFloats>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  const auto reduce = [&, in = in, count = count, result = result](void* memory, size_t& bytes) {
    check(cub::DeviceReduce::TransformReduce(memory, bytes, in, result, count, AddFloats{},
                                             SquareFloat{}, 0.f, stream),
          "cub::DeviceReduce::TransformReduce");
  };
  // How much scratch memory it needs is asked once, as a program that calls it often would.
  auto& [memory, sized] = problem.workspace;
  size_t bytes = 0;
  if (!sized) {
    reduce(nullptr, bytes);
    memory = DeviceBuffer<char>(bytes);
    sized = true;
  }
  bytes = memory.bytes();
  reduce(memory.data(), bytes);
}
#else
void cub(Reduction<SumOfSquaresOfFloats>&, cudaStream_t) {}  // libraries need a GPU
#endif

}  // namespace
}  // namespace ladders
