// SPDX-License-Identifier: MIT
//
// The textbook's steps: an atomic per element, trees, shuffles, strides, vectors.
#pragma once

#include "common/sums.cuh"
#include "reduction/problem.cuh"

namespace ladders::reduction {
constexpr int kTextbookThreads = 256;

template <class Op>
__device__ Result<Op> load(const Value<Op>* in, size_t i, size_t count) {
  return i < count ? Op::map(in[i]) : 0;
}

// One atomic per thread, all on one address: the L2 performs them one after the other. (Of 32-bit
// integers the compiler would add up each warp first; of these types it does not.)
template <class Op>
__global__ void global_atomic(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  const size_t i = blockIdx.x * size_t{kTextbookThreads} + threadIdx.x;
  if (i < count) atomicAdd(result, Op::map(in[i]));
}

// A tree in shared memory, one atomic per block. Neighbours pair up, so half of a warp's lanes idle
// at the first level, three quarters at the second. If `strided`, the first threads add the pairs,
// and whole warps idle; but lanes access words 2, 4, 8 ... apart, and banks conflict.
template <class Op, bool strided>
__global__ void interleaved(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  __shared__ Result<Op> sums[kTextbookThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kTextbookThreads} + threadIdx.x, count);
  __syncthreads();
  for (unsigned stride = 1; stride < kTextbookThreads; stride *= 2) {
    const unsigned i = strided ? 2 * stride * threadIdx.x : threadIdx.x;
    if (strided ? i < kTextbookThreads : i % (2 * stride) == 0) sums[i] += sums[i + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// Adds the upper half to the lower: no conflicts, and no divergence until one warp is left.
template <class T>
__device__ __forceinline__ void reduce_block(T* sums, T own, T* result) {
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kTextbookThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

template <class Op>
__global__ void sequential(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  __shared__ Result<Op> sums[kTextbookThreads];
  reduce_block(sums, load<Op>(in, blockIdx.x * size_t{kTextbookThreads} + threadIdx.x, count),
               result);
}

template <class Op>
__global__ void sequential_dynamic(const Value<Op>* __restrict__ in, size_t count,
                                   Result<Op>* result) {
  auto* sums = dynamic_shared<Result<Op>>();
  reduce_block(sums, load<Op>(in, blockIdx.x * size_t{kTextbookThreads} + threadIdx.x, count),
               result);
}

template <class Op>
__global__ void first_add_on_load(const Value<Op>* __restrict__ in, size_t count,
                                  Result<Op>* result) {
  __shared__ Result<Op> sums[kTextbookThreads];
  const size_t i = blockIdx.x * size_t{2 * kTextbookThreads} + threadIdx.x;
  reduce_block(sums, load<Op>(in, i, count) + load<Op>(in, i + kTextbookThreads, count), result);
}

// Adds a block's sum to the result: shuffles, one word per warp and one barrier.
template <class T>
__device__ __forceinline__ void add_block(T sum, T* result) {
  __shared__ T warps[kTextbookThreads / 32];
  store_warp_sums(sum, warps);
  if (threadIdx.x < 32) {
    sum = sum_in_lane_0(threadIdx.x < kTextbookThreads / 32 ? warps[threadIdx.x] : T{});
    if (threadIdx.x == 0) atomicAdd(result, sum);
  }
}

// One barrier instead of nine. Blocks end sooner, so the atomics of many queue up.
template <class Op>
__global__ void warp_shuffle(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  const size_t i = blockIdx.x * size_t{2 * kTextbookThreads} + threadIdx.x;
  add_block(load<Op>(in, i, count) + load<Op>(in, i + kTextbookThreads, count), result);
}

template <class Op>
__global__ void grid_stride(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  Result<Op> sum{};
  const size_t stride = size_t{gridDim.x} * kTextbookThreads;
  for (size_t i = blockIdx.x * size_t{kTextbookThreads} + threadIdx.x; i < count; i += stride)
    sum += Op::map(in[i]);
  add_block(sum, result);
}

template <class Op>
__device__ __forceinline__ auto sum_of_four(const typename Op::Vector& v) {
  return (Op::map(v.x) + Op::map(v.y)) + (Op::map(v.z) + Op::map(v.w));
}

template <class Op, class Accumulator>
__device__ __forceinline__ Accumulator strided_sum(const Value<Op>* __restrict__ in, size_t count) {
  constexpr int kLoads = 4;
  using Vector = typename Op::Vector;
  Accumulator sums[kLoads] = {};
  const size_t vectors = count / 4, stride = size_t{gridDim.x} * kTextbookThreads;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const size_t first = blockIdx.x * size_t{kTextbookThreads} + threadIdx.x;
  size_t i = first;
  for (; i + (kLoads - 1) * stride < vectors; i += kLoads * stride) {
    Vector loaded[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) loaded[j] = wide[i + j * stride];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) sums[j] += sum_of_four<Op>(loaded[j]);
  }
  for (; i < vectors; i += stride) {
    const Vector v = wide[i];
    sums[0] += sum_of_four<Op>(v);
  }
  if (first < count % 4) sums[1] += Op::map(in[4 * vectors + first]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Op>
__global__ void vectorized(const Value<Op>* __restrict__ in, size_t count, Result<Op>* result) {
  add_block(strided_sum<Op, Result<Op>>(in, count), result);
}

// Each thread has `per_thread` elements. Without elements there are no blocks.
template <int per_thread, size_t shared_bytes = 0>
LaunchPlan elements_per_thread(const Case& c, const Device&, const void*) {
  const auto blocks = unsigned(ceil_div(c["elements"], kTextbookThreads * per_thread));
  return {.grid = blocks, .block = kTextbookThreads, .shared_bytes = shared_bytes};
}

// The resident blocks, or fewer if threads would have less than `per_thread` elements each.
template <int per_thread>
LaunchPlan resident(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = fill_device({.block = kTextbookThreads}, kernel, device);
  plan.grid.x = std::min(plan.grid.x, elements_per_thread<per_thread>(c, device, kernel).grid.x);
  return plan;
}

}  // namespace ladders::reduction
