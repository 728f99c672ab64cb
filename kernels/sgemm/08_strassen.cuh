// SPDX-License-Identifier: MIT
//
// If every issue slot has its FMA, do fewer: one level of Strassen's seven products of half the
// size instead of eight (V. Strassen, Gaussian elimination is not optimal, Numerische Mathematik
// 13, 1969).
//
//   M1 = (A11 + A22) (B11 + B22)    M5 = (A11 + A12) B22          C11 = M1 + M4 - M5 + M7
//   M2 = (A21 + A22) B11            M6 = (A21 - A11) (B11 + B12)  C12 = M3 + M5
//   M3 = A11 (B12 - B22)            M7 = (A12 - A22) (B21 + B22)  C21 = M2 + M4
//   M4 = A22 (B21 - B11)                                          C22 = M1 - M2 + M3 + M6
//
// The price is additions of quarters. The producers add quarters of A on the way to shared memory.
// A kernel before adds quarters of B, and one after adds up the products. Errors are larger too,
// since an output is computed from products of other rows and columns. They are small relative to
// the norms of the matrices, but not relative to those of a row and a column if rows and columns
// differ in scale. Infinities and NaNs spread. So `fastest` never takes it.
#pragma once

#include "common/dependent_launch.cuh"
#include "sgemm/05_stream_k.cuh"

namespace ladders::sgemm {
constexpr int kHalfProducts = 7;

// The upper left quarters are as large as the products; the others may be smaller. As if A and B
// were padded with zeros, half of k is whole k tiles, and half of n a multiple of four: so quarters
// are aligned if rows are.
struct HalfSizes {
  int m, n, k;
  size_t operands() const { return size_t{kHalfProducts} * k * n; }  // of B
  size_t products() const { return size_t{kHalfProducts} * m * n; }
};

__device__ __forceinline__ float4 sum(const float4& x, const float4& y, float factor = 1) {
  return {x.x + factor * y.x, x.y + factor * y.y, x.z + factor * y.z, x.w + factor * y.w};
}

// B's operand of each product, one below the other. A thread takes four columns of each quarter.
inline __global__ void __launch_bounds__(256)
    add_quarters(Input b, float4* __restrict__ operands, int k, int n, HalfSizes half) {
  launch_dependent_grids();
  const int columns = half.n / 4, quads = half.k * columns;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < quads; i += gridDim.x * 256) {
    const int row = i / columns, column = i % columns * 4;
    const float4 b11 = load_float4_or_zero(b, row, column, k, n),
                 b12 = load_float4_or_zero(b, row, half.n + column, k, n);
    const float4 b21 = load_float4_or_zero(b, half.k + row, column, k, n);
    const float4 b22 = load_float4_or_zero(b, half.k + row, half.n + column, k, n);
    const float4 all[] = {sum(b11, b22), b11,           sum(b12, b22, -1), sum(b21, b11, -1),
                          b22,           sum(b11, b12), sum(b21, b22)};
#pragma unroll
    for (int p = 0; p < kHalfProducts; ++p) operands[size_t(p) * quads + i] = all[p];
  }
}

// C's quarters from the products, which alpha has already multiplied.
inline __global__ void __launch_bounds__(256)
    add_products(const float4* __restrict__ products, Output c, int m, int n, float beta,
                 HalfSizes half) {
  wait_on_dependent_grids();
  const int columns = half.n / 4, quads = half.m * columns;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < quads; i += gridDim.x * 256) {
    const int row = i / columns, column = i % columns * 4;
    float4 p[kHalfProducts];
#pragma unroll
    for (int j = 0; j < kHalfProducts; ++j) p[j] = products[size_t(j) * quads + i];
    const float4 c11 = sum(sum(p[0], p[3]), sum(p[6], p[4], -1)), c12 = sum(p[2], p[4]);
    const float4 c21 = sum(p[1], p[3]), c22 = sum(sum(p[0], p[1], -1), sum(p[2], p[5]));
    const auto store = [&](int y, int x, const float4& s) {
      store_four(c, y * half.m + row, x * half.n + column, m, n, 1, &s.x, beta);
    };
    store(0, 0, c11), store(0, 1, c12), store(1, 0, c21), store(1, 1, c22);
  }
}

// Rows of a quarter of A, plus or minus those of another if `factor` is not 0. Rows beyond A repeat
// its last row. Any padding will do: in C11 its products cancel, and outputs of padded rows are not
// stored. Columns beyond A must be 0, since they are terms of real sums; halves of `whole` k tiles
// have none.
template <bool whole>
struct RowsOfTwo {
  const float* a;
  int m, k;  // of A
  HalfSizes half;
  int first, second;  // quarters: 0 to 3
  float factor;

  const float *from_first[4], *from_second[4];
  int left_first, left_second;

  __device__ __forceinline__ void begin(int row, int column, int columns_left) {
    const auto quarter = [&](int q, const float*(&from)[4], int& left) {
      const int y = q / 2 * half.m + row, x = q % 2 * half.k;
#pragma unroll
      for (int j = 0; j < 4; ++j) from[j] = a + size_t(min(y + j, m - 1)) * k + x + column;
      left = min(k - x - (half.k - columns_left), columns_left);
    };
    quarter(first, from_first, left_first);
    quarter(second, from_second, left_second);
  }
  template <int stage_depth, int apart, int blocks>
  __device__ __forceinline__ void load(float (&block)[blocks][4][4], int depth) {
    const auto each = [&](const float*(&from)[4], int& left, auto put) {
#pragma unroll
      for (int i = 0; i < 16 * blocks; ++i) {
        const int along = i / 16 * apart + i % 4;
        put(block[i / 16][i % 4][i / 4 % 4],
            whole || depth + along < left ? from[i / 4 % 4][along] : 0);
      }
      left -= stage_depth;
#pragma unroll
      for (int j = 0; j < 4; ++j) from[j] += stage_depth;
    };
    each(from_first, left_first, [](float& to, float value) { to = value; });
    if (factor != 0)
      each(from_second, left_second, [&](float& to, float value) { to += factor * value; });
  }
};

template <class Tiles, bool whole>
struct HalfProducts {
  const float* a;
  const TensorMap& operands;
  float* products;
  int m, k;
  float alpha, beta;  // beta is 0; as a constant it would double the register bank conflicts
  HalfSizes half;
  Raster raster;  // of one of them

  __device__ __forceinline__ int tiles() const { return kHalfProducts * raster.tiles(); }
  template <class Producer>
  __device__ __forceinline__ void load(Producer& producer, WorkTile work) const {
    static constexpr int kFirst[] = {0, 2, 0, 3, 0, 2, 1}, kSecond[] = {3, 3, 0, 0, 1, 0, 3};
    static constexpr float kFactor[] = {1, 1, 0, 0, 1, -1, -1};
    const int p = work.tile / raster.tiles(), k0 = work.first * Tiles::kDepth;
    const auto tile = raster.place(work.tile % raster.tiles());
    RowsOfTwo<whole> rows{a, m, k, half, kFirst[p], kSecond[p], kFactor[p]};
    producer.produce(rows, tile.row * Tiles::kRows, k0, half.k, operands, p * half.k + k0,
                     tile.column * Tiles::kColumns, work.k_tiles);
  }
  __device__ __forceinline__ Destination destination(int number) const {
    const int p = number / raster.tiles();
    const auto tile = raster.place(number % raster.tiles());
    const int row = p * half.m + tile.row * Tiles::kRows, column = tile.column * Tiles::kColumns;
    return {products, row, column, (p + 1) * half.m, half.n, alpha, beta};
  }
};

template <class Tiles, bool whole>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    strassen(Input a, const __grid_constant__ TensorMap operands, Output products, int m, int k,
             float alpha, float beta, HalfSizes half, Raster raster, Fixup<Tiles> fixup) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  launch_dependent_grids();
  wait_on_dependent_grids();
  const HalfProducts<Tiles, whole> seven{a, operands, products, m, k, alpha, beta, half, raster};
  multiply_stream_k<Tiles>(seven, half.k / Tiles::kDepth, fixup);
#endif
}

}  // namespace ladders::sgemm
