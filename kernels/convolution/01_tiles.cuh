// SPDX-License-Identifier: MIT
//
// Two loads per FMA, then one, from global or shared memory; fewer if a thread has several outputs
// in a column.
#pragma once

#include "convolution/problem.cuh"

namespace ladders::convolution {
constexpr int kWarp = 32;

constexpr int kGlobalRows = 8;
inline __global__ void global(const float* __restrict__ image, const float* __restrict__ weights,
                              int side, float* __restrict__ out, int rows, int columns) {
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

// Copies the tile that starts at row0 and column0, with zeros outside of the image.
template <int threads, int height, int width>
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

// A tile with a border as wide as the filter reaches: no comparisons. But each FMA of a warp needs
// a wavefront, and an SM does one wavefront and four FMAs per clock.
constexpr int kHaloSide = 32, kHaloThreads = kHaloSide * kHaloSide;
template <int side>
__global__ void __launch_bounds__(kHaloThreads)
    shared_halo(const float* __restrict__ image, const __grid_constant__ Filter filter,
                float* __restrict__ out, int rows, int columns) {
  constexpr int kSide = kHaloSide + side - 1;
  __shared__ float tile[kSide][kSide];
  const int row0 = blockIdx.y * kHaloSide, column0 = blockIdx.x * kHaloSide;
  load_tile<kHaloThreads>(tile, image, row0 - reach(side), column0 - reach(side), rows, columns);
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

// Eight outputs per thread, one below the other: side + 7 pixels of a column serve 8 side FMAs.
struct Columns {
  static constexpr int kThreadsY = 8, kOutputs = 8, kRows = kThreadsY * kOutputs;
  static constexpr int kThreads = kWarp * kThreadsY;
};
template <int side>
__global__ void __launch_bounds__(Columns::kThreads)
    column(const float* __restrict__ image, const __grid_constant__ Filter filter,
           float* __restrict__ out, int rows, int columns) {
  using C = Columns;
  __shared__ float tile[C::kRows + side - 1][kWarp + side - 1];
  const int row0 = blockIdx.y * C::kRows, column0 = blockIdx.x * kWarp;
  load_tile<C::kThreads>(tile, image, row0 - reach(side), column0 - reach(side), rows, columns);
  __syncthreads();
  const int own0 = threadIdx.y * C::kOutputs;
  float sums[C::kOutputs] = {};
#pragma unroll
  for (int x = 0; x < side; ++x)
#pragma unroll
    for (int y = 0; y < C::kOutputs + side - 1; ++y) {
      const float value = tile[own0 + y][threadIdx.x + x];
#pragma unroll
      for (int own = 0; own < C::kOutputs; ++own)
        if (y >= own && y < own + side) sums[own] += filter.weights[(y - own) * side + x] * value;
    }
#pragma unroll
  for (int own = 0; own < C::kOutputs; ++own) {
    const int row = row0 + own0 + own, column = column0 + threadIdx.x;
    if (row < rows && column < columns) out[at(row, column, columns)] = sums[own];
  }
}

template <int64_t rows, int64_t columns, unsigned x = columns, unsigned y = rows>
LaunchPlan blocks_of(const Case& c, const Device&, const void*) {
  const auto across = unsigned(ceil_div(c["columns"], columns));
  return {.grid = dim3(across, unsigned(ceil_div(c["rows"], rows))), .block = dim3(x, y)};
}

template <int side>
Implementation in_columns() {
  return kernel<Convolution>(column<side>,
                             blocks_of<Columns::kRows, kWarp, kWarp, Columns::kThreadsY>);
}

}  // namespace ladders::convolution
