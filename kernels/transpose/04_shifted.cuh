// SPDX-License-Identifier: MIT
//
// Unaligned rows: caches keep the rest of a partly loaded sector, but stores must fill sectors.
#pragma once

#include "transpose/02_vectorized.cuh"

namespace ladders::transpose {
// A tile's part of each output row is shifted left to a sector boundary: except at the ends of
// rows, no two blocks write to one sector. So the tile also reads a halo of rows, almost a sector's
// worth, which its neighbour reads too. Tiles of 32 columns are for matrices of at most 32 columns.
template <class T, int columns_per_tile>
struct Shifted {
  static constexpr Order kOrder = columns_per_tile == 32 ? Order::rows : Order::bands;
  static constexpr int kSector = 32 / sizeof(T), kHalo = kSector - 1;
  static constexpr int kRows = 64, kColumns = columns_per_tile;  // of a tile
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  // Odd: in words of 4 bytes or, for elements of 8 bytes, in elements.
  static constexpr int kPitch = kColumns + (sizeof(T) == 2 ? 2 : 1);

  __host__ __device__ static int tiles_x(int64_t columns) {
    return int(ceil_div(columns, kColumns));
  }
  __host__ __device__ static int tiles_y(int64_t rows) {
    return int(ceil_div(rows + kHalo, kRows));
  }
};

template <class T, int columns_per_tile>
__global__ void __launch_bounds__(256)
    shifted(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  using S = Shifted<T, columns_per_tile>;
  constexpr int kRows = S::kRows + S::kHalo, kWide = S::kColumns / 32;
  constexpr int kLoads = ceil_div(kRows, S::kWarps);
  __shared__ T tile[kRows * S::kPitch];
  const auto [x, y] = my_tile<S::kOrder>(S::tiles_x(columns), S::tiles_y(rows));
  const int row0 = y * S::kRows, column0 = x * S::kColumns;
  if (column0 >= columns) return;  // in a partial band
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = row0 - S::kHalo + warp, first_column = column0 + lane;
  const T* from = in + (ptrdiff_t{first_row} * columns + first_column);

  // Inside the matrix all loads are in flight before the first is used.
  T loaded[kLoads][kWide];
  const auto is_row = [&](int i) {  // of the tile and its halo
    return (i + 1) * S::kWarps <= kRows || warp + i * S::kWarps < kRows;
  };
  const auto load = [&](auto inside) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        const int row = first_row + i * S::kWarps, column = first_column + 32 * j;
        const bool there = decltype(inside)::value || (row >= 0 && row < rows && column < columns);
        loaded[i][j] = there && is_row(i) ? from[at(i * S::kWarps, 32 * j, columns)] : T{0};
      }
  };
  const bool all_inside =
      row0 >= S::kHalo && row0 + S::kRows <= rows && column0 + S::kColumns <= columns;
  all_inside ? load(std::true_type{}) : load(std::false_type{});
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kLoads; ++i)
#pragma unroll
    for (int j = 0; j < kWide; ++j)
      if (is_row(i)) tile[(warp + i * S::kWarps) * S::kPitch + lane + 32 * j] = loaded[i][j];
  __syncthreads();

  constexpr int kTogether = 4;  // output rows that a warp loads before it stores
#pragma unroll 1
  for (int first = warp; first < S::kColumns; first += kTogether * S::kWarps) {
    T values[kTogether][S::kRows / 32];
    int shift[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int column = first + k * S::kWarps;
      shift[k] = (unsigned(column0 + column) * unsigned(rows) + row0) % S::kSector;
#pragma unroll
      for (int i = 0; i < S::kRows / 32; ++i)
        values[k][i] = tile[(lane + 32 * i - shift[k] + S::kHalo) * S::kPitch + column];
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k)
#pragma unroll
      for (int i = 0; i < S::kRows / 32; ++i) {
        const int column = column0 + first + k * S::kWarps, row = row0 + lane + 32 * i - shift[k];
        if (column < columns && row >= 0 && row < rows) out[at(column, row, rows)] = values[k][i];
      }
  }
}

template <class T, int columns_per_tile>
Implementation shifted_by() {
  return kernel<Transpose<T>>(shifted<T, columns_per_tile>, [](const Case& c, const Device&,
                                                               const void*) {
    using S = Shifted<T, columns_per_tile>;
    return tiles_in_order<S::kOrder>(S::tiles_x(c["columns"]), S::tiles_y(c["rows"]), S::kThreads);
  });
}
template <class T>
Implementation shifted_at(const Case& c, const Device&) {
  return c["columns"] <= 32 ? shifted_by<T, 32>() : shifted_by<T, 64>();
}

}  // namespace ladders::transpose
