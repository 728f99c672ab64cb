// SPDX-License-Identifier: MIT
//
// Barriers in shared memory, which count the arrivals of threads and of copies, from compute
// capability 8.0 on; to count bytes and arrivals from other blocks of a cluster they need 9.0.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#ifndef __CUDACC__
#include <emulator/bulk_copies.hpp>
#endif

namespace ladders {
#ifdef __CUDACC__
/// The address in shared memory, as PTX takes it.
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return uint32_t(__cvta_generic_to_shared(p));
}

#define LADDERS_SHARED(p) "r"(shared_address(p))

/// A phase ends once the arrivals and bytes that it expects are there. Its parity alternates.
struct MBarrier {
  uint64_t state;
};

__device__ __forceinline__ void mbarrier_init(MBarrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::LADDERS_SHARED(&barrier), "r"(arrivals));
}

/// After the initializations, for bulk copies and other blocks of the cluster to see them.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(MBarrier& barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::LADDERS_SHARED(&barrier) : "memory");
}

/// Arrives once all asynchronous copies (cp.async) of this thread have completed.
__device__ __forceinline__ void cp_async_arrive_noinc(MBarrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::LADDERS_SHARED(&barrier)
               : "memory");
}

/// Arrives, and lets the phase wait for `bytes` more.
__device__ __forceinline__ void arrive_expect_tx(MBarrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::LADDERS_SHARED(&barrier),
               "r"(bytes)
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define LADDERS_WAIT "try_wait"  // sleeps for a while in hardware
#else
#define LADDERS_WAIT "test_wait"
#endif

#define LADDERS_WAIT_BY(instruction)                    \
  asm volatile(                                         \
      "{ .reg .pred done;\n"                            \
      "again: mbarrier." instruction                    \
      " done, [%0], %1;\n"                              \
      "@!done bra again; }" ::LADDERS_SHARED(&barrier), \
      "r"(parity)                                       \
      : "memory")

/// Waits until the phase of this parity is over.
__device__ __forceinline__ void wait(MBarrier& barrier, uint32_t parity) {
  LADDERS_WAIT_BY(LADDERS_WAIT ".parity.shared.b64");
}

/// The same if other blocks of the cluster store what this thread then reads.
__device__ __forceinline__ void wait_acquire_cluster(MBarrier& barrier, uint32_t parity) {
  LADDERS_WAIT_BY("try_wait.parity.acquire.cluster.shared::cta.b64");
}

/// As wait(), in a loop that the compiler sees: it moves later code before the branch.
__device__ __forceinline__ void poll(MBarrier& barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{ .reg .pred done;\n"
        "mbarrier." LADDERS_WAIT
        ".parity.shared.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done; }"
        : "=r"(done)
        : LADDERS_SHARED(&barrier), "r"(parity)
        : "memory");
  } while (!done);
}
#undef LADDERS_WAIT
#undef LADDERS_WAIT_BY

/// Arrives at the barrier that is `barrier` in a block of the cluster, which may be this one.
__device__ __forceinline__ void arrive_remote(MBarrier& barrier, int block) {
  asm volatile(
      "{ .reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::LADDERS_SHARED(&barrier),
      "r"(block)
      : "memory");
}

/// Stores 8 bytes to `to` in a block of the cluster, which arrive at `barrier` there.
template <class T>
__device__ __forceinline__ void st_async(T* to, T value, MBarrier& barrier, int block) {
  static_assert(sizeof(T) == 8);
  asm volatile(
      "{ .reg .b32 there, counted;\n"
      "mapa.shared::cluster.u32 there, %0, %3;\n"
      "mapa.shared::cluster.u32 counted, %1, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %2, [counted]; }" ::
          LADDERS_SHARED(to),
      LADDERS_SHARED(&barrier), "l"(__builtin_bit_cast(uint64_t, value)), "r"(block)
      : "memory");
}

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return int(rank);
}

/// Waits until all threads of the cluster are here. It orders no memory, except that barriers which
/// were initialized before fence_mbarrier_init() are visible.
__device__ __forceinline__ void cluster_sync_relaxed() {
#if __CUDA_ARCH__ >= 900
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::
                   : "memory");
#endif
}

/// The same in two steps, so that a thread can work between its arrival and its wait.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

/// As cluster_group::sync(), but for shared memory alone: from CUDA 12.8 on it does not wait for
/// stores to global memory, which takes half a microsecond. Afterwards threads may load what blocks
/// have stored in their own shared memory. Values loaded from other blocks must have been used
/// before, since the fence does not wait for such loads.
__device__ __forceinline__ void cluster_sync_shared() {
#if __CUDA_ARCH__ >= 900
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8)
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
#else
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
  cluster_sync_relaxed();
#endif
}
#else  // the emulator's own, so that it names the kernel's lines
using emulator::arrive, emulator::cp_async_arrive_noinc, emulator::arrive_remote,
    emulator::arrive_expect_tx, emulator::mbarrier_init, emulator::MBarrier,
    emulator::fence_mbarrier_init, emulator::st_async, emulator::cluster_sync_shared,
    emulator::wait, emulator::wait_acquire_cluster, emulator::cluster_sync_relaxed,
    emulator::cluster_arrive_relaxed, emulator::cluster_wait;
#endif

}  // namespace ladders
