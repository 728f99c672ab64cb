// SPDX-License-Identifier: MIT
//
// What Hopper has for copies by hardware, and CUDA as PTX alone: barriers in shared memory
// (mbarrier), bulk copies (cp.async.bulk), boxes of tensors (cp.async.bulk.tensor), and stores to
// other blocks of a cluster (st.async).
#pragma once

#include "emulator/language.hpp"

/// What cuTensorMapEncodeTiled is told, the innermost of two or three dimensions first.
struct alignas(64) CUtensorMap_st {
  void* data;
  std::uint64_t sizes[3], strides[2];  ///< strides in bytes: of rows, of matrices
  unsigned box[3];
  unsigned element_bytes, dimensions;
  unsigned swizzle;  ///< 0, 64 or 128 bytes
};
using CUtensorMap = CUtensorMap_st;

namespace emulator {
/// Why hardware does not take such a map; null if it does.
const char* refusal(const CUtensorMap& map);

struct MBarrier {
  std::uint64_t state;
};
void mbarrier_init(MBarrier& barrier, int arrivals) EMULATOR_CONVERGENT;
void arrive(MBarrier& barrier) EMULATOR_CONVERGENT;
/// Once the asynchronous copies (cp.async) of this thread have arrived.
void cp_async_arrive_noinc(MBarrier& barrier) EMULATOR_CONVERGENT;
void arrive_expect_tx(MBarrier& barrier, int bytes) EMULATOR_CONVERGENT;
void arrive_remote(MBarrier& barrier, int block) EMULATOR_CONVERGENT;
/// Waits until the phase of this parity is over.
void wait(MBarrier& barrier, unsigned parity) EMULATOR_CONVERGENT;
inline constexpr auto wait_acquire_cluster = wait;

// Until all threads of the cluster are here: before the first access to another block's memory, or
// so that others see what blocks have stored in their own.
EMULATOR_INLINE void cluster_sync_relaxed() { cluster_barrier(Orders::nothing); }
EMULATOR_INLINE void cluster_arrive_relaxed() {}  // threads arrive when they wait
EMULATOR_INLINE void cluster_wait() { cluster_sync_relaxed(); }
EMULATOR_INLINE void cluster_sync_shared() { cluster_barrier(Orders::shared_memory); }

// To shared memory; the bytes arrive at the barrier.
void bulk_load(void* to, const void* from, unsigned bytes, MBarrier& barrier) EMULATOR_CONVERGENT;
inline constexpr auto bulk_load_evict_first = bulk_load;
void tma_load(void* to, const CUtensorMap& map, int row, int column,
              MBarrier& barrier) EMULATOR_CONVERGENT;
void tma_load(void* to, const CUtensorMap& map, int matrix, int row, int column,
              MBarrier& barrier) EMULATOR_CONVERGENT;
/// To the shared memory of a block of the cluster, as 8 bytes that arrive at its barrier.
void st_async_b64(void* to, std::uint64_t bits, MBarrier& barrier, int block) EMULATOR_CONVERGENT;

template <class T>
EMULATOR_INLINE void st_async(T* to, T value, MBarrier& barrier, int block) {
  static_assert(sizeof(T) == 8);
  st_async_b64(to, __builtin_bit_cast(std::uint64_t, value), barrier, block);
}

// To global memory, each a group of its own.
void bulk_store(void* to, const void* from, unsigned bytes) EMULATOR_CONVERGENT;
void tma_store(const CUtensorMap& map, int row, int column, const void* from) EMULATOR_CONVERGENT;
/// Waits until this thread's copies have read their source, or until they are complete.
void bulk_wait_group_read() EMULATOR_CONVERGENT;
void bulk_wait_group() EMULATOR_CONVERGENT;

// Fences. What happened before is visible to bulk copies that happen after: the initialisation of
// barriers, shared memory, or all memory.
void fence_mbarrier_init() EMULATOR_CONVERGENT;
void fence_proxy_async_shared() EMULATOR_CONVERGENT;
void fence_proxy_async() EMULATOR_CONVERGENT;
}  // namespace emulator
