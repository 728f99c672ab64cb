// SPDX-License-Identifier: MIT
//
// The fastest product errs no more than the library, on any kind of input.
#ifdef __CUDACC__  // the emulator has no library
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gpu.hpp"
#include "sgemm/problem.cuh"
#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
namespace {

constexpr Kind kKinds[] = {Kind::uniform,  Kind::normal, Kind::wide,
                           Kind::positive, Kind::scaled, Kind::cancelling,
                           Kind::integers, Kind::powers, Kind::denormals};

// Where few terms make the sum, the library hardly errs, nor need we by less than 2^-23.
bool is_as_exact(const Verdict& v) {
  return v.relative_error <= std::max(*v.library_relative_error, 0x1p-23) &&
         v.worst_error <= *v.library_worst_error;
}

// `see(name, verdict)` for each kind of input, and for one with alpha and beta.
template <class See>
void for_each_kind(const Device& device, int m, int n, int k, See see) {
  Sgemm problem(Case({{"m"}, {"n"}, {"k"}}, {m, n, k}), device);
  const auto multiplied = [&](auto input) {
    problem.poison();
    problem.prepare(input);
    multiply(problem.gemm(), device, problem.workspace(), nullptr);
    return problem.compare();
  };
  const std::string shape =
      " at " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  see("updating" + shape, multiplied(0));
  for (const Kind kind : kKinds) see("kind " + std::to_string(int(kind)) + shape, multiplied(kind));
}

TEST(Gpu, SgemmIsAsExactAsTheLibrary) {
  NEED_GPU();
  const Device device = Device::open(0);
  if (device.compute_capability < 80) GTEST_SKIP() << "no TF32";
  constexpr int kShapes[][3] = {
      {512, 512, 512},    {64, 64, 16384},    {512, 512, 16384}, {1024, 1024, 16384},
      {768, 2048, 16384}, {1536, 1536, 4096}, {768, 768, 768},   {300, 700, 128},
      {1000, 3000, 77},   {1024, 1024, 256},  {4096, 4096, 256}, {1023, 1024, 4097},
      {512, 512, 2048},   {1200, 1200, 1200}, {2048, 2048, 512}, {1024, 1024, 16},
      {4000, 4000, 64},   {1024, 1024, 1024}, {128, 8192, 8192}, {2048, 2048, 2048},
      {64, 64, 1400},     {16, 300, 1001},    {512, 512, 140},   {333, 250, 96},
      {256, 256, 64},     {40, 33, 20},       {1, 4096, 4096},   {1, 500, 512},
      {2, 8192, 4096},    {7, 1120, 576},     {6048, 1, 2784},   {8192, 1, 4096},
      {4096, 4, 4096},    {300, 5, 700},      {8192, 8, 4096},   {4096, 4096, 4096},
      {8, 20000, 256},    {5, 9000, 64},      {20000, 8, 64},    {1024, 1024, 384},
      {1024, 1024, 512}};
  for (const auto& [m, n, k] : kShapes)
    for_each_kind(device, m, n, k, [&](const std::string& input, const Verdict& v) {
      EXPECT_TRUE(is_as_exact(v)) << input << ": " << v.relative_error << " of "
                                  << *v.library_relative_error << ", " << v.worst_error << " of "
                                  << *v.library_worst_error;
    });
}

// At shapes that nobody chose: where terms or outputs are few, a rounding more or less decides.
TEST(Gpu, SgemmIsMostlyAsExactAsTheLibraryAtDrawnShapes) {
  NEED_GPU();
  const Device device = Device::open(0);
  if (device.compute_capability < 80) GTEST_SKIP() << "no TF32";
  int all = 0, less_exact = 0;
  for (int i = 0; i < 50; ++i) {
    int sides[3];
    for (int axis = 0; axis < 3; ++axis) {
      const double unit = random_bits(3 * i + axis, 8) * 0x1p-32;  // in [0, 1)
      sides[axis] = int(std::exp2(13 * unit));
      if (i % 3 != 0) sides[axis] = ceil_div(sides[axis], 32) * 32;
    }
    const auto [m, n, k] = sides;
    for_each_kind(device, m, n, k, [&](const std::string& input, const Verdict& v) {
      ++all;
      if (is_as_exact(v)) return;
      ++less_exact;
      EXPECT_LE(v.error_over_library.value_or(INFINITY), k < 128 || m * n < 32 ? 3 : 1.25) << input;
    });
  }
  EXPECT_LE(less_exact, all / 20);
}

}  // namespace
}  // namespace ladders::sgemm
#endif
