// SPDX-License-Identifier: MIT
//
// How kernels load and store elements of row-major matrices.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

namespace ladders::sgemm {
// What kernels read, and what they write: no other pointer leads there.
using Input = const float* __restrict__;
using Output = float* __restrict__;

// The most words, 4, 2 or 1, of which all rows are whole multiples, in address and in length.
__host__ __device__ inline int vector_width(const float* matrix, int64_t pitch, int columns = 0) {
  const uintptr_t all = reinterpret_cast<uintptr_t>(matrix) / 4 | pitch | columns;
  return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}
__host__ __device__ inline bool is_float4_aligned(const float* matrix, int64_t pitch,
                                                  int columns = 0) {
  return vector_width(matrix, pitch, columns) == 4;
}

// An element, or 0 beyond the edge, which pads a tile.
__device__ __forceinline__ float load_or_zero(const float* matrix, int row, int column, int rows,
                                              int columns) {
  return row < rows && column < columns ? matrix[size_t(row) * columns + column] : 0;
}

// Four neighbours that start on 16 bytes.
__device__ __forceinline__ float4& as_float4(float* p) { return *reinterpret_cast<float4*>(p); }
__device__ __forceinline__ const float4& as_float4(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}

// Two that start on 8 bytes.
__device__ __forceinline__ float2& as_float2(float* p) { return *reinterpret_cast<float2*>(p); }
__device__ __forceinline__ const float2& as_float2(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}

// Copies 4, 2 or 1 words in one load and one store. Both addresses are multiples of that size.
template <int words>
__device__ __forceinline__ void copy_vector(float* to, const float* from) {
  if constexpr (words == 4)
    as_float4(to) = as_float4(from);
  else if constexpr (words == 2)
    as_float2(to) = as_float2(from);
  else
    *to = *from;
}

// Four neighbours of a row: one load if they are all inside and aligned, else one by one. Warps
// diverge only at the edges.
__device__ __forceinline__ float4 load_float4_or_zero(const float* matrix, int row, int column,
                                                      int rows, int columns) {
  if (row < rows && column + 3 < columns && columns % 4 == 0)
    return *reinterpret_cast<const float4*>(&matrix[size_t(row) * columns + column]);
  return {load_or_zero(matrix, row, column, rows, columns),
          load_or_zero(matrix, row, column + 1, rows, columns),
          load_or_zero(matrix, row, column + 2, rows, columns),
          load_or_zero(matrix, row, column + 3, rows, columns)};
}

__device__ __forceinline__ void add(float4& to, const float4& more) {
  to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
}

// The product of a row and a column of `k` elements, infinities and NaNs included, in FP64.
__device__ __forceinline__ float exact_product(const float* row, const float* column, int64_t pitch,
                                               int k) {
  double sum = 0;
#pragma unroll 1
  for (int i = 0; i < k; ++i) sum += double(row[i]) * column[i * pitch];
  return float(sum);
}

// Whether a sum must be computed again. It must if it is not finite: a part was not. It must also
// if it is so small that lower parts of its operands may have underflowed. Zero counts as exact,
// though it may be the sum of operands below 2^-136: else matrices of zeros would take long.
constexpr float kLeastOfParts = 0x1p-110f;
__device__ __forceinline__ bool is_of_lost_parts(float sum) {
  const float size = fabsf(sum);
  return !(size <= FLT_MAX) || (size < kLeastOfParts && size > 0);
}

// Replaces each sum(i) that has lost parts by exact(i). Usually there is none: finding that out
// takes 2.5 instructions per sum. The rest seldom runs, so it is a loop: code is fetched from DRAM.
template <int count, class Sum, class Exact>
__device__ __forceinline__ void restore_lost(Sum sum, Exact exact) {
  constexpr unsigned kLeast = 2 * __builtin_bit_cast(unsigned, kLeastOfParts) - 1;
  unsigned least = ~0u;
  float zero = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    least = min(least, 2 * __float_as_uint(sum(i)) - 1);  // no sign; zeros become the largest
    zero += 0 * sum(i);                                   // NaN if a sum is not finite
  }
  if (least >= kLeast && zero == 0) return;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    float value = 0;  // sums are in registers, which have no index
#pragma unroll
    for (int j = 0; j < count; ++j) value = j == i ? sum(j) : value;
    if (!is_of_lost_parts(value)) continue;
    const float again = exact(i);
#pragma unroll
    for (int j = 0; j < count; ++j)
      if (j == i) sum(j) = again;
  }
}

// C = alpha sum + beta C of an element. If beta is 0, C is not read and may be NaN. As in cuBLAS,
// beta C is rounded first; without fmaf() the compiler would choose which product is.
__device__ __forceinline__ void update(float& c, float alpha, float sum, float beta) {
  c = beta == 0 ? alpha * sum : fmaf(alpha, sum, beta * c);
}

// Four neighbours of a row of C, whose rows are `pitch` apart, are updated with these sums: in one
// store if they are all inside, need not be read, and rows start on 16 bytes (`wide`).
__device__ __forceinline__ void store_four(float* c, int64_t pitch, bool wide, int row, int column,
                                           int m, int n, float alpha, const float* sums,
                                           float beta) {
  if (row >= m) return;
  float* out = &c[row * pitch + column];
  if (beta == 0 && wide && column + 3 < n) {
    *reinterpret_cast<float4*>(out) =
        make_float4(alpha * sums[0], alpha * sums[1], alpha * sums[2], alpha * sums[3]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + i < n) update(out[i], alpha, sums[i], beta);
  }
}
__device__ __forceinline__ void store_four(float* c, int row, int column, int m, int n, float alpha,
                                           const float* sums, float beta) {
  store_four(c, n, n % 4 == 0, row, column, m, n, alpha, sums, beta);
}

}  // namespace ladders::sgemm
