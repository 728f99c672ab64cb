// SPDX-License-Identifier: MIT
//
// Bulk copies: bytes in flight take shared memory instead of registers.
#pragma once

#include "common/ring.cuh"
#include "common/tma.cuh"
#include "reduction/03_flags.cuh"

namespace ladders::reduction {
// A ring of `stages`, each with kVectors vectors per thread. A block's share comes in pieces: its
// tiles and its chunk. Warps take turns to refill stages. A warp refills a stage one piece after it
// has read it: by then it seldom has to wait for others to read the stage.
template <class Op, int kThreads, int kVectors, int stages>
__global__ void __launch_bounds__(kThreads, 1)
    bulk_ring(const Value<Op>* __restrict__ in, size_t count, Division division, Slot<Op>* slots,
              Result<Op>* result) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using Vector = typename Op::Vector;
  constexpr unsigned kTile = kThreads * kVectors;
  __shared__ MBarrier barriers[2 * stages];
  MBarrier *full = in_register(barriers), *empty = full + stages;
  auto* ring = in_register(dynamic_shared<Vector>());
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const auto [first, end] = chunk_of(division, kTile);
  const unsigned left = first < end ? unsigned(end - first) : 0;
  const unsigned rounds = division.rounds, pieces = rounds + (left > 0);
  const auto fetch = [&](unsigned piece, int stage) {
    const bool tile = piece < rounds;
    const size_t from = tile ? (size_t{piece} * division.blocks + blockIdx.x) * kTile : first;
    const unsigned bytes = (tile ? kTile : left) * sizeof(Vector);
    arrive_expect_tx(full[stage], bytes);
    bulk_load_evict_first(ring + stage * kTile, wide + from, bytes, full[stage]);
  };
  if (threadIdx.x == 0) {
    Ring<stages>{full, empty}.initialize(1, kThreads);
    fence_mbarrier_init();
    for (unsigned piece = 0; piece < stages && piece < pieces; ++piece) fetch(piece, piece);
  }
  prefetch_slots<kThreads>(slots, blockIdx.x, gridDim.x, result);
  Wide<Op> sum = odd_one<Op>(in, count, division);
  __syncthreads();
  PipelineState<stages> state, before;
  for (unsigned piece = 0; piece < pieces; ++piece) {
    wait(full[state.stage], state.parity);
    const unsigned vectors = piece < rounds ? kTile : left;
    Vector v[kVectors];
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      const unsigned i = threadIdx.x + j * kThreads;
      v[j] = i < vectors ? ring[state.stage * kTile + i] : Vector{};
    }
    arrive(empty[state.stage]);
    if (threadIdx.x == piece * 32 % kThreads && piece > 0 && piece - 1 + stages < pieces) {
      wait(empty[before.stage], before.parity);
      fetch(piece - 1 + stages, before.stage);
    }
    sum += sum_of_vectors<Op>(v);
    before = state;
    state.next();
  }
  sum = sum_of_block<kThreads>(sum);
  finish_flagged<kThreads, true, Op>(sum, blockIdx.x, gridDim.x, slots, result);
#endif
}

constexpr int kRingThreads = 512, kRingVectors = 4, kRingStages = 6;
constexpr size_t kRingBytes = size_t{16} * kRingThreads * kRingVectors * kRingStages;
constexpr size_t kRingRoom = kRingBytes + 1024;  // plus barriers and the sums of warps

template <class Op>
Implementation in_a_ring() {
  return kernel<Reduction<Op>>(bulk_ring<Op, kRingThreads, kRingVectors, kRingStages>,
                               even_blocks({.block = kRingThreads, .shared_bytes = kRingBytes},
                                           {.loads_per_thread = 1, .blocks_per_sm = 1}),
                               flag_arguments<Op, kRingThreads * kRingVectors>);
}

}  // namespace ladders::reduction
