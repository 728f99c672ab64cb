// SPDX-License-Identifier: MIT
//
// The table in constant memory: one for each source file that includes this.
#pragma once

#include "lookup/03_vectors.cuh"

namespace ladders::lookup {
// Each launch copies the table here first.
constexpr unsigned kConstants = 16384;
__constant__ unsigned constant_table[kConstants];
struct InConstantMemory {
  __device__ explicit InConstantMemory(const Lookups&) {}
  __device__ __forceinline__ unsigned operator[](unsigned i) const { return constant_table[i]; }
};

inline Implementation in_constant_memory() {
  Implementation constant = in_tiles<InConstantMemory>();
  constant.launch = [launch = constant.launch](const LaunchPlan& plan, Problem& problem,
                                               cudaStream_t stream) {
    const Lookups l = static_cast<Lookup&>(problem).lookups();
    const size_t bytes = l.entries * sizeof(unsigned);
#ifdef __CUDACC__
    const auto kind = cudaMemcpyDeviceToDevice;
    check(cudaMemcpyToSymbolAsync(constant_table, l.table, bytes, 0, kind, stream), "copy table");
#else
    check(cudaMemcpyToSymbol(constant_table, l.table, bytes), "copy table");
#endif
    launch(plan, problem, stream);
  };
  return constant;
}

}  // namespace ladders::lookup
