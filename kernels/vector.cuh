// SPDX-License-Identifier: MIT
//
// Words of 4 bytes that a thread loads or stores at once.
#pragma once

#include <cuda_runtime.h>

namespace ladders {

template <int bytes>
struct VectorOf;
template <>
struct VectorOf<4> {
  using Type = unsigned;
};
template <>
struct VectorOf<8> {
  using Type = uint2;
};
template <>
struct VectorOf<16> {
  using Type = uint4;
};
/// A vector of 4, 8 or 16 bytes.
template <int bytes>
using Vector = typename VectorOf<bytes>::Type;

__device__ __forceinline__ unsigned sum_of(unsigned v) { return v; }
__device__ __forceinline__ unsigned sum_of(uint2 v) { return v.x + v.y; }
__device__ __forceinline__ unsigned sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

/// Words of consecutive values: different ones, or else each store would have to gather copies of
/// one in registers first.
template <class V>
__device__ __forceinline__ V numbered(unsigned first) {
  if constexpr (sizeof(V) == 4)
    return first;
  else if constexpr (sizeof(V) == 8)
    return {first, first + 1};
  else
    return {first, first + 1, first + 2, first + 3};
}

/// sum_of(numbered<Vector<bytes>>(first)).
template <int bytes>
constexpr unsigned numbered_sum(unsigned first) {
  constexpr unsigned n = bytes / 4;
  return n * first + n * (n - 1) / 2;
}

/// For 16 bytes that are read once: not to be kept in the L1, first to leave the L2. (The policy
/// alone is worth 2 % of a sum of 2^28 elements on an H200: nothing waits for room.)
template <class V>
__device__ __forceinline__ V load_once(const V* p) {
  static_assert(sizeof(V) == 16);
#if __CUDA_ARCH__ >= 800
  uint4 v;
  asm volatile(
      "{\n"
      ".reg .b64 policy;\n"
      "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], policy;\n"
      "}"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return __builtin_bit_cast(V, v);
#else
  return __ldcs(p);
#endif
}

}  // namespace ladders
