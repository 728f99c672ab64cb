// SPDX-License-Identifier: MIT
//
// Four lookups at a time: vectors of 16 bytes come in and go out, wherever the table is.
#pragma once

#include "lookup_tables.cuh"
#include "vector.cuh"

namespace ladders {
namespace {

template <class Table>
__device__ __forceinline__ uint4 look_up(const Table& table, int4 index) {
  return {table[index.x], table[index.y], table[index.z], table[index.w]};
}

// Vectors of indices and of values. Beyond the last index there is a 0, an entry like others.
struct Vectors {
  const int4* index;
  uint4* out;
  size_t count;

  __device__ explicit Vectors(const Lookups& l)
      : index(reinterpret_cast<const int4*>(l.index)),
        out(reinterpret_cast<uint4*>(l.out)),
        count(l.count / 4) {}
  __device__ __forceinline__ int4 load(size_t i) const {
    return i < count ? load_once(index + i) : int4{};
  }
  __device__ __forceinline__ void store(size_t i, uint4 values) const {
    if (i < count) __stcs(out + i, values);
  }
};

// The three lookups at most that fill no vector, by one warp.
template <class Table>
__device__ __forceinline__ void look_up_rest(const Table& table, const Lookups& l) {
  if (blockIdx.x != 0 || threadIdx.x >= 32) return;
  const size_t i = l.count / 4 * 4 + threadIdx.x;
  const unsigned value = table[i < l.count ? l.index[i] : 0];
  if (i < l.count) l.out[i] = value;
}

// ---- A block a tile -----------------------------------------------------------------------------
// For a table that nobody has to bring. Tiles are as small as blocks can be without there being too
// few threads an SM: the hardware deals them out in the order of memory, and what is on its way
// lies close together there. (Two vectors a thread and twice the threads: an H200 takes 4 %
// longer.)

constexpr unsigned kTileThreads = 128;

template <class Table>
__global__ void __launch_bounds__(kTileThreads) look_up_tile(const Lookups l) {
  const Table table(l);
  const Vectors vectors(l);
  const size_t i = blockIdx.x * size_t{kTileThreads} + threadIdx.x;
  vectors.store(i, look_up(table, vectors.load(i)));
  look_up_rest(table, l);
}

// ---- Blocks that stay ---------------------------------------------------------------------------
// Staging is paid for once a block: there is one an SM. With four loads a thread 64 KiB are on
// their way to an SM, four times what it reads in a us of copying.

constexpr unsigned kVectors = 4, kTile = kThreads * kVectors;

// Every n-th tile is a block's, or, where tiles are dynamic, the next that nobody has: a ticket for
// each tile, taken one tile ahead, and one for each block, which says that there are no more.
template <class Table, bool kDynamic>
__global__ void __launch_bounds__(kThreads, 1) look_up_tiles(const Lookups l) {
  __shared__ unsigned next[2];
  const Vectors vectors(l);
  const auto tiles = static_cast<unsigned>(ceil_div<size_t>(vectors.count, kTile));
  const auto take = [&] { return gridDim.x + atomicInc(l.ticket, gridDim.x + tiles - 1); };
  if (kDynamic && threadIdx.x == 0) next[0] = take();
  const Table table(l);
  if (kDynamic) __syncthreads();
  unsigned tile = blockIdx.x;
  for (unsigned turn = 0; tile < tiles; ++turn) {
    unsigned after_next = 0;
    if (kDynamic && threadIdx.x == 0) after_next = take();
    const size_t first = size_t{tile} * kTile + threadIdx.x;
    int4 index[kVectors];
#pragma unroll
    for (unsigned j = 0; j < kVectors; ++j) index[j] = vectors.load(first + j * kThreads);
#pragma unroll
    for (unsigned j = 0; j < kVectors; ++j)
      vectors.store(first + j * kThreads, look_up(table, index[j]));
    if (kDynamic) {
      tile = next[turn % 2];
      if (threadIdx.x == 0) next[(turn + 1) % 2] = after_next;
      __syncthreads();
    } else {
      tile += gridDim.x;
    }
  }
  look_up_rest(table, l);
  if constexpr (requires { table.leave(); }) table.leave();
}

}  // namespace
}  // namespace ladders
