// SPDX-License-Identifier: MIT
//
// From one element per thread to a tile in shared memory without bank conflicts.
#pragma once

#include "transpose/problem.cuh"

namespace ladders::transpose {
constexpr int kTile = 32;  // side of the tile, and lanes of a warp

template <class T>
__global__ void naive_coalesced_reads(T* __restrict__ out, const T* __restrict__ in, int rows,
                                      int columns) {
  const int column = blockIdx.x * kTile + threadIdx.x;
  for (int row = blockIdx.y * kTile + threadIdx.y; row < rows; row += gridDim.y * kTile)
    if (column < columns) out[at(column, row, rows)] = in[at(row, column, columns)];
}

// Lanes along output rows: the next warps find the sectors of strided loads in L1 and L2.
template <class T>
__global__ void naive_coalesced_writes(T* __restrict__ out, const T* __restrict__ in, int rows,
                                       int columns) {
  const int row = blockIdx.x * kTile + threadIdx.x;
  for (int column = blockIdx.y * kTile + threadIdx.y; column < columns; column += gridDim.y * kTile)
    if (row < rows) out[at(column, row, rows)] = in[at(row, column, columns)];
}

// Both sides are coalesced: 4 sectors per request for 4-byte elements. With Pad = 0 a column of
// these lies in one bank: 32 wavefronts. With Pad = 1 each row is shifted by a bank: one wavefront.
template <class T, int Pad>
__global__ void tiled(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  __shared__ T tile[kTile][kTile + Pad];
  const int column0 = blockIdx.x * kTile;
  for (int row0 = blockIdx.y * kTile; row0 < rows; row0 += gridDim.y * kTile) {
    const int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
    if (row < rows && column < columns)
      tile[threadIdx.y][threadIdx.x] = in[at(row, column, columns)];
    __syncthreads();
    const int out_row = column0 + threadIdx.y, out_column = row0 + threadIdx.x;
    if (out_row < columns && out_column < rows)
      out[at(out_row, out_column, rows)] = tile[threadIdx.x][threadIdx.y];
    __syncthreads();  // the next iteration overwrites the tile
  }
}

// Two layouts of the tile without bank conflicts: a spare column, or column XOR row.
struct Padded {
  static constexpr int kStride = kTile + 1;
  __device__ static int at(int row, int column) { return row * kStride + column; }
};
struct Swizzled {
  static constexpr int kStride = kTile;
  __device__ static int at(int row, int column) { return row * kStride + (column ^ row); }
};

// 32 x 8 threads. Each moves one element in each of four rows. Its four loads are issued before the
// first is waited for, since the loop is unrolled.
template <class T, class Layout>
__global__ void coarsened(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  constexpr int kStep = 8;
  __shared__ T tile[kTile * Layout::kStride];
  const int column0 = blockIdx.x * kTile;
  for (int row0 = blockIdx.y * kTile; row0 < rows; row0 += gridDim.y * kTile) {
    const int column = column0 + threadIdx.x, out_column = row0 + threadIdx.x;
#pragma unroll
    for (int step = 0; step < kTile; step += kStep) {
      const int y = threadIdx.y + step;
      if (row0 + y < rows && column < columns)
        tile[Layout::at(y, threadIdx.x)] = in[at(row0 + y, column, columns)];
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kTile; step += kStep) {
      const int y = threadIdx.y + step;
      if (column0 + y < columns && out_column < rows)
        out[at(column0 + y, out_column, rows)] = tile[Layout::at(threadIdx.x, y)];
    }
    __syncthreads();
  }
}

// One block per tile along axes x and y; gridDim.y is at most 65535, so blocks also loop along y.
inline auto tiles(const char* x, const char* y, unsigned threads_y = kTile) {
  return [=](const Case& c, const Device&, const void*) {
    const auto blocks_y = std::min<int64_t>(ceil_div(c[y], kTile), 65535);
    return LaunchPlan{.grid = dim3(unsigned(ceil_div(c[x], kTile)), unsigned(blocks_y)),
                      .block = dim3(kTile, threads_y)};
  };
}

}  // namespace ladders::transpose
