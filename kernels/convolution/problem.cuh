// SPDX-License-Identifier: MIT
//
// What every rung computes, and the reference.
#pragma once

#include "common/verify.cuh"

namespace ladders::convolution {
// The weights, row by row. As a kernel's parameter they lie in the constant bank: an FMA reads them
// there up to compute capability 8.9, and later from a uniform register, loaded once per warp.
constexpr int kMostSide = 15;
struct Filter {
  float weights[kMostSide * kMostSide];
};

__host__ __device__ constexpr int reach(int side) { return side / 2; }

// A pixel's sum in FP64, and the sum of the magnitudes of its products.
using Expected = SumAndMagnitude<double>;
struct Reference {
  const float *image, *weights;
  int rows, columns, side;
  __device__ Expected operator()(size_t i) const {
    const int row = int(i / columns) - reach(side), column = int(i % columns) - reach(side);
    Expected result;
    for (int y = max(0, -row); y < min(side, rows - row); ++y)
      for (int x = max(0, -column); x < min(side, columns - column); ++x)
        result.add(double(weights[y * side + x]) * image[size_t(row + y) * columns + column + x]);
    return result;
  }
};

// In [-1, 1), or integers up to 8 of either sign, whose sums are exact: a missing product shows.
__host__ __device__ inline float input_value(size_t i, uint64_t seed, bool exact) {
  const float value = random_float(i, seed);
  return exact ? rintf(8 * value) : value;
}

class Convolution : public Problem {
 public:
  Convolution(const Case& c, const Device& device)
      : Problem(device),
        rows_(int(c["rows"])),
        columns_(int(c["columns"])),
        side_(int(c["filter"])),
        image_(c["rows"] * c["columns"]),
        weights_(side_ * side_),
        out_(image_.size()),
        expected_(image_.size()) {
    prepare(inputs() - 1);
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const {
    return std::tuple(image_.data(), filter_, out_.data(), rows_, columns_);
  }
  // The filter is in global memory.
  auto global_arguments() const {
    return std::tuple(image_.data(), weights_.data(), side_, out_.data(), rows_, columns_);
  }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    generate(image_.data(), image_.size(),
             [exact = exact_] __device__(size_t i) { return input_value(i, 1, exact); });
    std::vector<float> weights(weights_.size());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = input_value(i, 2, exact_);
    set_filter(weights);
  }
  void set_image(const std::vector<float>& image) {
    exact_ = false;
    check(cudaMemcpy(image_.data(), image.data(), image_.bytes(), cudaMemcpyHostToDevice), "image");
    expect();
  }
  void set_filter(const std::vector<float>& weights) {
    std::copy(weights.begin(), weights.end(), filter_.weights);
    check(cudaMemcpy(weights_.data(), weights.data(), weights_.bytes(), cudaMemcpyHostToDevice),
          "filter");
    expect();
  }

  // The largest difference of a pixel, relative to the magnitudes of its products.
  Verdict compare() override {
    const float* out = out_.data();
    const Expected* expected = expected_.data();
    if (exact_)
      return {.wrong = first_difference(
                  "pixel", out, out_.size(), [=] __device__(size_t i) { return expected[i].sum; },
                  columns_)};
    const Totals errors = reduce(out_.size(), [=] __device__(size_t i) {
      const double difference = fabs(out[i] - expected[i].sum);
      return difference == 0 ? 0 : difference / expected[i].magnitude;
    });
    return {.relative_error = errors.largest};
  }

 private:
  void expect() {
    generate(expected_.data(), expected_.size(),
             Reference{image_.data(), weights_.data(), rows_, columns_, side_});
  }

  int rows_, columns_, side_;
  bool exact_ = false;  // whether the sums of the input are exact in FP32
  Filter filter_{};
  DeviceBuffer<float> image_, weights_, out_;
  DeviceBuffer<Expected> expected_;
};

// A pixel, or zero outside of the image.
__device__ __forceinline__ float pixel(const float* __restrict__ image, int row, int column,
                                       int rows, int columns) {
  return row >= 0 && row < rows && column >= 0 && column < columns ? image[at(row, column, columns)]
                                                                   : 0;
}

}  // namespace ladders::convolution
