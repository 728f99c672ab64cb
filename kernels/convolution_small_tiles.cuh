// SPDX-License-Identifier: MIT
//
// Tiles so small that the hardware deals them out in the order of memory, which keeps it as busy as
// a copy does. A thread has a few rows of outputs, and the compiler knows all about them but the
// pixels: no sum moves on, no row of the filter is left out, and blocks inside of the image have
// code of their own, which asks for no edge.
#pragma once

#include "convolution_sums.cuh"

namespace ladders {
namespace {

// `own` neighbouring outputs of a row are a vector where rows start on 16 bytes, else one.
template <int side, int own>
struct SmallTile {
  static constexpr int kThreads = 64, kColumns = own * kThreads;
  // Of 4, 8 and 16 the fastest on an H200, up to 9 x 9.
  static constexpr int kRows = own == 1 ? (side <= 5 ? 16 : 8) : (side <= 7 ? 8 : 4);
  // Pixels on either side that are loaded: as many vectors as hold those that the filter reaches.
  static constexpr int kBeside = ceil_div(reach(side), own) * own;
};

// The outputs of a thread, from this row and column on.
template <int side, int own, bool inside>
__device__ __forceinline__ void convolve(const float* __restrict__ image, const Filter& filter,
                                         float* __restrict__ out, int rows, int columns, int row0,
                                         int column) {
  using T = SmallTile<side, own>;
  constexpr int kPixels = own + 2 * T::kBeside;
  float sums[T::kRows][own] = {};
#pragma unroll
  for (int i = 0; i < T::kRows + side - 1; ++i) {
    const int row = row0 + i - reach(side);
    float pixels[kPixels] = {};
#pragma unroll
    for (int j = 0; j < kPixels; j += own) {
      const int x = column + j - T::kBeside;
      if (inside || (row >= 0 && row < rows && x >= 0 && x < columns))
        copy_pixels<own>(&pixels[j], &image[at(row, x, columns)]);
    }
#pragma unroll
    for (int y = max(i - T::kRows + 1, 0); y <= min(i, side - 1); ++y)
#pragma unroll
      for (int x = 0; x < side; ++x)
#pragma unroll
        for (int k = 0; k < own; ++k)
          sums[i - y][k] += filter.weights[y * side + x] * pixels[T::kBeside - reach(side) + x + k];
  }
#pragma unroll
  for (int i = 0; i < T::kRows; ++i)
    if (inside || (row0 + i < rows && column < columns)) {
      float* to = &out[at(row0 + i, column, columns)];
      if constexpr (own == 4)
        *reinterpret_cast<float4*>(to) =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      else
        *to = sums[i][0];
    }
}

// (Told that one block an SM will do, the compiler takes registers for rows that are on their way;
// untold it saves them, and loads row after row.)
template <int side, int own>
__global__ void __launch_bounds__(SmallTile<side, own>::kThreads, 1)
    small_tiles(const float* __restrict__ image, const __grid_constant__ Filter filter,
                float* __restrict__ out, int rows, int columns) {
  using T = SmallTile<side, own>;
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const int column = column0 + threadIdx.x * own;
  const bool inside = row0 >= reach(side) && row0 + T::kRows + reach(side) <= rows &&
                      column0 >= T::kBeside && column0 + T::kColumns + T::kBeside <= columns;
  if (inside)
    convolve<side, own, true>(image, filter, out, rows, columns, row0, column);
  else
    convolve<side, own, false>(image, filter, out, rows, columns, row0, column);
}

}  // namespace
}  // namespace ladders
