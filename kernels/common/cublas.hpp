// SPDX-License-Identifier: MIT
#pragma once

#include <cublas_v2.h>

#include <algorithm>

#include "model/cuda_check.hpp"

namespace ladders {
/// Throws CudaError, with the name of the call, unless `status` is success.
inline void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw CudaError(std::string(what) + ": " + cublasGetStatusString(status));
}

/// The program's handle, set to this stream and math mode.
inline cublasHandle_t cublas_handle(cudaStream_t stream, cublasMath_t mode) {
  static cublasHandle_t handle = [] {
    cublasHandle_t created = nullptr;
    check(cublasCreate(&created), "cublasCreate");
    return created;
  }();
  check(cublasSetStream(handle, stream), "cublasSetStream");
  check(cublasSetMathMode(handle, mode), "cublasSetMathMode");
  return handle;
}

/// A leading dimension: cuBLAS refuses 0, even for an empty matrix.
inline int leading(int64_t extent) { return int(std::max<int64_t>(extent, 1)); }

}  // namespace ladders
