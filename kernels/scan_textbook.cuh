// SPDX-License-Identifier: MIT
//
// The textbook's steps, with blocks that do not talk to each other: what one needs of those before
// it waits for the next launch.
#pragma once

#include "scan_problem.cuh"

namespace ladders {
namespace {

// Hillis and Steele, 1986: after the launch for distance d each element is the sum of 2d of them,
// so that log2 n launches do. Of n additions each, where n would do in all.
constexpr int kStepThreads = 256;
template <class T>
__global__ void hillis_steele_step(const T* __restrict__ in, size_t count, T* __restrict__ out,
                                   size_t distance) {
  const size_t i = blockIdx.x * size_t{kStepThreads} + threadIdx.x;
  if (i < count) out[i] = i >= distance ? in[i - distance] + in[i] : in[i];
}

// ---- Tiles of 1024 ------------------------------------------------------------------------------
// A block scans its tile and leaves the tile's sum; these sums are scanned in the same way; then
// each tile is read again, and given the sum of those before it.

constexpr int kTile = 1024;

template <class T>
__device__ __forceinline__ T load(const T* in, size_t i, size_t count) {
  return i < count ? in[i] : T{};
}

// Blelloch, 1990: up a tree of sums, and down again with the sum of all that is to the left. A
// thread takes two elements. Strides are powers of two, and so are bank conflicts, unless `padded`:
// then a spare word after each 32 moves the next row on by a bank.
template <class T, bool padded>
__global__ void blelloch(const T* in, size_t count, T* out, T* sums) {
  constexpr unsigned kThreads = kTile / 2;
  __shared__ T tree[kTile + (padded ? kTile / 32 : 0)];
  const auto at = [](unsigned i) { return padded ? i + i / 32 : i; };
  const size_t first = blockIdx.x * size_t{kTile};
  const unsigned low = threadIdx.x, high = threadIdx.x + kThreads;
  const T a = load(in, first + low, count), b = load(in, first + high, count);
  tree[at(low)] = a;
  tree[at(high)] = b;
  for (unsigned stride = 1; stride < kTile; stride *= 2) {
    __syncthreads();
    const unsigned i = (threadIdx.x + 1) * 2 * stride - 1;
    if (i < kTile) tree[at(i)] += tree[at(i - stride)];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = tree[at(kTile - 1)];
    tree[at(kTile - 1)] = 0;
  }
  for (unsigned stride = kTile / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const unsigned i = (threadIdx.x + 1) * 2 * stride - 1;
    if (i < kTile) {
      const T left = tree[at(i - stride)];
      tree[at(i - stride)] = tree[at(i)];
      tree[at(i)] += left;
    }
  }
  __syncthreads();
  if (first + low < count) out[first + low] = tree[at(low)] + a;
  if (first + high < count) out[first + high] = tree[at(high)] + b;
}

// The sum of all lanes up to this one, register to register.
template <class T>
__device__ __forceinline__ T scan_warp(T x) {
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const T left = __shfl_up_sync(0xFFFFFFFF, x, distance);
    if (threadIdx.x % 32 >= distance) x += left;
  }
  return x;
}

// The sum of all threads up to this one, of 1024: warps scan, one of them scans their sums.
template <class T>
__device__ __forceinline__ T scan_block(T x) {
  __shared__ T warps[32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  x = scan_warp(x);
  if (lane == 31) warps[warp] = x;
  __syncthreads();
  if (warp == 0) {
    const T sum = scan_warp(warps[lane]);
    __syncwarp();
    warps[lane] = sum;
  }
  __syncthreads();
  return warp == 0 ? x : warps[warp - 1] + x;
}

template <class T>
__global__ void scan_tiles(const T* in, size_t count, T* out, T* sums) {
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  const T sum = scan_block(load(in, i, count));
  if (i < count) out[i] = sum;
  if (threadIdx.x == kTile - 1) sums[blockIdx.x] = sum;
}

// The last of the three: all elements are read and written once more.
template <class T>
__global__ void add_sums_before(T* out, size_t count, const T* sums) {
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  if (blockIdx.x > 0 && i < count) out[i] += sums[blockIdx.x - 1];
}

// ---- Sums first ---------------------------------------------------------------------------------
// Three passes over the elements instead of four: the first only adds, the last scans and writes.

template <class T>
__global__ void sum_tiles(const T* in, size_t count, T* sums) {
  __shared__ T warps[32];
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  T sum = load(in, i, count);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warps[threadIdx.x];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

template <class T>
__global__ void scan_from_sums(const T* in, size_t count, T* out, const T* sums) {
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  const T sum = scan_block(load(in, i, count));
  if (i < count) out[i] = blockIdx.x == 0 ? sum : sums[blockIdx.x - 1] + sum;
}

}  // namespace
}  // namespace ladders
