// SPDX-License-Identifier: MIT
//
// Small tiles of rows that start anywhere: they come and go word by word through shared memory.
#pragma once

#include "convolution/03_small_tiles.cuh"
#include "convolution/04_row_ring.cuh"

namespace ladders::convolution {
constexpr int kMostStaged = 7;  // side of a filter

template <int side>
struct StagedTile : SmallTile<side> {
  using SmallTile<side>::kColumns, SmallTile<side>::kRows;
  static constexpr int kReadRows = kRows + side - 1, kReadColumns = kColumns + side - 1;
  static constexpr int kPitch = ceil_div(kReadColumns, kOutputs) * kOutputs;
};

// Copies the rows that a tile needs, with zeros outside of the image.
template <int side, bool inside>
__device__ __forceinline__ void stage(
    float (&tile)[StagedTile<side>::kReadRows][StagedTile<side>::kPitch],
    const float* __restrict__ image, int rows, int columns, int row0, int column0) {
  using T = StagedTile<side>;
  const int column = column0 + int(threadIdx.x);
  const float* source = image + int64_t{row0} * columns + column;
#pragma unroll
  for (int y = 0; y < T::kReadRows; ++y, source = kept_in_register(source + columns))
#pragma unroll
    for (int x = 0; x < T::kReadColumns; x += T::kThreads) {
      if (x + T::kThreads > T::kReadColumns && x + int(threadIdx.x) >= T::kReadColumns) continue;
      const bool is_pixel = inside || (unsigned(row0 + y) < unsigned(rows) &&
                                       unsigned(column + x) < unsigned(columns));
      __pipeline_memcpy_async(&tile[y][x + threadIdx.x], source + x, 4, is_pixel ? 0 : 4);
    }
}

template <int side>
__global__ void __launch_bounds__(StagedTile<side>::kThreads, 1)
    staged_tiles(const float* __restrict__ image, const __grid_constant__ Filter filter,
                 float* __restrict__ out, int rows, int columns) {
  using T = StagedTile<side>;
  __shared__ __align__(16) float tile[T::kReadRows][T::kPitch];
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const bool inside = row0 >= reach(side) && row0 + T::kRows + reach(side) <= rows &&
                      column0 >= reach(side) && column0 + T::kColumns + reach(side) <= columns;
  by_case(inside, [&](auto inside) {
    stage<side, inside.value>(tile, image, rows, columns, row0 - reach(side),
                              column0 - reach(side));
  });
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  float sums[T::kRows][kOutputs] = {};
#pragma unroll
  for (int i = 0; i < T::kReadRows; ++i) {
    const Window<side> window = shared_window<side>(&tile[i][threadIdx.x * kOutputs]);
    add_row<side>(sums, window.pixels, filter, i);
  }

  __syncthreads();  // all have read what the outputs overwrite
#pragma unroll
  for (int i = 0; i < T::kRows; ++i)
    *reinterpret_cast<float4*>(&tile[i][threadIdx.x * kOutputs]) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  __syncthreads();
  float* target = &out[at(row0, column0 + threadIdx.x, columns)];
#pragma unroll
  for (int i = 0; i < T::kRows; ++i, target = kept_in_register(target + columns))
#pragma unroll
    for (int x = 0; x < T::kColumns; x += T::kThreads)
      if (inside || (row0 + i < rows && column0 + int(threadIdx.x) + x < columns))
        __stwb(target + x, tile[i][x + threadIdx.x]);
}

template <int side>
Implementation in_staged_tiles() {
  using T = StagedTile<side>;
  return kernel<Convolution>(staged_tiles<side>, blocks_of<T::kRows, T::kColumns, T::kThreads, 1>);
}

}  // namespace ladders::convolution
