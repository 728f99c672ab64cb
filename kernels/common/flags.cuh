// SPDX-License-Identifier: MIT
//
// How the blocks of one launch signal each other: one thread stores a word in global memory, and
// others poll it. A word that holds both a value and a flag can be relaxed: it is there as a whole
// or not at all. Whoever acquires a released word also sees what was written before it.
#pragma once

#include "common/device.cuh"
#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <sched.h>
#endif

namespace ladders {
#ifdef __CUDACC__
/// A word of global memory as the count of what blocks have done: released by those who raise it,
/// acquired by those who wait for it.
using Count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
#endif

__device__ __forceinline__ void store_relaxed(unsigned long long* word, unsigned long long value) {
#ifdef __CUDACC__
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}
__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* word) {
#ifdef __CUDACC__
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
#else
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/// The same for words of 16 bytes; an emulator takes two halves, of which `high` holds the flag.
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
  reinterpret_cast<Halves*>(word)->low = halves.low;
  store_relaxed(&reinterpret_cast<Halves*>(word)->high, halves.high);
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
  halves.high = load_relaxed(&reinterpret_cast<const Halves*>(word)->high);
  halves.low = reinterpret_cast<const Halves*>(word)->low;
#endif
  return __builtin_bit_cast(Word, halves);
}

__device__ __forceinline__ void store_release(unsigned* word, unsigned value) {
#ifdef __CUDACC__
  asm volatile("st.release.gpu.b32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* word) {
#ifdef __CUDACC__
  unsigned value;
  asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
#else
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/// For data that is accessed later: its line may not be in the L2, nor its page in the TLB.
__device__ __forceinline__ void prefetch([[maybe_unused]] const void* p) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

/// Called before each load that polls. The emulator waits until the 4 bytes at `flag` are `last`,
/// their final value, since the number of polls is chance and not to be counted. After a million
/// polls in vain it returns, to report that the word never comes.
#ifdef __CUDACC__
__device__ __forceinline__ void wait_uncounted(const void*, unsigned) {}
#else
#ifdef __clang__
__attribute__((noinline, no_sanitize("thread", "coverage")))
#else
__attribute__((noinline, no_sanitize("thread"), no_sanitize_coverage))
#endif
inline void wait_uncounted(const void* flag, unsigned last) {
  static thread_local int in_vain = 0;
  for (; __atomic_load_n(static_cast<const unsigned*>(flag), __ATOMIC_ACQUIRE) != last;
       sched_yield())
    if (in_vain == 1'000'000 || ++in_vain == 1'000'000) return;
  if (in_vain < 1'000'000) in_vain = 0;
}
#endif

}  // namespace ladders
