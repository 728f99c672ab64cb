// SPDX-License-Identifier: MIT
//
// One thread, one column: an FMA of a warp waits for a load of its own, of global or of shared
// memory, unless a thread has several outputs to use it for.
#pragma once

#include "convolution_problem.cuh"

namespace ladders {
namespace {

constexpr int kWarp = 32;

// A thread a pixel in blocks of 32 x 8; each of its products asks twice for memory and four times
// for the edge.
constexpr int kGlobalRows = 8;
__global__ void global(const float* __restrict__ image, const float* __restrict__ weights, int side,
                       float* __restrict__ out, int rows, int columns) {
  const int column = blockIdx.x * kWarp + threadIdx.x;
  const int row = blockIdx.y * kGlobalRows + threadIdx.y;
  if (row >= rows || column >= columns) return;
  float sum = 0;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      sum += weights[y * side + x] *
             pixel(image, row + y - reach(side), column + x - reach(side), rows, columns);
  out[at(row, column, columns)] = sum;
}

// The side is known to the compiler, so that there are no loops, and each weight has an address in
// the constant bank.
template <int side>
__global__ void constant_filter(const float* __restrict__ image,
                                const __grid_constant__ Filter filter, float* __restrict__ out,
                                int rows, int columns) {
  const int column = blockIdx.x * kWarp + threadIdx.x;
  const int row = blockIdx.y * kGlobalRows + threadIdx.y;
  if (row >= rows || column >= columns) return;
  float sum = 0;
#pragma unroll
  for (int y = 0; y < side; ++y)
#pragma unroll
    for (int x = 0; x < side; ++x)
      sum += filter.weights[y * side + x] *
             pixel(image, row + y - reach(side), column + x - reach(side), rows, columns);
  out[at(row, column, columns)] = sum;
}

// Copies the tile that starts in this row and column of the image, with zeros outside of it. Lanes
// go along rows, warps take every so many of them.
template <int height, int width, int threads>
__device__ __forceinline__ void load_tile(float (&tile)[height][width],
                                          const float* __restrict__ image, int row0, int column0,
                                          int rows, int columns) {
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, lane = thread % kWarp;
#pragma unroll 4
  for (int y = thread / kWarp; y < height; y += threads / kWarp)
#pragma unroll
    for (int x = lane; x < width; x += kWarp)
      tile[y][x] = pixel(image, row0 + y, column0 + x, rows, columns);
}

// A tile and a border of the filter's reach. What is outside of the image is zero already, and a
// product asks for nothing but its pixel: a wavefront for each FMA of a warp, where an SM has one a
// clock of those and four of these.
constexpr int kHaloSide = 32, kHaloThreads = kHaloSide * kHaloSide;
template <int side>
__global__ void __launch_bounds__(kHaloThreads)
    shared_halo(const float* __restrict__ image, const __grid_constant__ Filter filter,
                float* __restrict__ out, int rows, int columns) {
  constexpr int kSide = kHaloSide + side - 1;
  __shared__ float tile[kSide][kSide];
  const int row0 = blockIdx.y * kHaloSide, column0 = blockIdx.x * kHaloSide;
  load_tile<kSide, kSide, kHaloThreads>(tile, image, row0 - reach(side), column0 - reach(side),
                                        rows, columns);
  __syncthreads();
  const int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int y = 0; y < side; ++y)
#pragma unroll
    for (int x = 0; x < side; ++x)
      sum += filter.weights[y * side + x] * tile[threadIdx.y + y][threadIdx.x + x];
  if (row < rows && column < columns) out[at(row, column, columns)] = sum;
}

// 32 x 8 threads with eight outputs each, one below the other: side + 7 pixels of a column serve
// 8 side FMAs.
struct Columns {
  static constexpr int kThreadsY = 8, kOwn = 8, kRows = kThreadsY * kOwn;
  static constexpr int kThreads = kWarp * kThreadsY;
};
template <int side>
__global__ void __launch_bounds__(Columns::kThreads)
    column(const float* __restrict__ image, const __grid_constant__ Filter filter,
           float* __restrict__ out, int rows, int columns) {
  using C = Columns;
  __shared__ float tile[C::kRows + side - 1][kWarp + side - 1];
  const int row0 = blockIdx.y * C::kRows, column0 = blockIdx.x * kWarp;
  load_tile<C::kRows + side - 1, kWarp + side - 1, C::kThreads>(
      tile, image, row0 - reach(side), column0 - reach(side), rows, columns);
  __syncthreads();
  const int own0 = threadIdx.y * C::kOwn;
  float sums[C::kOwn] = {};
#pragma unroll
  for (int x = 0; x < side; ++x)
#pragma unroll
    for (int y = 0; y < C::kOwn + side - 1; ++y) {
      const float value = tile[own0 + y][threadIdx.x + x];
#pragma unroll
      for (int own = 0; own < C::kOwn; ++own)
        if (y >= own && y < own + side) sums[own] += filter.weights[(y - own) * side + x] * value;
    }
#pragma unroll
  for (int own = 0; own < C::kOwn; ++own) {
    const int row = row0 + own0 + own, column = column0 + threadIdx.x;
    if (row < rows && column < columns) out[at(row, column, columns)] = sums[own];
  }
}

}  // namespace
}  // namespace ladders
