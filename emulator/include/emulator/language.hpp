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

// Device code takes the way of the GPU that is modelled by default, and so does the host's code in
// the same source. 0: as if there were no device; then the source runs as any GPU.
#ifndef CUDA_EMULATOR_ARCH
#define CUDA_EMULATOR_ARCH 900
#endif
#if CUDA_EMULATOR_ARCH && !defined(__CUDA_ARCH__)
#define __CUDA_ARCH__ CUDA_EMULATOR_ARCH
#endif

#define __host__
#define __device__
#define __global__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
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
#ifdef __clang__  // gcc is told by flags not to move or copy these calls
#define EMULATOR_CONVERGENT __attribute__((convergent, noduplicate, nomerge))
#else
#define EMULATOR_CONVERGENT
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

#ifdef CUDA_EMULATOR_COUNTED  // this source is compiled so that its accesses are seen
namespace emulator {
bool note_instrumentation();
inline const bool kInstrumented = note_instrumentation();
}  // namespace emulator
#endif

// ---- built-in variables: constant for the thread that reads them, so reads are no accesses. The
// runtime sets them whenever another thread of the block has its turn. All of one plain type: gcc
// reports reads of constants that have constructors, as dim3 has.

extern constinit thread_local const uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
unsigned lane_index() __attribute__((const));
/// The block's dynamic shared memory, 1024-byte aligned: extern __shared__ has no host equivalent.
void* dynamic_shared() __attribute__((const));
}  // namespace emulator

inline constexpr int warpSize = 32;

// ---- vector types: copied as one access of their full width, as the device does

namespace emulator {
// Vectors, since loads of integers would be split into the parts that are used.
template <int bytes>
struct Raw;
template <>
struct Raw<2> {
  typedef signed char type __attribute__((vector_size(2), may_alias));
};
template <>
struct Raw<4> {
  typedef short type __attribute__((vector_size(4), may_alias));
};
template <>
struct Raw<8> {
  typedef int type __attribute__((vector_size(8), may_alias));
};
template <>
struct Raw<16> {
  typedef int type __attribute__((vector_size(16), may_alias));
};
}  // namespace emulator

#define EMULATOR_COPY(T)                                               \
  EMULATOR_INLINE T(const T& o) {                                      \
    *reinterpret_cast<raw*>(this) = *reinterpret_cast<const raw*>(&o); \
  }                                                                    \
  EMULATOR_INLINE T& operator=(const T& o) {                           \
    *reinterpret_cast<raw*>(this) = *reinterpret_cast<const raw*>(&o); \
    return *this;                                                      \
  }
#define EMULATOR_VECTOR2(T, S)                      \
  struct alignas(2 * sizeof(S)) T {                 \
    using raw = emulator::Raw<2 * sizeof(S)>::type; \
    S x, y;                                         \
    T() = default;                                  \
    constexpr T(S a, S b) : x(a), y(b) {}           \
    EMULATOR_COPY(T)                                \
  };                                                \
  EMULATOR_INLINE T make_##T(S x, S y) { return T(x, y); }
#define EMULATOR_VECTOR4(T, S)                                  \
  struct alignas(4 * sizeof(S)) T {                             \
    using raw = emulator::Raw<4 * sizeof(S)>::type;             \
    S x, y, z, w;                                               \
    T() = default;                                              \
    constexpr T(S a, S b, S c, S d) : x(a), y(b), z(c), w(d) {} \
    EMULATOR_COPY(T)                                            \
  };                                                            \
  EMULATOR_INLINE T make_##T(S x, S y, S z, S w) { return T(x, y, z, w); }

EMULATOR_VECTOR2(char2, signed char)
EMULATOR_VECTOR2(uchar2, unsigned char)
EMULATOR_VECTOR2(short2, short)
EMULATOR_VECTOR2(ushort2, unsigned short)
EMULATOR_VECTOR2(int2, int)
EMULATOR_VECTOR2(uint2, unsigned)
EMULATOR_VECTOR2(float2, float)
EMULATOR_VECTOR2(double2, double)
EMULATOR_VECTOR2(longlong2, long long)
EMULATOR_VECTOR2(ulonglong2, unsigned long long)
EMULATOR_VECTOR4(char4, signed char)
EMULATOR_VECTOR4(uchar4, unsigned char)
EMULATOR_VECTOR4(short4, short)
EMULATOR_VECTOR4(ushort4, unsigned short)
EMULATOR_VECTOR4(int4, int)
EMULATOR_VECTOR4(uint4, unsigned)
EMULATOR_VECTOR4(float4, float)

struct int3 {
  int x, y, z;
};
struct float3 {
  float x, y, z;
};
EMULATOR_INLINE int3 make_int3(int x, int y, int z) { return {x, y, z}; }
EMULATOR_INLINE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
EMULATOR_INLINE float3 make_float3(float x, float y, float z) { return {x, y, z}; }

// ---- barriers; each brings its source line, so that a divergent one can be named

namespace emulator {
enum class Vote { none, count, all, any };
int block_barrier(Vote vote, int predicate, const char* file, int line) EMULATOR_CONVERGENT;
void cluster_barrier(const char* file, int line) EMULATOR_CONVERGENT;
}  // namespace emulator

#define EMULATOR_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
EMULATOR_INLINE void __syncthreads(EMULATOR_HERE) {
  emulator::block_barrier(emulator::Vote::none, 0, file, line);
}
EMULATOR_INLINE int __syncthreads_count(int predicate, EMULATOR_HERE) {
  return emulator::block_barrier(emulator::Vote::count, predicate, file, line);
}
EMULATOR_INLINE int __syncthreads_and(int predicate, EMULATOR_HERE) {
  return emulator::block_barrier(emulator::Vote::all, predicate, file, line);
}
EMULATOR_INLINE int __syncthreads_or(int predicate, EMULATOR_HERE) {
  return emulator::block_barrier(emulator::Vote::any, predicate, file, line);
}
EMULATOR_INLINE void __threadfence() { asm volatile("" ::: "memory"); }
EMULATOR_INLINE void __threadfence_block() { asm volatile("" ::: "memory"); }
EMULATOR_INLINE void __threadfence_system() { asm volatile("" ::: "memory"); }
EMULATOR_INLINE void __nanosleep(unsigned) {}

// ---- warp functions

namespace emulator {
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
  minimum_signed,
  maximum_signed,
  bit_and,
  bit_or,
  bit_xor
};
/// What the calling lane gets when the lanes in `mask` have all called; `argument` is the lane,
/// distance or mask of a shuffle.
std::uint64_t warp_function(WarpFunction function, unsigned mask, std::uint64_t value, int argument,
                            int width) EMULATOR_CONVERGENT;

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

template <class T>
EMULATOR_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return emulator::shuffle(emulator::WarpFunction::shuffle, mask, value, lane, width);
}
template <class T>
EMULATOR_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  return emulator::shuffle(emulator::WarpFunction::shuffle_up, mask, value,
                           static_cast<int>(distance), width);
}
template <class T>
EMULATOR_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  return emulator::shuffle(emulator::WarpFunction::shuffle_down, mask, value,
                           static_cast<int>(distance), width);
}
template <class T>
EMULATOR_INLINE T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return emulator::shuffle(emulator::WarpFunction::shuffle_xor, mask, value, lane_mask, width);
}
EMULATOR_INLINE void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  emulator::warp_function(emulator::WarpFunction::sync, mask, 0, 0, 32);
}
EMULATOR_INLINE unsigned __activemask() {
  return static_cast<unsigned>(
      emulator::warp_function(emulator::WarpFunction::active_mask, 0, 0, 0, 32));
}
EMULATOR_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(
      emulator::warp_function(emulator::WarpFunction::ballot, mask, predicate != 0, 0, 32));
}
EMULATOR_INLINE int __all_sync(unsigned mask, int predicate) {
  return static_cast<int>(
      emulator::warp_function(emulator::WarpFunction::all, mask, predicate != 0, 0, 32));
}
EMULATOR_INLINE int __any_sync(unsigned mask, int predicate) {
  return static_cast<int>(
      emulator::warp_function(emulator::WarpFunction::any, mask, predicate != 0, 0, 32));
}
template <class T>
EMULATOR_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(
      emulator::warp_function(emulator::WarpFunction::match_any, mask, bits, 0, 32));
}
#define EMULATOR_REDUCE(NAME, T, FUNCTION)                                                \
  EMULATOR_INLINE T NAME(unsigned mask, T value) {                                        \
    return static_cast<T>(emulator::warp_function(emulator::WarpFunction::FUNCTION, mask, \
                                                  static_cast<unsigned>(value), 0, 32));  \
  }
EMULATOR_REDUCE(__reduce_add_sync, unsigned, add)
EMULATOR_REDUCE(__reduce_add_sync, int, add)
EMULATOR_REDUCE(__reduce_min_sync, unsigned, minimum)
EMULATOR_REDUCE(__reduce_max_sync, unsigned, maximum)
EMULATOR_REDUCE(__reduce_min_sync, int, minimum_signed)
EMULATOR_REDUCE(__reduce_max_sync, int, maximum_signed)
EMULATOR_REDUCE(__reduce_and_sync, unsigned, bit_and)
EMULATOR_REDUCE(__reduce_or_sync, unsigned, bit_or)
EMULATOR_REDUCE(__reduce_xor_sync, unsigned, bit_xor)

// ---- atomics: one access each, noted and done in the runtime

#define EMULATOR_ATOMIC(NAME, T) T NAME(T* address, T value);
#define EMULATOR_INTEGER_ATOMICS(T) \
  EMULATOR_ATOMIC(atomicAdd, T)     \
  EMULATOR_ATOMIC(atomicMin, T)     \
  EMULATOR_ATOMIC(atomicMax, T)     \
  EMULATOR_ATOMIC(atomicAnd, T)     \
  EMULATOR_ATOMIC(atomicOr, T)      \
  EMULATOR_ATOMIC(atomicXor, T)     \
  EMULATOR_ATOMIC(atomicExch, T) T atomicCAS(T* address, T compare, T value);
EMULATOR_INTEGER_ATOMICS(int)
EMULATOR_INTEGER_ATOMICS(unsigned)
EMULATOR_INTEGER_ATOMICS(unsigned long long)
EMULATOR_ATOMIC(atomicSub, int)
EMULATOR_ATOMIC(atomicSub, unsigned)
EMULATOR_ATOMIC(atomicInc, unsigned)
EMULATOR_ATOMIC(atomicDec, unsigned)
EMULATOR_ATOMIC(atomicAdd, float)
EMULATOR_ATOMIC(atomicExch, float)
EMULATOR_ATOMIC(atomicAdd, double)

// ---- arithmetic

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

#define EMULATOR_BITS(NAME, TO, FROM) \
  EMULATOR_INLINE TO NAME(FROM value) { return __builtin_bit_cast(TO, value); }
EMULATOR_BITS(__float_as_int, int, float)
EMULATOR_BITS(__float_as_uint, unsigned, float)
EMULATOR_BITS(__int_as_float, float, int)
EMULATOR_BITS(__uint_as_float, float, unsigned)
EMULATOR_BITS(__double_as_longlong, long long, double)
EMULATOR_BITS(__longlong_as_double, double, long long)

EMULATOR_INLINE int __popc(unsigned v) { return __builtin_popcount(v); }
EMULATOR_INLINE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
EMULATOR_INLINE int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
EMULATOR_INLINE int __clzll(long long v) {
  return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64;
}
EMULATOR_INLINE int __ffs(int v) { return __builtin_ffs(v); }
EMULATOR_INLINE int __ffsll(long long v) { return __builtin_ffsll(v); }
EMULATOR_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
EMULATOR_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
EMULATOR_INLINE float __fadd_rn(float a, float b) { return a + b; }
EMULATOR_INLINE float __fmul_rn(float a, float b) { return a * b; }
EMULATOR_INLINE float __fdividef(float a, float b) { return a / b; }
EMULATOR_INLINE float __expf(float x) { return __builtin_expf(x); }
EMULATOR_INLINE float __logf(float x) { return __builtin_logf(x); }
EMULATOR_INLINE float rsqrtf(float x) { return 1 / __builtin_sqrtf(x); }
EMULATOR_INLINE double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

// Cache hints do not change what is loaded.
template <class T>
EMULATOR_INLINE T __ldg(const T* p) {
  return *p;
}
template <class T>
EMULATOR_INLINE T __ldcs(const T* p) {
  return *p;
}
template <class T>
EMULATOR_INLINE T __ldca(const T* p) {
  return *p;
}
template <class T>
EMULATOR_INLINE T __ldcg(const T* p) {
  return *p;
}
template <class T>
EMULATOR_INLINE void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
EMULATOR_INLINE void __stcg(T* p, T value) {
  *p = value;
}
