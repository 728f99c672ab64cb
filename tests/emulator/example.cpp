// How many wavefronts does it take to read a column of shared memory?
#include <cuda_runtime.h>

#include <emulator/report.hpp>
#include <iostream>

__global__ void transpose(float* out, const float* in) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

int main() {
  float *in, *out;
  cudaMalloc(&in, 32 * 32 * sizeof(float));
  cudaMalloc(&out, 32 * 32 * sizeof(float));

  emulator::Recording recording;
  emulator::launch({.grid = 1, .block = {32, 32}}, transpose, out, in);
  std::cout << recording.report();
}
