// SPDX-License-Identifier: MIT
//
// Rows that start anywhere. Words are copied asynchronously to shared memory, where windows are
// aligned. Zeros to the left and right of the image are there once and for all.
#pragma once

#include <cuda_pipeline.h>

#include "convolution/02_sliding_sums.cuh"

namespace ladders::convolution {
// What a warp has in shared memory: pairs of rows, each with what the filter reaches on either
// side, and two rows of outputs.
template <int side>
struct RowRing {
  static constexpr int kPairs = 3, kPixels = kAcross + side - 1;
  static constexpr int kPitch = ceil_div(kPixels, kOutputs) * kOutputs;
  float rows[kPairs][2][kPitch];
  float out[2][kAcross];
};

// The same address, in a register: the compiler would compute it again for each access. It no
// longer knows that this points to global memory, so plain stores would be generic.
template <class T>
__device__ __forceinline__ T* kept_in_register(T* address) {
#ifdef __CUDACC__
  asm volatile("" : "+l"(address));
#endif
  return address;
}

// A lane copies the same columns of each row: those outside of the image stay zero. Windows are
// read two pairs of rows after they are requested. Outputs go through shared memory to lanes that
// store neighbouring words. A warp waits for no other.
template <int side>
__global__ void __launch_bounds__(Strips<side>::kThreads, Strips<side>::kBlocks)
    row_ring(const float* __restrict__ image, const __grid_constant__ Filter filter,
             float* __restrict__ out, int rows, int columns, int strip) {
  using Ring = RowRing<side>;
  __shared__ __align__(16) Ring rings[Strips<side>::kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Ring& ring = rings[warp];
  const int column0 = (blockIdx.x * (blockDim.x / kWarp) + warp) * kAcross;
  const int first = blockIdx.y * strip, last = min(first + strip, rows);
  if (column0 >= columns) return;
  float* const pixels = &ring.rows[0][0][0];
#pragma unroll 1
  for (int i = lane; i < int(sizeof(ring.rows) / sizeof(float)); i += kWarp) pixels[i] = 0;
  __syncwarp();

  const int from = column0 - reach(side) + lane;  // the first column that the lane copies
  const auto each_copy = [&](auto act) {
#pragma unroll
    for (int i = 0; i < Ring::kPixels; i += kWarp)
      if (lane + i < Ring::kPixels && unsigned(from + i) < unsigned(columns)) act(i);
  };
  int requested = first - reach(side), to = 0;
  const int end = last + reach(side);
  const float* source = image + int64_t{requested} * columns + from;
  const auto request = [&] {
#pragma unroll
    for (int i = 0; i < 2; ++i, ++requested, source = kept_in_register(source + columns)) {
      float* const copy = &ring.rows[to][i][lane];
      if (requested >= end) continue;  // no output needs it
      if (requested >= 0 && requested < rows)
        each_copy([&](int j) { __pipeline_memcpy_async(copy + j, source + j, 4); });
      else
        each_copy([&](int j) { copy[j] = 0; });
    }
    __pipeline_commit();
    to = to == Ring::kPairs - 1 ? 0 : to + 1;
  };
#pragma unroll 1
  for (int i = 0; i < Ring::kPairs - 1; ++i) request();
  int current = 0;
  go_down<side, 0>(
      filter, first, last,
      [&](int) {
        __pipeline_wait_prior(Ring::kPairs - 2);
        __syncwarp();  // all have copied this pair of rows, and read the one before
        request();
        const auto& pair = ring.rows[current];
        current = current == Ring::kPairs - 1 ? 0 : current + 1;
        return Pair<side>{shared_window<side>(&pair[0][lane * kOutputs]),
                          shared_window<side>(&pair[1][lane * kOutputs])};
      },
      [&](int row, const float (&sums)[kOutputs]) {
        float* const staged = ring.out[row & 1];
        *reinterpret_cast<float4*>(&staged[lane * kOutputs]) =
            make_float4(sums[0], sums[1], sums[2], sums[3]);
        __syncwarp();
        float* const target = kept_in_register(&out[at(row, column0 + lane, columns)]);
        float apart[kOutputs];  // kWarp columns from each other
#pragma unroll
        for (int i = 0; i < kOutputs; ++i) apart[i] = staged[lane + i * kWarp];
#pragma unroll
        for (int i = 0; i < kOutputs; ++i)
          if (column0 + lane + i * kWarp < columns) __stwb(target + i * kWarp, apart[i]);
      });
}

template <int side>
Implementation strips_by_ring() {
  return strips_by<side, (side < 7 ? 3 : 1)>(row_ring<side>);
}

}  // namespace ladders::convolution
