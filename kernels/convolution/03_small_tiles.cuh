// SPDX-License-Identifier: MIT
//
// Tiles so small that the hardware schedules them in the order of memory, as in a copy. Rows are
// unrolled, and blocks inside of the image have code without edge checks.
#pragma once

#include "convolution/02_sliding_sums.cuh"

namespace ladders::convolution {
constexpr int kMostUnrolled = 11;  // side of a filter

// A thread has four neighbouring outputs in each row.
template <int side>
struct SmallTile {
  static constexpr int kThreads = 64, kColumns = kOutputs * kThreads;
  static constexpr int kRows = side <= 7 ? 8 : 4;  // the fastest of 4, 8 and 16 on an H200
  // Pixels loaded on either side: whole vectors, as far as the filter reaches.
  static constexpr int kBeside = ceil_div(reach(side), kOutputs) * kOutputs;
};

// Adds the products of row i that a tile reads to the sums of all rows that it contributes to.
template <int side, int rows>
__device__ __forceinline__ void add_row(float (&sums)[rows][kOutputs], const float* pixels,
                                        const Filter& filter, int i) {
#pragma unroll
  for (int y = max(i - rows + 1, 0); y <= min(i, side - 1); ++y)
#pragma unroll
    for (int x = 0; x < side; ++x)
#pragma unroll
      for (int own = 0; own < kOutputs; ++own)
        sums[i - y][own] += filter.weights[y * side + x] * pixels[x + own];
}

template <int side, bool inside>
__device__ __forceinline__ void convolve(const float* __restrict__ image, const Filter& filter,
                                         float* __restrict__ out, int rows, int columns, int row0,
                                         int column) {
  using T = SmallTile<side>;
  constexpr int kPixels = kOutputs + 2 * T::kBeside;
  float sums[T::kRows][kOutputs] = {};
#pragma unroll
  for (int i = 0; i < T::kRows + side - 1; ++i) {
    const int row = row0 + i - reach(side);
    float pixels[kPixels] = {};
#pragma unroll
    for (int j = 0; j < kPixels; j += kOutputs) {
      const int x = column + j - T::kBeside;
      if (inside || (row >= 0 && row < rows && x >= 0 && x < columns))
        copy_pixels<kOutputs>(&pixels[j], &image[at(row, x, columns)]);
    }
    add_row<side>(sums, &pixels[T::kBeside - reach(side)], filter, i);
  }
#pragma unroll
  for (int i = 0; i < T::kRows; ++i)
    if (inside || (row0 + i < rows && column < columns))
      *reinterpret_cast<float4*>(&out[at(row0 + i, column, columns)]) =
          make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}

// The launch bounds ask for one block per SM at least, so that the compiler uses many registers and
// keeps several rows in flight.
template <int side>
__global__ void __launch_bounds__(SmallTile<side>::kThreads, 1)
    small_tiles(const float* __restrict__ image, const __grid_constant__ Filter filter,
                float* __restrict__ out, int rows, int columns) {
  using T = SmallTile<side>;
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const int column = column0 + threadIdx.x * kOutputs;
  const bool inside = row0 >= reach(side) && row0 + T::kRows + reach(side) <= rows &&
                      column0 >= T::kBeside && column0 + T::kColumns + T::kBeside <= columns;
  by_case(inside, [&](auto inside) {
    convolve<side, inside.value>(image, filter, out, rows, columns, row0, column);
  });
}

template <int side>
Implementation in_small_tiles() {
  using T = SmallTile<side>;
  return kernel<Convolution>(small_tiles<side>, blocks_of<T::kRows, T::kColumns, T::kThreads, 1>);
}
inline std::string no_small_tiles(const Case& c, const Device& device) {
  return c["filter"] > kMostUnrolled ? "unrolled, its code would be too long"
                                     : needs_aligned_rows(c, device);
}

}  // namespace ladders::convolution
