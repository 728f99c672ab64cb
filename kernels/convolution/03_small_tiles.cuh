// SPDX-License-Identifier: MIT
//
// Tiles so small that the hardware schedules them in the order of memory, as in a copy. Rows are
// unrolled, and blocks inside of the image have code without edge checks.
#pragma once

#include "convolution/02_sliding_sums.cuh"

namespace ladders::convolution {
constexpr int kMostUnrolled = 11;  // side of a filter

// A thread has four neighbouring outputs in each row: a vector, in sheared rows too.
template <int side, int skew>
struct SmallTile {
  static constexpr int kThreads = 64, kColumns = kOwn * kThreads;
  static constexpr int kRows = side <= 7 ? 8 : 4;  // the fastest of 4, 8 and 16 on an H200
  // Pixels loaded on either side: whole vectors, as far as the filter reaches.
  static constexpr int kBeside = ceil_div(reach(side, skew), kOwn) * kOwn;
  // How far to the right of the first row of outputs the first and the last row that are read
  // begin, and the rightmost and leftmost of all rows.
  static constexpr int kAbove = reach(side) * -skew, kBelow = (kRows - 1 + reach(side)) * skew;
  static constexpr int kRight = skew > 0 ? kBelow : kAbove, kLeft = skew > 0 ? kAbove : kBelow;
};

template <int side, int skew, bool inside>
__device__ __forceinline__ void convolve(const float* __restrict__ image, const Filter& filter,
                                         float* __restrict__ out, int rows, int columns, int row0,
                                         int place) {
  using T = SmallTile<side, skew>;
  constexpr int kPixels = kOwn + 2 * T::kBeside;
  float sums[T::kRows][kOwn] = {};
#pragma unroll
  for (int i = 0; i < T::kRows + side - 1; ++i) {
    const int row = row0 + i - reach(side);
    float pixels[kPixels] = {};
#pragma unroll
    for (int j = 0; j < kPixels; j += kOwn) {
      const int x = place - (i - reach(side)) * skew + j - T::kBeside;
      if constexpr (inside || skew == 0) {
        if (inside || (row >= 0 && row < rows && x >= 0 && x < columns))
          copy_pixels<kOwn>(&pixels[j], &image[at(row, x, columns)]);
      } else if (row >= 0 && row < rows) {
        copy_inside(&pixels[j], image, row, x, columns);
      }
    }
#pragma unroll
    for (int y = max(i - T::kRows + 1, 0); y <= min(i, side - 1); ++y)
#pragma unroll
      for (int x = 0; x < side; ++x)
#pragma unroll
        for (int own = 0; own < kOwn; ++own)
          sums[i - y][own] += filter.weights[y * side + x] *
                              pixels[T::kBeside - reach(side) + (y - reach(side)) * skew + x + own];
  }
#pragma unroll
  for (int i = 0; i < T::kRows; ++i) {
    const int column = place - i * skew;
    if constexpr (inside || skew == 0) {
      if (inside || (row0 + i < rows && column < columns))
        *reinterpret_cast<float4*>(&out[at(row0 + i, column, columns)]) =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    } else if (row0 + i < rows) {
      store_inside(out, row0 + i, column, columns, sums[i]);
    }
  }
}

// With a bound of one block per SM, the compiler uses registers to keep several rows in flight.
template <int side, int skew>
__global__ void __launch_bounds__(SmallTile<side, skew>::kThreads, 1)
    small_tiles(const float* __restrict__ image, const __grid_constant__ Filter filter,
                float* __restrict__ out, int rows, int columns) {
  using T = SmallTile<side, skew>;
  const int row0 = blockIdx.y * T::kRows;
  const int place0 = blockIdx.x * T::kColumns + unsigned(leftmost(T::kRows, skew));
  const int place = place0 + threadIdx.x * kOwn;
  const bool inside = row0 >= reach(side) && row0 + T::kRows + reach(side) <= rows &&
                      place0 - T::kRight >= T::kBeside &&
                      place0 - T::kLeft + T::kColumns + T::kBeside <= columns;
  by_case(inside, [&](auto inside) {
    convolve<side, skew, inside.value>(image, filter, out, rows, columns, row0, place);
  });
}

template <int side, int skew>
LaunchPlan in_tiles(const Case& c, const Device&, const void*) {
  using T = SmallTile<side, skew>;
  return {.grid = dim3(unsigned(ceil_div(width(c["columns"], T::kRows, skew), T::kColumns)),
                       unsigned(ceil_div(c["rows"], T::kRows))),
          .block = T::kThreads};
}
template <int side>
Implementation in_small_tiles(const Case& c, const Device&) {
  return by_skew(c, [](auto skew) {
    return kernel<Convolution>(small_tiles<side, skew.value>, in_tiles<side, skew.value>);
  });
}

}  // namespace ladders::convolution
