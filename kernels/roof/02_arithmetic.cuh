// SPDX-License-Identifier: MIT
//
// How fast FP32 numbers are multiplied and added.
#pragma once

#include "roof/problem.cuh"

namespace ladders::roof {
// Independent chains of multiply-adds, no memory. x = b - x alternates between the integer at which
// a chain starts and a number with a full mantissa: it stays finite, and its bits toggle. Threads
// start at different values, or the compiler for Blackwell would compute once per warp, on the
// uniform datapath.
constexpr float kFactor = -1.0f, kTerm = 1.2345678f;
template <int kChains>
__global__ void fma(float* out, int iterations, float a, float b) {
  float x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) x[c] = float(threadIdx.x + c);
#pragma unroll 8
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

inline Implementation fma_at(const Case& c, const Device&) {
  return pick<8, 16>(c["chains"], [n = iterations(c)](auto chains) {
    const auto check = [=](const Roof& r) {
      std::vector<float> sums(kBlock);
      for (unsigned thread = 0; thread < kBlock; ++thread)
        for (unsigned chain = 0; chain < chains(); ++chain) {
          float x = float(thread + chain);
          for (int i = 0; i < n; ++i) x = std::fma(x, kFactor, kTerm);
          sums[thread] += x;
        }
      return compare<float>(r, r.launched, [&](size_t i) { return sums[i % kBlock]; });
    };
    return verified(fma<chains()>, blocks_per_sm<>, out_and<float>(n, kFactor, kTerm), check);
  });
}

}  // namespace ladders::roof
