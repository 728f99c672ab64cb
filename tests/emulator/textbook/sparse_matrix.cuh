// SPDX-License-Identifier: MIT
//
// A sparse matrix times a vector, a warp per row, in the style of N. Bell and M. Garland.
#pragma once

#include <cuda_runtime.h>

namespace textbook {

__global__ void spmv_csr_vector_kernel(const int num_rows, const int* ptr, const int* indices,
                                       const float* data, const float* x, float* y) {
  volatile float* vals = static_cast<volatile float*>(emulator::dynamic_shared());
  int thread_id = blockDim.x * blockIdx.x + threadIdx.x;
  int warp_id = thread_id / 32;
  int lane = thread_id & (32 - 1);
  int row = warp_id;
  if (row < num_rows) {
    int row_start = ptr[row];
    int row_end = ptr[row + 1];
    float sum = 0;
    for (int jj = row_start + lane; jj < row_end; jj += 32) sum += data[jj] * x[indices[jj]];
    vals[threadIdx.x] = sum;
    __syncwarp();
    // Since Volta warps need to be told.
    for (int k = 16; k > 0; k >>= 1) {
      if (lane < k) sum += vals[threadIdx.x + k];
      __syncwarp();
      if (lane < k) vals[threadIdx.x] = sum;
      __syncwarp();
    }
    if (lane == 0) y[row] += vals[threadIdx.x];
  }
}

}  // namespace textbook
