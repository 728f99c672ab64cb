// SPDX-License-Identifier: MIT
//
// The products of sgemm.hpp, for callers: any leading dimensions and alignment, and numbers that
// are hard to split. Against FP64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>

#include "common/warpgroups.cuh"
#include "gpu.hpp"
#include "sgemm/07_small_tiles.cuh"
#include "sgemm/gemm_launch.cuh"
#include "sgemm/problem.cuh"
#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
namespace {

using Multiply = void (*)(const Gemm&, const Device&, Workspace&);

template <GemmLaunch (*launch_of)(const Gemm&, const Device&)>
void by(const Gemm& g, const Device& device, Workspace&) {
  if (g.m <= 0 || g.n <= 0) return;
  const GemmLaunch found = launch_of(g, device);
  allow(reinterpret_cast<const void*>(found.kernel), found.plan);
  launch(found.plan, nullptr, found.kernel, g);
}
// As on a GPU of one SM, for which there are always enough tiles.
GemmLaunch large_tiles_of_few_terms(const Gemm& g, const Device& like) {
  Device device = like;
  device.sms = 1;
  const GemmLaunch found = few_terms_launch(g, device);
  EXPECT_EQ(found.plan.grid.x, Tiles64x128::count(g.m, g.n));
  return found;
}

constexpr double kLeastOfBf16x6 = 0x1p-134;

struct Trial {
  int m, n, k;
  Kind kind = Kind::uniform;
  bool special = false;
  float alpha = 1, beta = 0;
  int gap = 0, offset = 0;  // floats between rows and before the first, more from A to B to C
  friend std::ostream& operator<<(std::ostream& out, const Trial& t) {
    return out << t.m << " x " << t.n << " x " << t.k << (t.special ? ", special" : "") << ", gap "
               << t.gap << ", offset " << t.offset << ", alpha " << t.alpha << ", beta " << t.beta;
  }
};

// Where an element of a matrix is in its buffer.
struct Area {
  int rows, columns, gap, offset;
  __host__ __device__ int64_t pitch() const { return columns + gap; }
  __host__ __device__ size_t size() const { return offset + rows * pitch(); }
  __device__ int row(size_t i) const { return static_cast<int>((i - offset) / pitch()); }
  __device__ int column(size_t i) const { return static_cast<int>((i - offset) % pitch()); }
  __device__ bool holds(size_t i) const { return i >= size_t(offset) && column(i) < columns; }
};

enum Operand { a_rows, b_columns };
// Rows of A and columns of B that are not finite, denormal, zero or large.
__device__ float special(float x, int line, int at, Operand operand) {
  if (operand == a_rows) switch (line % 16) {
      case 3:
        return at == 0 ? INFINITY : x;
      case 7:
        return at == 1 ? __int_as_float(0x7fffffff) : x;  // that of the GPU's own
      case 9:
        return ldexpf(x, -140);
      case 11:
        return 0;
      case 13:
        return at > 1 ? x : at == 0 ? INFINITY : -INFINITY;
      case 15:
        return ldexpf(x, 127);  // sums of few of these are finite, but in no order
      default:
        return x;
    }
  switch (line % 16) {
    case 5:
      return at == 0 ? -INFINITY : x;
    case 9:
      return at == 2 ? __int_as_float(0x7f800001) : x;
    case 11:
      return ldexpf(x, -140);
    case 12:
      return 0;
    case 14:
      return ldexpf(x, -20);
    default:
      return x;
  }
}

struct Fill {
  Area area;
  Random random;
  bool is_special;
  Operand operand;
  bool unread = false;
  __device__ float operator()(size_t i) const {
    if (unread || !area.holds(i)) return NAN;
    const int row = area.row(i), column = area.column(i);
    const float x = random(size_t(row) * area.columns + column);
    if (!is_special) return x;
    return operand == a_rows ? special(x, row, column, operand) : special(x, column, row, operand);
  }
};

// How far C is from FP64, over what it may be: infinite where it is of another class (infinity,
// NaN) or where something is written beyond the rows. The least elements may be off by
// `least_error`.
double error_over_limit(const Gemm& g, const float* buffer, const float* before, Area area,
                        double least_error) {
  return reduce(
             area.size(),
             [=] __device__(size_t i) -> double {
               if (!area.holds(i)) {
                 return __float_as_uint(buffer[i]) == __float_as_uint(before[i]) ? 0 : INFINITY;
               }
               const int row = area.row(i), column = area.column(i);
               double sum = 0, finite = 0, a_squares = 0, b_squares = 0;
               for (int j = 0; j < g.k && g.alpha != 0; ++j) {
                 const double a = g.a[row * g.lda + j], b = g.b[j * g.ldb + column];
                 sum += a * b, a_squares += a * a, b_squares += b * b;
                 if (isfinite(a * b)) finite += fabs(a * b);
               }
               const double added = g.beta == 0 ? 0 : double(g.beta) * before[i], alpha = g.alpha;
               const double expected = alpha * sum + added, got = buffer[i];
               if (!isfinite(expected) || !isfinite(got)) {
                 // Sums that come near the end of FP32's range may overflow on the way.
                 if (!isfinite(got) && fabs(alpha) * finite > 0x1p126) return 0;
                 return isnan(expected) == isnan(got) && (isnan(got) || expected == got) ? 0
                                                                                         : INFINITY;
               }
               // The least numbers lose bits in tensor cores, and all in the last rounding.
               const double rows = sqrt(a_squares), columns = sqrt(b_squares);
               const double least = least_error * sqrt(double(g.k)) * (rows + columns) + 0x1p-146;
               const double limit =
                   fabs(alpha) * (6e-7 * rows * columns + least) + 6e-7 * fabs(added);
               return fabs(got - expected) / (limit + 0x1p-146);
             })
      .largest;
}

double differing(const float* x, const float* y, size_t count) {
  return reduce(count,
                [=] __device__(size_t i) {
                  return __float_as_uint(x[i]) == __float_as_uint(y[i]) ? 0.0 : 1.0;
                })
      .sum;
}

void copy(const DeviceBuffer<float>& to, const DeviceBuffer<float>& from) {
  if (from.size() == 0) return;
  check(cudaMemcpy(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice), "copy");
}

void expect_right(const Trial& t, Multiply multiply, double least_error = 0x1p-136) {
  SCOPED_TRACE(t);
  static const Device device = Device::open(0);
  const auto area = [&t](int rows, int columns, int more) {
    // Multiples of four keep rows aligned.
    const auto apart = [more](int x) { return x == 0 ? 0 : x + (x % 4 == 0 ? 4 * more : more); };
    return Area{rows, columns, apart(t.gap), apart(t.offset)};
  };
  const Area a_area = area(t.m, t.k, 0), b_area = area(t.k, t.n, 1), c_area = area(t.m, t.n, 2);
  const DeviceBuffer<float> a(a_area.size()), b(b_area.size()), before(c_area.size()),
      c(c_area.size()), first(c_area.size());
  generate(a.data(), a.size(), Fill{a_area, {t.kind, 1}, t.special, a_rows});
  generate(b.data(), b.size(), Fill{b_area, {t.kind, 2}, t.special, b_columns});
  generate(before.data(), before.size(),
           Fill{c_area, {Kind::uniform, 3}, false, a_rows, t.beta == 0});
  const Gemm g{a.data() + a_area.offset,
               a_area.pitch(),
               b.data() + b_area.offset,
               b_area.pitch(),
               c.data() + c_area.offset,
               c_area.pitch(),
               t.m,
               t.n,
               t.k,
               t.alpha,
               t.beta};
  Workspace workspace;
  constexpr size_t kSums = 1 << 20;  // more than any product needs
  for (const DeviceBuffer<float>* kept : {&first, &c}) {
    copy(c, before);
    // What is read before it was written shows.
    generate(workspace.sums.room_for(kSums), kSums,
             [] __device__(size_t) { return make_float4(1e30f, 1e30f, 1e30f, 1e30f); });
    multiply(g, device, workspace);
    check(cudaDeviceSynchronize(), "multiply");
    if (kept != &c) copy(*kept, c);
  }
  EXPECT_LE(error_over_limit(g, c.data(), before.data(), c_area, least_error), 1);
  EXPECT_EQ(differing(first.data(), c.data(), c.size()), 0) << "two runs";
}

const Trial kThinTrials[] = {
    {1, 1, 1},
    {5000, 4, 300, Kind::uniform, true, 1.25f, -0.5f, 4, 4},  // few columns
    {5000, 1, 301, Kind::uniform, true, 1, 0, 1, 3},
    {9000, 8, 64, Kind::normal},
    {8500, 7, 70, Kind::normal},
    {5000, 2, 300},
    {5000, 6, 1000, Kind::wide, false, 1.25f, -0.5f, 1, 1},  // tensor cores
    {5000, 8, 301, Kind::uniform, true, 1.25f, -0.5f, 4, 4},
    {5000, 1, 304, Kind::normal, true, 1.25f, -0.5f},  // with neighbouring chunks of A and B
    {5000, 2, 302, Kind::normal, true, 1.25f, -0.5f},
    {5000, 4, 301, Kind::normal, true, 1.25f, -0.5f},
    {5000, 8, 301, Kind::normal, true, 1.25f, -0.5f},
    {3, 700, 900, Kind::normal, true, 1.25f, -0.5f, 4, 4},  // few rows
    {3, 700, 901, Kind::normal, true, 1.25f, -0.5f, 3, 3},  // B in chunks, A not
    {8, 700, 900, Kind::normal, true, 1.25f, -0.5f},
    {2, 701, 900, Kind::wide, false, 1.25f, -0.5f, 1, 1},
    {1, 9000, 200, Kind::uniform, true, 1.25f, -0.5f, 4, 4},
    {8, 5000, 1027, Kind::normal, true, 1, 0, 1, 1},
    {4, 300, 64, Kind::uniform, true, 0, -0.5f, 1, 1},
    {8, 5000, 32, Kind::normal, true, 1.25f, -0.5f, 3, 3},  // few rows or columns, short sums
    {1, 9000, 31, Kind::uniform, true, 1, 0, 1, 1},
    {3, 9000, 67, Kind::normal, true, 1.25f, -0.5f, 4, 4},
    {3, 9000, 17, Kind::uniform, true, 0, -0.5f, 1, 1},
    {9000, 7, 5, Kind::normal, true, 1.25f, -0.5f, 3, 3},
    {40000, 2, 32, Kind::wide, false, 1.25f, -0.5f, 4, 4},
    {10000, 5, 49, Kind::normal, true, 1.25f, -0.5f, 1, 1},
    {1000, 3, 1},
    {0, 5, 5},
    {5, 0, 5},
};

TEST(Gpu, SgemmByThinTakesAnyMatrices) {
  NEED_GPU();
  for (const Trial& trial : kThinTrials)
    if (!kEmulated || double(trial.m) * trial.n * trial.k < 3e6)
      expect_right(trial, by<thin_launch>);
}

// With one, two and four words at a time.
TEST(Gpu, SgemmByFewTermsTakesAnyMatrices) {
  NEED_GPU();
  for (const Trial& trial :
       {Trial{130, 260, 33, Kind::normal, false, 1.25f, -0.5f}, Trial{200, 258, 32},
        Trial{70, 386, 7, Kind::normal, false, 1.25f, -0.5f},
        Trial{65, 129, 31, Kind::uniform, false, 1, 0, 1, 1},
        Trial{127, 256, 65, Kind::wide, false, 1.25f, -0.5f, 3, 1},
        Trial{127, 256, 33, Kind::normal, false, 1, 0, 2, 2}, Trial{130, 260, 65},
        Trial{129, 260, 1, Kind::normal, true},
        Trial{66, 300, 40, Kind::uniform, true, 0, -0.5f}}) {
    expect_right(trial, by<few_terms_launch>);
    expect_right(trial, by<large_tiles_of_few_terms>);
  }
}

// Aligned and not, with one and several stages, the last of them full or not.
TEST(Gpu, SgemmBySmallTilesTakesAnyMatrices) {
  NEED_GPU();
  for (const Trial& trial :
       {Trial{65, 132, 33, Kind::normal, false, 1.25f, -0.5f}, Trial{64, 128, 16},
        Trial{130, 257, 100, Kind::wide, true, 1.25f, -0.5f, 1, 1}, Trial{5, 4, 20},
        Trial{70, 260, 15, Kind::normal, false, 1.25f, -0.5f, 4, 4}, Trial{3, 2, 1},
        Trial{129, 260, 1, Kind::normal, true}, Trial{64, 68, 0, Kind::uniform, false, 1.25f, 0.5f},
        Trial{66, 300, 40, Kind::uniform, true, 0, -0.5f}})
    expect_right(trial, by<small_tiles_launch>);
}

#ifdef __CUDACC__  // no emulator has tensor cores
void by_tf32x3(const Gemm& g, const Device& device, Workspace& w) { tf32x3(g, device, w, nullptr); }
void by_bf16x6(const Gemm& g, const Device& device, Workspace& w) { bf16x6(g, device, w, nullptr); }
void by_fp16x3(const Gemm& g, const Device& device, Workspace& w) { fp16x3(g, device, w, nullptr); }
void by_the_fastest(const Gemm& g, const Device& device, Workspace& w) {
  multiply(g, device, w, nullptr);
}

const Trial kTrials[] = {
    {130, 200, 33, Kind::uniform, false, 1.25f, -0.5f, 1, 1},
    {130, 200, 33, Kind::wide, false, 1, 0, 4, 4},
    {130, 200, 33, Kind::normal, true, 1.25f, -0.5f, 3, 1},
    {257, 129, 300, Kind::wide, false, 1, 0, 2, 3},
    {300, 300, 1100, Kind::uniform, true},
    {70, 100, 9001, Kind::normal, true, 1, 0, 1, 3},
    {33, 70, 20000, Kind::normal, true, 1.25f, -0.5f, 1, 1},  // few outputs of many terms
    {64, 64, 65536, Kind::uniform, false, 1, 0, 4, 4},
    {1000, 19, 3000, Kind::wide, false, 1.25f, -0.5f, 0, 1},
    {900, 1100, 48, Kind::normal, true, 1.25f, -0.5f, 4, 4},
    {900, 1101, 79, Kind::uniform, true, 1, 0, 1, 1},
    {900, 1101, 129, Kind::wide, true, 1.25f, -0.5f, 1, 1},
    {900, 1100, 64, Kind::uniform, true, 0, -0.5f, 1, 1},
    {130, 200, 32, Kind::normal, true, 1.25f, -0.5f, 3, 1},
    {1000, 1000, 32, Kind::normal, true, 1.25f, -0.5f, 3, 1},  // few terms
    {1700, 2000, 48, Kind::normal, true, 1.25f, -0.5f},
    {64, 70, 1400, Kind::normal, true, 1.25f, -0.5f, 1, 1},  // few tiles, shared by clusters
    {40, 300, 777, Kind::uniform, true, 1, 0, 3, 1},
    {64, 64, 0, Kind::uniform, false, 1.25f, 0.5f},
    {64, 64, 0},
    {65, 63, 64, Kind::uniform, true, 0, -0.5f, 1, 1},
    {512, 512, 512, Kind::normal, false, 1.25f, -0.5f, 4, 4},
    {1600, 1600, 1600},
    {1537, 1601, 1600, Kind::wide, false, 1.25f, -0.5f, 1, 1},
    {1600, 1600, 1601, Kind::uniform, true, 1, 0, 0, 1},
    {900, 800, 777, Kind::normal, true, 1.25f, -0.5f, 4, 4},  // tiles of 64 columns
    {1025, 1030, 77, Kind::wide, false, 1.25f, -0.5f, 1, 1},
    {1100, 1000, 80, Kind::uniform, true, 1.25f, -0.5f, 4, 4},
    {1100, 1000, 77, Kind::normal, true, 1.25f, -0.5f, 4, 4},  // rows of A do not start on 16 bytes
    {1100, 1000, 80, Kind::uniform, false, 1, 0, 3, 3},        // rows of B start on 16 bytes
    {1100, 1000, 80, Kind::uniform, false, 0, 2},
    {1100, 1000, 33, Kind::normal, false, 1, -0.5f},
    {1000, 1000, 144, Kind::normal, true, 1.25f, -0.5f, 4, 4},  // a deeper tile in shared memory,
    {1000, 1000, 141, Kind::uniform, true, 1, 0, 4, 4},         // rows of A unaligned,
    {1000, 1001, 144, Kind::wide, false, 1.25f, -0.5f, 1, 1},   // and all rows
    {1000, 1000, 208, Kind::normal, true, 1.25f, -0.5f, 4, 4},  // the deepest, likewise
    {1000, 1000, 205, Kind::uniform, true, 1, 0, 4, 4},
    {1000, 1001, 201, Kind::wide, false, 1.25f, -0.5f, 1, 1},
    {2001, 2001, 129, Kind::normal, true, 1.25f, -0.5f, 1, 1},  // fastest: small_tiles
    {1030, 1100, 1},
    {1030, 1100, 3, Kind::uniform, true},
    {300, 260, 5003, Kind::wide, false, 1.25f, -0.5f, 1, 1},  // so long a k is added up in parts
    {300, 260, 5003, Kind::uniform, true, 1.25f, -0.5f, 1, 1},
    {200, 1100, 2048, Kind::normal},
    {1700, 2001, 300, Kind::uniform, true, 1.25f, -0.5f, 1, 1},  // tiles of 256 columns
    {1700, 2001, 4100, Kind::wide, false, 1.25f, -0.5f, 1, 1},   // and four slices of k
};

template <class Expect>
void for_all_trials(Expect expect) {
  for (const Trial& trial : kTrials) expect(trial);
  for (const Trial& trial : kThinTrials) expect(trial);
}

TEST(Gpu, SgemmByTf32x3TakesAnyMatrices) {
  NEED_GPU();
  if (Device::open(0).compute_capability < 80) GTEST_SKIP() << "no TF32";
  for_all_trials([](const Trial& trial) { expect_right(trial, by_tf32x3); });
}

TEST(Gpu, SgemmByBf16x6TakesAnyMatrices) {
  NEED_GPU();
  if (Device::open(0).compute_capability < 80) GTEST_SKIP() << "no BF16";
  for_all_trials([](const Trial& trial) { expect_right(trial, by_bf16x6, kLeastOfBf16x6); });
}

TEST(Gpu, SgemmByFp16x3TakesAnyMatrices) {
  NEED_GPU();
  if (!kBuiltForHopper || Device::open(0).compute_capability != 90) GTEST_SKIP() << "no wgmma";
  for_all_trials([](const Trial& trial) { expect_right(trial, by_fp16x3); });
}

TEST(Gpu, SgemmByTheFastestTakesAnyMatrices) {
  NEED_GPU();
  if (Device::open(0).compute_capability < 80) GTEST_SKIP() << "no TF32";
  for_all_trials([](const Trial& trial) { expect_right(trial, by_the_fastest, kLeastOfBf16x6); });
}

// Counts are zero again after a product, also after one of another size or scheme.
TEST(Gpu, SgemmWorkspaceServesProductsOfAnySize) {
  NEED_GPU();
  const Device device = Device::open(0);
  if (!kBuiltForHopper || device.compute_capability != 90) GTEST_SKIP() << "no wgmma";
  static Workspace workspace;
  const Multiply by_two_schemes = [](const Gemm& g, const Device& device, Workspace&) {
    tf32x3(g, device, workspace, nullptr);
    fp16x3(g, device, workspace, nullptr);
  };
  const Multiply by_tf32x3_last = [](const Gemm& g, const Device& device, Workspace&) {
    fp16x3(g, device, workspace, nullptr);
    tf32x3(g, device, workspace, nullptr);
  };
  for (const int side : {300, 1100, 65, 1000}) expect_right({side, side, side}, by_two_schemes);
  for (const int k : {4096, 40000, 9001}) expect_right({100, 90, k}, by_tf32x3_last);
}

#endif

}  // namespace
}  // namespace ladders::sgemm
