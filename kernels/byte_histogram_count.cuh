// SPDX-License-Identifier: MIT
//
// The kernels that read bytes at the speed of DRAM: no two lanes ever meet in a bank, loads are
// always under way, an address takes one instruction, and one launch is enough.
#pragma once

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <sched.h>
#endif

#include "byte_histogram_problem.cuh"
#include "vector.cuh"

namespace ladders {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32;

// ---- Keys, 16 at a time -------------------------------------------------------------------------

// Vectors that start on 16 bytes. The keys before the first and after the last, 30 at most, are
// loose.
struct Vectors {
  const uint4* first;
  size_t count, keys_before;

  __device__ Vectors(const Byte* keys, size_t all)
      : keys_before(min(all, -reinterpret_cast<size_t>(keys) % 16)) {
    first = reinterpret_cast<const uint4*>(keys + keys_before);
    count = (all - keys_before) / 16;
  }
};

// Each loose key is a thread's of the first block.
template <class Add>
__device__ __forceinline__ void count_loose(const Byte* keys, size_t all, const Vectors& vectors,
                                            Add add) {
  const size_t i = threadIdx.x + (threadIdx.x < vectors.keys_before ? 0 : 16 * vectors.count);
  if (blockIdx.x == 0 && i < all && threadIdx.x < 32) add(keys[i]);
}

// ---- Copies of the counters ---------------------------------------------------------------------

// A copy for each lane: a bin's copies are a row of all banks, each in the bank of its lane, so
// every increment of a warp is one wavefront, whatever the keys.
//
// With 64 copies, which two warps share out, bins are 256 bytes apart. If they start on 64 KiB the
// address of a counter is that of the copy with the key as its second byte: one permutation of
// bytes, where otherwise the byte is extracted, scaled and added.
template <int copies>
struct Copies {
  static_assert(copies == 32 || copies == 64);
  static constexpr bool kPermuted = copies == 64;
  static constexpr unsigned kBytes = kByteBins * copies * sizeof(unsigned);
  // Of dynamic shared memory, which may start anywhere.
  static constexpr unsigned kRoom = kPermuted ? 2 * kBytes : kBytes;

  unsigned* counters;
  unsigned* own;     // the thread's copy of bin 0
  unsigned address;  // where that is in shared memory

  __device__ __forceinline__ Copies() : counters(dynamic_shared<unsigned>()) {
#ifdef __CUDACC__
    const auto start = static_cast<unsigned>(__cvta_generic_to_shared(counters));
    if (kPermuted) counters += (-start & (kBytes - 1)) / sizeof(unsigned);
#endif
    own = counters + threadIdx.x % copies;
#ifdef __CUDACC__
    address = static_cast<unsigned>(__cvta_generic_to_shared(own));
    asm("" : "+r"(address));  // once, where the compiler would work it out for each vector
#endif
    auto* quads = reinterpret_cast<uint4*>(counters);
#pragma unroll
    for (unsigned i = 0; i < kBytes / 16; i += kThreads)
      quads[i + threadIdx.x] = make_uint4(0, 0, 0, 0);
    __syncthreads();
  }
  __device__ __forceinline__ void add(Byte key) { atomicAdd(own + key * copies, 1u); }
  template <int byte>
  __device__ __forceinline__ void add_byte(unsigned word) {
#ifdef __CUDACC__
    if constexpr (kPermuted) {
      asm volatile(
          "red.shared.add.u32 [%0], 1;" ::"r"(__byte_perm(word, address, 0x7604 | byte << 4))
          : "memory");
      return;
    }
#endif
    add(static_cast<Byte>(word >> 8 * byte));
  }
  __device__ __forceinline__ void add_vector(const uint4& v) {
    for (const unsigned word : {v.x, v.y, v.z, v.w}) {
      add_byte<0>(word);
      add_byte<1>(word);
      add_byte<2>(word);
      add_byte<3>(word);
    }
  }
  // Eight bins a warp, a sector of the output, are added in one request.
  __device__ __forceinline__ void merge_into(unsigned* bins) const {
    __syncthreads();
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (unsigned first = 8 * warp; first < kByteBins; first += 8 * kWarps) {
      unsigned mine = 0;
#pragma unroll
      for (unsigned b = 0; b < 8; ++b) {
        unsigned n = counters[(first + b) * copies + lane];
        if (copies == 64) n += counters[(first + b) * copies + 32 + lane];
        n = sum_of_warp(n);
        if (lane == b) mine = n;
      }
      if (mine != 0) atomicAdd(bins + first + lane, mine);  // in eight lanes at most
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    lane_copies(const Byte* __restrict__ keys, size_t count, unsigned* __restrict__ bins) {
  Copies<32> copies;
  const Vectors vectors(keys, count);
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < vectors.count; i += stride)
    copies.add_vector(vectors.first[i]);
  count_loose(keys, count, vectors, [&](Byte key) { copies.add(key); });
  copies.merge_into(bins);
}

// ---- One launch ---------------------------------------------------------------------------------

// A word that one thread sets, with release, and others look for, with acquire: quicker than
// fences.
#ifdef __CUDACC__
using Atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__device__ __forceinline__ void set(unsigned* word) {
  Atomic(*word).store(1, cuda::memory_order_release);
}
__device__ __forceinline__ bool is_set(unsigned* word) {
  return Atomic(*word).load(cuda::memory_order_acquire) != 0;
}
#else
inline void set(unsigned* word) { __atomic_store_n(word, 1, __ATOMIC_RELEASE); }
// Emulated: how often the word is looked at is chance, and not to be counted.
LADDERS_NOT_COUNTED inline bool is_set(unsigned* word) {
  while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) sched_yield();
  return true;
}
#endif

// The first block to come zeroes the bins; the others go on, and look only when they have counted.
// Nobody waits for a block that has not come yet.
__device__ __forceinline__ unsigned come(Meeting* meeting) {
  return threadIdx.x == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
}
__device__ __forceinline__ void zero_if_first(Meeting* meeting, unsigned came, unsigned* bins) {
  if (threadIdx.x >= 32 || __shfl_sync(~0u, came, 0) != 0) return;
  auto* quads = reinterpret_cast<uint4*>(bins);
#pragma unroll
  for (int i = 0; i < kByteBins / 4; i += 32) quads[i + threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (threadIdx.x == 0) set(&meeting->zeroed);
  __syncwarp();
}
// A warp looks as one, which is quicker than one lane that the others wait for.
__device__ __forceinline__ void wait_for_zeros(Meeting* meeting) {
  if (threadIdx.x < 32)
    while (!__all_sync(~0u, is_set(&meeting->zeroed))) {
    }
}
// After the wait. The last to leave makes ready for the next launch. The answer that tells which
// block that is comes while the bins are merged.
__device__ __forceinline__ unsigned leave(Meeting* meeting) {
  return threadIdx.x == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
}
__device__ __forceinline__ void make_ready_if_last(Meeting* meeting, unsigned left) {
  if (threadIdx.x == 0 && left == 2 * gridDim.x - 1) meeting->blocks = meeting->zeroed = 0;
}

// ---- Always reading -----------------------------------------------------------------------------

// A warp takes `loads` vectors a lane at a time; they are on their way while those before are
// counted, the first ones while the counters are set to zero.
template <int loads, int copies, bool zeroes>
__global__ void __launch_bounds__(kThreads, 1)
    always_reading(const Byte* keys, size_t count, unsigned* bins, Meeting* meeting) {
  constexpr unsigned kVectors = loads * 32;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Vectors vectors(keys, count);
  const auto chunks = static_cast<unsigned>(vectors.count / kVectors), step = gridDim.x * kWarps;
  unsigned chunk = warp * gridDim.x + blockIdx.x;
  uint4 loaded[loads] = {};
  if (chunk < chunks) {
    const uint4* from = vectors.first + size_t{chunk} * kVectors + lane;
#pragma unroll
    for (int j = 0; j < loads; ++j) loaded[j] = load_once(from + 32 * j);
  }
  unsigned came = 0;
  if constexpr (zeroes) came = come(meeting);
  Copies<copies> counters;
  if constexpr (zeroes) zero_if_first(meeting, came, bins);

  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const uint4* from = vectors.first + size_t{chunk} * kVectors + lane;
#ifdef __CUDACC__
    asm("" : "+l"(from));
#endif
#pragma unroll
    for (int j = 0; j < loads; ++j) {
      const uint4 v = loaded[j];
      if (more) loaded[j] = load_once(from + 32 * j);
      counters.add_vector(v);
    }
  }
  if (blockIdx.x == gridDim.x - 1)  // less than a chunk is left over
    for (size_t i = size_t{chunks} * kVectors + threadIdx.x; i < vectors.count; i += kThreads)
      counters.add_vector(vectors.first[i]);
  count_loose(keys, count, vectors, [&](Byte key) { counters.add(key); });

  unsigned left = 0;
  if constexpr (zeroes) {
    wait_for_zeros(meeting);
    left = leave(meeting);
  }
  counters.merge_into(bins);
  if constexpr (zeroes) make_ready_if_last(meeting, left);
}

}  // namespace
}  // namespace ladders
