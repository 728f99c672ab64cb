// SPDX-License-Identifier: MIT
//
// Few rows or few columns: a tile would be mostly empty. With few rows, what a block writes is one
// contiguous piece of the output. With few columns, what it reads is one piece of the input.
#pragma once

#include "transpose/01_tiled.cuh"

namespace ladders::transpose {
// Few rows: 128 columns are contiguous in the output, and start on 16 bytes there. A thread loads
// one column.
constexpr int kThinColumns = 128, kThinRows = 32;

// Where element i of a piece lies. A thread has contiguous elements. If their number is odd, there
// are no conflicts without padding (of 2-byte elements: two-way ones at most).
__host__ __device__ constexpr int skewed(int i, bool odd) { return odd ? i : i + i / 32; }

template <class T>
__global__ void __launch_bounds__(kThinColumns)
    thin(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  constexpr int kLoads = 16;  // in flight
  T* piece = dynamic_shared<T>();
  const int column0 = blockIdx.x * kThinColumns, column = column0 + threadIdx.x;
  const bool odd = rows % 2;
  const T* from = in + min(column, columns - 1);  // beyond the edge: any value, not output
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

inline LaunchPlan thin_pieces(const Case& c, const Device&, const void*) {
  const int64_t elements = kThinColumns * c["rows"];
  return {.grid = unsigned(ceil_div(c["columns"], kThinColumns)),
          .block = kThinColumns,
          .shared_bytes = size_t(c["element"] * (elements + elements / 32))};
}
inline std::string not_thin(const Case& c, const Device&) {
  return c["rows"] <= kThinRows ? "" : "for at most " + std::to_string(kThinRows) + " rows";
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

}  // namespace ladders::transpose
