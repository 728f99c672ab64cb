// SPDX-License-Identifier: MIT
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <thrust/gather.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include "cuda_check.hpp"
#include "peers.hpp"

namespace ladders::peers {
namespace {

// CUB says in a first call how much scratch memory the second one needs; the answer is kept, as a
// program that calls it often would.
template <class Call>
void with_workspace(Problem& problem, const char* what, Call call) {
  auto& [memory, sized] = problem.workspace;
  if (!sized) {
    size_t bytes = 0;
    check(call(nullptr, bytes), what);
    memory = DeviceBuffer<char>(bytes);
    sized = true;
  }
  size_t bytes = memory.bytes();
  check(call(memory.data(), bytes), what);
}

struct Square {
  __host__ __device__ unsigned long long operator()(int x) const {
    return static_cast<unsigned long long>(static_cast<long long>(x) * x);
  }
  __host__ __device__ float operator()(float x) const { return x * x; }
};

struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace

void cub_sum_of_squares(Problem& problem, const int* in, size_t count, unsigned long long* result,
                        cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceReduce::TransformReduce", [&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(memory, bytes, in, result, count, Plus{}, Square{},
                                              0ull, stream);
  });
}

void cub_sum_of_squares(Problem& problem, const float* in, size_t count, float* result,
                        cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceReduce::TransformReduce", [&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(memory, bytes, in, result, count, Plus{}, Square{},
                                              0.f, stream);
  });
}

void cub_sum(Problem& problem, const float* in, size_t count, float* result, cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceReduce::Sum", [&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::Sum(memory, bytes, in, result, count, stream);
  });
}

void cub_inclusive_sum(Problem& problem, const unsigned* in, size_t count, unsigned* out,
                       cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceScan::InclusiveSum", [&](void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, count, stream);
  });
}

void cub_inclusive_sum(Problem& problem, const float* in, size_t count, float* out,
                       cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceScan::InclusiveSum", [&](void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, count, stream);
  });
}

void cub_histogram(Problem& problem, const int* keys, size_t count, unsigned* bins, int bin_count,
                   cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceHistogram::HistogramEven", [&](void* memory, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, bins, bin_count + 1, 0,
                                               bin_count, count, stream);
  });
}

void cub_histogram(Problem& problem, const unsigned char* keys, size_t count, unsigned* bins,
                   cudaStream_t stream) {
  with_workspace(problem, "cub::DeviceHistogram::HistogramEven", [&](void* memory, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, bins, 257, 0, 256, count,
                                               stream);
  });
}

void thrust_gather(const int* index, size_t count, const unsigned* table, unsigned* out,
                   cudaStream_t stream) {
  try {
    thrust::gather(thrust::cuda::par_nosync.on(stream), index, index + count, table, out);
  } catch (const thrust::system_error& error) {
    throw CudaError(error.what());
  }
}

}  // namespace ladders::peers
