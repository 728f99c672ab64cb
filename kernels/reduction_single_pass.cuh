// SPDX-License-Identifier: MIT
//
// One launch without atomics on the result: blocks leave their sums, one of them adds these up, in
// the order of the blocks whoever came first. So sums of floats have the same bits in every run.
// Nothing is to be zeroed before: what a launch needs to find at zero the one before has left so.
//
// And they are closer to the exact sum than the order of summation lets FP32 come: only the
// elements that a thread has in flight are added as floats, in a tree, all sums above that as FP64.
#pragma once

#include <cooperative_groups.h>

#ifndef __CUDACC__
#include <sched.h>
#endif

#include "reduction_textbook.cuh"
#include "tma.cuh"
#include "vector.cuh"

namespace ladders {
namespace {

// ---- A block's sum ------------------------------------------------------------------------------

// In thread 0. Only one use of it between two barriers.
template <int kThreads, class Wide>
__device__ __forceinline__ Wide block_sum(Wide sum) {
  constexpr int kWarps = kThreads / 32;
  __shared__ Wide warps[kWarps];
  sum = fold_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < kWarps ? warps[threadIdx.x] : Wide{};
#pragma unroll
    for (int offset = kWarps / 2; offset > 0; offset /= 2)
      sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  }
  return sum;
}

// The last block to come adds up what all have left.
template <int kThreads, class Op>
__device__ __forceinline__ void finish_last(typename Op::Wide sum, Slot<typename Op::Wide>* slots,
                                            unsigned* ticket, typename Op::Result* result) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    slots[blockIdx.x].sum = sum;
    __threadfence();
    // Goes back to zero after the last.
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) sum += __ldcg(&slots[i].sum);
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) *result = static_cast<typename Op::Result>(sum);
}

// `vectorized` with another end.
template <class Op>
__global__ void last_block(const typename Op::Value* __restrict__ in, size_t count,
                           Slot<typename Op::Wide>* slots, unsigned* ticket,
                           typename Op::Result* result) {
  const auto sum = strided_sum<Op, typename Op::Wide>(in, count);
  finish_last<kThreads, Op>(block_sum<kThreads>(sum), slots, ticket, result);
}

// ---- A share for each block ---------------------------------------------------------------------

// Tiles of a block's size are dealt out block after block for so many rounds; what is left is cut
// into as many neighbouring chunks as there are blocks, none larger than a tile. So no block has
// more than 128 bytes more than another, and what is in flight lies close together in memory.
struct Division {
  size_t vectors, chunk;  // of four elements
  unsigned rounds, blocks;
};
inline Division divide(size_t count, size_t tile, unsigned blocks) {
  const size_t vectors = count / 4, rounds = vectors / (tile * blocks);
  const size_t left = vectors - rounds * tile * blocks;
  return {.vectors = vectors,
          .chunk = ceil_div<size_t>(ceil_div<size_t>(left, blocks), 8) * 8,
          .rounds = static_cast<unsigned>(rounds),
          .blocks = blocks};
}

// The block's chunk, after its tiles.
struct Chunk {
  size_t first, end;
};
__device__ __forceinline__ Chunk chunk_of(const Division& d, size_t tile) {
  const size_t first = d.rounds * tile * d.blocks + blockIdx.x * d.chunk;
  return {.first = first, .end = min(first + d.chunk, d.vectors)};
}

// The elements after the last whole vector are the first block's.
template <class Op>
__device__ __forceinline__ typename Op::Wide odd_element(const typename Op::Value* in, size_t count,
                                                         const Division& d) {
  const size_t i = 4 * d.vectors + threadIdx.x;
  return blockIdx.x == 0 && i < count ? Op::map(in[i]) : 0;
}

// Four elements, and `kFlight` times as many: trees.
template <class Op>
__device__ __forceinline__ auto sum_of_four(const typename Op::Vector& v) {
  using Term = typename Op::Term;
  return (Op::map(Term(v.x)) + Op::map(Term(v.y))) + (Op::map(Term(v.z)) + Op::map(Term(v.w)));
}
template <class Op, int kFlight>
__device__ __forceinline__ typename Op::Wide sum_of_flight(
    const typename Op::Vector (&v)[kFlight]) {
  decltype(sum_of_four<Op>(v[0])) sums[kFlight];
#pragma unroll
  for (int j = 0; j < kFlight; ++j) sums[j] = sum_of_four<Op>(v[j]);
#pragma unroll
  for (int half = kFlight / 2; half > 0; half /= 2)
#pragma unroll
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

// A thread's part of the block's share: kFlight loads are under way before the first is added.
template <class Op, int kThreads, int kFlight>
__device__ __forceinline__ typename Op::Wide share_sum(const typename Op::Value* in, size_t count,
                                                       const Division& d) {
  using Vector = typename Op::Vector;
  constexpr size_t kTile = size_t{kThreads} * kFlight;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  typename Op::Wide sum = odd_element<Op>(in, count, d);
  const Vector* mine = wide + blockIdx.x * kTile + threadIdx.x;
  for (unsigned round = 0; round < d.rounds; ++round, mine += d.blocks * kTile) {
    Vector v[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) v[j] = load_once(mine + j * kThreads);
    sum += sum_of_flight<Op>(v);
  }
  const auto [first, end] = chunk_of(d, kTile);
  const size_t i = first + threadIdx.x;
  if (first < end) {  // alike for all threads, as a branch of each would keep its loads waiting
    Vector v[kFlight] = {};
#pragma unroll
    for (int j = 0; j < kFlight; ++j)
      if (i + j * kThreads < end) v[j] = load_once(wide + i + j * kThreads);
    sum += sum_of_flight<Op>(v);
  }
  return sum;
}

template <class Op, int kThreads, int kFlight>
__global__ void __launch_bounds__(kThreads)
    in_flight(const typename Op::Value* __restrict__ in, size_t count, Division division,
              Slot<typename Op::Wide>* slots, unsigned* ticket, typename Op::Result* result) {
  const auto sum = share_sum<Op, kThreads, kFlight>(in, count, division);
  finish_last<kThreads, Op>(block_sum<kThreads>(sum), slots, ticket, result);
}

// Few elements: one block, all of whose loads are under way at once. Little code, since that comes
// from DRAM as well.
template <class Op, int kThreads, int kFlight>
__global__ void __launch_bounds__(kThreads) one_block(const typename Op::Value* __restrict__ in,
                                                      unsigned count, typename Op::Result* result) {
  using Vector = typename Op::Vector;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const unsigned vectors = count / 4, odd = 4 * vectors + threadIdx.x;
  Vector v[kFlight] = {};
#pragma unroll
  for (int j = 0; j < kFlight; ++j)
    if (threadIdx.x + j * kThreads < vectors) v[j] = load_once(wide + threadIdx.x + j * kThreads);
#ifdef __CUDACC__
  // The compiler would convert each where it is loaded, and wait for it.
#pragma unroll
  for (Vector& loaded : v)
    for (unsigned& word : reinterpret_cast<unsigned (&)[4]>(loaded)) asm volatile("" : "+r"(word));
#endif
  typename Op::Wide sum = odd < count ? Op::map(in[odd]) : 0;
  sum = block_sum<kThreads>(sum + sum_of_flight<Op>(v));
  if (threadIdx.x == 0) *result = static_cast<typename Op::Result>(sum);
}

// ---- Flags --------------------------------------------------------------------------------------
// A slot is written and read as one word of 16 bytes, which tells by itself that the sum in it is
// there: no fence before it, no atomic after.

#ifndef __CUDACC__
// Emulated: how often a word is looked at before it is there is chance, and not to be counted. Once
// a million looks in a row were in vain, the emulator is left to find out, and tell, that no word
// comes any more.
LADDERS_NOT_COUNTED inline void wait_a_while(const unsigned long long* flag) {
  static thread_local int in_vain = 0;
  for (; !__atomic_load_n(flag, __ATOMIC_ACQUIRE); sched_yield())
    if (in_vain == 1'000'000 || ++in_vain == 1'000'000) return;
  if (in_vain < 1'000'000) in_vain = 0;
}
#endif

template <class Wide>
__device__ __forceinline__ void put(Slot<Wide>* slot, const Slot<Wide>& value) {
#ifdef __CUDACC__
#ifdef __CUDA_ARCH__
  asm volatile(
      "{\n"
      ".reg .b128 word;\n"
      "mov.b128 word, {%1, %2};\n"
      "st.relaxed.gpu.global.b128 [%0], word;\n"
      "}" ::"l"(slot),
      "l"(__builtin_bit_cast(unsigned long long, value.sum)), "l"(value.there)
      : "memory");
#endif
#else  // emulated: in two halves, in order
  slot->sum = value.sum;
  __atomic_store_n(&slot->there, value.there, __ATOMIC_RELEASE);
#endif
}

template <class Wide>
__device__ __forceinline__ Slot<Wide> get(const Slot<Wide>* slot) {
#ifdef __CUDACC__
  unsigned long long sum = 0, there = 0;
#ifdef __CUDA_ARCH__
  asm volatile(
      "{\n"
      ".reg .b128 word;\n"
      "ld.relaxed.gpu.global.b128 word, [%2];\n"
      "mov.b128 {%0, %1}, word;\n"
      "}"
      : "=l"(sum), "=l"(there)
      : "l"(slot)
      : "memory");
#endif
  return {.sum = __builtin_bit_cast(Wide, sum), .there = there};
#else
  wait_a_while(&slot->there);
  const unsigned long long there = __atomic_load_n(&slot->there, __ATOMIC_ACQUIRE);
  return {.sum = there ? slot->sum : Wide{}, .there = there};
#endif
}

// What a block will store to or look at is asked for before its own share: it may have left the L2,
// and its page the TLB.
template <int kThreads, class Wide, class Result>
__device__ __forceinline__ void ask_for([[maybe_unused]] const Slot<Wide>* slots,
                                        [[maybe_unused]] unsigned index,
                                        [[maybe_unused]] unsigned count,
                                        [[maybe_unused]] const Result* result) {
#ifdef __CUDA_ARCH__
  const auto prefetch = [](const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); };
  if (index + 1 == count) {
    for (unsigned i = threadIdx.x; i + 1 < count; i += kThreads) prefetch(slots + i);
    if (threadIdx.x == 0) prefetch(result);
  } else if (threadIdx.x == 0) {
    prefetch(slots + index);
  }
#endif
}

// The last of `count` blocks waits for the sums of the others. It is the only one that waits, so
// these get through in whatever order blocks start, as long as a second one has room. `sum` counts
// in thread 0.
//
// Each lane may look until its own words are there, or, by a vote, the warp until all of its are.
// Lanes that go on looking apart from their warp notice the last word late: by 0.1 to 0.7 us on an
// H200, of 2^20 to 2^24 elements.
template <int kThreads, bool kVote, class Op>
__device__ __forceinline__ void finish_flagged(typename Op::Wide sum, unsigned index,
                                               unsigned count, Slot<typename Op::Wide>* slots,
                                               typename Op::Result* result) {
  using Wide = typename Op::Wide;
  if (index + 1 < count) {
    if (threadIdx.x == 0) put(slots + index, {.sum = sum, .there = 1});
    return;
  }
  if (count > 1) {
    __syncthreads();  // block_sum() again
    if (threadIdx.x != 0) sum = 0;
    constexpr unsigned kAtOnce = 2;
    const unsigned lane = threadIdx.x % 32;
    for (unsigned i = threadIdx.x; i - lane + 1 < count; i += kAtOnce * kThreads) {
      const auto waits_for = [&](unsigned j) { return i + j * kThreads + 1 < count; };
      Slot<Wide> slot[kAtOnce];
      bool there;
      do {
        there = true;
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j)
          slot[j] = waits_for(j) ? get(slots + i + j * kThreads) : Slot<Wide>{.sum = 0, .there = 1};
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j) there &= slot[j].there != 0;
      } while (kVote ? !__all_sync(0xFFFFFFFF, there) : !there);
#pragma unroll
      for (unsigned j = 0; j < kAtOnce; ++j) {
        if (waits_for(j)) put(slots + i + j * kThreads, {});  // for the next launch
        sum += slot[j].sum;
      }
    }
    sum = block_sum<kThreads>(sum);
  }
  if (threadIdx.x == 0) *result = static_cast<typename Op::Result>(sum);
}

template <class Op, int kThreads, int kFlight, bool kVote>
__global__ void __launch_bounds__(kThreads)
    flagged(const typename Op::Value* __restrict__ in, size_t count, Division division,
            Slot<typename Op::Wide>* slots, typename Op::Result* result) {
  ask_for<kThreads>(slots, blockIdx.x, gridDim.x, result);
  const auto sum = block_sum<kThreads>(share_sum<Op, kThreads, kFlight>(in, count, division));
  finish_flagged<kThreads, kVote, Op>(sum, blockIdx.x, gridDim.x, slots, result);
}

// ---- Clusters -----------------------------------------------------------------------------------

constexpr unsigned kCluster = 8;

// Every warp stores its sum to the first block of its cluster, over the network between SMs, where
// an mbarrier counts the bytes that have come: only that block waits. Several clusters go on as
// blocks do above.
template <class Op, int kThreads, int kFlight>
__global__ void __launch_bounds__(kThreads)
    cluster_fold(const typename Op::Value* __restrict__ in, size_t count, Division division,
                 Slot<typename Op::Wide>* slots, typename Op::Result* result) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  using Wide = typename Op::Wide;
  constexpr unsigned kWarps = kThreads / 32, kSums = kCluster * kWarps;
  __shared__ Wide sums[kSums];
  [[maybe_unused]] __shared__ MBarrier full;
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned rank = cluster.block_rank();
  const unsigned index = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
  // Memory of a block that has not started is nobody's to write, nor its mbarrier to arrive at: a
  // barrier of the cluster that is only waited for after the loads.
#ifdef __CUDA_ARCH__
  if (rank == 0 && threadIdx.x == 0) {
    initialize(full, 1);
    publish_barriers();
  }
  asm volatile("barrier.cluster.arrive;" ::: "memory");
#else
  cluster.sync();
#endif
  if (rank == 0) ask_for<kThreads>(slots, index, clusters, result);
  Wide sum = fold_warp(share_sum<Op, kThreads, kFlight>(in, count, division));
  Wide* mine = &sums[rank * kWarps + threadIdx.x / 32];
#ifdef __CUDA_ARCH__
  asm volatile("barrier.cluster.wait;" ::: "memory");
  if (rank == 0 && threadIdx.x == 0) arrive_expecting(full, kSums * sizeof(Wide));
  if (threadIdx.x % 32 == 0) store_to_block(mine, sum, full, 0);
#else
  if (threadIdx.x % 32 == 0) *cluster.map_shared_rank(mine, 0) = sum;
  cluster.sync();
#endif
  if (rank != 0) return;
  if (threadIdx.x < 32) {
    wait_for_cluster(full, 0);
    sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kSums; i += 32) sum += sums[i + threadIdx.x];
    sum = fold_warp(sum);
  }
  finish_flagged<kThreads, true, Op>(sum, index, clusters, slots, result);
#endif
}

}  // namespace
}  // namespace ladders
