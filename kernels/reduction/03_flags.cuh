// SPDX-License-Identifier: MIT
//
// Each block stores its sum and a flag as one word of 16 bytes: no fence, no atomic.
#pragma once

#include "common/flags.cuh"
#include "reduction/02_last_block.cuh"

namespace ladders::reduction {
// Each block prefetches the slots that it will store to or poll, before it loads its share.
template <int kThreads>
__device__ __forceinline__ void prefetch_slots(const auto* slots, unsigned index, unsigned count,
                                               const void* result) {
  if (index + 1 == count) {
    for (unsigned i = threadIdx.x; i + 1 < count; i += kThreads) prefetch(slots + i);
    if (threadIdx.x == 0) prefetch(result);
  } else if (threadIdx.x == 0) {
    prefetch(slots + index);
  }
}

// The block with the highest index polls the sums of the others, two per thread at a time. No other
// block waits, so blocks may start in any order, if two can be resident. Lanes stop polling one by
// one or, with a vote, all together: if they diverge, the warp notices the last word late.
template <int kThreads, bool kVote, class Op>
__device__ __forceinline__ void finish_flagged(Wide<Op> sum, unsigned index, unsigned count,
                                               Slot<Op>* slots, Result<Op>* result) {
  if (index + 1 < count) {
    if (threadIdx.x == 0) store_relaxed(slots + index, {.sum = sum, .ready = 1});
    return;
  }
  if (count > 1) {
    __syncthreads();  // sum_of_block() uses its shared memory again
    if (threadIdx.x != 0) sum = 0;
    constexpr unsigned kAtOnce = 2;
    const unsigned lane = threadIdx.x % 32;
    for (unsigned i = threadIdx.x; i - lane + 1 < count; i += kAtOnce * kThreads) {
      const auto waits_for = [&](unsigned j) { return i + j * kThreads + 1 < count; };
      Slot<Op> slot[kAtOnce];
      bool ready;
      do {
        ready = true;
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j) {
          const Slot<Op>* const from = slots + i + j * kThreads;
          if (waits_for(j)) wait_uncounted(&from->ready, 1);
          slot[j] = waits_for(j) ? load_relaxed(from) : Slot<Op>{.sum = 0, .ready = 1};
        }
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j) ready &= slot[j].ready != 0;
      } while (kVote ? !__all_sync(0xFFFFFFFF, ready) : !ready);
#pragma unroll
      for (unsigned j = 0; j < kAtOnce; ++j) {
        if (waits_for(j)) store_relaxed(slots + i + j * kThreads, {});  // for the next launch
        sum += slot[j].sum;
      }
    }
    sum = sum_of_block<kThreads>(sum);
  }
  if (threadIdx.x == 0) *result = static_cast<Result<Op>>(sum);
}

// The bounds allow 64 registers per thread: enough for all loads of a chunk at once.
template <class Op, int kThreads, int kLoads, bool kVote>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    flagged(const Value<Op>* __restrict__ in, size_t count, Division division, Slot<Op>* slots,
            Result<Op>* result) {
  prefetch_slots<kThreads>(slots, blockIdx.x, gridDim.x, result);
  const auto sum = sum_of_block<kThreads>(part_sum<Op, kThreads, kLoads>(in, count, division));
  finish_flagged<kThreads, kVote, Op>(sum, blockIdx.x, gridDim.x, slots, result);
}

// The arguments of all kernels with flags.
template <class Op, size_t tile>
auto flag_arguments(Reduction<Op>& p, const LaunchPlan& plan) {
  return p.arguments(divide(p.count(), tile, plan.grid.x), p.slots());
}

template <class Op, int threads, int loads, bool vote = true>
Implementation flagged_with(GridRule rule) {
  return kernel<Reduction<Op>>(flagged<Op, threads, loads, vote>,
                               even_blocks({.block = threads}, rule),
                               flag_arguments<Op, threads * loads>);
}

// The same without the exchange: blocks leave their sums in their slots, the first in the result.
template <class Op, int kThreads, int kLoads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    partial_sums(const Value<Op>* __restrict__ in, size_t count, Division division, Slot<Op>* slots,
                 Result<Op>* result) {
  const auto sum = sum_of_block<kThreads>(part_sum<Op, kThreads, kLoads>(in, count, division));
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0)
    *result = static_cast<Result<Op>>(sum);
  else
    slots[blockIdx.x].sum = sum;
}

template <class Op, int threads, int loads>
Implementation partial_sums_with(GridRule rule) {
  using P = Reduction<Op>;
  Implementation sums =
      checked<P>(kernel<P>(partial_sums<Op, threads, loads>, even_blocks({.block = threads}, rule),
                           flag_arguments<Op, threads * loads>),
                 [](const P& problem) { return problem.compare_with_slots(); });
  sums.fill = [](Problem& problem) { static_cast<P&>(problem).clear_slots(); };
  return sums;
}

// One block, with all its loads in flight. Its code is short, since instructions must first come
// from DRAM.
constexpr int kFewInFlight = 4;
constexpr int64_t kMostOfOneBlock = 4 * kFewInFlight * 1024;

template <class Op, int kThreads, int kLoads>
__global__ void __launch_bounds__(kThreads)
    one_block(const Value<Op>* __restrict__ in, unsigned count, Result<Op>* result) {
  using Vector = typename Op::Vector;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const unsigned vectors = count / 4, odd = 4 * vectors + threadIdx.x;
  Vector v[kLoads] = {};
#pragma unroll
  for (int j = 0; j < kLoads; ++j)
    if (threadIdx.x + j * kThreads < vectors) v[j] = load_once(wide + threadIdx.x + j * kThreads);
  keep_loads_together(v);
  Wide<Op> sum = odd < count ? Op::map(in[odd]) : 0;
  sum = sum_of_block<kThreads>(sum + sum_of_vectors<Op>(v));
  if (threadIdx.x == 0) *result = static_cast<Result<Op>>(sum);
}

template <class Op, int threads>
Implementation in_one_block() {
  return kernel<Reduction<Op>>(
      one_block<Op, threads, kFewInFlight>,
      [](const Case&, const Device&, const void*) { return LaunchPlan{.block = threads}; });
}
template <class Op>
Implementation one_block_at(const Case& c, const Device&) {
  return c["elements"] > kMostOfOneBlock / 4 ? in_one_block<Op, 1024>() : in_one_block<Op, 256>();
}

}  // namespace ladders::reduction
