// SPDX-License-Identifier: MIT
//
// Intrinsics that round, in each mode, against the mode's definition and against values worked out
// by hand. Compiled with and without counting.
#include <math_constants.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <limits>

#include "device_functions.hpp"

namespace emulator {
namespace {

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

TEST(Rounding, ConvertsToIntegersAsPtxDoes) {
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

TEST(Rounding, FloatArithmetic) {
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

TEST(Rounding, Corners) {
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

TEST(Rounding, DoubleArithmetic) {
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
TEST(Rounding, ConvertsToFloatingPoint) {
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

}  // namespace
}  // namespace emulator
