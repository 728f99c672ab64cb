// SPDX-License-Identifier: MIT
//
// Intrinsics against a second, slow definition or against values worked out by hand. Compiled with
// and without counting.
#include <math_constants.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <climits>
#include <limits>
#include <tuple>

#include "support.hpp"

namespace emulator {
namespace {

template <class R, class... A>
__global__ void apply(R* out, R (*function)(A...), const std::tuple<A...>* rows, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = std::apply(function, rows[i]);
}
template <class R, class... A>
std::vector<R> on_device(R (*function)(A...), const std::vector<std::tuple<A...>>& rows) {
  const DeviceArray<std::tuple<A...>> in(rows);
  const DeviceArray<R> out(rows.size());
  const int n = static_cast<int>(rows.size());
  EXPECT_TRUE(
      runs(launch({static_cast<unsigned>(n + 63) / 64, 64}, apply<R, A...>, out, function, in, n)));
  return out.values();
}
template <class R, class... A>
R once(R (*function)(A...), std::type_identity_t<A>... arguments) {
  return on_device(function, {std::tuple<A...>(arguments...)})[0];
}
template <class... A>
std::vector<std::tuple<A...>> pairs_of(
    const std::vector<std::tuple_element_t<0, std::tuple<A...>>>& v) {
  std::vector<std::tuple<A...>> rows;
  for (const auto a : v)
    for (const auto b : v) {
      if constexpr (sizeof...(A) == 2) rows.emplace_back(a, b);
      if constexpr (sizeof...(A) == 3)
        for (const auto c : v) rows.emplace_back(a, b, c);
    }
  return rows;
}
template <class T>
std::vector<std::tuple<T>> singles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// ---- conversions to integers

enum class Mode { nearest, zero, up, down };

long double rounded(long double v, Mode mode) {
  const long double below = std::floor(v), rest = v - below;
  if (rest == 0) return v;
  switch (mode) {
    case Mode::down:
      return below;
    case Mode::up:
      return below + 1;
    case Mode::zero:
      return v < 0 ? below + 1 : below;
    default:
      if (rest != 0.5L) return rest < 0.5L ? below : below + 1;
      return std::fmod(below, 2.0L) == 0 ? below : below + 1;
  }
}

// https://docs.nvidia.com/cuda/parallel-thread-execution, cvt: "NaN input results in zero if source
// is not .f64 and destination is not .s64, .u64, otherwise 1 << (BitWidth(dst) - 1)".
template <class To, class From>
To converted(From v, Mode mode) {
  using Limits = std::numeric_limits<To>;
  const bool wide = sizeof(To) == 8 || sizeof(From) == 8;
  if (std::isnan(v))
    return wide ? static_cast<To>(1ull << (Limits::is_signed ? Limits::digits : Limits::digits - 1))
                : To{0};
  if (std::isinf(v)) return v > 0 ? Limits::max() : Limits::min();
  const long double whole = rounded(v, mode);
  if (whole > static_cast<long double>(Limits::max())) return Limits::max();
  if (whole < static_cast<long double>(Limits::min())) return Limits::min();
  return static_cast<To>(whole);
}

template <class From>
std::vector<From> hard_values() {
  constexpr From inf = std::numeric_limits<From>::infinity();
  std::vector<From> values{0,
                           -From{0},
                           std::numeric_limits<From>::denorm_min(),
                           inf,
                           std::numeric_limits<From>::max(),
                           std::numeric_limits<From>::quiet_NaN()};
  for (const double v : {0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 1e3, 8388607.5, 2147483647.5, 0x1p31,
                         0x1p32, 4294967295.5, 0x1p52, 0x1p62, 0x1p63, 0x1p64, 1e30}) {
    const auto exact = static_cast<From>(v);
    for (const From near : {exact, std::nextafter(exact, inf), std::nextafter(exact, -inf)})
      values.push_back(near);
  }
  for (std::size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  return values;
}

template <class To, class From>
void expect_conversion(To (*function)(From), Mode mode) {
  const std::vector<From> values = hard_values<From>();
  const std::vector<To> results = on_device(function, singles(values));
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(results[i], (converted<To, From>(values[i], mode)))
        << values[i] << ", mode " << static_cast<int>(mode);
}
#define EXPECT_CONVERSIONS(NAME)                 \
  do {                                           \
    SCOPED_TRACE(#NAME);                         \
    expect_conversion(NAME##_rn, Mode::nearest); \
    expect_conversion(NAME##_rz, Mode::zero);    \
    expect_conversion(NAME##_ru, Mode::up);      \
    expect_conversion(NAME##_rd, Mode::down);    \
  } while (false)

TEST(Intrinsics, ConvertToIntegersAsPtxDoes) {
  EXPECT_CONVERSIONS(__float2int);
  EXPECT_CONVERSIONS(__float2uint);
  EXPECT_CONVERSIONS(__float2ll);
  EXPECT_CONVERSIONS(__float2ull);
  EXPECT_CONVERSIONS(__double2int);
  EXPECT_CONVERSIONS(__double2uint);
  EXPECT_CONVERSIONS(__double2ll);
  EXPECT_CONVERSIONS(__double2ull);
  // By hand.
  EXPECT_EQ(once(__float2int_rn, 2.5f), 2);
  EXPECT_EQ(once(__float2int_rn, -3.5f), -4);
  EXPECT_EQ(once(__float2int_ru, -0.5f), 0);
  EXPECT_EQ(once(__float2int_rd, -0.5f), -1);
  EXPECT_EQ(once(__float2int_rz, 3e9f), INT_MAX);
  EXPECT_EQ(once(__float2int_rz, CUDART_NAN_F), 0);
  EXPECT_EQ(once(__float2uint_rz, -1.0f), 0u);
  EXPECT_EQ(once(__float2uint_rz, CUDART_INF_F), UINT_MAX);
  EXPECT_EQ(once(__double2int_rz, CUDART_NAN), INT_MIN);
  EXPECT_EQ(once(__float2ll_rz, CUDART_NAN_F), LLONG_MIN);
  EXPECT_EQ(once(__double2ull_rz, CUDART_NAN), 1ull << 63);
}

// ---- arithmetic and conversions to floating point

// Each mode by its definition: the value next to the exact one on the side that the mode says,
// where `compare(q)` is the sign of the exact result less q.
template <class T, class F>
T nearest_below(T start, F compare) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  T q = start;
  int far = 100;  // from the start, which may be the result of a launch that failed
  while (compare(q) < 0 && --far > 0) q = std::nextafter(q, -inf);
  while (q < inf && compare(std::nextafter(q, inf)) >= 0 && --far > 0) q = std::nextafter(q, inf);
  EXPECT_GT(far, 0);
  return q;
}
template <class T, class F>
T nearest_above(T start, F compare) {
  return -nearest_below(-start, [&](T q) { return -compare(-q); });
}
template <class R, class... A, class F>
void expect_rounded(R (*rn)(A...), R (*rz)(A...), R (*ru)(A...), R (*rd)(A...),
                    const std::vector<std::tuple<A...>>& rows, F compare) {
  const auto n = on_device(rn, rows), z = on_device(rz, rows), u = on_device(ru, rows),
             d = on_device(rd, rows);
  int inexact = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto sign = [&](R q) {
      return std::apply([&](A... a) { return compare(q, a...); }, rows[i]);
    };
    const R below = nearest_below(n[i], sign), above = nearest_above(n[i], sign);
    ASSERT_EQ(d[i], below) << i;
    ASSERT_EQ(u[i], above) << i;
    ASSERT_EQ(z[i], sign(R{0}) < 0 ? above : below) << i;
    ASSERT_TRUE(n[i] == below || n[i] == above) << i;
    inexact += below != above;
  }
  EXPECT_GT(inexact, 0);
}
#define EXPECT_ROUNDED(NAME, ...)                                            \
  do {                                                                       \
    SCOPED_TRACE(#NAME);                                                     \
    expect_rounded(NAME##_rn, NAME##_rz, NAME##_ru, NAME##_rd, __VA_ARGS__); \
  } while (false)

int sign_of(long double v) { return (v > 0) - (v < 0); }

// Of 24 bits and within 2^±8, so that sums and products are exact in double precision.
const std::vector<float> kFloats{1.0f,          -1.0f,   3.0f,          1.0f / 3,        -2.0f / 7,
                                 0x1.fffffep7f, 0x1p-8f, 0x1.000002p0f, -0x1.555556p-3f, 0.1f,
                                 10.0f,         -100.7f};

TEST(Intrinsics, RoundFloatArithmetic) {
  using Two = std::vector<std::tuple<float, float>>;
  const Two rows = pairs_of<float, float>(kFloats);
  EXPECT_ROUNDED(__fadd, rows,
                 [](float q, float a, float b) { return sign_of(double{a} + b - q); });
  EXPECT_ROUNDED(__fsub, rows,
                 [](float q, float a, float b) { return sign_of(double{a} - b - q); });
  EXPECT_ROUNDED(__fmul, rows,
                 [](float q, float a, float b) { return sign_of(double{a} * b - q); });
  EXPECT_ROUNDED(__fdiv, rows,
                 [](float q, float a, float b) { return sign_of(a - double{q} * b) * sign_of(b); });
  std::vector<std::tuple<float, float, float>> triples = pairs_of<float, float, float>(kFloats);
  EXPECT_ROUNDED(__fmaf, triples, [](float q, float a, float b, float c) {
    return sign_of(static_cast<long double>(double{a} * b) + c - q);
  });
  std::vector<float> positive = kFloats;
  for (float& v : positive) v = std::fabs(v);
  EXPECT_ROUNDED(__fsqrt, singles(positive),
                 [](float q, float a) { return q < 0 ? 1 : sign_of(a - double{q} * q); });
  EXPECT_ROUNDED(__frcp, singles(kFloats),
                 [](float q, float a) { return sign_of(1 - double{q} * a) * sign_of(a); });
}

TEST(Intrinsics, RoundInTheCorners) {
  EXPECT_EQ(once(__fadd_ru, 1.0f, 0x1p-100f), 0x1.000002p0f);
  EXPECT_EQ(once(__fadd_rd, 1.0f, 0x1p-100f), 1.0f);
  EXPECT_EQ(once(__fadd_rz, 1.0f, -0x1p-100f), 0x1.fffffep-1f);
  EXPECT_EQ(once(__fadd_rz, FLT_MAX, FLT_MAX), FLT_MAX);
  EXPECT_EQ(once(__fadd_rn, FLT_MAX, FLT_MAX), CUDART_INF_F);
  EXPECT_EQ(once(__fadd_ru, -FLT_MAX, -FLT_MAX), -FLT_MAX);
  EXPECT_TRUE(std::signbit(once(__fadd_rd, 1.0f, -1.0f)));
  EXPECT_FALSE(std::signbit(once(__fadd_rn, 1.0f, -1.0f)));
  EXPECT_EQ(once(__fmul_ru, 0x1p-100f, 0x1p-100f), 0x1p-149f);
  EXPECT_EQ(once(__fmul_rd, 0x1p-100f, 0x1p-100f), 0.0f);
  EXPECT_EQ(once(__fdiv_rz, 1.0f, 0.0f), CUDART_INF_F);
  EXPECT_TRUE(std::isnan(once(__fsqrt_rn, -1.0f)));
  EXPECT_EQ(once(__fmaf_rn, 0x1.000002p0f, 0x1.fffffcp-1f, -1.0f), -0x1p-46f);  // not 0
  EXPECT_EQ(once(__fma_rn, 1 + 0x1p-30, 1 - 0x1p-30, -1.0), -0x1p-60);
}

TEST(Intrinsics, RoundDoubleArithmetic) {
  // Sums and products of at most 64 bits.
  const std::vector<double> values{1.0,          -1.0,           3.0,    1 + 0x1p-31,
                                   -1 - 0x1p-30, 0x1.fffffffep7, 0x1p-10};
  const auto rows = pairs_of<double, double>(values);
  std::vector<std::tuple<double, double>> far;  // whose sums take more than 53
  for (const double v : values) far.emplace_back(v, 0x1p-60), far.emplace_back(v, -0x1.8p-59);
  using Long = long double;
  EXPECT_ROUNDED(__dadd, far,
                 [](double q, double a, double b) { return sign_of(Long{a} - q + b); });
  EXPECT_ROUNDED(__dsub, far,
                 [](double q, double a, double b) { return sign_of(Long{a} - q - b); });
  EXPECT_ROUNDED(__dmul, rows,
                 [](double q, double a, double b) { return sign_of(Long{a} * b - q); });
  const auto divided = [](double q, double a, double b) {
    return sign_of(-std::fma(q, b, -a)) * sign_of(b);
  };
  EXPECT_ROUNDED(__ddiv, rows, divided);
  EXPECT_ROUNDED(__drcp, singles(values), [&](double q, double a) { return divided(q, 1, a); });
  EXPECT_ROUNDED(__dsqrt, singles<double>({2, 3, 4, 0.1, 1e300, 1e-300}),
                 [](double q, double a) { return q < 0 ? 1 : sign_of(-std::fma(q, q, -a)); });
  const auto triples = pairs_of<double, double, double>({1.0, -3.0, 1 + 0x1p-31, 0x1p-10});
  EXPECT_ROUNDED(__fma, triples, [](double q, double a, double b, double c) {
    return sign_of(Long{a} * b - q + c);
  });
}

template <class T, class From>
int difference(T q, From v) {
  return sign_of(static_cast<long double>(v) - static_cast<long double>(q));
}
#define EXPECT_FROM(NAME, T, FROM, ...) \
  EXPECT_ROUNDED(NAME, singles<FROM>(__VA_ARGS__), difference<T, FROM>)
TEST(Intrinsics, ConvertToFloatingPoint) {
  const std::vector<long long> wide{0,
                                    1,
                                    -1,
                                    (1ll << 24) + 1,
                                    -(1ll << 24) - 3,
                                    (1ll << 53) + 1,
                                    LLONG_MAX,
                                    LLONG_MIN,
                                    LLONG_MIN + 1,
                                    0x7FFFFF4000000001};
  const std::vector<int> narrow{
      0, 1, -1, (1 << 24) + 1, (1 << 24) + 3, -(1 << 25) - 2, INT_MAX, INT_MIN, INT_MIN + 1};
  EXPECT_FROM(__int2float, float, int, narrow);
  EXPECT_FROM(__uint2float, float, unsigned, {narrow.begin(), narrow.end()});
  EXPECT_FROM(__ll2float, float, long long, wide);
  EXPECT_FROM(__ull2float, float, unsigned long long, {wide.begin(), wide.end()});
  EXPECT_FROM(__ll2double, double, long long, wide);
  EXPECT_FROM(__ull2double, double, unsigned long long, {wide.begin(), wide.end()});
  EXPECT_FROM(__double2float, float, double,
              {0.0, 0.1, -0.1, 1 + 0x1p-24, 1 + 0x1.8p-24, 1e-46, -1e300, 1e300, 0x1.ffffffp127});
  EXPECT_EQ(once(__double2float_rz, 1e300), FLT_MAX);
  EXPECT_EQ(once(__double2float_rn, 1e300), CUDART_INF_F);
  EXPECT_EQ(once(__double2float_rn, 1 + 0x1p-24), 1.0f);           // a tie, to even
  EXPECT_EQ(once(__double2float_rn, 1 + 0x3p-24), 0x1.000004p0f);  // likewise
  EXPECT_EQ(once(__int2float_rn, (1 << 24) + 1), 0x1p24f);
  EXPECT_TRUE(std::isnan(once(__double2float_rd, CUDART_NAN)));
  EXPECT_FALSE(std::signbit(once(__int2float_rd, 0)));
  EXPECT_FALSE(std::signbit(once(__ull2float_rd, 0)));
  EXPECT_FALSE(std::signbit(once(__ull2double_rd, 0)));
  EXPECT_EQ(once(__int2double_rn, INT_MIN), -0x1p31);
  EXPECT_EQ(once(__uint2double_rn, UINT_MAX), 4294967295.0);
}

// ---- integers and bits

const std::vector<unsigned> kWords{0,          1,          2,          0x7FFFFF,   0x800000,
                                   0xFFFFFF,   0x1000001,  0x12345678, 0x7FFFFFFF, 0x80000000,
                                   0x80000001, 0xDEADBEEF, 0xFFFFFFFF};
std::vector<int> signed_words() { return {kWords.begin(), kWords.end()}; }

template <class R, class A, class F>
void expect_of_pairs(R (*function)(A, A), const std::vector<A>& values, F expected) {
  const auto rows = pairs_of<A, A>(values);
  const auto results = on_device(function, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [a, b] = rows[i];
    EXPECT_EQ(results[i], static_cast<R>(expected(a, b))) << a << ", " << b;
  }
}
long long low_24_bits(int v) {
  return (static_cast<long long>(v) & 0xFFFFFF) - ((v & 0x800000) ? 0x1000000 : 0);
}
long long floor_half(long long v) { return (v - ((v % 2 + 2) % 2)) / 2; }

TEST(Intrinsics, MultiplyAndAverage) {
  using Wide = long long;
  const std::vector<int> ints = signed_words();
  expect_of_pairs(__mul24, ints, [](int a, int b) {
    return static_cast<unsigned>(low_24_bits(a) * low_24_bits(b));
  });
  expect_of_pairs(__umul24, kWords,
                  [](unsigned a, unsigned b) { return (a % 0x1000000ull) * (b % 0x1000000ull); });
  expect_of_pairs(__mulhi, ints, [](int a, int b) {
    const Wide product = Wide{a} * b;
    return (product - (product % 0x100000000 + 0x100000000) % 0x100000000) / 0x100000000;
  });
  expect_of_pairs(__umulhi, kWords,
                  [](unsigned a, unsigned b) { return 1ull * a * b / 0x100000000; });
  expect_of_pairs(__hadd, ints, [](int a, int b) { return floor_half(Wide{a} + b); });
  expect_of_pairs(__rhadd, ints, [](int a, int b) { return floor_half(Wide{a} + b + 1); });
  expect_of_pairs(__uhadd, kWords, [](unsigned a, unsigned b) { return (1ull * a + b) / 2; });
  expect_of_pairs(__urhadd, kWords, [](unsigned a, unsigned b) { return (1ull * a + b + 1) / 2; });
  // By halves, as in school.
  const std::vector<unsigned long long> longs{0,    1, 0xFFFFFFFF, 1ull << 63, 0x123456789ABCDEF0,
                                              ~0ull};
  const auto high = [](unsigned long long a, unsigned long long b) {
    const unsigned long long mask = 0xFFFFFFFF, low = (a & mask) * (b & mask);
    const unsigned long long one = (a >> 32) * (b & mask) + (low >> 32);
    const unsigned long long two = (a & mask) * (b >> 32) + (one & mask);
    return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32);
  };
  expect_of_pairs(__umul64hi, longs, high);
  expect_of_pairs(__mul64hi, std::vector<Wide>(longs.begin(), longs.end()),
                  [&](Wide a, Wide b) { return high(a, b) - (a < 0 ? b : 0) - (b < 0 ? a : 0); });
}

TEST(Intrinsics, SumDifferencesAndProducts) {
  for (const auto& [a, b, c] : pairs_of<int, int, int>({0, 5, -7, INT_MAX, INT_MIN})) {
    const unsigned third = static_cast<unsigned>(c);
    EXPECT_EQ(once(__sad, a, b, third),
              static_cast<unsigned>(std::abs(static_cast<long long>(a) - b) + third));
    const unsigned first = static_cast<unsigned>(a), second = static_cast<unsigned>(b);
    EXPECT_EQ(once(__usad, first, second, third),
              std::max(first, second) - std::min(first, second) + third);
  }
  int (*const of_signed)(int, int, int) = __dp4a;
  unsigned (*const of_unsigned)(unsigned, unsigned, unsigned) = __dp4a;
  EXPECT_EQ(once(of_signed, 0x01020304, 0x05060708, 10), 1 * 5 + 2 * 6 + 3 * 7 + 4 * 8 + 10);
  EXPECT_EQ(once(of_signed, static_cast<int>(0x80FF7F01), 0x7F808001, -1),
            -128 * 127 + 128 - 127 * 128 + 1 - 1);
  EXPECT_EQ(once(of_unsigned, 0x80FF7F01u, 0x7F808001u, 1u),
            128u * 127 + 255 * 128 + 127 * 128 + 1 + 1);
  EXPECT_EQ(once(of_signed, 0x01010101, 0x01010101, INT_MAX), INT_MIN + 3);
}

TEST(Intrinsics, MoveBits) {
  std::vector<unsigned long long> words;
  for (int bit = 0; bit < 64; ++bit) words.push_back(1ull << bit);
  words.insert(words.end(), {0, ~0ull, 0x123456789ABCDEF0});
  const auto reversed = on_device(__brevll, singles(words));
  for (std::size_t i = 0; i < words.size(); ++i)
    for (int bit = 0; bit < 64; ++bit)
      EXPECT_EQ(reversed[i] >> bit & 1, words[i] >> (63 - bit) & 1);
  EXPECT_EQ(once(__brev, 1u), 0x80000000u);
  EXPECT_EQ(once(__brev, 0x12345678u), 0x1E6A2C48u);

  const unsigned a = 0x33221100, b = 0x77665544;
  EXPECT_EQ(once(__byte_perm, a, b, 0x3210u), a);
  EXPECT_EQ(once(__byte_perm, a, b, 0x7654u), b);
  EXPECT_EQ(once(__byte_perm, a, b, 0x0123u), 0x00112233u);
  EXPECT_EQ(once(__byte_perm, a, b, 0x7531u), 0x77553311u);
  EXPECT_EQ(once(__byte_perm, a, b, 0xFFFF8888u), 0u);  // three bits a selector

  for (const unsigned shift : {0u, 1u, 7u, 31u, 32u, 33u, 63u, 64u, ~0u}) {
    SCOPED_TRACE(shift);
    unsigned left = 0, left_clamped = 0, right = 0, right_clamped = 0;
    const unsigned wrapped = shift % 32, clamped = std::min(shift, 32u);
    const auto bit_of_both = [&](unsigned n) { return n < 32 ? a >> n & 1 : b >> (n - 32) & 1; };
    for (unsigned bit = 0; bit < 32; ++bit) {
      left |= bit_of_both(bit + 32 - wrapped) << bit;
      left_clamped |= bit_of_both(bit + 32 - clamped) << bit;
      right |= bit_of_both(bit + wrapped) << bit;
      right_clamped |= bit_of_both(bit + clamped) << bit;
    }
    EXPECT_EQ(once(__funnelshift_l, a, b, shift), left);
    EXPECT_EQ(once(__funnelshift_lc, a, b, shift), left_clamped);
    EXPECT_EQ(once(__funnelshift_r, a, b, shift), right);
    EXPECT_EQ(once(__funnelshift_rc, a, b, shift), right_clamped);
  }
  EXPECT_EQ(once(__fns, 0xFFFFFFFFu, 5u, 3), 7u);
  EXPECT_EQ(once(__fns, 0x90u, 0u, 1), 4u);
  EXPECT_EQ(once(__fns, 0x90u, 0u, 2), 7u);
  EXPECT_EQ(once(__fns, 0x90u, 0u, 3), ~0u);
  EXPECT_EQ(once(__fns, 0x90u, 6u, -1), 4u);
  EXPECT_EQ(once(__fns, 0x90u, 3u, -1), ~0u);
  EXPECT_EQ(once(__fns, 0x90u, 7u, 0), 7u);
  EXPECT_EQ(once(__fns, 0x90u, 6u, 0), ~0u);
  EXPECT_EQ(once(__clz, 0), 32);
  EXPECT_EQ(once(__clzll, 1), 63);
  EXPECT_EQ(once(__ffs, 0), 0);
  EXPECT_EQ(once(__popcll, ~0ull), 64);
}

// ---- fast math

TEST(Intrinsics, FastMathIsClose) {
  const auto close = [](float (*function)(float), double (*exact)(double),
                        const std::vector<float>& values) {
    const auto results = on_device(function, singles(values));
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(results[i], exact(values[i]), 1e-6 * (1 + std::fabs(exact(values[i]))))
          << values[i];
  };
  const std::vector<float> angles{0, 0.1f, 1, -1, 3.14f}, positive{0.25f, 1, 2, 1000};
  close(__sinf, std::sin, angles);
  close(__cosf, std::cos, angles);
  close(__tanf, std::tan, angles);
  close(__expf, std::exp, angles);
  close(__exp10f, [](double x) { return std::pow(10, x); }, angles);
  close(__logf, std::log, positive);
  close(__log2f, std::log2, positive);
  close(__log10f, std::log10, positive);
  close(rsqrtf, [](double x) { return 1 / std::sqrt(x); }, positive);
  close(normcdff, [](double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2))); }, angles);
  EXPECT_NEAR(once(__powf, 2.0f, 0.5f), std::sqrt(2), 1e-6);
  EXPECT_EQ(once(__fdividef, 1.0f, 4.0f), 0.25f);
  EXPECT_EQ(once(fdividef, 1.0f, 4.0f), 0.25f);
  EXPECT_EQ(once(__saturatef, 2.0f), 1.0f);
  EXPECT_EQ(once(__saturatef, 0.3f), 0.3f);
  EXPECT_EQ(once(__saturatef, -CUDART_INF_F), 0.0f);
  EXPECT_EQ(once(__saturatef, CUDART_NAN_F), 0.0f);
  EXPECT_FALSE(std::signbit(once(__saturatef, -0.0f)));
  EXPECT_EQ(once(__frsqrt_rn, 4.0f), 0.5f);
  EXPECT_EQ(once(__frsqrt_rn, 0.0f), CUDART_INF_F);
  EXPECT_EQ(CUDART_PI_F, static_cast<float>(CUDART_PI));
  EXPECT_EQ(std::bit_cast<unsigned>(CUDART_MAX_NORMAL_F), 0x7F7FFFFFu);
}

// Lanes with NaN, large and small values go different ways in the host's code, and no way of their
// own on the device.
__global__ void converted_by_intrinsics(int* out, const float* in) {
  out[threadIdx.x] = __float2int_rn(in[threadIdx.x]) + __sad(threadIdx.x, 16, 0);
}
TEST(Intrinsics, DoNotDiverge) {
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i) values[i] = i % 3 == 0 ? CUDART_NAN_F : i % 3 == 1 ? 1e30f : 0.5f;
  const DeviceArray<float> in(values);
  const DeviceArray<int> out(32);
  const Recording recording;
  ASSERT_RUNS(launch({1, 32}, converted_by_intrinsics, out, in));
  EXPECT_EQ(recording.report().active_lanes(), counted() ? 32 : 0);
}

}  // namespace
}  // namespace emulator
