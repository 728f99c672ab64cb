// SPDX-License-Identifier: MIT
//
// What every rung of sgemm computes, and the reference for its verification.
#pragma once

#include "common/verify.cuh"
#include "sgemm/ladder.hpp"
#include "sgemm/matrices.cuh"

namespace ladders::sgemm {
// The reference, in FP64, 4 x 4 outputs per thread. A block takes every gridDim.x-th tile.
constexpr int kReferenceSide = 64;
inline __global__ void __launch_bounds__(256)
    reference(Input a, Input b, double* __restrict__ ab, int m, int n, int k) {
  constexpr int kSide = kReferenceSide, kDepth = 16, kApart = 16, kOwn = kSide / kApart;
  __shared__ double a_tile[kDepth][kSide + 1], b_tile[kDepth][kSide];
  const int x = threadIdx.x % kApart, y = threadIdx.x / kApart;
  const int tiles_x = ceil_div(n, kSide), tiles = tiles_x * ceil_div(m, kSide);
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int row0 = tile / tiles_x * kSide, column0 = tile % tiles_x * kSide;
    double sums[kOwn][kOwn] = {};
    for (int k0 = 0; k0 < k; k0 += kDepth) {
#pragma unroll
      for (int i = threadIdx.x; i < kSide * kDepth; i += 256) {
        const int a_row = row0 + i / kDepth, a_column = k0 + i % kDepth;
        const int b_row = k0 + i / kSide, b_column = column0 + i % kSide;
        a_tile[i % kDepth][i / kDepth] = load_or_zero(a, a_row, a_column, m, k);
        b_tile[i / kSide][i % kSide] = load_or_zero(b, b_row, b_column, k, n);
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kDepth; ++i) {
        double a_values[kOwn], b_values[kOwn];
        for (int j = 0; j < kOwn; ++j) {
          a_values[j] = a_tile[i][y + j * kApart];
          b_values[j] = b_tile[i][x + j * kApart];
        }
        for (int r = 0; r < kOwn; ++r)
          for (int s = 0; s < kOwn; ++s) sums[r][s] += a_values[r] * b_values[s];
      }
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kOwn; ++r)
      for (int s = 0; s < kOwn; ++s) {
        const int row = row0 + y + r * kApart, column = column0 + x + s * kApart;
        if (row < m && column < n) ab[size_t(row) * n + column] = sums[r][s];
      }
  }
}

// Distributions of the elements.
enum class Kind {
  uniform,  // in (-1, 1)
  normal,
  wide,        // either sign, 2^-20 to 2^20, all powers equally likely
  positive,    // in [0, 1)
  scaled,      // rows of A and columns of B, by powers from 2^-30 to 2^30
  cancelling,  // the second half of a sum nearly cancels the first
  integers,    // -15 to 15
  powers,      // of two, of either sign, from 2^-10 to 2^10
  denormals,   // of A; B is uniform
};
struct Random {
  Kind kind;
  uint64_t seed;
  // A row has `row` elements: k in A, n in B. Element i is a factor of term `term` of the sums of
  // row (in A) or column (in B) `sum`; a sum has `terms` terms.
  bool of_b = false;
  size_t row = 1, terms = 1;
  __device__ float operator()(size_t i) const {
    const uint64_t other = seed + 100;
    const size_t term = of_b ? i / row : i % row, sum = of_b ? i % row : i / row;
    if (kind == Kind::cancelling && 2 * term + 1 == terms) return 0;  // it has no twin
    if (kind == Kind::cancelling && 2 * term >= terms) {
      const size_t half = (terms + 1) / 2, twin = of_b ? i - half * row : i - half;
      const float x = random_float(twin, seed);
      return of_b ? x * (0x1p-10f * random_float(i, other) - 1) : x;
    }
    const float x = random_float(i, seed);
    if (kind == Kind::uniform || kind == Kind::cancelling) return x;
    if (kind == Kind::positive) return fabsf(x);
    if (kind == Kind::scaled) return ldexpf(x, int(random_bits(sum, other) % 61) - 30);
    if (kind == Kind::integers) return rintf(15 * x);
    if (kind == Kind::denormals) return ldexpf(x, of_b ? 0 : -126);
    const float sign = random_bits(i, other) % 2 ? 1 : -1;
    if (kind == Kind::powers) return ldexpf(sign, int(random_bits(i, seed) % 21) - 10);
    if (kind == Kind::wide) return sign * exp2f(20 * x);
    const float y = 1 - float(random_bits(i, other) >> 8) * 0x1p-24f;  // in (0, 1]
    return sqrtf(-2 * logf(y)) * cosf(3.14159265f * x);
  }
};

// The norm of row (column) i: `length` elements `step` apart.
struct Norm {
  const float* matrix;
  size_t apart, step;
  int length;
  __device__ double operator()(size_t i) const {
    double sum = 0;
    for (int j = 0; j < length; ++j) {
      const double x = matrix[i * apart + j * step];
      sum += x * x;
    }
    return sqrt(sum);
  }
};

// A and B as cublas_fp16 takes them: see peers.cu.
struct Fp16Operands;

class Sgemm : public Problem {
 public:
  /// Kinds of input stay side by side if each takes no more than this share of the device's memory.
  Sgemm(const Case& c, const Device& device, double share = 1.0 / 32)
      : Problem(device),
        share_(share),
        m_(int(c["m"])),
        n_(int(c["n"])),
        k_(int(c["k"])),
        c_(c["m"] * c["n"]),
        drawn_(&draw(Kind::uniform)) {}
  Memory output() const override { return {c_.data(), c_.bytes()}; }
  auto arguments() const {
    return std::tuple(drawn_->a.data(), drawn_->b.data(), c_.data(), m_, n_, k_, alpha_, beta_);
  }
  const double* product() const { return drawn_->ab.data(); }

  Gemm gemm() const {
    const auto [a, b, c, m, n, k, alpha, beta] = arguments();
    return {a, k, b, n, c, n, m, n, k, alpha, beta};
  }
  /// It grows at the first launch of a rung that needs it, which is not timed.
  Workspace& workspace() { return workspace_; }

  /// For copies, and for what kernels pass to others; made at the first launch, which is not timed.
  float* room_for_copy(size_t elements) { return copy_.room_for(elements); }

  /// Empty until its first launch on an input, which is not timed.
  std::shared_ptr<Fp16Operands>& fp16_operands() { return fp16_operands_; }

  // Without beta, C is NaN and must not be read. The last input is timed.
  int inputs() const override { return int(settings().size()); }
  void prepare(int input) override { prepare(settings()[input], input); }
  void prepare(Kind kind) { prepare({kind, 1, 0}, -1 - int(kind)); }

  Verdict compare() override {
    Verdict verdict = errors();
    if (const auto library = library_.find(input_); library != library_.end()) {
      const double relative = library->second.relative_error, worst = library->second.worst_error;
      verdict.library_relative_error = relative, verdict.library_worst_error = worst;
      if (relative > 0)  // then so is the other
        verdict.error_over_library =
            std::max(verdict.relative_error / relative, verdict.worst_error / worst);
    }
    return verdict;
  }

  // Against FP64: of the whole, ||C - reference|| / ||reference||, and of the worst element, over
  // the norms of its row of A and column of B and what beta C adds.
  Verdict errors() const {
    const double alpha = alpha_, beta = beta_;
    const float* c = c_.data();
    const double *ab = product(), *rows = drawn_->row_norms.data(),
                 *columns = drawn_->column_norms.data();
    const size_t n = n_;
    const auto added = [=] __device__(size_t i) { return beta ? beta * random_float(i, 3) : 0; };
    const auto exact = [=] __device__(size_t i) { return alpha * ab[i] + added(i); };
    const auto off = [=] __device__(size_t i) { return c[i] - exact(i); };
    const Totals size = reduce(c_.size(), [=] __device__(size_t i) { return exact(i) * exact(i); });
    const Totals error = reduce(c_.size(), [=] __device__(size_t i) { return off(i) * off(i); });
    const Totals scaled = reduce(c_.size(), [=] __device__(size_t i) {
      const double scale = fabs(alpha) * rows[i / n] * columns[i % n] + fabs(added(i));
      return off(i) == 0 ? 0 : fabs(off(i)) / scale;
    });
    return {.relative_error = error.sum == 0 ? 0 : std::sqrt(error.sum / size.sum),
            .worst_error = scaled.largest};
  }

 private:
  struct Setting {
    Kind kind;
    float alpha, beta;
  };
  // `number` is that of the input, below 0 for kinds that are not among the settings.
  void prepare(const Setting& setting, int number) {
    const auto [kind, alpha, beta] = setting;
    drawn_ = &draw(kind);
    fp16_operands_.reset();
    alpha_ = alpha, beta_ = beta;
    const auto fill = [this] {
      if (beta_ != 0) generate(c_.data(), c_.size(), Random{Kind::uniform, 3});
    };
    fill();
#ifdef __CUDACC__
    if (!library_.contains(number)) {
      library_product(gemm(), nullptr);
      library_[number] = errors();
      poison();
      fill();
    }
#endif
    input_ = number;
  }

  // With few terms the distribution makes no difference.
  std::vector<Setting> settings() const {
    const Setting updating{Kind::uniform, 1.25f, -0.5f}, timed{Kind::uniform, 1, 0};
    if (k_ < 4) return {updating, timed};
    return {updating, {Kind::normal, 1, 0}, {Kind::wide, 1, 0}, timed};
  }

  struct Drawn {
    DeviceBuffer<float> a, b;
    DeviceBuffer<double> ab, row_norms, column_norms;
  };
  const Drawn& draw(Kind kind) {
    if (const auto found = all_drawn_.find(kind); found != all_drawn_.end()) return found->second;
    const size_t m = m_, n = n_, k = k_;
    if (4.0 * (m * k + k * n) + 8.0 * m * n > share_ * device().memory_bytes)
      drawn_ = nullptr, all_drawn_.clear();
    Drawn d{DeviceBuffer<float>(m * k), DeviceBuffer<float>(k * n), DeviceBuffer<double>(m * n),
            DeviceBuffer<double>(m), DeviceBuffer<double>(n)};
    generate(d.a.data(), d.a.size(), Random{kind, 1, false, k, k});
    generate(d.b.data(), d.b.size(), Random{kind, 2, true, n, k});
    generate(d.row_norms.data(), m, Norm{d.a.data(), k, 1, k_});
    generate(d.column_norms.data(), n, Norm{d.b.data(), 1, n, k_});
    const size_t tiles = ceil_div(m, kReferenceSide) * ceil_div(n, kReferenceSide);
    launch({.grid = unsigned(std::min<size_t>(tiles, 1 << 16)), .block = 256}, nullptr, reference,
           d.a.data(), d.b.data(), d.ab.data(), m_, n_, k_);
    return all_drawn_.emplace(kind, std::move(d)).first->second;
  }

  double share_;
  int m_, n_, k_, input_ = -1;
  float alpha_ = 1, beta_ = 0;
  std::map<Kind, Drawn> all_drawn_;
  DeviceBuffer<float> c_;
  const Drawn* drawn_;
  DeviceBuffer<float> copy_;
  Workspace workspace_;
  std::map<int, Verdict> library_;  // of each input
  std::shared_ptr<Fp16Operands> fp16_operands_;
};

// A grid of one block for each tile of C.
inline dim3 tiles(const Case& c, int rows, int columns) {
  return dim3(unsigned(ceil_div(c["n"], columns)), unsigned(ceil_div(c["m"], rows)));
}

}  // namespace ladders::sgemm
