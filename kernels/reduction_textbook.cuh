// SPDX-License-Identifier: MIT
//
// The textbook's steps: an atomic for each element, trees, shuffles, strides, vectors.
#pragma once

#include "reduction_problem.cuh"

namespace ladders {
namespace {

constexpr int kThreads = 256;

template <class Op>
__device__ typename Op::Result load(const typename Op::Value* in, size_t i, size_t count) {
  return i < count ? Op::map(in[i]) : 0;
}

// An atomic a thread, all on one address: the L2 adds them one after the other. (For a 32-bit
// integer the compiler would add up each warp first; for 64 bits and floats it does not.)
template <class Op>
__global__ void global_atomic(const typename Op::Value* __restrict__ in, size_t count,
                              typename Op::Result* result) {
  const size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (i < count) atomicAdd(result, Op::map(in[i]));
}

// A tree in shared memory, one atomic a block. Pairs are neighbours, so half of the lanes idle at
// the first level, three quarters at the second, in every warp.
template <class Op>
__global__ void interleaved_modulo(const typename Op::Value* __restrict__ in, size_t count,
                                   typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  for (unsigned stride = 1; stride < kThreads; stride *= 2) {
    if (threadIdx.x % (2 * stride) == 0) sums[threadIdx.x] += sums[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The same pairs, but by the first threads: whole warps retire together. Now lanes lie 2, 4, 8 ...
// words apart, and the banks conflict.
template <class Op>
__global__ void interleaved_strided(const typename Op::Value* __restrict__ in, size_t count,
                                    typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  for (unsigned stride = 1; stride < kThreads; stride *= 2) {
    const unsigned i = 2 * stride * threadIdx.x;
    if (i < kThreads) sums[i] += sums[i + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The tree of the next three rungs: upper half onto lower half, lanes on neighbouring words.
template <class Result>
__device__ __forceinline__ void fold_block(Result* sums) {
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
}

// Sequential addressing: no conflicts, no divergence above one warp.
template <class Op>
__global__ void sequential(const typename Op::Value* __restrict__ in, size_t count,
                           typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The same with shared memory sized at launch: nothing else changes, neither should the time.
template <class Op>
__global__ void sequential_dynamic(const typename Op::Value* __restrict__ in, size_t count,
                                   typename Op::Result* result) {
  auto* sums = dynamic_shared<typename Op::Result>();
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// A block takes two blocks' elements and adds the first pair on the way in: half the blocks, trees
// and atomics, and no thread that only loads.
template <class Op>
__global__ void first_add_on_load(const typename Op::Value* __restrict__ in, size_t count,
                                  typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  const size_t i = blockIdx.x * size_t{2 * kThreads} + threadIdx.x;
  sums[threadIdx.x] = load<Op>(in, i, count) + load<Op>(in, i + kThreads, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The sum of a warp in lane 0, register to register.
template <class Result>
__device__ __forceinline__ Result fold_warp(Result sum) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  return sum;
}

// A block's sum by shuffles, added to the result: one word a warp and one barrier.
template <class Result>
__device__ __forceinline__ void add_block(Result sum, Result* result) {
  __shared__ Result warps[kThreads / 32];
  sum = fold_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = fold_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : Result{});
    if (threadIdx.x == 0) atomicAdd(result, sum);
  }
}

// Shuffles instead of the tree: one barrier instead of nine, hardly any shared memory. Blocks end
// sooner, and at 2^28 elements their atomics queue up: with a plain store in place of the atomic
// this fold takes 0.7 of the tree's time, with it 1.2.
template <class Op>
__global__ void warp_shuffle(const typename Op::Value* __restrict__ in, size_t count,
                             typename Op::Result* result) {
  const size_t i = blockIdx.x * size_t{2 * kThreads} + threadIdx.x;
  add_block(load<Op>(in, i, count) + load<Op>(in, i + kThreads, count), result);
}

// As many blocks as are resident, each striding over the whole input: the fold and the atomic are
// paid once a resident block instead of once every 512 elements.
template <class Op>
__global__ void grid_stride(const typename Op::Value* __restrict__ in, size_t count,
                            typename Op::Result* result) {
  typename Op::Result sum{};
  const size_t stride = size_t{gridDim.x} * kThreads;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count; i += stride)
    sum += Op::map(in[i]);
  add_block(sum, result);
}

// 16 bytes a load and four loads in flight, each into its own accumulator: enough bytes under way
// to cover the latency of DRAM.
template <class Op, class Accumulator>
__device__ __forceinline__ Accumulator strided_sum(const typename Op::Value* __restrict__ in,
                                                   size_t count) {
  constexpr int kFlight = 4;
  using Vector = typename Op::Vector;
  Accumulator sums[kFlight] = {};
  const size_t vectors = count / 4, stride = size_t{gridDim.x} * kThreads;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const size_t first = blockIdx.x * size_t{kThreads} + threadIdx.x;
  size_t i = first;
  for (; i + (kFlight - 1) * stride < vectors; i += kFlight * stride) {
    Vector loaded[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) loaded[j] = wide[i + j * stride];
#pragma unroll
    for (int j = 0; j < kFlight; ++j)
      sums[j] += (Op::map(loaded[j].x) + Op::map(loaded[j].y)) +
                 (Op::map(loaded[j].z) + Op::map(loaded[j].w));
  }
  for (; i < vectors; i += stride) {
    const Vector v = wide[i];
    sums[0] += (Op::map(v.x) + Op::map(v.y)) + (Op::map(v.z) + Op::map(v.w));
  }
  if (first < count % 4) sums[1] += Op::map(in[4 * vectors + first]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Op>
__global__ void vectorized(const typename Op::Value* __restrict__ in, size_t count,
                           typename Op::Result* result) {
  add_block(strided_sum<Op, typename Op::Result>(in, count), result);
}

}  // namespace
}  // namespace ladders
