// SPDX-License-Identifier: MIT
#include "lookup/ladder.hpp"
#include "lookup/problem.cuh"
#ifdef __CUDACC__
#include <thrust/gather.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>
#endif

namespace ladders::lookup {
#ifdef __CUDACC__
namespace {

void gather(Lookup& problem, cudaStream_t stream) try {
  const Lookups l = problem.lookups();
  thrust::gather(thrust::cuda::par_nosync.on(stream), l.index, l.index + l.count, l.table, l.out);
} catch (const thrust::system_error& error) {
  throw CudaError(error.what());
}

}  // namespace
#endif

std::vector<Rung> peers() {
  return {{.name = "thrust",
           .idea = "The library's gather, thrust::gather, which does not wait for the stream.",
           .implementation = LADDERS_GPU_ONLY(library<Lookup>(gather)),
           .role = Role::peer,
           .measured = [](const Case& c) { return distributed_as(c, {uniform, zipf}); }}};
}

}  // namespace ladders::lookup
