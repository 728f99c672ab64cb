// SPDX-License-Identifier: MIT
//
// Where a table can lie. All threads of a block construct it together, then read entries from it.
#pragma once

#include <cooperative_groups.h>

#include "common/mbarrier.cuh"
#include "lookup/problem.cuh"

namespace ladders::lookup {
constexpr unsigned kThreads = 1024;  // per block that stages a table

struct InCaches {
  const unsigned* table;
  __device__ explicit InCaches(const Lookups& l) : table(l.table) {}
  __device__ __forceinline__ unsigned operator[](unsigned i) const { return __ldg(table + i); }
};

// words[place(i)] = read(i) for all i below `count`, with eight loads per thread in flight. One
// at a time, the loads of a table that fills shared memory would take as long as 2^24 lookups.
__device__ constexpr unsigned unmoved(unsigned i) { return i; }
template <unsigned (*place)(unsigned) = unmoved, class Read>
__device__ __forceinline__ void stage(unsigned* words, unsigned count, Read read) {
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

// Swizzling XORs the lane with bits 5 to 9 and 10 to 14 of the entry. If a warp's entries are 32,
// 64, 128, ... or 1024 apart, at most two of them lie in one bank.
template <bool kSwizzled>
struct InSharedMemory {
  unsigned* words;

  static constexpr unsigned words_of(unsigned entries) { return ceil_div(entries, 32u) * 32; }
  __host__ __device__ static constexpr unsigned place(unsigned entry) {
    return kSwizzled ? entry ^ ((entry >> 5 ^ entry >> 10) & 31) : entry;
  }
  __device__ explicit InSharedMemory(const Lookups& l) : words(dynamic_shared<unsigned>()) {
    stage<place>(words, l.entries, [&](unsigned entry) { return __ldg(l.table + entry); });
    __syncthreads();
  }
  __device__ __forceinline__ unsigned operator[](unsigned i) const { return words[place(i)]; }
};

// Lane l reads copy l % kCopies. The copies of an entry lie next to each other: if there are 32,
// each lane has its own bank.
template <unsigned kCopies>
struct InCopies {
  const unsigned* own;  // the lane's copy of entry 0

  __host__ __device__ static constexpr unsigned words_of(unsigned n) { return n * kCopies; }
  __device__ explicit InCopies(const Lookups& l) {
    auto* words = dynamic_shared<unsigned>();
    stage(words, words_of(l.entries), [&](unsigned i) { return __ldg(l.table + i / kCopies); });
    __syncthreads();
    own = words + threadIdx.x % kCopies;
  }
  __device__ __forceinline__ unsigned operator[](unsigned i) const { return own[i * kCopies]; }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ inline auto this_cluster() { return cooperative_groups::this_cluster(); }
#else  // never launched
struct NoCluster {
  __device__ static unsigned block_rank() { return 0; }
  __device__ static void sync() {}
  __device__ static const unsigned* map_shared_rank(const unsigned* p, unsigned) { return p; }
};
__device__ inline NoCluster this_cluster() { return {}; }
#endif

// Blocks of a cluster take turns at runs of 8 entries, since skewed indices favour neighbours.
template <unsigned kBlocks>
struct InCluster {
  static constexpr unsigned kSectorWords = 8;
  unsigned* words;

  __host__ __device__ static constexpr unsigned words_of(unsigned entries) {
    return ceil_div(entries, kSectorWords * kBlocks) * kSectorWords;
  }
  __device__ explicit InCluster(const Lookups& l) : words(dynamic_shared<unsigned>()) {
    const unsigned rank = this_cluster().block_rank();
    stage(words, words_of(l.entries), [&](unsigned i) {
      const unsigned entry = (i / kSectorWords * kBlocks + rank) * kSectorWords + i % kSectorWords;
      return entry < l.entries ? __ldg(l.table + entry) : 0;
    });
    cluster_sync_shared();
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    const unsigned i = entry / (kSectorWords * kBlocks) * kSectorWords | entry % kSectorWords;
    return *this_cluster().map_shared_rank(words + i, entry / kSectorWords % kBlocks);
  }
  // Other blocks may still read this one's part, also for lanes that discard the value.
  __device__ void sync_before_exit() const { this_cluster().sync(); }
};

// One entry per lane, in a register. Whole warps look up together.
struct InRegisters {
  static constexpr unsigned kEntries = 32;
  unsigned mine;

  static constexpr unsigned words_of(unsigned) { return 0; }
  __device__ explicit InRegisters(const Lookups& l) {
    const unsigned lane = threadIdx.x % 32;
    mine = lane < l.entries ? __ldg(l.table + lane) : 0;
  }
  __device__ __forceinline__ unsigned operator[](unsigned entry) const {
    return __shfl_sync(0xFFFFFFFF, mine, int(entry));
  }
};

// Words of shared memory for a table, in whole rows of banks; the kernel needs a few for itself.
inline int64_t max_entries(const Device& device) {
  return (int64_t(device.shared_bytes_per_block) - 128) / 128 * 32;
}

inline std::string at_most(int64_t fitting, const Case& c) {
  if (c["entries"] <= fitting) return "";
  return "does not fit: " + std::to_string(fitting) + " entries at most";
}

template <int64_t blocks>
std::string too_large_for(const Case& c, const Device& device) {
  return at_most(blocks * max_entries(device), c);
}

}  // namespace ladders::lookup
