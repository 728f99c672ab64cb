// SPDX-License-Identifier: MIT
//
// One lookup per thread, with the table wherever the caches hold it.
#pragma once

#include "lookup/problem.cuh"

namespace ladders::lookup {
inline __global__ void global(const Lookups l) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < l.count) l.out[i] = l.table[l.index[i]];
}

inline __global__ void streamed(const Lookups l) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < l.count) __stcs(l.out + i, __ldg(l.table + __ldcs(l.index + i)));
}

template <unsigned threads, unsigned lookups = threads>
LaunchPlan one_block_per_tile(const Case& c, const Device&, const void*) {
  return {.grid = unsigned(ceil_div(c["lookups"], lookups)), .block = threads};
}

}  // namespace ladders::lookup
