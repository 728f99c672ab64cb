// SPDX-License-Identifier: MIT
//
// One launch without atomics on the result: each block stores its sum, and the last block adds
// these up in order, so sums of floats have the same bits in every run. Each launch resets what the
// next one uses. Sums of floats are FP64, except those within a vector and, in later rungs, within
// all vectors that a thread has in flight: these are a tree of FP32 additions.
#pragma once

#include "common/vector.cuh"
#include "reduction/01_textbook.cuh"

namespace ladders::reduction {
template <int kThreads, class Op>
__device__ __forceinline__ void finish_last(Wide<Op> sum, Slot<Op>* slots, unsigned* ticket,
                                            Result<Op>* result) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    slots[blockIdx.x].sum = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;  // resets it, too
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) sum += __ldcg(&slots[i].sum);
  sum = sum_of_block<kThreads>(sum);
  if (threadIdx.x == 0) *result = static_cast<Result<Op>>(sum);
}

template <class Op>
__global__ void last_block(const Value<Op>* __restrict__ in, size_t count, Slot<Op>* slots,
                           unsigned* ticket, Result<Op>* result) {
  const auto sum = strided_sum<Op, Wide<Op>>(in, count);
  finish_last<kTextbookThreads, Op>(sum_of_block<kTextbookThreads>(sum), slots, ticket, result);
}

template <class Op>
Implementation with_last_block() {
  return kernel<Reduction<Op>>(
      last_block<Op>,
      [](const Case& c, const Device& device, const void* kernel) {
        LaunchPlan plan = resident<16>(c, device, kernel);
        // At least one block: without elements it stores a zero.
        plan.grid.x = std::clamp(plan.grid.x, 1u, kMostSlots);
        return plan;
      },
      [](Reduction<Op>& p) { return p.arguments(p.slots(), p.ticket()); });
}

// In each round every block takes one tile, next to those of its neighbours: what is in flight lies
// close together in memory. The rest is divided into chunks of whole 128-byte lines. No share is
// more than 128 bytes above the mean; the last blocks may get less.
struct Division {
  size_t vectors, chunk;  // in vectors of four elements
  unsigned rounds, blocks;
};
inline Division divide(size_t count, size_t tile, unsigned blocks) {
  const size_t vectors = count / 4, rounds = vectors / (tile * blocks);
  const size_t left = vectors - rounds * tile * blocks;
  const size_t chunk = ceil_div(ceil_div(left, blocks), 8) * 8;
  return {vectors, chunk, unsigned(rounds), blocks};
}

// The block's chunk, after its tiles.
struct Chunk {
  size_t first, end;
};
__device__ __forceinline__ Chunk chunk_of(const Division& d, size_t tile) {
  const size_t first = d.rounds * tile * d.blocks + blockIdx.x * d.chunk;
  return {.first = first, .end = min(first + d.chunk, d.vectors)};
}

// The elements after the last whole vector go to the first block.
template <class Op>
__device__ __forceinline__ Wide<Op> odd_one(const Value<Op>* in, size_t count, const Division& d) {
  const size_t i = 4 * d.vectors + threadIdx.x;
  return blockIdx.x == 0 && i < count ? Op::map(in[i]) : 0;
}

// A tree, as within a vector.
template <class Op, int kLoads>
__device__ __forceinline__ Wide<Op> sum_of_vectors(const typename Op::Vector (&v)[kLoads]) {
  decltype(sum_of_four<Op>(v[0])) sums[kLoads];
#pragma unroll
  for (int j = 0; j < kLoads; ++j) sums[j] = sum_of_four<Op>(v[j]);
#pragma unroll
  for (int half = kLoads / 2; half > 0; half /= 2)
#pragma unroll
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

// Keeps loads together: otherwise the compiler converts a vector as soon as it is loaded, and so
// waits for each in turn.
template <class Vector, int kLoads>
__device__ __forceinline__ void keep_loads_together([[maybe_unused]] Vector (&v)[kLoads]) {
#ifdef __CUDACC__
#pragma unroll
  for (Vector& loaded : v)
    for (unsigned& word : reinterpret_cast<unsigned (&)[4]>(loaded)) asm volatile("" : "+r"(word));
#endif
}

// A thread's part of the block's share, with kLoads loads in flight.
template <class Op, int kThreads, int kLoads>
__device__ __forceinline__ Wide<Op> part_sum(const Value<Op>* in, size_t count, const Division& d) {
  using Vector = typename Op::Vector;
  constexpr size_t kTile = size_t{kThreads} * kLoads;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  Wide<Op> sum = odd_one<Op>(in, count, d);
  const Vector* mine = wide + blockIdx.x * kTile + threadIdx.x;
  for (unsigned round = 0; round < d.rounds; ++round, mine += d.blocks * kTile) {
    Vector v[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; ++j) v[j] = load_once(mine + j * kThreads);
    sum += sum_of_vectors<Op>(v);
  }
  const auto [first, end] = chunk_of(d, kTile);
  const size_t i = first + threadIdx.x;
  if (first < end) {  // uniform: divergent branches would serialize the loads
    Vector v[kLoads] = {};
#pragma unroll
    for (int j = 0; j < kLoads; ++j)
      if (i + j * kThreads < end) v[j] = load_once(wide + i + j * kThreads);
    keep_loads_together(v);
    sum += sum_of_vectors<Op>(v);
  }
  return sum;
}

template <class Op, int kThreads, int kLoads>
__global__ void __launch_bounds__(kThreads)
    in_flight(const Value<Op>* __restrict__ in, size_t count, Division division, Slot<Op>* slots,
              unsigned* ticket, Result<Op>* result) {
  const auto sum = part_sum<Op, kThreads, kLoads>(in, count, division);
  finish_last<kThreads, Op>(sum_of_block<kThreads>(sum), slots, ticket, result);
}

// The size of a grid whose blocks share the work evenly.
struct GridRule {
  unsigned loads_per_thread;  // at least
  unsigned blocks_per_sm;     // at most; 0 for as many as are resident
  bool equal_loads = false;   // fewer blocks, with nearly equal numbers of loads
};
constexpr GridRule kResident = {.loads_per_thread = 2, .blocks_per_sm = 0};

inline auto even_blocks(LaunchPlan plan, GridRule rule) {
  return [=](const Case& c, const Device& device, const void* kernel) {
    LaunchPlan filled = plan;
    const unsigned most = rule.blocks_per_sm ? std::min(rule.blocks_per_sm * device.sms, kMostSlots)
                                             : fill_device(plan, kernel, device).grid.x;
    const auto tiles = ceil_div(c["elements"] / 4, int64_t{plan.block.x} * rule.loads_per_thread);
    const int64_t rounds = rule.equal_loads ? std::max<int64_t>(ceil_div(tiles, most), 1) : 1;
    const auto grid = unsigned(std::clamp<int64_t>(ceil_div(tiles, rounds), 1, most));
    filled.grid = ceil_div(grid, plan.cluster) * plan.cluster;
    return filled;
  };
}

template <class Op, int threads, int loads>
Implementation in_flight_with(GridRule rule) {
  return kernel<Reduction<Op>>(in_flight<Op, threads, loads>, even_blocks({.block = threads}, rule),
                               [](Reduction<Op>& p, const LaunchPlan& plan) {
                                 const Division division =
                                     divide(p.count(), threads * loads, plan.grid.x);
                                 return p.arguments(division, p.slots(), p.ticket());
                               });
}

}  // namespace ladders::reduction
