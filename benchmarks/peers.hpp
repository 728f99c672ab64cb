// SPDX-License-Identifier: MIT
//
// The vendor's libraries, called as a user would call them. Each function enqueues on `stream` and
// throws CudaError; matrices are row major and dense.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "ladder.hpp"

namespace ladders::peers {

/// out[columns x rows] = transpose of in[rows x columns], for float and double.
void cublas_transpose(float* out, const float* in, int rows, int columns, cudaStream_t stream);
void cublas_transpose(double* out, const double* in, int rows, int columns, cudaStream_t stream);

enum class Precision {
  fp32,  ///< pedantic: every product and sum in FP32
  tf32,  ///< inputs rounded to TF32 (10-bit mantissa), tensor cores
};
/// c[m x n] = alpha a[m x k] b[k x n] + beta c.
void cublas_sgemm(const float* a, const float* b, float* c, int m, int n, int k, float alpha,
                  float beta, Precision precision, cudaStream_t stream);

/// *result = sum of squares of in[count], modulo 2^64; scratch memory comes from the problem.
void cub_sum_of_squares(Problem& problem, const int* in, size_t count, unsigned long long* result,
                        cudaStream_t stream);
void cub_sum_of_squares(Problem& problem, const float* in, size_t count, float* result,
                        cudaStream_t stream);
void cub_sum(Problem& problem, const float* in, size_t count, float* result, cudaStream_t stream);

/// out[i] = in[0] + ... + in[i].
void cub_inclusive_sum(Problem& problem, const unsigned* in, size_t count, unsigned* out,
                       cudaStream_t stream);
void cub_inclusive_sum(Problem& problem, const float* in, size_t count, float* out,
                       cudaStream_t stream);

/// bins[bin_count] = how often each key occurs; keys outside [0, bin_count) are not counted.
void cub_histogram(Problem& problem, const int* keys, size_t count, unsigned* bins, int bin_count,
                   cudaStream_t stream);
/// bins[256] = how often each byte occurs.
void cub_histogram(Problem& problem, const unsigned char* keys, size_t count, unsigned* bins,
                   cudaStream_t stream);

/// out[i] = table[index[i]].
void thrust_gather(const int* index, size_t count, const unsigned* table, unsigned* out,
                   cudaStream_t stream);

}  // namespace ladders::peers
