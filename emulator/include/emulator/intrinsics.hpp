// SPDX-License-Identifier: MIT
//
// What the device has instructions for: conversions, arithmetic in each rounding, integers and
// bits, to the bit. Fast math is the host's instead, which is more exact than a GPU's.
#pragma once

#include <cfenv>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "emulator/language.hpp"

// (type, name, value, parameters): as a part of the kernel, or as a call if it branches or calls.
#define EMULATOR_OP(T, NAME, VALUE, ...) \
  EMULATOR_INLINE T NAME(__VA_ARGS__) { return static_cast<T>(VALUE); }
#define EMULATOR_CALL(T, NAME, VALUE, ...) \
  EMULATOR_CALLED T NAME(__VA_ARGS__) { return static_cast<T>(VALUE); }

namespace emulator {

using i64 = long long;
using u64 = unsigned long long;
constexpr u64 pair(unsigned low, unsigned high) { return u64{high} << 32 | low; }

// PTX's cvt clamps. NaN becomes 0, or the highest bit alone if source or result has 64 bits.
template <class To, class From>
EMULATOR_INLINE To to_integer(double value) {
  using Limits = std::numeric_limits<To>;
  constexpr int kBits = 8 * sizeof(To);
  if (value != value) return kBits == 64 || sizeof(From) == 8 ? To{1} << (kBits - 1) : 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return value >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<To>(value);
}

/// Hides a value from the optimiser.
template <class T>
EMULATOR_INLINE T opaque(T value) {
  asm volatile("" : "+m"(value) : : "memory");
  return value;
}

}  // namespace emulator

// clang-format off: tables
template <class A, class B, class T = std::common_type_t<A, B>>
constexpr T min(A a, B b) { return T(b) < T(a) || T(a) != T(a) ? T(b) : T(a); }
template <class A, class B, class T = std::common_type_t<A, B>>
constexpr T max(A a, B b) { return T(a) < T(b) || T(a) != T(a) ? T(b) : T(a); }
// For two arguments of one type there are functions, as in CUDA, which the compiler prefers to
// templates of the source and of std.
#define EMULATOR_LEAST_MOST(T)                               \
  constexpr T min(T a, T b) { return min<T, T>(a, b); }      \
  constexpr T max(T a, T b) { return max<T, T>(a, b); }
EMULATOR_LEAST_MOST(int) EMULATOR_LEAST_MOST(unsigned) EMULATOR_LEAST_MOST(long)
EMULATOR_LEAST_MOST(unsigned long) EMULATOR_LEAST_MOST(long long)
EMULATOR_LEAST_MOST(emulator::u64) EMULATOR_LEAST_MOST(float) EMULATOR_LEAST_MOST(double)

// ---- conversions and arithmetic in each rounding

#define EMULATOR_TO_INTEGER(TO, NAME, FROM)                                            \
  EMULATOR_CALL(TO, NAME##_rn, (emulator::to_integer<TO, FROM>(std::rint(v))), FROM v) \
  EMULATOR_CALL(TO, NAME##_rz, (emulator::to_integer<TO, FROM>(v)), FROM v)            \
  EMULATOR_CALL(TO, NAME##_ru, (emulator::to_integer<TO, FROM>(std::ceil(v))), FROM v) \
  EMULATOR_CALL(TO, NAME##_rd, (emulator::to_integer<TO, FROM>(std::floor(v))), FROM v)
#define EMULATOR_TO_INTEGERS(FROM)                                          \
  EMULATOR_TO_INTEGER(int, __##FROM##2int, FROM)                            \
  EMULATOR_TO_INTEGER(unsigned, __##FROM##2uint, FROM)                      \
  EMULATOR_TO_INTEGER(emulator::i64, __##FROM##2ll, FROM)                   \
  EMULATOR_TO_INTEGER(emulator::u64, __##FROM##2ull, FROM)
EMULATOR_TO_INTEGERS(float) EMULATOR_TO_INTEGERS(double)

#define EMULATOR_ROUND(NAME, MODE, T, VALUE, ...) \
  EMULATOR_CALLED T NAME(__VA_ARGS__) {           \
    using emulator::opaque;                       \
    std::fesetround(MODE);                        \
    const T result = opaque<T>(VALUE);            \
    std::fesetround(FE_TONEAREST);                \
    return result;                                \
  }
#define EMULATOR_ROUNDED(T, NAME, VALUE, ...)                     \
  EMULATOR_ROUND(NAME##_rn, FE_TONEAREST, T, VALUE, __VA_ARGS__)  \
  EMULATOR_ROUND(NAME##_rz, FE_TOWARDZERO, T, VALUE, __VA_ARGS__) \
  EMULATOR_ROUND(NAME##_ru, FE_UPWARD, T, VALUE, __VA_ARGS__)     \
  EMULATOR_ROUND(NAME##_rd, FE_DOWNWARD, T, VALUE, __VA_ARGS__)
#define EMULATOR_ARITHMETIC(F, T, FMA)                                                        \
  EMULATOR_ROUNDED(T, __##F##add, opaque(a) + opaque(b), T a, T b)                            \
  EMULATOR_ROUNDED(T, __##F##sub, opaque(a) - opaque(b), T a, T b)                            \
  EMULATOR_ROUNDED(T, __##F##mul, opaque(a) * opaque(b), T a, T b)                            \
  EMULATOR_ROUNDED(T, __##F##div, opaque(a) / opaque(b), T a, T b)                            \
  EMULATOR_ROUNDED(T, __##F##rcp, 1 / opaque(a), T a)                                         \
  EMULATOR_ROUNDED(T, __##F##sqrt, std::sqrt(opaque(a)), T a)                                 \
  EMULATOR_ROUNDED(T, FMA, std::fma(opaque(a), opaque(b), opaque(c)), T a, T b, T c)
EMULATOR_ARITHMETIC(f, float, __fmaf) EMULATOR_ARITHMETIC(d, double, __fma)
#define EMULATOR_CONVERT(T, NAME, FROM) EMULATOR_ROUNDED(T, NAME, opaque(v), FROM v)
EMULATOR_CONVERT(float, __double2float, double) EMULATOR_CONVERT(float, __int2float, int)
EMULATOR_CONVERT(float, __uint2float, unsigned) EMULATOR_CONVERT(float, __ll2float, long long)
EMULATOR_CONVERT(double, __ll2double, long long)
// By way of all 64 bits: in the downward rounding clang's own way from 0 leads to -0.
EMULATOR_ROUNDED(float, __ull2float, opaque<long double>(v), unsigned long long v)
EMULATOR_ROUNDED(double, __ull2double, opaque<long double>(v), unsigned long long v)
#define EMULATOR_AS(TO, NAME, FROM) EMULATOR_OP(TO, NAME, __builtin_bit_cast(TO, v), FROM v)
EMULATOR_AS(int, __float_as_int, float) EMULATOR_AS(unsigned, __float_as_uint, float)
EMULATOR_AS(float, __int_as_float, int) EMULATOR_AS(float, __uint_as_float, unsigned)
EMULATOR_AS(long long, __double_as_longlong, double)
EMULATOR_AS(double, __longlong_as_double, long long)
EMULATOR_OP(double, __int2double_rn, v, int v) EMULATOR_OP(double, __uint2double_rn, v, unsigned v)

// ---- integers and bits

EMULATOR_OP(int, __popc, __builtin_popcount(v), unsigned v)
EMULATOR_OP(int, __popcll, __builtin_popcountll(v), unsigned long long v)
EMULATOR_OP(int, __clz, v ? __builtin_clz(0u + v) : 32, int v)
EMULATOR_OP(int, __clzll, v ? __builtin_clzll(0ull + v) : 64, long long v)
EMULATOR_OP(int, __ffs, __builtin_ffs(v), int v)
EMULATOR_OP(int, __ffsll, __builtin_ffsll(v), long long v)
EMULATOR_OP(int, __mulhi, emulator::i64{a} * b >> 32, int a, int b)
EMULATOR_OP(unsigned, __umulhi, emulator::u64{a} * b >> 32, unsigned a, unsigned b)
EMULATOR_OP(long long, __mul64hi, __int128{a} * b >> 64, long long a, long long b)
EMULATOR_OP(unsigned long long, __umul64hi, static_cast<unsigned __int128>(a) * b >> 64,
            unsigned long long a, unsigned long long b)
EMULATOR_OP(int, __mul24, 1u * (a << 8 >> 8) * (b << 8 >> 8), int a, int b)
EMULATOR_OP(unsigned, __umul24, (a << 8 >> 8) * (b << 8 >> 8), unsigned a, unsigned b)
EMULATOR_OP(int, __hadd, (a & b) + ((a ^ b) >> 1), int a, int b)
EMULATOR_OP(int, __rhadd, (a | b) - ((a ^ b) >> 1), int a, int b)
EMULATOR_OP(unsigned, __uhadd, (a & b) + ((a ^ b) >> 1), unsigned a, unsigned b)
EMULATOR_OP(unsigned, __urhadd, (a | b) - ((a ^ b) >> 1), unsigned a, unsigned b)
EMULATOR_CALL(unsigned, __sad, (a < b ? 0u + b - a : 0u + a - b) + c, int a, int b, unsigned c)
EMULATOR_CALL(unsigned, __usad, (a < b ? b - a : a - b) + c, unsigned a, unsigned b, unsigned c)
#define EMULATOR_FUNNEL(NAME, VALUE) \
  EMULATOR_CALL(unsigned, NAME, VALUE, unsigned low, unsigned high, unsigned shift)
EMULATOR_FUNNEL(__funnelshift_l, emulator::pair(low, high) << (shift & 31) >> 32)
EMULATOR_FUNNEL(__funnelshift_lc, emulator::pair(low, high) << min(shift, 32u) >> 32)
EMULATOR_FUNNEL(__funnelshift_r, emulator::pair(low, high) >> (shift & 31))
EMULATOR_FUNNEL(__funnelshift_rc, emulator::pair(low, high) >> min(shift, 32u))
// (type, name, end and step of i, what is added for each i, parameters)
#define EMULATOR_SUM(T, NAME, END, STEP, PART, ...)            \
  EMULATOR_CALLED T NAME(__VA_ARGS__) {                        \
    auto sum = 0u + static_cast<T>(0);                         \
    for (int i = 0; i < END; i += STEP) sum += PART;           \
    return static_cast<T>(sum);                                \
  }
EMULATOR_SUM(unsigned, __brev, 32, 1, (v >> i & 1) << (31 - i), unsigned v)
EMULATOR_SUM(emulator::u64, __brevll, 64, 1, (v >> i & 1) << (63 - i), emulator::u64 v)
EMULATOR_SUM(unsigned, __byte_perm, 32, 8,
  (emulator::pair(a, b) >> 8 * (s >> i / 2 & 7) & 0xFF) << i, unsigned a, unsigned b, unsigned s)
EMULATOR_SUM(int, __dp4a, 32, 8,
  (a << (24 - i) >> 24) * (b << (24 - i) >> 24) + c * !i, int a, int b, int c)
EMULATOR_SUM(unsigned, __dp4a, 32, 8,
  (a >> i & 0xFF) * (b >> i & 0xFF) + c * !i, unsigned a, unsigned b, unsigned c)
/// The lane of the offset-th bit of `mask` from `base` on, downwards if negative; ~0 without one.
EMULATOR_CALLED unsigned __fns(unsigned mask, unsigned base, int offset) {
  int left = offset == 0 ? 1 : std::abs(offset);
  for (unsigned lane = base; lane < (offset == 0 ? base + 1 : 32); lane += offset < 0 ? ~0u : 1)
    if ((mask >> lane & 1) != 0 && --left == 0) return lane;
  return ~0u;
}

// ---- fast math, what the host's <math.h> has not, and cache hints, which change no value

#define EMULATOR_FAST(NAME, FUNCTION) EMULATOR_CALL(float, NAME, FUNCTION(x), float x)
EMULATOR_FAST(__sinf, std::sin) EMULATOR_FAST(__cosf, std::cos) EMULATOR_FAST(__tanf, std::tan)
EMULATOR_FAST(__log2f, std::log2) EMULATOR_FAST(__log10f, std::log10)
EMULATOR_FAST(__exp10f, ::exp10f)
EMULATOR_OP(float, __expf, __builtin_expf(x), float x)
EMULATOR_OP(float, __logf, __builtin_logf(x), float x)
EMULATOR_OP(float, __fdividef, x / y, float x, float y)
EMULATOR_OP(float, fdividef, x / y, float x, float y)
EMULATOR_OP(float, rsqrtf, 1 / std::sqrt(x), float x)
EMULATOR_OP(double, rsqrt, 1 / std::sqrt(x), double x)
EMULATOR_CALL(float, __powf, std::pow(x, y), float x, float y)
EMULATOR_CALL(float, __frsqrt_rn, 1 / std::sqrt(double{x}), float x)
EMULATOR_CALL(float, __saturatef, x > 0 ? std::fmin(x, 1.0f) : 0, float x)
EMULATOR_CALL(double, normcdf, std::erfc(x * -M_SQRT1_2) / 2, double x)
EMULATOR_CALL(float, normcdff, normcdf(x), float x)
EMULATOR_INLINE void __sincosf(float x, float* s, float* c) { *s = __sinf(x), *c = __cosf(x); }
#define EMULATOR_LOAD(NAME) template <class T> EMULATOR_INLINE T NAME(const T* p) { return *p; }
EMULATOR_LOAD(__ldg) EMULATOR_LOAD(__ldca) EMULATOR_LOAD(__ldcg) EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldcv) EMULATOR_LOAD(__ldlu)
#define EMULATOR_STORE(NAME) template <class T> EMULATOR_INLINE void NAME(T* p, T v) { *p = v; }
EMULATOR_STORE(__stcg) EMULATOR_STORE(__stcs) EMULATOR_STORE(__stwb) EMULATOR_STORE(__stwt)

// ---- the launch ends with a fault at the call; the host's clock, which is no GPU's

void __trap(), __brkpt();
inline long long clock64() { return clock(); }
