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
// For a table that nobody has to bring: each thread has two loads on their way, then eight lookups.

constexpr unsigned kTileThreads = 256, kTileVectors = 2;

template <class Table>
__global__ void __launch_bounds__(kTileThreads) look_up_tile(const Lookups l) {
  const Table table(l);
  const Vectors vectors(l);
  const size_t first = blockIdx.x * size_t{kTileThreads * kTileVectors} + threadIdx.x;
  int4 index[kTileVectors];
  uint4 values[kTileVectors];
#pragma unroll
  for (unsigned j = 0; j < kTileVectors; ++j) index[j] = vectors.load(first + j * kTileThreads);
#pragma unroll
  for (unsigned j = 0; j < kTileVectors; ++j) values[j] = look_up(table, index[j]);
#pragma unroll
  for (unsigned j = 0; j < kTileVectors; ++j) vectors.store(first + j * kTileThreads, values[j]);
  look_up_rest(table, l);
}

// ---- Blocks that stay ---------------------------------------------------------------------------
// Staging is paid for once a block: there is one an SM, and its warps take chunks in turn. With
// four loads a thread 64 KiB are on their way to an SM, four times what it reads in a us of
// copying. Chunks go round the blocks first, so that no block has more than one of them more than
// another.

constexpr unsigned kWarps = kThreads / 32, kVectors = 4, kChunk = 32 * kVectors;

// Where they are loaded ahead, a chunk's indices come while those of the chunk before are looked
// up, and the first ones while the table is staged.
template <class Table, bool kAhead>
__global__ void __launch_bounds__(kThreads, 1) look_up_chunks(const Lookups l) {
  const Vectors vectors(l);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t step = size_t{gridDim.x} * kWarps * kChunk;
  size_t first = (size_t{warp} * gridDim.x + blockIdx.x) * kChunk;
  int4 loaded[kVectors];
  const auto load = [&](size_t chunk) {
#pragma unroll
    for (unsigned j = 0; j < kVectors; ++j) loaded[j] = vectors.load(chunk + 32 * j + lane);
  };
  if (kAhead) load(first);
  const Table table(l);
  for (; first < vectors.count; first += step) {
    if (!kAhead) load(first);
#pragma unroll
    for (unsigned j = 0; j < kVectors; ++j) {
      const size_t i = first + 32 * j + lane;
      const int4 index = loaded[j];
      if (kAhead) loaded[j] = vectors.load(i + step);
      vectors.store(i, look_up(table, index));
    }
  }
  look_up_rest(table, l);
  if constexpr (requires { table.leave(); }) table.leave();
}

}  // namespace
}  // namespace ladders
