// SPDX-License-Identifier: MIT
//
// Unaligned rows: caches keep the rest of a partly loaded sector, but stores must fill sectors.
#pragma once

#include "transpose/02_vectorized.cuh"

namespace ladders::transpose {
// A tile's part of each output row is shifted left to a sector boundary: except at the ends of
// rows, no two blocks write to one sector. So the tile also reads a halo of rows, almost a sector's
// worth, which its neighbour reads too. Narrow tiles are for matrices of one tile per row.
template <class T, int columns_per_tile>
struct Shifted {
  static constexpr Order kOrder = columns_per_tile == 32 ? Order::rows : Order::bands;
  static constexpr int kSector = 32 / sizeof(T), kHalo = kSector - 1;
  static constexpr int kRows = 64, kColumns = columns_per_tile;  // of a tile
  static constexpr int kThreads = 256, kWarps = kThreads / 32;
  static constexpr int kPitch = kColumns + (sizeof(T) == 2 ? 2 : 1);  // an odd number of words

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

// Few rows: 128 columns are one piece of the output, aligned to 16 bytes; a thread gathers one.
constexpr int kThinColumns = 128, kThinRows = 32;

// Where element i of the piece lies: columns of odd length have no conflicts without padding.
__host__ __device__ constexpr int skewed(int i, bool odd) { return odd ? i : i + i / 32; }

template <class T>
__global__ void __launch_bounds__(kThinColumns)
    thin(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  constexpr int kLoads = 16;  // in flight
  T* piece = dynamic_shared<T>();
  const int column0 = blockIdx.x * kThinColumns, column = column0 + threadIdx.x;
  const bool odd = rows % 2;
  const T* from = in + min(column, columns - 1);  // beyond the edge: not stored
  for (int row0 = 0; row0 < rows; row0 += kLoads) {
    T loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (row0 + i < rows) loaded[i] = from[at(row0 + i, 0, columns)];
    __syncwarp();  // keeps all loads before the first store
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (row0 + i < rows) piece[skewed(threadIdx.x * rows + row0 + i, odd)] = loaded[i];
  }
  __syncthreads();
  const int count = min(columns - column0, kThinColumns) * rows;
  T* to = out + at(column0, 0, rows);
  int i = threadIdx.x;
  if (odd) {  // no padding
    constexpr int kVector = 16 / sizeof(T);
    const int vectors = count / kVector;
    for (int v = threadIdx.x; v < vectors; v += kThinColumns)
      reinterpret_cast<uint4*>(to)[v] = reinterpret_cast<const uint4*>(piece)[v];
    i += vectors * kVector;
  }
  for (; i < count; i += kThinColumns) to[i] = piece[skewed(i, odd)];
}

// Few columns: the rows of a block are one piece of the input, which it loads 16 bytes at a time.
constexpr int kNarrowColumns = 16, kNarrowThreads = 256, kNarrowBytes = 16384;
static_assert(64 * kNarrowColumns * 8 <= kNarrowBytes);  // 64 rows of the widest

template <class T>
__host__ __device__ constexpr int narrow_rows(int columns) {  // of a piece
  int rows = 64;
  while (rows < 2048 && 2 * rows * columns * int(sizeof(T)) <= kNarrowBytes) rows *= 2;
  return rows;
}

template <class T>
__global__ void __launch_bounds__(kNarrowThreads)
    narrow(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  constexpr int kVector = 16 / sizeof(T), kLoads = kNarrowBytes / 16 / kNarrowThreads;
  T* piece = dynamic_shared<T>();
  const int in_piece = narrow_rows<T>(columns), row0 = blockIdx.x * in_piece;
  const int here = min(in_piece, rows - row0), count = here * columns;
  const bool odd = columns % 2;
  const T* from = in + at(row0, 0, columns);  // whole vectors: pieces are of 64 rows and more
  const auto* vectors = reinterpret_cast<const uint4*>(from);
  uint4 loaded[kLoads];
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int v = threadIdx.x + j * kNarrowThreads;
    if ((v + 1) * kVector <= count) loaded[j] = vectors[v];
  }
  __syncwarp();  // keeps all loads before the first store
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int v = threadIdx.x + j * kNarrowThreads;
    if ((v + 1) * kVector > count) continue;
    if (odd) {
      reinterpret_cast<uint4*>(piece)[v] = loaded[j];
    } else {
      T elements[kVector];
      memcpy(elements, &loaded[j], sizeof loaded[j]);
#pragma unroll
      for (int i = 0; i < kVector; ++i) piece[skewed(v * kVector + i, false)] = elements[i];
    }
  }
  for (int i = count / kVector * kVector + threadIdx.x; i < count; i += kNarrowThreads)
    piece[skewed(i, odd)] = from[i];
  __syncthreads();
#pragma unroll 1
  for (int column = 0; column < columns; ++column) {
    T* to = out + at(column, row0, rows);
#pragma unroll 4
    for (int row = threadIdx.x; row < here; row += kNarrowThreads)
      to[row] = piece[skewed(row * columns + column, odd)];
  }
}

template <class T>
LaunchPlan narrow_pieces(const Case& c, const Device&, const void*) {
  const int rows = narrow_rows<T>(int(c["columns"]));
  const size_t elements = size_t(rows) * c["columns"];
  return {.grid = unsigned(ceil_div(c["rows"], rows)),
          .block = kNarrowThreads,
          .shared_bytes = sizeof(T) * (elements + elements / 32)};
}
inline bool is_narrow(const Case& c) { return c["columns"] <= kNarrowColumns; }
inline std::string not_narrow(const Case& c, const Device&) {
  return is_narrow(c) ? "" : "for at most " + std::to_string(kNarrowColumns) + " columns";
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

inline LaunchPlan pieces(const Case& c, const Device&, const void*) {
  const int64_t elements = kThinColumns * c["rows"];
  return {.grid = unsigned(ceil_div(c["columns"], kThinColumns)),
          .block = kThinColumns,
          .shared_bytes = size_t(c["element"] * (elements + elements / 32))};
}
inline std::string not_thin(const Case& c, const Device&) {
  return c["rows"] <= kThinRows ? "" : "for at most " + std::to_string(kThinRows) + " rows";
}

}  // namespace ladders::transpose
