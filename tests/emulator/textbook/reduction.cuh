// SPDX-License-Identifier: MIT
//
// A reduction in the style of M. Harris' "Optimizing Parallel Reduction in CUDA" and of the CUDA
// samples.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace textbook {

namespace cg = cooperative_groups;

template <unsigned int blockSize, bool nIsPow2>
__global__ void reduce6(int* g_idata, int* g_odata, unsigned int n) {
  cg::thread_block cta = cg::this_thread_block();
  int* sdata = static_cast<int*>(emulator::dynamic_shared());

  unsigned int tid = threadIdx.x;
  unsigned int gridSize = blockSize * gridDim.x;
  int mySum = 0;

  if (nIsPow2) {
    unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
    gridSize = gridSize << 1;
    while (i < n) {
      mySum += g_idata[i];
      if ((i + blockSize) < n) {
        mySum += g_idata[i + blockSize];
      }
      i += gridSize;
    }
  } else {
    unsigned int i = blockIdx.x * blockSize + threadIdx.x;
    while (i < n) {
      mySum += g_idata[i];
      i += gridSize;
    }
  }

  sdata[tid] = mySum;
  cg::sync(cta);

  if ((blockSize >= 512) && (tid < 256)) {
    sdata[tid] = mySum = mySum + sdata[tid + 256];
  }
  cg::sync(cta);
  if ((blockSize >= 256) && (tid < 128)) {
    sdata[tid] = mySum = mySum + sdata[tid + 128];
  }
  cg::sync(cta);
  if ((blockSize >= 128) && (tid < 64)) {
    sdata[tid] = mySum = mySum + sdata[tid + 64];
  }
  cg::sync(cta);

  cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
  if (cta.thread_rank() < 32) {
    if (blockSize >= 64) mySum += sdata[tid + 32];
    for (int offset = tile32.size() / 2; offset > 0; offset /= 2) {
      mySum += tile32.shfl_down(mySum, offset);
    }
  }
  if (cta.thread_rank() == 0) g_odata[blockIdx.x] = mySum;
}

}  // namespace textbook
