// SPDX-License-Identifier: MIT
//
// How fast words are added to, in shared and in global memory.
//
// Where to add is a matter of a mask, known when the kernel runs: all to one word, neighbours to
// neighbours, or anywhere. A known address would be added up in the warp first. An increment of
// shared memory whose result nobody wants is an instruction of its own, which counts the lanes of
// each address first: what all other additions cost takes an addend that is not known to be 1.
#pragma once

#include "roof.cuh"

namespace ladders {
namespace {

enum Pattern { same, spread, scattered };

__device__ unsigned mix(unsigned i) {
  i *= 0x9E3779B1u;
  return i ^ i >> 15;
}

constexpr unsigned kSharedWords = 4096, kSpreadMask = (1 << 20) - 1;
constexpr unsigned kAddend = 3;
constexpr int kAddresses = 4;  // of a thread: found once, so that nothing is left but adding
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

__global__ void global_atomics(unsigned* words, int iterations, unsigned mask, bool anywhere) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int i = 0; i < iterations; ++i) {
    const unsigned at = thread + i * all;
    atomicAdd(&words[(anywhere ? mix(at) : at) & mask], 1u);
  }
}

// Blocks of a cluster add to words of the others, over the SM-to-SM network: a warp to neighbouring
// words of one block after the other, or each lane anywhere. However many clusters there are, they
// share the rounds.
__global__ void distributed_atomics(unsigned* out, unsigned rounds, bool anywhere) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  __shared__ unsigned words[kSharedWords];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) words[i] = 0;
  cluster.sync();
  unsigned turn = 0;  // how far away the next block is
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
  cluster.sync();  // the memory of a block that has ended is nobody's to add to
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < kSharedWords; i += kBlock) sum += words[i];
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
#endif
}

const std::vector<Sweep> kClusterSweep = {
    {.axis = {"cluster"}, .measured = {2, 4, 8, 16}, .tested = {2, 3, 16}, .small = {2, 8}}};

LaunchPlan atomic_clusters(const Case& c, const Device& device, const void* kernel) {
  return fill_device({.block = kBlock, .cluster = static_cast<unsigned>(c["cluster"])}, kernel,
                     device);
}
unsigned atomic_rounds(const Case& c, int sms) {
  return remote_rounds(sms, static_cast<unsigned>(c["cluster"]), iterations(c) / 8);
}

// So many that the launch is a hundredth or two of the time; fewer where all queue for one word.
int global_iterations(double iterations, Pattern pattern) {
  return std::max(1, static_cast<int>(iterations) / (pattern == same ? 512 : 8));
}
constexpr bool queued(bool increment, Pattern pattern) { return !increment && pattern == same; }
int shared_iterations(double iterations, bool queued) {
  return std::max(1, static_cast<int>(iterations) / (queued ? 16 : 2));
}

Work atomics_work(const Case& c, const Device& device, int iterations) {
  const double atomics = threads(c, device) * iterations;
  return {.bytes_written = 4 * atomics, .atomics = atomics};
}
template <bool kIncrement, Pattern kPattern>
Work shared_atomics_work(const Case& c, const Device& device) {
  const int rounds = shared_iterations(iterations(c), queued(kIncrement, kPattern));
  return atomics_work(c, device, kAddresses * rounds);
}
template <Pattern kPattern>
Work global_atomics_work(const Case& c, const Device& device) {
  return atomics_work(c, device, global_iterations(iterations(c), kPattern));
}

double distributed_atomics_of(const Case& c, int sms) {
  return double(atomic_rounds(c, sms)) * double(c["cluster"]) * kBlock * kAddresses;
}
Work distributed_atomics_work(const Case& c, const Device& device) {
  const double atomics = distributed_atomics_of(c, device.sms);
  return {.bytes_written = 4 * atomics, .atomics = atomics};
}

// What all additions together must come to, modulo 2^32.
Verdict check_sum(const Roof& roof, size_t additions, unsigned addend, uint32_t sum) {
  if (roof.blocks == 0) return kNothingRan;
  const auto expected = static_cast<uint32_t>(additions * addend);
  if (sum == expected) return {};
  return {.wrong = std::to_string(sum) + " instead of " + std::to_string(expected)};
}
Verdict check_atomics(const Roof& roof, int iterations, unsigned addend, uint32_t sum) {
  return check_sum(roof, size_t(roof.blocks) * kBlock * iterations, addend, sum);
}
template <bool kIncrement, Pattern kPattern>
Verdict check_shared_atomics(const Roof& roof) {
  const int rounds = shared_iterations(roof.iterations, queued(kIncrement, kPattern));
  return check_atomics(roof, kAddresses * rounds, kIncrement ? 1 : kAddend,
                       sum_modulo(size_t(roof.blocks) * kBlock, Words{roof.out.data()}));
}
// Onto what poisoning left: -1 in each word.
template <Pattern kPattern>
Verdict check_global_atomics(const Roof& roof) {
  const unsigned* words = roof.out.data();
  const auto arrived = [=] __device__(size_t i) { return words[i] + 1; };
  const size_t count = size_t{kPattern == same ? 0 : kSpreadMask} + 1;
  return check_atomics(roof, global_iterations(roof.iterations, kPattern), 1,
                       sum_modulo(count, arrived));
}

template <bool kIncrement, Pattern kPattern>
Implementation shared_atomics_on() {
  return checked(kernel<Roof>(shared_atomics<kIncrement>, blocks_per_sm,
                              [](Roof& r, const LaunchPlan& plan) {
                                r.blocks = static_cast<int>(plan.grid.x);
                                return std::tuple(
                                    r.out.data(),
                                    shared_iterations(r.iterations, queued(kIncrement, kPattern)),
                                    kPattern == same ? 0 : kSharedWords - 1, kAddend);
                              }),
                 check_shared_atomics<kIncrement, kPattern>);
}
template <Pattern kPattern>
Implementation global_atomics_on() {
  Implementation adding = checked(
      kernel<Roof>(global_atomics, blocks_per_sm,
                   [](Roof& r, const LaunchPlan& plan) {
                     r.blocks = static_cast<int>(plan.grid.x);
                     return std::tuple(r.out.data(), global_iterations(r.iterations, kPattern),
                                       kPattern == same ? 0 : kSpreadMask, kPattern == scattered);
                   }),
      check_global_atomics<kPattern>);
  adding.adds = true;
  return adding;
}

template <Pattern kPattern>
Implementation distributed_atomics_at(const Case& c) {
  Implementation remote =
      kernel<Roof>(distributed_atomics, atomic_clusters, [c](Roof& r, const LaunchPlan& plan) {
        r.blocks = static_cast<int>(plan.grid.x);
        return std::tuple(r.out.data(), atomic_rounds(c, r.sms), kPattern == scattered);
      });
  remote.check = [c](const Problem& p) {
    const auto& roof = static_cast<const Roof&>(p);
    const auto additions = static_cast<size_t>(distributed_atomics_of(c, roof.sms));
    return check_sum(roof, additions, 1,
                     sum_modulo(size_t(roof.blocks) * kBlock, Words{roof.out.data()}));
  };
  return remote;
}

}  // namespace
}  // namespace ladders
