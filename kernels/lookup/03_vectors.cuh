// SPDX-License-Identifier: MIT
//
// Four lookups at a time, in vectors of 16 bytes, wherever the table is.
#pragma once

#include "common/vector.cuh"
#include "lookup/01_elements.cuh"
#include "lookup/02_tables.cuh"

namespace ladders::lookup {
__device__ __forceinline__ uint4 look_up(const auto& table, int4 index) {
  return {table[index.x], table[index.y], table[index.z], table[index.w]};
}

// Vectors of indices and values. Indices beyond the last read as 0, a valid entry.
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

// One warp does the last lookups, which fill no vector.
__device__ __forceinline__ void look_up_tail(const auto& table, const Lookups& l) {
  if (blockIdx.x != 0 || threadIdx.x >= 32) return;
  const size_t i = l.count / 4 * 4 + threadIdx.x;
  const unsigned value = table[i < l.count ? l.index[i] : 0];
  if (i < l.count) l.out[i] = value;
}

// For tables that need no staging. Small blocks keep accesses in flight close together in memory.
constexpr unsigned kTileThreads = 128;

template <class Table>
__global__ void __launch_bounds__(kTileThreads) look_up_tile(const Lookups l) {
  const Table table(l);
  const Vectors vectors(l);
  const size_t i = blockIdx.x * size_t{kTileThreads} + threadIdx.x;
  vectors.store(i, look_up(table, vectors.load(i)));
  look_up_tail(table, l);
}

template <class Table>
Implementation in_tiles() {
  return kernel<Lookup>(look_up_tile<Table>, one_block_per_tile<kTileThreads, 4 * kTileThreads>);
}

constexpr unsigned kVectorsPerThread = 4, kTileVectors = kVectorsPerThread * kThreads;
constexpr unsigned kTileLookups = 4 * kTileVectors;

// One resident block per SM stages the table once and does many tiles: every gridDim.x-th one, or,
// if dynamic, the next free one. At the start of a tile, a block draws the ticket of the tile after
// the next, to hide the latency of the atomic.
template <class Table, bool kDynamic>
__global__ void __launch_bounds__(kThreads, 1) look_up_tiles(const Lookups l) {
  __shared__ unsigned next[2];
  const Vectors vectors(l);
  const auto tiles = unsigned(ceil_div(vectors.count, kTileVectors));
  const auto take = [&] { return gridDim.x + atomicInc(l.ticket, gridDim.x + tiles - 1); };
  if (kDynamic && threadIdx.x == 0) next[0] = take();
  const Table table(l);
  if (kDynamic) __syncthreads();
  unsigned tile = blockIdx.x;
  for (unsigned turn = 0; tile < tiles; ++turn) {
    unsigned after_next = 0;
    if (kDynamic && threadIdx.x == 0) after_next = take();
    const size_t first = size_t{tile} * kTileVectors + threadIdx.x;
    int4 index[kVectorsPerThread];
#pragma unroll
    for (unsigned j = 0; j < kVectorsPerThread; ++j) index[j] = vectors.load(first + j * kThreads);
#pragma unroll
    for (unsigned j = 0; j < kVectorsPerThread; ++j)
      vectors.store(first + j * kThreads, look_up(table, index[j]));
    if (kDynamic) {
      tile = next[turn % 2];
      if (threadIdx.x == 0) next[(turn + 1) % 2] = after_next;
      __syncthreads();
    } else {
      tile += gridDim.x;
    }
  }
  look_up_tail(table, l);
  if constexpr (requires { table.sync_before_exit(); }) table.sync_before_exit();
}

// At most one block per SM, all of them resident, and no more clusters than the lookups need.
template <class Table, bool dynamic = true, unsigned cluster = 1>
Implementation staged() {
  return kernel<Lookup>(
      look_up_tiles<Table, dynamic>, [](const Case& c, const Device& device, const void* kernel) {
        const size_t words = Table::words_of(unsigned(c["entries"]));
        LaunchPlan plan = {.block = kThreads, .shared_bytes = 4 * words, .cluster = cluster};
        plan = fill_device(plan, kernel, device);
        const int64_t enough = ceil_div(c["lookups"], kTileLookups * cluster) * cluster;
        const unsigned one_per_sm = std::max(unsigned(device.sms) / cluster, 1u) * cluster;
        plan.grid.x = unsigned(std::min<int64_t>({plan.grid.x, one_per_sm, enough}));
        return plan;
      });
}

inline Implementation in_copies(const Case& c, const Device& device) {
  const int64_t copies = max_entries(device) / c["entries"];
  if (copies >= 32) return staged<InCopies<32>>();
  if (copies >= 16) return staged<InCopies<16>>();
  if (copies >= 8) return staged<InCopies<8>>();
  if (copies >= 4) return staged<InCopies<4>>();
  return staged<InCopies<2>>();
}

// As few blocks as have room: more lookups stay in their own block.
inline Implementation in_clusters(const Case& c, const Device& device) {
  const int64_t blocks = ceil_div(c["entries"], max_entries(device));
  if (blocks <= 2) return staged<InCluster<2>, true, 2>();
  if (blocks <= 4) return staged<InCluster<4>, true, 4>();
  if (blocks <= 8) return staged<InCluster<8>, true, 8>();
  return staged<InCluster<16>, true, 16>();
}

}  // namespace ladders::lookup
