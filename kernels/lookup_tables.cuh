// SPDX-License-Identifier: MIT
//
// Where a table can lie. Each is made by all threads of a block at once, and then gives entries.
#pragma once

#include <cooperative_groups.h>

#include "lookup_problem.cuh"

namespace ladders {
namespace {

constexpr unsigned kThreads = 1024;  // of a block that stages a table

// ---- Where nobody has to bring it ---------------------------------------------------------------

struct InCaches {
  const unsigned* table;
  __device__ explicit InCaches(const Lookups& l) : table(l.table) {}
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return __ldg(table + entry);
  }
};

// A launch copies the table here before its kernel.
constexpr unsigned kConstants = 16384;
__constant__ unsigned constant_table[kConstants];
struct InConstantMemory {
  __device__ explicit InConstantMemory(const Lookups&) {}
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return constant_table[entry];
  }
};

// ---- Shared memory ------------------------------------------------------------------------------

// words[place(i)] = read(i) for all i below `count`, with so many loads of a thread on their way at
// once: a table of all shared memory is 56 of them, and one after the other they would take as long
// as 2^24 lookups.
template <class Read, class Place>
__device__ __forceinline__ void stage(unsigned* words, unsigned count, Read read, Place place) {
  constexpr unsigned kLoads = 8;
  for (unsigned first = threadIdx.x; first < count; first += kLoads * kThreads) {
    unsigned value[kLoads] = {};
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j)
      if (first + j * kThreads < count) value[j] = read(first + j * kThreads);
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j)
      if (first + j * kThreads < count) words[place(first + j * kThreads)] = value[j];
  }
}

// 32 entries are a row of all banks. Where they are swizzled, the lane is XORed with digits of the
// row: entries 32, 64, ... or 1024 apart lie in different banks then.
template <bool kSwizzled>
struct InSharedMemory {
  unsigned* words;

  __host__ __device__ static constexpr unsigned words_of(unsigned entries) {
    return ceil_div(entries, 32u) * 32;
  }
  __host__ __device__ static constexpr unsigned place(unsigned entry) {
    return kSwizzled ? entry ^ ((entry >> 5 ^ entry >> 10) & 31) : entry;
  }
  __device__ explicit InSharedMemory(const Lookups& l) : words(dynamic_shared<unsigned>()) {
    stage(words, l.entries, [&](unsigned entry) { return __ldg(l.table + entry); }, place);
    __syncthreads();
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return words[place(entry)];
  }
};

// Copies of an entry lie next to each other, and a lane has its own: with 32 of them the bank is
// the lane's number, whatever the entry. The address is still a multiple and a sum.
template <unsigned kCopies>
struct InCopies {
  const unsigned* own;  // the lane's copy of entry 0

  __host__ __device__ static constexpr unsigned words_of(unsigned entries) {
    return entries * kCopies;
  }
  __device__ explicit InCopies(const Lookups& l) {
    auto* words = dynamic_shared<unsigned>();
    stage(
        words, words_of(l.entries), [&](unsigned i) { return __ldg(l.table + i / kCopies); },
        [](unsigned i) { return i; });
    __syncthreads();
    own = words + threadIdx.x % kCopies;
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return own[entry * kCopies];
  }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ inline auto this_cluster() { return cooperative_groups::this_cluster(); }
#else  // there are no clusters before, and nobody launches one
struct NoCluster {
  __device__ static unsigned block_rank() { return 0; }
  __device__ static const unsigned* map_shared_rank(const unsigned* p, unsigned) { return p; }
  __device__ static void sync() {}
};
__device__ inline NoCluster this_cluster() { return {}; }
#endif

// The shared memory of a cluster: sectors of 8 entries are dealt out to its blocks, so that
// neighbours, which skewed indices may all want, are not all in one block.
template <unsigned kBlocks>
struct InCluster {
  static constexpr unsigned kRun = 8;
  unsigned* words;

  // Of each block.
  __host__ __device__ static constexpr unsigned words_of(unsigned entries) {
    return ceil_div(entries, kRun * kBlocks) * kRun;
  }
  __device__ explicit InCluster(const Lookups& l) : words(dynamic_shared<unsigned>()) {
    const unsigned rank = this_cluster().block_rank();
    const auto read = [&](unsigned i) {
      const unsigned entry = (i / kRun * kBlocks + rank) * kRun + i % kRun;
      return entry < l.entries ? __ldg(l.table + entry) : 0;
    };
    stage(words, words_of(l.entries), read, [](unsigned i) { return i; });
    this_cluster().sync();
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    const unsigned i = entry / (kRun * kBlocks) * kRun | entry % kRun;
    return *this_cluster().map_shared_rank(words + i, entry / kRun % kBlocks);
  }
  // No block's part goes away while another still reads it.
  __device__ void leave() const { this_cluster().sync(); }
};

// ---- Registers ----------------------------------------------------------------------------------

// An entry a lane. Whole warps look up together.
struct InRegisters {
  static constexpr unsigned kEntries = 32;
  unsigned mine;

  __host__ __device__ static constexpr unsigned words_of(unsigned) { return 0; }
  __device__ explicit InRegisters(const Lookups& l) {
    const unsigned lane = threadIdx.x % 32;
    mine = lane < l.entries ? __ldg(l.table + lane) : 0;
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return __shfl_sync(0xFFFFFFFF, mine, static_cast<int>(entry));
  }
};

}  // namespace
}  // namespace ladders
