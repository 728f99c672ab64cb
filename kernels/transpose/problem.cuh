// SPDX-License-Identifier: MIT
//
// What every rung computes, and how it is verified.
#pragma once

#include "common/verify.cuh"

namespace ladders::transpose {
// cuBLAS computes with floating-point numbers, so it may change other bit patterns, such as NaNs.
// Elements of 4 and 8 bytes are therefore integers stored as float and double, which it keeps.
template <class T>
struct Element {
  __device__ T operator()(size_t i) const {
    const uint32_t bits = random_bits(i);
    if constexpr (sizeof(T) == 4) return __float_as_uint(float(bits >> 8));
    if constexpr (sizeof(T) == 8) return __double_as_longlong(double(bits));
    return static_cast<T>(bits);
  }
};

template <class T>
class Transpose : public Problem {
 public:
  Transpose(const Case& shape, const Device& device)
      : Problem(device),
        rows_(int(shape["rows"])),
        columns_(int(shape["columns"])),
        in_(shape["rows"] * shape["columns"]),
        out_(in_.size()) {
    generate(in_.data(), in_.size(), Element<T>{});
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(out_.data(), in_.data(), rows_, columns_); }

  // For rungs that work in place.
  auto in_place_arguments() const { return std::tuple(out_.data(), rows_); }
  void fill_output() { generate(out_.data(), out_.size(), Element<T>{}); }

  Verdict compare() override {
    const size_t rows = rows_, columns = columns_;
    const auto right = [=] __device__(size_t i) {
      return Element<T>{}(i % rows * columns + i / rows);
    };
    return {.wrong = first_difference("element", out_.data(), out_.size(), right, rows)};
  }

  static Verdict check_copy(const Transpose& problem) {
    return {.wrong = first_difference("element", problem.out_.data(), problem.out_.size(),
                                      Element<T>{}, problem.columns_)};
  }

 private:
  int rows_, columns_;
  DeviceBuffer<T> in_, out_;
};

}  // namespace ladders::transpose
