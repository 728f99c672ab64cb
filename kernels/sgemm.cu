// SPDX-License-Identifier: MIT
//
// SGEMM: C = alpha A B + beta C in FP32, row major, A of m x k, B of k x n, C of m x n.
//
// 2mnk operations on mk + kn + 2mn elements: compute bound as soon as each element loaded is used
// often enough, and each rung uses it more often. From L2 once an operation (naive), once in 32
// (shared tile), then from registers, where the FMA units take their operands: a thread that owns
// x by y outputs loads x + y values for x * y FMAs. A scheduler issues one instruction a clock:
// each one that is not an FMA is an FMA lost, and that is the distance to the roof.

#include "catalogue.hpp"
#include "device.cuh"
#include "inputs.cuh"
#include "peers.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

// The reference, in FP64: one dot product a thread.
__global__ void reference(const float* a, const float* b, double* ab, int m, int n, int k) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < size_t(m) * n; i += stride) {
    double sum = 0;
    for (int j = 0; j < k; ++j) sum += double{a[i / n * k + j]} * b[size_t(j) * n + i % n];
    ab[i] = sum;
  }
}

struct Random {
  uint64_t seed;
  __device__ float operator()(size_t i) const { return random_float(i, seed); }
};

class Sgemm : public Problem {
 public:
  explicit Sgemm(const Case& c)
      : m_(static_cast<int>(c["m"])),
        n_(static_cast<int>(c["n"])),
        k_(static_cast<int>(c["k"])),
        a_(c["m"] * c["k"]),
        b_(c["k"] * c["n"]),
        c_(c["m"] * c["n"]),
        ab_(c_.size()) {
    generate(a_.data(), a_.size(), Random{1});
    generate(b_.data(), b_.size(), Random{2});
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(c_.size(), 256), 65536));
    launch({.grid = blocks, .block = 256}, nullptr, reference, a_.data(), b_.data(), ab_.data(), m_,
           n_, k_);
  }
  Memory output() const override { return {c_.data(), c_.bytes()}; }
  auto arguments() const {
    return std::tuple(a_.data(), b_.data(), c_.data(), m_, n_, k_, alpha_, beta_);
  }
  const double* product() const { return ab_.data(); }

  // With beta, the C that was there counts; without, it must not even be read: it is NaN. The
  // second setting is the one that is left and timed.
  int inputs() const override { return 2; }
  void prepare(int input) override {
    if (input == 0) {
      alpha_ = 1.25f, beta_ = -0.5f;
      generate(c_.data(), c_.size(), Random{3});
    } else {
      alpha_ = 1, beta_ = 0;
    }
  }

  // Errors against FP64: of the whole, ||C - reference|| / ||reference||, and of the worst
  // element, over k/3, the product of the expected norms of its row of A and column of B.
  Verdict compare() override {
    const double alpha = alpha_, beta = beta_, scale = std::max(k_, 1) / 3.0;
    const float* c = c_.data();
    const double* ab = product();
    const auto expected = [=] __device__(size_t i) {
      return alpha * ab[i] + (beta == 0 ? 0 : beta * random_float(i, 3));
    };
    const Totals size =
        fold(c_.size(), [=] __device__(size_t i) { return expected(i) * expected(i); });
    const Totals error = fold(c_.size(), [=] __device__(size_t i) {
      return (c[i] - expected(i)) * (c[i] - expected(i));
    });
    return {.relative_error = error.sum == 0 ? 0 : std::sqrt(error.sum / size.sum),
            .worst_error = std::sqrt(error.largest) / scale};
  }

 private:
  int m_, n_, k_;
  float alpha_ = 1, beta_ = 0;
  DeviceBuffer<float> a_, b_, c_;
  DeviceBuffer<double> ab_;
};

// C may hold anything when beta is 0, so it is not read then.
__device__ __forceinline__ void update(float& c, float alpha, float sum, float beta) {
  c = beta == 0 ? alpha * sum : alpha * sum + beta * c;
}

// An element, or 0 beyond the edge: what a tile is filled up with.
__device__ __forceinline__ float at(const float* matrix, int row, int column, int rows,
                                    int columns) {
  return row < rows && column < columns ? matrix[size_t(row) * columns + column] : 0;
}

// One output a thread, lanes down a column of C: each load of A and each store touches 32 rows.
__global__ void naive_uncoalesced(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ c, int m, int n, int k, float alpha,
                                  float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
  update(c[size_t(row) * n + column], alpha, sum, beta);
}

// The same with lanes along a row of C: A is a broadcast, B and C four sectors. x and y changed
// places, nothing else.
__global__ void naive(const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ c, int m, int n, int k, float alpha, float beta) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
  update(c[size_t(row) * n + column], alpha, sum, beta);
}

// A block loads a 32 x 32 tile of A and of B into shared memory once and uses each element 32
// times. Global traffic falls by 32; two words of shared memory remain to be read for each FMA.
__global__ void tiled(const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ c, int m, int n, int k, float alpha, float beta) {
  constexpr int kTile = 32;
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    a_tile[y][x] = at(a, row, k0 + x, m, k);
    b_tile[y][x] = at(b, k0 + y, column, k, n);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();  // before the next tiles overwrite these
  }
  if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sum, beta);
}

// A thread owns eight outputs of one column: the element of B stays in a register for all eight,
// so a step of k reads 9 words for 8 FMAs instead of 16.
__global__ void register_tile_1d(const float* __restrict__ a, const float* __restrict__ b,
                                 float* __restrict__ c, int m, int n, int k, float alpha,
                                 float beta) {
  constexpr int kSide = 64, kDepth = 8, kRows = 8;  // 512 threads: 64 columns x 8 groups of rows
  __shared__ float a_tile[kSide][kDepth], b_tile[kDepth][kSide];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  const int a_row = threadIdx.x / kDepth, a_column = threadIdx.x % kDepth;
  float sums[kRows] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    a_tile[a_row][a_column] = at(a, row0 + a_row, k0 + a_column, m, k);
    b_tile[y][x] = at(b, k0 + y, column0 + x, k, n);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const float b_value = b_tile[i][x];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r] += a_tile[y * kRows + r][i] * b_value;
    }
    __syncthreads();
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = row0 + y * kRows + r, column = column0 + x;
    if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sums[r], beta);
  }
}

// A thread owns 8 x 8 outputs: 16 words read feed 64 FMAs. Its rows and columns lie 16 apart, so
// that at each of them the 16 lanes of a half warp read neighbouring banks.
__global__ void __launch_bounds__(256, 2)
    register_tile_2d(const float* __restrict__ a, const float* __restrict__ b,
                     float* __restrict__ c, int m, int n, int k, float alpha, float beta) {
  constexpr int kSide = 128, kDepth = 8, kOwn = 8, kApart = kSide / kOwn;
  __shared__ float a_tile[kSide][kDepth], b_tile[kDepth][kSide];
  const int x = threadIdx.x % kApart, y = threadIdx.x / kApart;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  float sums[kOwn][kOwn] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = threadIdx.x; i < kSide * kDepth; i += blockDim.x) {
      a_tile[i / kDepth][i % kDepth] = at(a, row0 + i / kDepth, k0 + i % kDepth, m, k);
      b_tile[i / kSide][i % kSide] = at(b, k0 + i / kSide, column0 + i % kSide, k, n);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a_values[kOwn], b_values[kOwn];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        a_values[j] = a_tile[y + j * kApart][i];
        b_values[j] = b_tile[i][x + j * kApart];
      }
#pragma unroll
      for (int r = 0; r < kOwn; ++r)
#pragma unroll
        for (int s = 0; s < kOwn; ++s) sums[r][s] += a_values[r] * b_values[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
#pragma unroll
    for (int s = 0; s < kOwn; ++s) {
      const int row = row0 + y + r * kApart, column = column0 + x + s * kApart;
      if (row < m && column < n) update(c[size_t(row) * n + column], alpha, sums[r][s], beta);
    }
}

// Four neighbours of a row in one 16-byte load where they are all inside and aligned, else one by
// one. The branch is the same for a whole warp but at the edges.
__device__ __forceinline__ float4 four(const float* matrix, int row, int column, int rows,
                                       int columns) {
  if (row < rows && column + 3 < columns && columns % 4 == 0)
    return *reinterpret_cast<const float4*>(&matrix[size_t(row) * columns + column]);
  return {at(matrix, row, column, rows, columns), at(matrix, row, column + 1, rows, columns),
          at(matrix, row, column + 2, rows, columns), at(matrix, row, column + 3, rows, columns)};
}

// 16-byte accesses throughout: the same words in fewer load instructions (the compiler had merged
// those of A along k already, not those of B). The tile of A is stored transposed, so that a
// thread's rows are neighbours too; four spare columns halve the conflicts of these stores (4-way
// to 2-way). Rows and columns are owned in two groups of four, 64 apart, so that the loads have
// none.
__global__ void __launch_bounds__(256, 2)
    vectorized(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
               int m, int n, int k, float alpha, float beta) {
  constexpr int kSide = 128, kDepth = 16, kOwn = 8, kHalf = kSide / 2;
  __shared__ __align__(16) float a_tile[kDepth][kSide + 4];
  __shared__ __align__(16) float b_tile[kDepth][kSide];
  const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  const int row0 = blockIdx.y * kSide, column0 = blockIdx.x * kSide;
  float sums[kOwn][kOwn] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
#pragma unroll
    for (int i = threadIdx.x * 4; i < kSide * kDepth; i += 256 * 4) {
      const int a_row = i / kDepth, a_column = i % kDepth;
      const float4 a_four = four(a, row0 + a_row, k0 + a_column, m, k);
      a_tile[a_column + 0][a_row] = a_four.x;
      a_tile[a_column + 1][a_row] = a_four.y;
      a_tile[a_column + 2][a_row] = a_four.z;
      a_tile[a_column + 3][a_row] = a_four.w;
      *reinterpret_cast<float4*>(&b_tile[i / kSide][i % kSide]) =
          four(b, k0 + i / kSide, column0 + i % kSide, k, n);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a_values[kOwn], b_values[kOwn];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(&a_values[4 * half]) =
            *reinterpret_cast<const float4*>(&a_tile[i][y + half * kHalf]);
        *reinterpret_cast<float4*>(&b_values[4 * half]) =
            *reinterpret_cast<const float4*>(&b_tile[i][x + half * kHalf]);
      }
#pragma unroll
      for (int r = 0; r < kOwn; ++r)
#pragma unroll
        for (int s = 0; s < kOwn; ++s) sums[r][s] += a_values[r] * b_values[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + y + r % 4 + r / 4 * kHalf, column = column0 + x + half * kHalf;
      if (row >= m) continue;
      float* out = &c[size_t(row) * n + column];
      const float* sum = &sums[r][4 * half];
      if (beta == 0 && n % 4 == 0 && column + 3 < n) {
        *reinterpret_cast<float4*>(out) =
            make_float4(alpha * sum[0], alpha * sum[1], alpha * sum[2], alpha * sum[3]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (column + i < n) update(out[i], alpha, sum[i], beta);
      }
    }
}

// One thread an output, in blocks of 32 x 32; `x_is_row` where the lanes go down the rows.
template <bool x_is_row>
LaunchPlan thread_an_output(const Case& c, const Device&, const void*) {
  const auto x = static_cast<unsigned>(ceil_div<int64_t>(c[x_is_row ? "m" : "n"], 32));
  const auto y = static_cast<unsigned>(ceil_div<int64_t>(c[x_is_row ? "n" : "m"], 32));
  return {.grid = dim3(x, y), .block = dim3(32, 32)};
}

// One block a square tile of C.
template <int side, int threads>
LaunchPlan block_a_tile(const Case& c, const Device&, const void*) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div<int64_t>(c["n"], side)),
                       static_cast<unsigned>(ceil_div<int64_t>(c["m"], side))),
          .block = threads};
}

template <peers::Precision precision>
void cublas(Sgemm& problem, cudaStream_t stream) {
  std::apply([&](auto... arguments) { peers::cublas_sgemm(arguments..., precision, stream); },
             problem.arguments());
}

std::string slow(const Case& c, const Device&) {
  const double operations = 2.0 * double(c["m"]) * double(c["n"]) * double(c["k"]);
  return operations > 5e11 ? "takes seconds a launch at this size" : "";
}

}  // namespace

Ladder sgemm() {
  using P = Sgemm;
  return {
      .name = "sgemm",
      .title = "FP32 matrix multiplication",
      .quantity = Quantity::flops,
      .ceiling = "roof/fma",
      .input = "uniform in [-1, 1)",
      .error_unit = "norm of the FP64 reference",
      .error_limit = 1e-5,
      .axes = {{"m"}, {"n"}, {"k"}},
      .measured = {{512, 512, 512},
                   {1024, 1024, 1024},
                   {2048, 2048, 2048},
                   {4096, 4096, 4096},
                   {4095, 4095, 4095},
                   {1000, 3000, 77},
                   {128, 8192, 8192},
                   // Last: tensor cores take the GPU to its power limit, and the clock needs a
                   // moment to come back.
                   {8192, 8192, 8192}},
      .small = {{256, 256, 256}, {127, 129, 65}},
      .tested = {{1, 1, 1},
                 {31, 31, 31},
                 {33, 65, 17},
                 {65, 33, 129},
                 {127, 131, 137},
                 {128, 256, 64},
                 {132, 260, 36},
                 {1, 257, 3},
                 {257, 1, 5},
                 {100, 1, 1},
                 {1, 1, 1000},
                 {64, 64, 0},
                 {0, 7, 5},
                 {7, 0, 5}},
      .headline = {4096, 4096, 4096},
      .small_headline = {256, 256, 256},
      .work =
          [](const Case& c, const Device&) {
            const double m = double(c["m"]), n = double(c["n"]), k = double(c["k"]);
            return Work{.flops = 2 * m * n * k,
                        .bytes_read = 4 * (m * k + k * n),
                        .bytes_written = 4 * m * n};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<Sgemm>(c); },
      .rungs =
          {
              {.name = "naive_uncoalesced",
               .idea =
                   "One output a thread, lanes down a column of C: every access touches 32 rows.",
               .implementation = kernel<P>(naive_uncoalesced, thread_an_output<true>),
               .skip = slow},
              {.name = "naive",
               .idea = "Lanes along a row of C: loads of B and stores of C are coalesced, A is a "
                       "broadcast.",
               .implementation = kernel<P>(naive, thread_an_output<false>),
               .moves = "global_load_sectors_per_request"},
              {.name = "tiled",
               .idea = "32x32 tiles in shared memory: each element loaded is used 32 times.",
               .implementation = kernel<P>(tiled, thread_an_output<false>),
               .moves = "global_load_requests"},
              {.name = "register_tile_1d",
               .idea = "Eight outputs of a column a thread: an element of B serves eight FMAs from "
                       "its register.",
               .implementation = kernel<P>(register_tile_1d, block_a_tile<64, 512>),
               .moves = "shared_load_requests"},
              {.name = "register_tile_2d",
               .idea = "8x8 outputs a thread: 16 words of shared memory feed 64 FMAs.",
               .implementation = kernel<P>(register_tile_2d, block_a_tile<128, 256>),
               .moves = "shared_load_requests"},
              {.name = "vectorized",
               .idea =
                   "16-byte loads everywhere, A transposed in its tile: the same words in fewer "
                   "instructions.",
               .implementation = kernel<P>(vectorized, block_a_tile<128, 256>),
               .moves = "shared_load_requests"},
              {.name = "cublas",
               .idea = "cublasSgemm held to FP32 throughout (CUBLAS_PEDANTIC_MATH).",
               .implementation = library<P>(cublas<peers::Precision::fp32>),
               .role = Role::peer},
              {.name = "cublas_tf32",
               .idea = "cublasSgemm on tensor cores, inputs rounded to TF32: another precision.",
               .implementation = library<P>(cublas<peers::Precision::tf32>),
               .role = Role::peer,
               .precision = "tf32",
               .error_limit = 1e-3},
          },
  };
}

}  // namespace ladders
