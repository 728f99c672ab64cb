// SPDX-License-Identifier: MIT
//
// How fast numbers are multiplied and added: FP32 and tensor cores.
#pragma once

#include <bit>

#include "roof.cuh"
#include "tensor_cores.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// Independent chains of multiply-adds in each thread: no memory, and none waits for the one before.
// x = b - x alternates between two numbers of full mantissas: it stays finite, and the multipliers
// toggle, as a constant's would not. Each thread starts elsewhere, or the compiler for Blackwell
// would do the work once a warp, on the uniform datapath.
constexpr float kFactor = -1.0f, kTerm = 1.2345678f;
template <int kChains>
__global__ void fma(float* out, int iterations, float a, float b) {
  float x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
#pragma unroll 8
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int kChains>
Verdict check_fma(const Roof& roof) {
  std::vector<float> expected(kBlock);
  for (unsigned thread = 0; thread < kBlock; ++thread)
    for (unsigned c = 0; c < kChains; ++c) {
      float x = static_cast<float>(thread + c);
      for (int i = 0; i < roof.iterations; ++i) x = std::fma(x, kFactor, kTerm);
      expected[thread] += x;
    }
  const std::vector<unsigned> sums = to_host(roof.out.data(), size_t(roof.blocks) * kBlock);
  if (sums.empty()) return kNothingRan;
  for (size_t i = 0; i < sums.size(); ++i)
    if (const float sum = std::bit_cast<float>(sums[i]); sum != expected[i % kBlock])
      return {.wrong = std::to_string(sum) + " instead of " + std::to_string(expected[i % kBlock]) +
                       " in thread " + std::to_string(i)};
  return {};
}

Implementation fma_at(const Case& c) {
  return pick<8, 16>(c["chains"], [](auto chains) {
    return checked(kernel<Roof>(fma<chains()>, blocks_per_sm,
                                [](Roof& r, const LaunchPlan& plan) {
                                  r.blocks = static_cast<int>(plan.grid.x);
                                  return std::tuple(reinterpret_cast<float*>(r.out.data()),
                                                    r.iterations, kFactor, kTerm);
                                }),
                   check_fma<chains()>);
  });
}

// Tensor cores: A B added and taken away in turn, so that the sums stay exact and the result, after
// an odd number of times, is A B. The operands are random integers that leave no bit of the sums
// out: zeros would draw less power, and run faster than anything real.
template <class Type>
__host__ __device__ int operand(unsigned i) {
  constexpr int kBits = Type::kBytes == 2 ? 7 : 9;
  return static_cast<int>(random_bits(i) >> (31 - kBits)) - (1 << kBits);
}
template <class Type>
__host__ __device__ int a_at(int row, int k) {
  return operand<Type>(row * Type::kDepth + k);
}
template <class Type>
__host__ __device__ int b_at(int k, int column) {
  return operand<Type>(4096 + column * Type::kDepth + k);
}

// What a lane holds in register `i` of a fragment: 4 bytes, as many neighbours in k as fit there.
template <class Type, class At>
__device__ uint32_t fragment(int k, At at) {
  if constexpr (Type::kBytes == 4)
    return encode<Type>(static_cast<float>(at(k)));
  else
    return encode<Type>(static_cast<float>(at(2 * k))) |
           encode<Type>(static_cast<float>(at(2 * k + 1))) << 16;
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

// Sixteen tiles of 8 columns a warp: as many independent accumulators.
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
    multiply_warp<Type>(d[tile], a, b[tile]);
  }
#pragma unroll 1
  for (int i = 0; i < pairs; ++i) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) multiply_warp<Type>(d[tile], minus_a, b[tile]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) multiply_warp<Type>(d[tile], a, b[tile]);
  }
  float* mine = out + (blockIdx.x * size_t{kTensorBlock} + threadIdx.x) * kTensorOutputs;
#pragma unroll
  for (int i = 0; i < kTensorOutputs; ++i) mine[i] = d[i / 4][i % 4];
}

// B in shared memory as wgmma takes it without swizzling: cores of 8 columns by 16 bytes of k, two
// of them deep.
constexpr int kCore = 128, kColumns = 128;
template <class Type>
__global__ void __launch_bounds__(kTensorBlock, 2) tensor_by_group(float* out, int pairs) {
  __shared__ __align__(128) unsigned char b[kColumns / 8 * 2 * kCore];
  for (int i = threadIdx.x; i < kColumns * 8; i += blockDim.x) {  // words of 4 bytes
    const int column = i / 8, word = i % 8;
    auto* at = reinterpret_cast<uint32_t*>(b + column / 8 * 2 * kCore + word / 4 * kCore +
                                           column % 8 * 16 + word % 4 * 4);
    *at = fragment<Type>(word, [=](int k) { return b_at<Type>(k, column); });
  }
  show_to_copies();
  __syncthreads();
  uint32_t a[4];
  load_a<Type>(a, threadIdx.x / 32 % 4 * 16);
  uint64_t descriptor = 0;
#ifdef __CUDA_ARCH__
  descriptor = (__cvta_generic_to_shared(b) & 0x3FFFF) >> 4 | uint64_t{kCore >> 4} << 16 |
               uint64_t{2 * kCore >> 4} << 32;
#endif
  float d[kTensorOutputs] = {};
  wgmma_fence();
  multiply_warp_group<Type, 1>(d, a, descriptor);
  wgmma_commit();
  wgmma_wait();
  for (int i = 0; i < pairs; i += 4) {
    wgmma_fence();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      multiply_warp_group<Type, -1>(d, a, descriptor);
      multiply_warp_group<Type, 1>(d, a, descriptor);
    }
    wgmma_commit();
    wgmma_wait();
  }
  float* mine = out + (blockIdx.x * size_t{kTensorBlock} + threadIdx.x) * kTensorOutputs;
#pragma unroll
  for (int i = 0; i < kTensorOutputs; ++i) mine[i] = d[i];
}

enum Instruction { mma, wgmma };
const std::vector<Sweep> kTensorSweeps = {
    {.axis = {"instruction", {"mma", "wgmma"}}, .measured = {mma, wgmma}, .tested = {mma, wgmma}}};

int tensor_pairs(double iterations) { return std::max(4, static_cast<int>(iterations) / 8 * 4); }

LaunchPlan tensor_blocks(const Case&, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(2 * device.sms), .block = kTensorBlock};
}

template <class Type>
Verdict check_tensor(const Roof& roof) {
  if (roof.blocks == 0) return kNothingRan;
  const size_t blocks = roof.blocks;
  const std::vector<unsigned> d = to_host(roof.out.data(), blocks * kTensorBlock * kTensorOutputs);
  const bool by_group = roof.sums > 0;
  for (size_t i = 0; i < d.size(); ++i) {
    const int output = static_cast<int>(i % kTensorOutputs);
    const int thread = static_cast<int>(i / kTensorOutputs % kTensorBlock), lane = thread % 32;
    const int row = (by_group ? thread / 32 % 4 * 16 : 0) + lane / 4 + output / 2 % 2 * 8;
    const int column = output / 4 * 8 + lane % 4 * 2 + output % 2;
    int expected = 0;
    for (int k = 0; k < Type::kDepth; ++k) expected += a_at<Type>(row, k) * b_at<Type>(k, column);
    if (std::bit_cast<float>(d[i]) != static_cast<float>(expected))
      return {.wrong = "row " + std::to_string(row) + ", column " + std::to_string(column)};
  }
  return {};
}

template <class Type>
Implementation tensor_at(const Case& c) {
  const bool by_group = c["instruction"] == wgmma;
  return checked(
      kernel<Roof>(by_group ? tensor_by_group<Type> : tensor_by_warp<Type>, tensor_blocks,
                   [by_group](Roof& r, const LaunchPlan& plan) {
                     r.blocks = static_cast<int>(plan.grid.x);
                     r.sums = by_group;
                     return std::tuple(reinterpret_cast<float*>(r.out.data()),
                                       tensor_pairs(r.iterations));
                   }),
      check_tensor<Type>);
}

template <class Type>
Work tensor_work(const Case& c, const Device& device) {
  // A tile a warp of 16 rows, a fourth of a group's 64.
  const double warps = 2. * device.sms * kTensorBlock / 32;
  return {.flops =
              (2. * tensor_pairs(iterations(c)) + 1) * warps * 2 * 16 * kColumns * Type::kDepth};
}

std::string no_wgmma(const Case& c, const Device& device) {
  if (c["instruction"] != wgmma) return "";
  if (device.compute_capability != 90) return "wgmma is Hopper's";
  return kBuiltForHopper ? "" : "not built for architecture 90a";
}

}  // namespace
}  // namespace ladders
