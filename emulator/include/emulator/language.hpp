// SPDX-License-Identifier: MIT
//
// CUDA's device language for the host compiler: keywords, built-in variables, vector types,
// barriers, warp functions, atomics. What these do on a GPU is in the CUDA C++ Programming Guide;
// here every thread is a fiber, and what takes more than one thread is a call into the runtime.
//
// Nothing in here may touch memory that a kernel did not name: the compiler's instrumentation
// would report it as the kernel's access. State lives behind opaque calls for that reason.
#pragma once

#include <math.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// Sources are compiled for this compute capability, host functions included; with 0, for none, and
// then they run as any GPU.
#ifndef CUDA_EMULATOR_ARCH
#define CUDA_EMULATOR_ARCH 900
#endif
#if CUDA_EMULATOR_ARCH && !defined(__CUDA_ARCH__)
#define __CUDA_ARCH__ CUDA_EMULATOR_ARCH
#endif

#define __host__
#define __device__
#define __global__
#define __managed__ __attribute__((used, section("emulator_managed")))
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))

namespace emulator {
/// The nops before a kernel that tell its __launch_bounds__: two for each thread, and 64.
constexpr int nops_of(int threads, int = 0, int = 0) { return 2 * threads + 64; }
}  // namespace emulator

// clang takes no number of nops that depends on a template.
#if defined(__clang__) || !defined(__x86_64__)
#define __launch_bounds__(...)
#else
#define __launch_bounds__(...)                                              \
  __attribute__((patchable_function_entry(::emulator::nops_of(__VA_ARGS__), \
                                          ::emulator::nops_of(__VA_ARGS__))))
#endif
#define __cluster_dims__(...) \
  __attribute__((deprecated("the emulator takes a cluster's size from the launch alone")))
#define __align__(n) __attribute__((aligned(n)))
// One copy a host thread, which runs one block at a time. Marked as used, or reads of what nobody
// writes would be folded to zero; starting at the first bank, or figures would depend on what else
// is in the program; and initialised as the device does, not at all, where gcc would guard
// variables of class type with a flag.
#ifdef __clang__
#define __shared__ thread_local __attribute__((used, aligned(128)))
#else
#define __shared__ thread_local constinit __attribute__((used, aligned(128)))
#endif
#define __constant__ __attribute__((used, section("emulator_constant")))

#define EMULATOR_INLINE inline __attribute__((always_inline))
// One device instruction: its branches and calls are not counted.
#ifdef __clang__  // gcc is told by flags not to move or copy these calls
#define EMULATOR_CONVERGENT __attribute__((convergent, noduplicate, nomerge))
#define EMULATOR_CALLED inline __attribute__((noinline, const, no_sanitize("coverage")))
#else
#define EMULATOR_CONVERGENT
#define EMULATOR_CALLED inline __attribute__((noinline, const, no_sanitize_coverage))
#endif

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// ---- the runtime: what the rest of this header calls

namespace emulator {
#ifdef CUDA_EMULATOR_COUNTED  // this source is compiled so that its accesses are seen
bool note_instrumentation();
inline const bool kInstrumented = note_instrumentation();
#endif

unsigned lane_index() __attribute__((const));
/// The block's dynamic shared memory, 1024-byte aligned: extern __shared__ has no host equivalent.
void* dynamic_shared() __attribute__((const));

enum class Vote { none, count, all, any };
int block_barrier(Vote vote, int predicate) EMULATOR_CONVERGENT;
/// What of the accesses before a barrier of the cluster is ordered before those after it.
enum class Orders { all, shared_memory, nothing };
void cluster_barrier(Orders what = Orders::all) EMULATOR_CONVERGENT;

/// The thread's next atomic, flag or fence orders accesses of its own block alone.
void narrow_scope() EMULATOR_CONVERGENT;
/// How an access orders those around it. Atomics without a name for it are relaxed.
enum class Strength : std::uint8_t { relaxed, acquire, release, both };
/// Flags between blocks: words of 4, 8 or 16 bytes, each there as a whole or not at all. Not
/// counted, since how often one is polled is chance; but half of one of 16 bytes is.
void strong_load(const void* word, void* value, unsigned bytes, Strength strength);
void strong_store(void* word, const void* value, unsigned bytes, Strength strength);
unsigned strong_add(unsigned* word, unsigned value, Strength strength);
/// Waits until the 4 bytes at `flag` are `last`, so that polls are none by chance, but orders
/// nothing. Returns sooner if they never are, or if polls are to be run as written.
void wait_uncounted(const void* flag, unsigned last) EMULATOR_CONVERGENT;
/// Whether all blocks of the launch run at once.
bool is_cooperative() __attribute__((const));
void check_grid_sync();  ///< stops a thread that may not call it
/// How many blocks of a cooperative launch have come to grid.sync(), and to which they may go on.
extern unsigned grid_arrivals, grid_release;

enum class WarpFunction : std::uint8_t {
  sync,
  active_mask,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  all,
  any,
  match_any,
  add,
  minimum,
  maximum,
  bit_and,
  bit_or,
  bit_xor
};
/// What the calling lane gets when the lanes in `mask` have all called; `argument` is the lane,
/// distance or mask of a shuffle.
std::uint64_t warp_function(WarpFunction function, unsigned mask, std::uint64_t value = 0,
                            int argument = 0, int width = 32) EMULATOR_CONVERGENT;
template <class T>
EMULATOR_INLINE T shuffle(WarpFunction function, unsigned mask, T value, int argument, int width) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "4- and 8-byte types shuffle");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = warp_function(function, mask, bits, argument, width);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace emulator

// ---- built-in variables: constant for the thread that reads them, so reads are no accesses. The
// runtime sets them whenever another thread of the block has its turn. All of one plain type: gcc
// reports reads of constants that have constructors, as dim3 has.

extern constinit thread_local const uint3 threadIdx, blockIdx, blockDim, gridDim;

inline constexpr int warpSize = 32;

// ---- vector types: copied as the device does, as one access of up to 16 bytes

namespace emulator {
// Vectors, since loads of integers would be split into the parts that are used.
template <int bytes>
struct Raw {
  typedef signed char type __attribute__((vector_size(bytes), may_alias));
};
template <class Part, std::size_t... i>
EMULATOR_INLINE void copy_parts(void* to, const void* from, std::index_sequence<i...>) {
  ((static_cast<Part*>(to)[i] = static_cast<const Part*>(from)[i]), ...);
}
/// The first value where braces hold fewer than the vector has elements. A type of its own, so that
/// scalars do not convert to vectors.
template <class S>
struct First {
  S value;
  template <class A, class = std::enable_if_t<std::is_arithmetic_v<A>>>
  constexpr First(A a) : value(static_cast<S>(a)) {}
};
}  // namespace emulator

#define EMULATOR_COPY(T, ...) /* in parts of that type */             \
  T() = default;                                                      \
  EMULATOR_INLINE T(const T& o) { *this = o; }                        \
  EMULATOR_INLINE T& operator=(const T& o) {                          \
    using Part = __VA_ARGS__;                                         \
    using Parts = std::make_index_sequence<sizeof(T) / sizeof(Part)>; \
    emulator::copy_parts<Part>(this, &o, Parts());                    \
    return *this;                                                     \
  }
#define EMULATOR_VECTOR1(T, S) \
  struct T {                   \
    S x;                       \
  };                           \
  EMULATOR_INLINE T make_##T(S x) { return {x}; }
#define EMULATOR_VECTOR2(T, S)                             \
  struct alignas(2 * sizeof(S)) T {                        \
    S x, y;                                                \
    constexpr T(S a, S b) : x(a), y(b) {}                  \
    constexpr T(emulator::First<S> a) : x(a.value), y() {} \
    EMULATOR_COPY(T, emulator::Raw<2 * sizeof(S)>::type)   \
  };                                                       \
  EMULATOR_INLINE T make_##T(S x, S y) { return T(x, y); }
#define EMULATOR_VECTOR3(T, S)                                             \
  struct T {                                                               \
    S x, y, z;                                                             \
    constexpr T(S a, S b, S c) : x(a), y(b), z(c) {}                       \
    constexpr T(emulator::First<S> a, S b = {}) : x(a.value), y(b), z() {} \
    EMULATOR_COPY(T, S)                                                    \
  };                                                                       \
  EMULATOR_INLINE T make_##T(S x, S y, S z) { return T(x, y, z); }
#define EMULATOR_VECTOR4(T, S)                                                             \
  struct alignas(sizeof(S) < 4 ? 4 * sizeof(S) : 16) T {                                   \
    S x, y, z, w;                                                                          \
    constexpr T(S a, S b, S c, S d) : x(a), y(b), z(c), w(d) {}                            \
    constexpr T(emulator::First<S> a, S b = {}, S c = {}) : x(a.value), y(b), z(c), w() {} \
    EMULATOR_COPY(T, emulator::Raw<sizeof(S) < 4 ? 4 * sizeof(S) : 16>::type)              \
  };                                                                                       \
  EMULATOR_INLINE T make_##T(S x, S y, S z, S w) { return T(x, y, z, w); }
#define EMULATOR_VECTORS(NAME, S) \
  EMULATOR_VECTOR1(NAME##1, S)    \
  EMULATOR_VECTOR2(NAME##2, S)    \
  EMULATOR_VECTOR3(NAME##3, S)    \
  EMULATOR_VECTOR4(NAME##4, S)

// clang-format off
EMULATOR_VECTORS(char, signed char) EMULATOR_VECTORS(uchar, unsigned char)
EMULATOR_VECTORS(short, short) EMULATOR_VECTORS(ushort, unsigned short)
EMULATOR_VECTORS(int, int) EMULATOR_VECTORS(long, long) EMULATOR_VECTORS(ulong, unsigned long)
EMULATOR_VECTORS(longlong, long long) EMULATOR_VECTORS(ulonglong, unsigned long long)
EMULATOR_VECTORS(float, float) EMULATOR_VECTORS(double, double)
EMULATOR_VECTOR1(uint1, unsigned) EMULATOR_VECTOR2(uint2, unsigned) EMULATOR_VECTOR4(uint4, unsigned)
EMULATOR_INLINE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
// clang-format on

// ---- barriers and fences

EMULATOR_INLINE void __syncthreads() { emulator::block_barrier(emulator::Vote::none, 0); }
#define EMULATOR_BLOCK_VOTE(NAME, VOTE) \
  EMULATOR_INLINE int NAME(int p) { return emulator::block_barrier(emulator::Vote::VOTE, p); }
EMULATOR_BLOCK_VOTE(__syncthreads_count, count)
EMULATOR_BLOCK_VOTE(__syncthreads_and, all)
EMULATOR_BLOCK_VOTE(__syncthreads_or, any)
void __threadfence();
EMULATOR_INLINE void __threadfence_block() {
  emulator::narrow_scope();
  __threadfence();
}
EMULATOR_INLINE void __threadfence_system() { __threadfence(); }
EMULATOR_INLINE void __nanosleep(unsigned) {}

// ---- warp functions

#define EMULATOR_SHUFFLE(NAME, FUNCTION, A)                                    \
  template <class T>                                                           \
  EMULATOR_INLINE T NAME(unsigned mask, T value, A argument, int width = 32) { \
    return emulator::shuffle(emulator::WarpFunction::FUNCTION, mask, value,    \
                             static_cast<int>(argument), width);               \
  }
EMULATOR_SHUFFLE(__shfl_sync, shuffle, int)
EMULATOR_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)
EMULATOR_INLINE void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  emulator::warp_function(emulator::WarpFunction::sync, mask);
}
EMULATOR_INLINE unsigned __activemask() {
  return static_cast<unsigned>(emulator::warp_function(emulator::WarpFunction::active_mask, 0));
}
#define EMULATOR_VOTE(T, NAME, FUNCTION)                                                  \
  EMULATOR_INLINE T NAME(unsigned mask, int predicate) {                                  \
    return static_cast<T>(                                                                \
        emulator::warp_function(emulator::WarpFunction::FUNCTION, mask, predicate != 0)); \
  }
EMULATOR_VOTE(unsigned, __ballot_sync, ballot)
EMULATOR_VOTE(int, __all_sync, all)
EMULATOR_VOTE(int, __any_sync, any)
template <class T>
EMULATOR_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(
      emulator::warp_function(emulator::WarpFunction::match_any, mask, bits));
}
// Signed numbers are in order as unsigned ones while their highest bit is inverted.
#define EMULATOR_REDUCE(NAME, T, FUNCTION, INVERTED)                                              \
  EMULATOR_INLINE T NAME(unsigned mask, T value) {                                                \
    const unsigned bits = static_cast<unsigned>(value) ^ (INVERTED);                              \
    return static_cast<T>(emulator::warp_function(emulator::WarpFunction::FUNCTION, mask, bits) ^ \
                          (INVERTED));                                                            \
  }
EMULATOR_REDUCE(__reduce_add_sync, unsigned, add, 0u)
EMULATOR_REDUCE(__reduce_add_sync, int, add, 0u)
EMULATOR_REDUCE(__reduce_min_sync, unsigned, minimum, 0u)
EMULATOR_REDUCE(__reduce_max_sync, unsigned, maximum, 0u)
EMULATOR_REDUCE(__reduce_min_sync, int, minimum, 1u << 31)
EMULATOR_REDUCE(__reduce_max_sync, int, maximum, 1u << 31)
EMULATOR_REDUCE(__reduce_and_sync, unsigned, bit_and, 0u)
EMULATOR_REDUCE(__reduce_or_sync, unsigned, bit_or, 0u)
EMULATOR_REDUCE(__reduce_xor_sync, unsigned, bit_xor, 0u)
/// A vote and a match, since lanes that the warp does not have may be in the mask.
template <class T>
EMULATOR_INLINE unsigned __match_all_sync(unsigned mask, T value, int* predicate) {
  const unsigned same = __match_any_sync(mask, value), all = __ballot_sync(mask, 1);
  return (*predicate = same == all) ? all : 0;
}

// ---- atomics: one access each, noted and done in the runtime

// ADD(name, type), ROW(name, type, what replaces `old`), SWAP(type)
#define EMULATOR_INTEGER_ATOMICS(ADD, ROW, SWAP, T) \
  ADD(atomicAdd, T)                                 \
  SWAP(T)                                           \
  ROW(atomicMin, T, old < value ? old : value)      \
  ROW(atomicMax, T, old < value ? value : old)      \
  ROW(atomicAnd, T, old& value)                     \
  ROW(atomicOr, T, old | value)                     \
  ROW(atomicXor, T, old ^ value)                    \
  ROW(atomicExch, T, (static_cast<void>(old), value))
#define EMULATOR_ATOMICS(ADD, ROW, SWAP)                              \
  EMULATOR_INTEGER_ATOMICS(ADD, ROW, SWAP, int)                       \
  EMULATOR_INTEGER_ATOMICS(ADD, ROW, SWAP, unsigned)                  \
  EMULATOR_INTEGER_ATOMICS(ADD, ROW, SWAP, unsigned long long)        \
  SWAP(unsigned short)                                                \
  ROW(atomicMin, long long, old < value ? old : value)                \
  ROW(atomicMax, long long, old < value ? value : old)                \
  ROW(atomicSub, int, old - value)                                    \
  ROW(atomicSub, unsigned, old - value)                               \
  ROW(atomicInc, unsigned, old >= value ? 0 : old + 1)                \
  ROW(atomicDec, unsigned, old == 0 || old > value ? value : old - 1) \
  ROW(atomicExch, float, (static_cast<void>(old), value))             \
  ADD(atomicAdd, float)                                               \
  ADD(atomicAdd, double)
#define EMULATOR_SCOPES(NAME, T, PARAMETERS, ...)                \
  T NAME PARAMETERS;                                             \
  EMULATOR_INLINE T NAME##_block PARAMETERS {                    \
    return emulator::narrow_scope(), NAME(address, __VA_ARGS__); \
  }                                                              \
  EMULATOR_INLINE T NAME##_system PARAMETERS { return NAME(address, __VA_ARGS__); }
#define EMULATOR_ATOMIC(NAME, T, ...) EMULATOR_SCOPES(NAME, T, (T * address, T value), value)
#define EMULATOR_SWAP(T) \
  EMULATOR_SCOPES(atomicCAS, T, (T * address, T compare, T value), compare, value)
EMULATOR_ATOMICS(EMULATOR_ATOMIC, EMULATOR_ATOMIC, EMULATOR_SWAP)
// Atomic in each element, not as a whole; counted as that many atomics.
EMULATOR_INLINE float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
EMULATOR_INLINE float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}

#include "emulator/intrinsics.hpp"
