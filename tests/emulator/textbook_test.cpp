// SPDX-License-Identifier: MIT
//
// Kernels as one finds them in tutorials and libraries, in textbook/ in their own styles: what has
// to be changed for the emulator is the launch and the declaration of dynamic shared memory,
// nothing else. They run with every check on, and their results are held against plain host code.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "support.hpp"
#include "textbook/bitonic_sort.cuh"
#include "textbook/convolution.cuh"
#include "textbook/histogram.cuh"
#include "textbook/matrix_product.cuh"
#include "textbook/n_bodies.cuh"
#include "textbook/reduction.cuh"
#include "textbook/scan.cuh"
#include "textbook/softmax.cuh"
#include "textbook/sparse_matrix.cuh"

namespace emulator {
namespace {

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

// Small integers: sums of products are exact in any order.
std::vector<float> small_integers(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}

class Textbook : public ::testing::TestWithParam<Order> {
 private:
  const Settings settings_{{.order = GetParam(), .check = true}};
};
INSTANTIATE_TEST_SUITE_P(Orders, Textbook, ::testing::ValuesIn(kOrders),
                         [](const auto& info) { return name(info.param); });

TEST_P(Textbook, MatrixProduct) {
  constexpr int M = 128, N = 192, K = 64;
  const std::vector<float> a = small_integers(M * K), b = small_integers(K * N, 2),
                           c = small_integers(M * N, 3);
  std::vector<float> expected(M * N);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
      expected[i * N + j] = 2 * sum - c[i * N + j];
    }
  const DeviceArray<float> A(a), B(b), C(c);
  const dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 64)), block(64);
  ASSERT_RUNS(launch({grid, block}, textbook::sgemmVectorize<64, 64, 4, 8, 8>, M, N, K, 2.0f, A, B,
                     -1.0f, C));
  EXPECT_EQ(C.values(), expected);
}

TEST_P(Textbook, Reduction) {
  std::vector<int> in(5000);
  std::iota(in.begin(), in.end(), -1000);
  const int expected = std::accumulate(in.begin(), in.end(), 0);
  const DeviceArray<int> data(in), sums(8);
  ASSERT_RUNS(launch({8, 256, 1024}, textbook::reduce6<256, true>, data, sums, 5000u));
  std::vector<int> parts = sums.values();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), expected);
  ASSERT_RUNS(launch({8, 512, 2048}, textbook::reduce6<512, false>, data, sums, 5000u));
  parts = sums.values();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), expected);
}

TEST_P(Textbook, Convolution) {
  constexpr int kWidth = 70, kHeight = 40;
  const std::vector<float> image = small_integers(kWidth * kHeight), filter = small_integers(25, 2);
  const DeviceArray<float> in(image), out(image.size());
  ASSERT_EQ(cudaMemcpyToSymbol(textbook::F_c, filter.data(), 25 * sizeof(float)), cudaSuccess);
  const dim3 grid(CEIL_DIV(kWidth, OUT_TILE_DIM), CEIL_DIV(kHeight, OUT_TILE_DIM));
  ASSERT_RUNS(launch({grid, {IN_TILE_DIM, IN_TILE_DIM}},
                     textbook::convolution_tiled_2D_const_mem_kernel, in, out, kWidth, kHeight));
  const std::vector<float> result = out.values();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      float sum = 0;
      for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx)
          if (y + dy >= 0 && y + dy < kHeight && x + dx >= 0 && x + dx < kWidth)
            sum += filter[(dy + 2) * 5 + dx + 2] * image[(y + dy) * kWidth + x + dx];
      ASSERT_EQ(result[y * kWidth + x], sum);
    }
}

TEST_P(Textbook, Scan) {
  constexpr int kCount = 1024;
  const std::vector<float> values = small_integers(kCount);
  std::vector<float> expected(kCount);
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 0.0f);
  const DeviceArray<float> in(values), out(kCount);
  const std::size_t shared = (kCount + CONFLICT_FREE_OFFSET(kCount)) * sizeof(float);
  ASSERT_RUNS(launch({1, kCount / 2, shared}, textbook::prescan, out, in, kCount));
  EXPECT_EQ(out.values(), expected);
}

TEST_P(Textbook, BitonicSort) {
  std::mt19937 random(1);
  std::vector<uint> keys(2 * 512);
  for (uint& key : keys) key = static_cast<uint>(random());
  const DeviceArray<uint> in(keys), out(keys.size());
  ASSERT_RUNS(launch({2, 256}, textbook::bitonicSortShared<512>, out, in, 512u, 1u));
  std::sort(keys.begin(), keys.begin() + 512);
  std::sort(keys.begin() + 512, keys.end());
  EXPECT_EQ(out.values(), keys);
}

TEST_P(Textbook, NBodies) {
  constexpr int kCount = 128, kTile = 64;
  std::vector<float4> bodies(kCount);
  for (int i = 0; i < kCount; ++i)
    bodies[i] = make_float4(std::sin(1.0f * i), std::cos(2.0f * i), std::sin(3.0f * i), 1 + i % 3);
  const DeviceArray<float4> x(bodies), a(kCount);
  ASSERT_RUNS(launch({kCount / kTile, kTile, kTile * sizeof(float4)}, textbook::calculate_forces,
                     static_cast<void*>(x), static_cast<void*>(a), kCount, kTile));
  const std::vector<float4> result = a.values();
  for (int i = 0; i < kCount; ++i) {
    double expected[3] = {};
    for (const float4& other : bodies) {
      const double d[] = {other.x - bodies[i].x, other.y - bodies[i].y, other.z - bodies[i].z};
      const double squared = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01;
      for (int axis = 0; axis < 3; ++axis)
        expected[axis] += d[axis] * other.w / std::pow(squared, 1.5);
    }
    const float found[] = {result[i].x, result[i].y, result[i].z};
    for (int axis = 0; axis < 3; ++axis)
      ASSERT_NEAR(found[axis], expected[axis], 1e-3 * std::max(1.0, std::abs(expected[axis])))
          << i << ", axis " << axis;
  }
}

TEST_P(Textbook, SparseMatrix) {
  constexpr int kRows = 30, kColumns = 200;
  std::mt19937 random(1);
  std::vector<int> ptr{0}, indices;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column)
      if (random() % (row + 2) == 0) indices.push_back(column);
    ptr.push_back(static_cast<int>(indices.size()));
  }
  const std::vector<float> data = small_integers(indices.size()), x = small_integers(kColumns, 2);
  std::vector<float> expected(kRows);
  for (int row = 0; row < kRows; ++row)
    for (int j = ptr[row]; j < ptr[row + 1]; ++j) expected[row] += data[j] * x[indices[j]];
  const DeviceArray<int> device_ptr(ptr), device_indices(indices);
  const DeviceArray<float> device_data(data), device_x(x), y(kRows);
  ASSERT_RUNS(launch({8, 128, 512}, textbook::spmv_csr_vector_kernel, kRows, device_ptr,
                     device_indices, device_data, device_x, y));
  EXPECT_EQ(y.values(), expected);
}

TEST_P(Textbook, Histogram) {
  std::mt19937 random(1);
  std::vector<unsigned char> buffer(10000);
  std::vector<unsigned> expected(256);
  for (unsigned char& value : buffer) ++expected[value = static_cast<unsigned char>(random() >> 7)];
  const DeviceArray<unsigned char> data(buffer);
  const DeviceArray<unsigned> histo(256);
  ASSERT_RUNS(launch({4, 256}, textbook::histo_kernel, data, 10000L, histo));
  EXPECT_EQ(histo.values(), expected);
}

TEST_P(Textbook, Softmax) {
  constexpr int kRows = 6, kColumns = 300;
  std::vector<float> values(kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 5 * std::sin(1.0f * i);
  const DeviceArray<float> in(values), out(values.size());
  ASSERT_RUNS(launch({kRows, 128, 2 * 128 / 32 * sizeof(float)}, textbook::softmax_forward_kernel4,
                     out, in, kRows, kColumns));
  const std::vector<float> result = out.values();
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) sum += std::exp(double(values[row * kColumns + i]));
    for (int i = 0; i < kColumns; ++i)
      ASSERT_NEAR(result[row * kColumns + i], std::exp(double(values[row * kColumns + i])) / sum,
                  1e-6);
  }
}

}  // namespace
}  // namespace emulator
