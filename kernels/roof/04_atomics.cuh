// SPDX-License-Identifier: MIT
//
// The rate of additions to words in shared and in global memory.
//
// The addresses depend on a mask that the compiler does not know: if all lanes add to an address
// that it knows, it sums in the warp first. If the result of an increment in shared memory is not
// used, the increment is an instruction of its own, which first counts the lanes of each address.
// To measure other additions, the addend is a parameter, which the compiler does not know to be 1.
#pragma once

#include "roof/problem.cuh"

namespace ladders::roof {
enum Pattern { same, spread, scattered };

__device__ inline unsigned mix(unsigned i) {
  i *= 0x9E3779B1u;
  return i ^ i >> 15;
}

constexpr unsigned kSharedWords = 4096, kSpreadMask = (1 << 20) - 1;
constexpr unsigned kAddend = 3;
constexpr int kAddresses = 4;  // per thread, computed once, so that the loop only adds
template <bool kIncrement>
__global__ void shared_atomics(unsigned* out, int iterations, unsigned mask, unsigned addend) {
  __shared__ unsigned words[kSharedWords];
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) words[i] = 0;
  __syncthreads();
  unsigned at[kAddresses];
#pragma unroll
  for (int j = 0; j < kAddresses; ++j) at[j] = (threadIdx.x + j * kBlock) & mask;
#pragma unroll 4
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (const unsigned word : at) atomicAdd(&words[word], kIncrement ? 1u : addend);
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) sum += words[i];
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
}

inline __global__ void global_atomics(unsigned* words, int iterations, unsigned mask,
                                      bool anywhere) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int i = 0; i < iterations; ++i) {
    const unsigned at = thread + i * all;
    atomicAdd(&words[(anywhere ? mix(at) : at) & mask], 1u);
  }
}

// Blocks add to the others in their cluster: a warp to neighbouring words of each block in turn,
// or each lane anywhere. All clusters share the rounds.
inline __global__ void distributed_atomics(unsigned* out, unsigned rounds, bool anywhere) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // clusters
  __shared__ unsigned words[kSharedWords];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) words[i] = 0;
  cluster.sync();
  unsigned turn = 0;  // distance to the next block
  for (unsigned i = blockIdx.x / blocks; i < rounds; i += gridDim.x / blocks) {
    turn = turn + 1 < blocks ? turn + 1 : 1;
#pragma unroll
    for (int j = 0; j < kAddresses; ++j) {
      const unsigned at = (i * kAddresses + j) * kBlock + threadIdx.x, hash = mix(at);
      const unsigned away = anywhere ? 1 + (hash >> 16) % (blocks - 1) : turn;
      const unsigned other = rank + away < blocks ? rank + away : rank + away - blocks;
      unsigned* word = &words[(anywhere ? hash : at) & (kSharedWords - 1)];
      atomicAdd(cluster.map_shared_rank(word, other), 1u);
    }
  }
  cluster.sync();  // no block may end while others add to its memory
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) sum += words[i];
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
#endif
}

// A roof of count(case, device) additions per launch, implemented by make(case, their number).
template <class Count, class Make>
Rung additions(std::string name, std::string idea, Sweep sweep, Count count, Make make) {
  return {.name = std::move(name),
          .idea = std::move(idea),
          .sweeps = {std::move(sweep)},
          .choose = [=](const Case& c,
                        const Device& device) { return make(c, size_t(count(c, device))); },
          .work =
              [=](const Case& c, const Device& device) {
                const double atomics = count(c, device);
                return Work{.bytes_written = 4 * atomics, .atomics = atomics};
              }};
}

inline Rung to_shared(std::string name, std::string idea, bool increment, Pattern pattern) {
  const auto rounds = [=](const Case& c) {  // fewer where lanes queue
    return iterations(c, pattern == same && !increment ? 16 : 2);
  };
  const auto count = [=](const Case& c, const Device& device) {
    return threads(c, device) * kAddresses * rounds(c);
  };
  return additions(name, idea, kBlocksSweep, count, [=](const Case& c, size_t all) {
    const unsigned mask = pattern == same ? 0 : kSharedWords - 1;
    const uint32_t sum = all * (increment ? 1 : kAddend);
    return verified(increment ? shared_atomics<true> : shared_atomics<false>, blocks_per_sm<>,
                    out_and(rounds(c), mask, kAddend),
                    [=](const Roof& r) { return compare_sum(r, r.launched, sum); });
  });
}

inline Rung to_cluster(std::string name, std::string idea, Pattern pattern) {
  const auto count = [](const Case& c, const Device& device) {
    return double(c["cluster"]) * kBlock * kAddresses * cluster_rounds(c, device, 128);
  };
  Rung rung = additions(name, idea, kClusterSweep, count, [=](const Case& c, size_t all) {
    const auto arguments = [=](Roof& r) {
      return std::tuple(r.out.data(), cluster_rounds(c, r.device(), 128), pattern == scattered);
    };
    return verified(distributed_atomics, clusters(), arguments,
                    [=](const Roof& r) { return compare_sum(r, r.launched, uint32_t(all)); });
  });
  rung.needs = kClusters;
  return rung;
}

inline Rung to_global(std::string name, std::string idea, Pattern pattern) {
  // Enough to hide the launch, and fewer where all lanes queue for one word.
  const auto rounds = [=](const Case& c) { return iterations(c, pattern == same ? 512 : 8); };
  const auto count = [=](const Case& c, const Device& device) {
    return threads(c, device) * rounds(c);
  };
  return additions(name, idea, kBlocksSweep, count, [=](const Case& c, size_t all) {
    const unsigned mask = pattern == same ? 0 : kSpreadMask;
    const uint32_t sum = all - mask - 1;  // each word was poisoned with -1
    Implementation result =
        verified(global_atomics, blocks_per_sm<>, out_and(rounds(c), mask, pattern == scattered),
                 [=](const Roof& r) { return compare_sum(r, size_t{mask} + 1, sum); });
    result.not_idempotent = true;
    return result;
  });
}

}  // namespace ladders::roof
