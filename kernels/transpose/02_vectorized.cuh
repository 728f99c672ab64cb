// SPDX-License-Identifier: MIT
//
// Loads and stores of 16 bytes, and the order in which blocks take tiles.
#pragma once

#include "transpose/problem.cuh"

namespace ladders::transpose {
// The order of tiles by block number: row by row, or down bands two tiles wide, in which concurrent
// blocks write long pieces of the same output rows, and read two tiles of each input row.
enum class Order { rows, bands };
constexpr int kBand = 2;

// The block's tile along the columns and the rows of the input.
template <Order order>
__device__ __forceinline__ int2 my_tile(int tiles_x, int tiles_y) {
  const unsigned block = blockIdx.x;
  if (order == Order::rows) return {int(block % tiles_x), int(block / tiles_x)};
  const unsigned within = block % (kBand * tiles_y), band = block / (kBand * tiles_y);
  return {int(kBand * band + within % kBand), int(within / kBand)};
}

// Partial bands have a block too many per row of tiles.
template <Order order>
LaunchPlan tiles_in_order(int64_t tiles_x, int64_t tiles_y, unsigned threads) {
  const int64_t x = order == Order::rows ? tiles_x : kBand * ceil_div(tiles_x, kBand);
  return {.grid = unsigned(x * tiles_y), .block = threads};
}

template <class T>
union Vector {
  uint4 bits;
  T elements[16 / sizeof(T)];
};

// A square has one vector per row, and as many rows as a vector has elements. Each thread loads a
// square and transposes it in registers. A tile is 16 x 16 or 8 x 8 squares. In the transposed tile
// the position of a vector is XORed with the row of its square modulo 8. So eight lanes have no
// conflicts, along a row or down a column: they use eight different groups of four banks.
template <class T, int across = 16>
struct Squares {
  static constexpr int kVector = 16 / sizeof(T), kAcross = across;
  static constexpr int kSide = kAcross * kVector, kThreads = kAcross * kAcross;
  static constexpr int kVectors = kSide * kAcross;
  using Square = Vector<T>[kVector];

  static __device__ __forceinline__ int slot(int row, int vector) {
    return row * kAcross + (vector ^ row / kVector % 8);
  }

  // Whether the tile at (row0, column0) is completely in the matrix: its accesses need no checks.
  static __device__ __forceinline__ bool inside(int rows, int columns, int row0, int column0) {
    return row0 + kSide <= rows && column0 + kSide <= columns;
  }

  // The square of this thread, zeros outside of the matrix. Small tiles are for matrices that the
  // L2 can hold: their input is evicted first.
  template <class Inside>
  static __device__ __forceinline__ void load(Inside, Square& square, const T* __restrict__ in,
                                              int rows, int columns, int row0, int column0) {
    const int row = row0 + int(threadIdx.x) / kAcross * kVector;
    const int column = column0 + int(threadIdx.x) % kAcross * kVector;
    const bool there = Inside::value || (row < rows && column < columns);
    const T* from = in + at(row, column, columns);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const auto* p = reinterpret_cast<const uint4*>(from + at(i, 0, columns));
      square[i].bits = !there ? uint4{} : across == 8 ? __ldcs(p) : *p;
    }
  }

  static __device__ __forceinline__ void transpose_to_shared(Vector<T>* tile,
                                                             const Square& square) {
    const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      Vector<T> turned;
#pragma unroll
      for (int j = 0; j < kVector; ++j) turned.elements[j] = square[j].elements[i];
      tile[slot(x * kVector + i, y)].bits = turned.bits;
    }
  }

  template <class Inside>
  static __device__ __forceinline__ void store(Inside, const Vector<T>* tile, T* __restrict__ out,
                                               int rows, int columns, int row0, int column0) {
    const int column = row0 + int(threadIdx.x) % kAcross * kVector;
    const int first = threadIdx.x / kAcross;
    uint4 vectors[kVector];
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      vectors[i] = tile[slot(first + i * kAcross, threadIdx.x % kAcross)].bits;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const int row = column0 + first + i * kAcross;
      if (Inside::value || (row < columns && column < rows))
        *reinterpret_cast<uint4*>(out + at(row, column, rows)) = vectors[i];
    }
  }
};

// For rows and columns of whole vectors.
template <class T, Order order, int across>
__global__ void __launch_bounds__(Squares<T, across>::kThreads)
    vectorized(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  using S = Squares<T, across>;
  __shared__ Vector<T> turned[S::kVectors];
  const auto [x, y] = my_tile<order>(ceil_div(columns, S::kSide), ceil_div(rows, S::kSide));
  const int row0 = y * S::kSide, column0 = x * S::kSide;
  if (column0 >= columns) return;  // in a partial band
  by_case(S::inside(rows, columns, row0, column0), [&](auto inside) {
    typename S::Square square;
    S::load(inside, square, in, rows, columns, row0, column0);
    __syncwarp();  // keeps all loads before the first use
    S::transpose_to_shared(turned, square);
    __syncthreads();
    S::store(inside, turned, out, rows, columns, row0, column0);
  });
}

template <class T, Order order, int across = 16>
Implementation vectorized_in() {
  return kernel<Transpose<T>>(
      vectorized<T, order, across>, [](const Case& c, const Device&, const void*) {
        using S = Squares<T, across>;
        return tiles_in_order<order>(ceil_div(c["columns"], S::kSide),
                                     ceil_div(c["rows"], S::kSide), S::kThreads);
      });
}

inline bool aligned(const Case& c) {
  return c["rows"] * c["element"] % 16 == 0 && c["columns"] * c["element"] % 16 == 0;
}
inline std::string unaligned(const Case& c, const Device&) {
  return aligned(c) ? "" : "needs rows that start on 16 bytes, on both sides";
}

}  // namespace ladders::transpose
