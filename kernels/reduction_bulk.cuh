// SPDX-License-Identifier: MIT
//
// Shares fetched by bulk copies: bytes in flight are a matter of shared memory, not of threads and
// their registers.
#pragma once

#include "reduction_single_pass.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// A ring of `stages` of `flight` vectors a thread. A block's share comes in pieces, its tiles and
// its chunk. Once all threads have a stage in their registers it is asked for again, by warps in
// turn and a piece later, when nobody has to wait for that any more.
template <class Op, int kThreads, int flight, int stages>
__global__ void __launch_bounds__(kThreads, 1)
    bulk_ring(const typename Op::Value* __restrict__ in, size_t count, Division division,
              Slot<typename Op::Wide>* slots, typename Op::Result* result) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using Vector = typename Op::Vector;
  constexpr unsigned kTile = kThreads * flight;
  __shared__ MBarrier barriers[2 * stages];
  MBarrier *full = kept(barriers), *empty = full + stages;
  auto* ring = kept(dynamic_shared<Vector>());
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const auto [first, end] = chunk_of(division, kTile);
  const unsigned left = first < end ? static_cast<unsigned>(end - first) : 0;
  const unsigned rounds = division.rounds, pieces = rounds + (left > 0);
  const auto fetch = [&](unsigned piece, int stage) {
    const bool tile = piece < rounds;
    const size_t from = tile ? (size_t{piece} * division.blocks + blockIdx.x) * kTile : first;
    const unsigned bytes = (tile ? kTile : left) * sizeof(Vector);
    arrive_expecting(full[stage], bytes);
    copy_once(ring + stage * kTile, wide + from, bytes, full[stage]);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      initialize(full[s], 1);
      initialize(empty[s], kThreads);
    }
    publish_barriers();
    for (unsigned piece = 0; piece < stages && piece < pieces; ++piece) fetch(piece, piece);
  }
  ask_for<kThreads>(slots, blockIdx.x, gridDim.x, result);
  typename Op::Wide sum = odd_element<Op>(in, count, division);
  __syncthreads();
  int stage = 0, before = 0;
  uint32_t parity = 0, parity_before = 0;
  for (unsigned piece = 0; piece < pieces; ++piece) {
    wait(full[stage], parity);
    const unsigned vectors = piece < rounds ? kTile : left;
    Vector v[flight];
#pragma unroll
    for (int j = 0; j < flight; ++j) {
      const unsigned i = threadIdx.x + j * kThreads;
      v[j] = i < vectors ? ring[stage * kTile + i] : Vector{};
    }
    arrive(empty[stage]);
    if (threadIdx.x == piece * 32 % kThreads && piece > 0 && piece - 1 + stages < pieces) {
      wait(empty[before], parity_before);
      fetch(piece - 1 + stages, before);
    }
    sum += sum_of_flight<Op>(v);
    before = stage, parity_before = parity;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  sum = block_sum<kThreads>(sum);
  finish_flagged<kThreads, true, Op>(sum, blockIdx.x, gridDim.x, slots, result);
#endif
}

}  // namespace
}  // namespace ladders
