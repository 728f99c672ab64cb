// SPDX-License-Identifier: MIT
#include <cublas_v2.h>

#include <algorithm>
#include <string>

#include "cuda_check.hpp"
#include "peers.hpp"

namespace ladders::peers {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw CudaError(std::string(what) + ": " + cublasGetStatusString(status));
}

cublasHandle_t handle(cudaStream_t stream, cublasMath_t mode) {
  static cublasHandle_t handle = [] {
    cublasHandle_t created = nullptr;
    check(cublasCreate(&created), "cublasCreate");
    return created;
  }();
  check(cublasSetStream(handle, stream), "cublasSetStream");
  check(cublasSetMathMode(handle, mode), "cublasSetMathMode");
  return handle;
}

// A leading dimension may not be zero, not even of an empty matrix.
int leading(int extent) { return std::max(extent, 1); }

}  // namespace

// cuBLAS is column major: a row-major matrix is its transpose there, with the same memory.
void cublas_transpose(float* out, const float* in, int rows, int columns, cudaStream_t stream) {
  const float one = 1, zero = 0;
  check(cublasSgeam(handle(stream, CUBLAS_DEFAULT_MATH), CUBLAS_OP_T, CUBLAS_OP_N, rows, columns,
                    &one, in, leading(columns), &zero, out, leading(rows), out, leading(rows)),
        "cublasSgeam");
}

void cublas_transpose(double* out, const double* in, int rows, int columns, cudaStream_t stream) {
  const double one = 1, zero = 0;
  check(cublasDgeam(handle(stream, CUBLAS_DEFAULT_MATH), CUBLAS_OP_T, CUBLAS_OP_N, rows, columns,
                    &one, in, leading(columns), &zero, out, leading(rows), out, leading(rows)),
        "cublasDgeam");
}

void cublas_sgemm(const float* a, const float* b, float* c, int m, int n, int k, float alpha,
                  float beta, Precision precision, cudaStream_t stream) {
  const auto mode =
      precision == Precision::fp32 ? CUBLAS_PEDANTIC_MATH : CUBLAS_TF32_TENSOR_OP_MATH;
  check(cublasSgemm(handle(stream, mode), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b, leading(n),
                    a, leading(k), &beta, c, leading(n)),
        "cublasSgemm");
}

}  // namespace ladders::peers
