// SPDX-License-Identifier: MIT
//
// How the blocks of one launch signal each other: one thread stores a word in global memory, and
// others poll it. A word that holds both a value and a flag can be relaxed: it is there as a whole
// or not at all. Whoever acquires a released word also sees what was written before it.
#pragma once

#include <cuda/atomic>

#include "common/device.cuh"

namespace ladders {
/// A word of global memory as the count of what blocks have done: released by those who raise it,
/// acquired by those who wait for it.
using Count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

__device__ __forceinline__ void store_relaxed(unsigned long long* word, unsigned long long value) {
#ifdef __CUDACC__
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
  emulator::strong_store(word, &value, sizeof(value), emulator::Strength::relaxed);
#endif
}
__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* word) {
#ifdef __CUDACC__
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
#else
  unsigned long long value;
  emulator::strong_load(word, &value, sizeof(value), emulator::Strength::relaxed);
  return value;
#endif
}

/// The same for words of 16 bytes.
struct Halves {
  unsigned long long low, high;
};
template <class Word>
  requires(sizeof(Word) == 16 && alignof(Word) == 16)
__device__ __forceinline__ void store_relaxed(Word* word, std::type_identity_t<Word> value) {
  const auto halves = __builtin_bit_cast(Halves, value);
#ifdef __CUDACC__
  asm volatile(
      "{\n.reg .b128 word;\nmov.b128 word, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], word;\n}" ::
          "l"(word),
      "l"(halves.low), "l"(halves.high)
      : "memory");
#else
  emulator::strong_store(word, &halves, sizeof(halves), emulator::Strength::relaxed);
#endif
}
template <class Word>
  requires(sizeof(Word) == 16 && alignof(Word) == 16)
__device__ __forceinline__ Word load_relaxed(const Word* word) {
  Halves halves;
#ifdef __CUDACC__
  asm volatile(
      "{\n.reg .b128 word;\nld.relaxed.gpu.global.b128 word, [%2];\nmov.b128 {%0, %1}, word;\n}"
      : "=l"(halves.low), "=l"(halves.high)
      : "l"(word)
      : "memory");
#else
  emulator::strong_load(word, &halves, sizeof(halves), emulator::Strength::relaxed);
#endif
  return __builtin_bit_cast(Word, halves);
}

__device__ __forceinline__ void store_release(unsigned* word, unsigned value) {
#ifdef __CUDACC__
  asm volatile("st.release.gpu.b32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
  emulator::strong_store(word, &value, sizeof(value), emulator::Strength::release);
#endif
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* word) {
#ifdef __CUDACC__
  unsigned value;
  asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
#else
  unsigned value;
  emulator::strong_load(word, &value, sizeof(value), emulator::Strength::acquire);
  return value;
#endif
}

/// Prefetches to the L2 the line of data that is accessed later. Its page may not be in the TLB.
__device__ __forceinline__ void prefetch([[maybe_unused]] const void* p) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

/// Called before each poll of a word. On a GPU it does nothing. The emulator waits until the 4
/// bytes hold their final value, so that it counts one poll: on a GPU their number depends on
/// timing. It orders no memory.
#ifdef __CUDACC__
__device__ __forceinline__ void wait_uncounted(const void*, unsigned) {}
#else
using emulator::wait_uncounted;
#endif

}  // namespace ladders
