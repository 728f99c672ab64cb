// SPDX-License-Identifier: MIT
//
// How fast tensor cores multiply and add: mma by a warp, wgmma by a group of four (Hopper).
#pragma once

#include "common/tensor_cores.cuh"
#include "common/tma.cuh"
#include "roof/problem.cuh"

namespace ladders::roof {
// A B is added and subtracted in turn, so that sums stay exact and an odd number of products leaves
// A B. Operands are random integers that no sum rounds: zeros draw less power and run faster.
template <class Type>
__host__ __device__ int operand(unsigned i) {
  constexpr int kBits = Type::kBytes == 2 ? 7 : 9;
  return int(random_bits(i) >> (31 - kBits)) - (1 << kBits);
}
template <class Type>
__host__ __device__ int a_at(int row, int k) {
  return operand<Type>(row * Type::kDepth + k);
}
template <class Type>
__host__ __device__ int b_at(int k, int column) {
  return operand<Type>(4096 + column * Type::kDepth + k);
}

// One register of a fragment: one element, or two that are neighbours in k.
template <class Type, class At>
__device__ uint32_t fragment(int k, At at) {
  if constexpr (Type::kBytes == 4)
    return encode<Type>(float(at(k)));
  else
    return encode<Type>(float(at(2 * k))) | encode<Type>(float(at(2 * k + 1))) << 16;
}
template <class Type>
__device__ void load_a(uint32_t (&a)[4], int first_row) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + lane / 4 + i % 2 * 8;
    a[i] = fragment<Type>(lane % 4 + i / 2 * 4, [=](int k) { return a_at<Type>(row, k); });
  }
}

constexpr int kTensorBlock = 256, kTensorOutputs = 64;

// Sixteen tiles of 8 columns per warp, which are independent accumulators.
template <class Type>
__global__ void tensor_by_warp(float* out, int pairs) {
  constexpr int kTiles = kTensorOutputs / 4;
  const int lane = threadIdx.x % 32;
  uint32_t a[4], minus_a[4], b[kTiles][2];
  float d[kTiles][4] = {};
  load_a<Type>(a, 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) minus_a[i] = a[i] ^ (Type::kBytes == 2 ? 0x80008000u : 0x80000000u);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      b[tile][i] = fragment<Type>(lane % 4 + 4 * i,
                                  [=](int k) { return b_at<Type>(k, 8 * tile + lane / 4); });
    mma_m16n8<Type>(d[tile], a, b[tile]);
  }
#pragma unroll 1
  for (int i = 0; i < pairs; ++i) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) mma_m16n8<Type>(d[tile], minus_a, b[tile]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) mma_m16n8<Type>(d[tile], a, b[tile]);
  }
  float* mine = out + (blockIdx.x * size_t{kTensorBlock} + threadIdx.x) * kTensorOutputs;
#pragma unroll
  for (int i = 0; i < kTensorOutputs; ++i) mine[i] = d[i / 4][i % 4];
}

// wgmma reads B from shared memory, unswizzled: cores of 8 columns by 16 bytes of k, two in k.
constexpr int kCore = 128, kColumns = 128;
template <class Type>
__global__ void __launch_bounds__(kTensorBlock, 2) tensor_by_group(float* out, int pairs) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ __align__(128) unsigned char b[kColumns / 8 * 2 * kCore];
  for (int i = threadIdx.x; i < kColumns * 8; i += blockDim.x) {  // words of 4 bytes
    const int column = i / 8, word = i % 8;
    auto* at = reinterpret_cast<uint32_t*>(b + column / 8 * 2 * kCore + word / 4 * kCore +
                                           column % 8 * 16 + word % 4 * 4);
    *at = fragment<Type>(word, [=](int k) { return b_at<Type>(k, column); });
  }
  fence_proxy_async_shared();
  __syncthreads();
  uint32_t a[4];
  load_a<Type>(a, threadIdx.x / 32 % 4 * 16);
  const uint64_t descriptor = (__cvta_generic_to_shared(b) & 0x3FFFF) >> 4 |
                              uint64_t{kCore >> 4} << 16 | uint64_t{2 * kCore >> 4} << 32;
  float d[kTensorOutputs] = {};
  wgmma_fence();
  wgmma_m64n128<Type, 1>(d, a, descriptor);
  wgmma_commit_group();
  wgmma_wait_group();
  for (int i = 0; i < pairs; i += 4) {
    wgmma_fence();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      wgmma_m64n128<Type, -1>(d, a, descriptor);
      wgmma_m64n128<Type, 1>(d, a, descriptor);
    }
    wgmma_commit_group();
    wgmma_wait_group();
  }
  float* mine = out + (blockIdx.x * size_t{kTensorBlock} + threadIdx.x) * kTensorOutputs;
#pragma unroll
  for (int i = 0; i < kTensorOutputs; ++i) mine[i] = d[i];
#endif
}

inline int tensor_pairs(const Case& c) { return 4 * iterations(c, 8); }

template <class Type>
Implementation tensor_at(const Case& c, const Device&) {
  const bool by_group = c["instruction"] == wgmma;
  const auto two_per_sm = [](const Case&, const Device& device, const void*) {
    return LaunchPlan{.grid = unsigned(2 * device.sms), .block = kTensorBlock};
  };
  const auto expected = [by_group](size_t i) {
    const int output = int(i % kTensorOutputs);
    const int thread = int(i / kTensorOutputs % kTensorBlock);
    const int row = (by_group ? thread / 32 % 4 * 16 : 0) + thread % 32 / 4 + output / 2 % 2 * 8;
    const int column = output / 4 * 8 + thread % 4 * 2 + output % 2;
    int sum = 0;
    for (int k = 0; k < Type::kDepth; ++k) sum += a_at<Type>(row, k) * b_at<Type>(k, column);
    return float(sum);
  };
  return verified(by_group ? tensor_by_group<Type> : tensor_by_warp<Type>, two_per_sm,
                  out_and<float>(tensor_pairs(c)), [=](const Roof& r) {
                    return compare<float>(r, r.launched * kTensorOutputs, expected);
                  });
}

template <class Type>
Work tensor_work(const Case& c, const Device& device) {
  const double warps = 2. * device.sms * kTensorBlock / 32;  // each has 16 rows of the result
  return {.flops = (2. * tensor_pairs(c) + 1) * warps * 2 * 16 * kColumns * Type::kDepth};
}

inline std::string no_wgmma(const Case& c, const Device& device) {
  if (c["instruction"] != wgmma) return "";
  if (device.compute_capability != 90) return "wgmma is Hopper's";
  return kBuiltForHopper ? "" : "not built for architecture 90a";
}

}  // namespace ladders::roof
