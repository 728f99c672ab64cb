// SPDX-License-Identifier: MIT
//
// Intrinsics of integers, bits and fast math against a second, slow definition or against values
// worked out by hand. Compiled with and without counting.
#include <math_constants.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>

#include "device_functions.hpp"

namespace emulator {
namespace {

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
