// SPDX-License-Identifier: MIT
//
// The textbook's steps: what a block needs from earlier tiles comes from the launch before.
#pragma once

#include "common/sums.cuh"
#include "scan/problem.cuh"

namespace ladders::scan {
// Hillis and Steele, 1986: after the launch for distance d each element is the sum of up to 2d
// elements. There are log2 n launches of n additions each, where n in all would be enough.
constexpr int kStepThreads = 256;
template <class T>
__global__ void hillis_steele_step(const T* __restrict__ in, size_t count, T* __restrict__ out,
                                   size_t distance) {
  const size_t i = blockIdx.x * size_t{kStepThreads} + threadIdx.x;
  if (i < count) out[i] = i >= distance ? in[i - distance] + in[i] : in[i];
}

// One block per tile. Without elements there are no blocks.
template <size_t tile, unsigned threads>
LaunchPlan tiles_of(size_t count) {
  return {.grid = unsigned(ceil_div(count, tile)), .block = threads};
}
template <size_t tile, unsigned threads>
LaunchPlan block_per_tile(const Case& c, const Device&, const void*) {
  return tiles_of<tile, threads>(c["elements"]);
}

// Several launches, `run(in, count, out, scratch, stream)`; `kernel` stands for all. The scratch
// memory is for sums of tiles, or for all elements.
template <class Type, size_t tile, unsigned threads, class Kernel, class Run>
Implementation several(Kernel* kernel, Run run, bool of_elements = false) {
  return launches<Scan<Type>>(kernel, block_per_tile<tile, threads>,
                              [=](Scan<Type>& p, const LaunchPlan&, cudaStream_t stream) {
                                const auto [in, count, out] = p.arguments();
                                run(in, count, out, p.scratch(of_elements ? count : 0), stream);
                              });
}

template <class Type>
Implementation hillis_steele() {
  using T = Value<Type>;
  constexpr auto step = hillis_steele_step<T>;
  return several<Type, kStepThreads, kStepThreads>(
      step,
      [](const T* in, size_t count, T* out, T* scratch, cudaStream_t stream) {
        int steps = 1;
        while (size_t{1} << steps < count) ++steps;
        for (int done = 0; done < steps; ++done) {
          T* const to = (steps - done) % 2 == 0 ? scratch : out;  // the last step writes the output
          launch(tiles_of<kStepThreads, kStepThreads>(count), stream, step, in, count, to,
                 size_t{1} << done);
          in = to;
        }
      },
      true);
}

// ---- Tiles of 1024 ------------------------------------------------------------------------------
// A block scans its tile and stores the tile's sum; these sums are scanned in the same way; then
// each tile is read again to add the sum of all tiles before it.
constexpr int kTile = 1024;

template <class T>
__device__ __forceinline__ T load(const T* in, size_t i, size_t count) {
  return i < count ? in[i] : T{};
}

// Blelloch, 1990: up a tree of sums, and down again with the sum of all elements to the left.
// Strides that are powers of two conflict in banks, unless a spare word follows every 32.
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

// The sum of all lanes up to this one.
template <class T>
__device__ __forceinline__ T scan_warp(T x) {
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const T left = __shfl_up_sync(0xFFFFFFFF, x, distance);
    if (threadIdx.x % 32 >= distance) x += left;
  }
  return x;
}

// The sum of all threads of 1024 up to this one: warps scan, and one of them scans their sums.
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

template <class T>
__global__ void add_sums_before(T* out, size_t count, const T* sums) {
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  if (blockIdx.x > 0 && i < count) out[i] += sums[blockIdx.x - 1];
}

template <class T, unsigned threads, auto scan>
void scan_then_add(const T* in, size_t count, T* out, T* sums, cudaStream_t stream) {
  const LaunchPlan plan = tiles_of<kTile, threads>(count);
  launch(plan, stream, scan, in, count, out, sums);
  if (plan.grid.x <= 1) return;
  scan_then_add<T, threads, scan>(sums, plan.grid.x, sums, sums + plan.grid.x, stream);
  launch(tiles_of<kTile, kTile>(count), stream, add_sums_before<T>, out, count, sums);
}
template <class Type, unsigned threads, auto scan>
Implementation scanned_then_added() {
  return several<Type, kTile, threads>(scan, scan_then_add<Value<Type>, threads, scan>);
}

// ---- Sums first ---------------------------------------------------------------------------------
// Each element is read twice and written once: the first launch only adds up the tiles.
template <class T>
__global__ void sum_tiles(const T* in, size_t count, T* sums) {
  __shared__ T warps[32];
  store_warp_sums(load(in, blockIdx.x * size_t{kTile} + threadIdx.x, count), warps);
  if (threadIdx.x < 32) {
    const T sum = sum_in_lane_0(warps[threadIdx.x]);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

template <class T>
__global__ void scan_from_sums(const T* in, size_t count, T* out, const T* sums) {
  const size_t i = blockIdx.x * size_t{kTile} + threadIdx.x;
  const T sum = scan_block(load(in, i, count));
  if (i < count) out[i] = blockIdx.x == 0 ? sum : sums[blockIdx.x - 1] + sum;
}

template <class T, size_t tile, unsigned threads, auto sum, auto scan>
void sums_first(const T* in, size_t count, T* out, T* sums, cudaStream_t stream) {
  const LaunchPlan plan = tiles_of<tile, threads>(count);
  if (plan.grid.x > 1) {
    launch(plan, stream, sum, in, count, sums);
    sums_first<T, tile, threads, sum, scan>(sums, plan.grid.x, sums, sums + plan.grid.x, stream);
  }
  launch(plan, stream, scan, in, count, out, sums);
}
template <class Type, size_t tile, unsigned threads, auto sum, auto scan>
Implementation summed_first() {
  return several<Type, tile, threads>(scan, sums_first<Value<Type>, tile, threads, sum, scan>);
}

}  // namespace ladders::scan
