// SPDX-License-Identifier: MIT
//
// 16 bytes an access on both sides, the order in which blocks take tiles, and the same in place.
#pragma once

#include <type_traits>

#include "transpose_problem.cuh"

namespace ladders {
namespace {

// The order in which blocks take tiles, which is that of their numbers: row by row, or down bands
// of two tiles, so that those at work together write long pieces of the same output rows and still
// read two neighbouring pieces of each input row.
enum class Order { rows, bands };
struct Tile {
  int x, y;  // along the columns and the rows of the input
};
constexpr int kBand = 2;

template <Order order>
__device__ __forceinline__ Tile my_tile(int tiles_x, int tiles_y) {
  const unsigned block = blockIdx.x;
  if (order == Order::rows) return {int(block % tiles_x), int(block / tiles_x)};
  const unsigned within = block % (kBand * tiles_y), band = block / (kBand * tiles_y);
  return {int(kBand * band + within % kBand), int(within / kBand)};
}

// As many blocks: a tile too many along x where a band is not full.
template <Order order>
LaunchPlan tiles_in_order(int64_t tiles_x, int64_t tiles_y, unsigned threads) {
  const int64_t x = order == Order::rows ? tiles_x : kBand * ceil_div<int64_t>(tiles_x, kBand);
  return {.grid = static_cast<unsigned>(x * tiles_y), .block = threads};
}

// 16 bytes.
template <class T>
union Vector {
  uint4 bits;
  T elements[16 / sizeof(T)];
};

// A tile of 16 x 16 squares, one a thread, or of 8 x 8. A square is as many rows as a vector has
// elements, of one vector each: turning it takes registers only, and of 4- and 8-byte elements only
// their names change. Vectors of the turned tile are XORed with the square's column, so that eight
// lanes on neighbouring ones, and eight lanes a square apart, find eight groups of four banks.
template <class T, int across = 16>
struct Squares {
  static constexpr int kVector = 16 / sizeof(T), kAcross = across;
  static constexpr int kSide = kAcross * kVector, kThreads = kAcross * kAcross;
  static constexpr int kVectors = kSide * kAcross;  // of the tile
  using Square = Vector<T>[kVector];

  static __device__ __forceinline__ int slot(int row, int vector) {
    return row * kAcross + (vector ^ row / kVector % 8);
  }

  // Whether all of the tile that begins at (row0, column0) is in the matrix. Where it is known to
  // be, nothing comes between one access and the next.
  static __device__ __forceinline__ bool inside(int rows, int columns, int row0, int column0) {
    return row0 + kSide <= rows && column0 + kSide <= columns;
  }

  // This thread's square of it, zeros outside of the matrix. Small tiles are for small matrices,
  // which leave room in L2 for the output if the input is the first to leave it.
  template <bool inside>
  static __device__ __forceinline__ void load(Square& square, const T* __restrict__ in, int rows,
                                              int columns, int row0, int column0) {
    const int row = row0 + int(threadIdx.x) / kAcross * kVector;
    const int column = column0 + int(threadIdx.x) % kAcross * kVector;
    const bool there = inside || (row < rows && column < columns);
    const T* from = in + at(row, column, columns);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const auto* p = reinterpret_cast<const uint4*>(from + at(i, 0, columns));
      square[i].bits = !there ? uint4{} : across == 8 ? __ldcs(p) : *p;
    }
  }

  static __device__ __forceinline__ void turn(Vector<T>* tile, const Square& square) {
    const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      Vector<T> turned;
#pragma unroll
      for (int j = 0; j < kVector; ++j) turned.elements[j] = square[j].elements[i];
      tile[slot(x * kVector + i, y)].bits = turned.bits;
    }
  }

  // The turned tile to the place in the output that its place in the input gives it.
  template <bool inside>
  static __device__ __forceinline__ void store(const Vector<T>* tile, T* __restrict__ out, int rows,
                                               int columns, int row0, int column0) {
    const int column = row0 + int(threadIdx.x) % kAcross * kVector;
    const int first = threadIdx.x / kAcross;
    uint4 vectors[kVector];
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      vectors[i] = tile[slot(first + i * kAcross, threadIdx.x % kAcross)].bits;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const int row = column0 + first + i * kAcross;
      if (inside || (row < columns && column < rows))
        *reinterpret_cast<uint4*>(out + at(row, column, rows)) = vectors[i];
    }
  }
};

// Rows and columns are whole vectors.
template <class T, Order order, int across>
__global__ void __launch_bounds__(Squares<T, across>::kThreads)
    vectorized(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  using S = Squares<T, across>;
  __shared__ Vector<T> turned[S::kVectors];
  const auto [x, y] = my_tile<order>(ceil_div(columns, S::kSide), ceil_div(rows, S::kSide));
  const int row0 = y * S::kSide, column0 = x * S::kSide;
  if (column0 >= columns) return;  // beyond a band that is not full
  const auto move = [&](auto inside) {
    typename S::Square square;
    S::template load<decltype(inside)::value>(square, in, rows, columns, row0, column0);
    __syncwarp();  // keeps the compiler from turning the first before it has asked for the last
    S::turn(turned, square);
    __syncthreads();
    S::template store<decltype(inside)::value>(turned, out, rows, columns, row0, column0);
  };
  S::inside(rows, columns, row0, column0) ? move(std::true_type{}) : move(std::false_type{});
}

// In place: a block for each pair of tiles that mirror each other. Those on and above the diagonal
// of n x n tiles, n odd, make a rectangle of n x (n + 1) / 2: what it lacks to the left of the
// diagonal is what its rows leave out below. (n even: as if there was one more.)
__host__ __device__ constexpr int mirrored_pairs(int tiles) {
  return (tiles | 1) * ((tiles | 1) + 1) / 2;
}
__device__ __forceinline__ Tile upper_of_my_pair(int tiles) {
  const unsigned n = tiles | 1, high = (n + 1) / 2, x = blockIdx.x / high, y = blockIdx.x % high;
  return x >= y ? Tile{int(x), int(y)} : Tile{int(n - 1 - x), int(n - y)};
}

template <class T>
__global__ void __launch_bounds__(Squares<T>::kThreads) vectorized_in_place(T* data, int n) {
  using S = Squares<T>;
  auto* upper = dynamic_shared<Vector<T>>();
  Vector<T>* lower = upper + S::kVectors;
  const auto [x, y] = upper_of_my_pair(ceil_div(n, S::kSide));
  const int row0 = y * S::kSide, column0 = x * S::kSide;
  const auto swap = [&](auto inside) {
    typename S::Square above, below;
    S::template load<decltype(inside)::value>(above, data, n, n, row0, column0);
    S::template load<decltype(inside)::value>(below, data, n, n, column0, row0);
    __syncwarp();
    S::turn(upper, above);
    S::turn(lower, below);
    __syncthreads();  // both are read before either is written
    S::template store<decltype(inside)::value>(upper, data, n, n, row0, column0);
    if (x != y) S::template store<decltype(inside)::value>(lower, data, n, n, column0, row0);
  };
  S::inside(n, n, row0, column0) ? swap(std::true_type{}) : swap(std::false_type{});
}

// The same an element at a time, for rows that start anywhere: 32 x 8 threads, as in `coarsened`.
template <class T>
__global__ void __launch_bounds__(256) elements_in_place(T* data, int n) {
  constexpr int kSide = 32;
  __shared__ T upper[kSide][kSide + 1], lower[kSide][kSide + 1];
  const auto [x, y] = upper_of_my_pair(ceil_div(n, kSide));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = warp; i < kSide; i += 8) {
    const int above = y * kSide + i, below = x * kSide + i;
    if (above < n && x * kSide + lane < n) upper[i][lane] = data[at(above, x * kSide + lane, n)];
    if (below < n && y * kSide + lane < n) lower[i][lane] = data[at(below, y * kSide + lane, n)];
  }
  __syncthreads();
#pragma unroll
  for (int i = warp; i < kSide; i += 8) {
    const int above = y * kSide + i, below = x * kSide + i;
    if (below < n && y * kSide + lane < n) data[at(below, y * kSide + lane, n)] = upper[lane][i];
    if (x != y && above < n && x * kSide + lane < n)
      data[at(above, x * kSide + lane, n)] = lower[lane][i];
  }
}

}  // namespace
}  // namespace ladders
