// SPDX-License-Identifier: MIT
//
// Vectors of 4-byte words that a thread loads or stores at once.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace ladders {
/// A vector of 4, 8 or 16 bytes.
template <int bytes>
using Vector =
    std::conditional_t<bytes == 4, unsigned, std::conditional_t<bytes == 8, uint2, uint4>>;

__device__ __forceinline__ unsigned sum_of(unsigned v) { return v; }
__device__ __forceinline__ unsigned sum_of(uint2 v) { return v.x + v.y; }
__device__ __forceinline__ unsigned sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

/// A vector of consecutive numbers from `first`. If its words were equal, the compiler would copy
/// one value to consecutive registers for each store.
template <class V>
__device__ __forceinline__ V iota(unsigned first) {
  if constexpr (sizeof(V) == 4) return first;
  if constexpr (sizeof(V) == 8) return {first, first + 1};
  if constexpr (sizeof(V) == 16) return {first, first + 1, first + 2, first + 3};
}

/// sum_of(iota<Vector<bytes>>(first)).
template <int bytes>
constexpr unsigned iota_sum(unsigned first) {
  constexpr unsigned n = bytes / 4;
  return n * first + n * (n - 1) / 2;
}

/// Loads 16 bytes that are read once: the L1 does not keep them, the L2 evicts them first.
template <class V>
__device__ __forceinline__ V load_once(const V* p) {
  static_assert(sizeof(V) == 16);
#if __CUDA_ARCH__ >= 800
  uint4 v;
  asm volatile(
      "{ .reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], policy; }"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return __builtin_bit_cast(V, v);
#else
  return __ldcs(p);
#endif
}

/// The same for data of which some is read again: the L2 evicts it with normal priority.
template <class V>
__device__ __forceinline__ V load_past_l1(const V* p) {
  static_assert(sizeof(V) == 16);
#ifdef __CUDACC__
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return __builtin_bit_cast(V, v);
#else
  return *p;
#endif
}

// Volatile accesses, which neither compiler nor assembler drops; C++ has no volatile vectors.
#ifdef __CUDA_ARCH__
#define LADDERS_LOAD_VOLATILE(space, address, constraint)                               \
  V v;                                                                                  \
  if constexpr (sizeof(V) == 4)                                                         \
    asm volatile("ld.volatile" space ".u32 %0, [%1];" : "=r"(v) : constraint(address)); \
  else if constexpr (sizeof(V) == 8)                                                    \
    asm volatile("ld.volatile" space ".v2.u32 {%0, %1}, [%2];"                          \
                 : "=r"(v.x), "=r"(v.y)                                                 \
                 : constraint(address));                                                \
  else                                                                                  \
    asm volatile("ld.volatile" space ".v4.u32 {%0, %1, %2, %3}, [%4];"                  \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                           \
                 : constraint(address));                                                \
  return v;
#else
#define LADDERS_LOAD_VOLATILE(space, address, constraint) \
  asm volatile("" ::: "memory");                          \
  return *p;
#endif

/// A volatile load from the block's own shared memory.
template <class V>
__device__ __forceinline__ V load_volatile(const V* p) {
  LADDERS_LOAD_VOLATILE(".shared", unsigned(__cvta_generic_to_shared(p)), "r")
}

/// The same from anywhere in the cluster.
template <class V>
__device__ __forceinline__ V load_volatile_from_cluster(const V* p) {
  LADDERS_LOAD_VOLATILE("", p, "l")
}
#undef LADDERS_LOAD_VOLATILE

}  // namespace ladders
