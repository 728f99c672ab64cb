// SPDX-License-Identifier: MIT
//
// What is summed, its inputs, and the reference.
#pragma once

#include "common/verify.cuh"

namespace ladders::reduction {
// An operation maps each element before all are added. From last_block on, rungs add vectors in the
// type that map() returns, and everything else as Wide. random() is the input that is timed; the
// sum of exact() is the same in any order, so it shows an element lost or counted twice, except 0.
struct SumOfSquares {
  using Value = int;
  using Vector = int4;
  using Result = unsigned long long;
  using Wide = unsigned long long;
  // Sign-extended first: the square of an int needs 63 bits.
  __host__ __device__ static Result map(int x) { return Result(int64_t{x} * x); }
  __device__ static int random(size_t i) { return int(random_bits(i)); }
  __device__ static int exact(size_t i, size_t) { return int(i % 10); }
};

struct Floats {
  using Value = float;
  using Vector = float4;
  using Result = float;
  using Wide = double;
  __device__ static float random(size_t i) { return random_float(i); }
};

// The sum of random floats stays near zero: FP32 accumulators remain precise.
struct Sum : Floats {
  __host__ __device__ static auto map(auto x) { return x; }
  __device__ static float exact(size_t i, size_t) { return random_fraction(i); }
};

// This sum grows.
struct SumOfSquaresOfFloats : Floats {
  __host__ __device__ static auto map(auto x) { return x * x; }
  // Ones and twos of either sign, and as many zeros as keep the sum below 2^24.
  __device__ static float exact(size_t i, size_t count) {
    constexpr size_t kMost = 1 << 22;
    const uint32_t bits = random_bits(i, 1);
    const bool zero = random_bits(i, 2) % ceil_div(count, kMost) != 0;
    return zero ? 0 : float(1 + bits % 2) * (bits & 2 ? -1.f : 1.f);
  }
};

/// make(operation), of the case's operation.
template <class F>
auto of_operation(const Case& c, F make) {
  return c["operation"] == 0   ? make(SumOfSquares{})
         : c["operation"] == 1 ? make(Sum{})
                               : make(SumOfSquaresOfFloats{});
}

template <class Op>
using Value = typename Op::Value;
template <class Op>
using Result = typename Op::Result;
template <class Op>
using Wide = typename Op::Wide;

// What a block leaves for the one that adds up: its sum, and whether it is ready.
template <class Op>
struct alignas(16) Slot {
  Wide<Op> sum;
  unsigned long long ready;
};
constexpr unsigned kMostSlots = 4096;

template <class Op>
class Reduction : public Problem {
 public:
  static constexpr bool kExact = std::is_integral_v<Value<Op>>;

  Reduction(const Case& c, const Device& device) : Problem(device), in_(c["elements"]), result_(1) {
    prepare(1);
  }
  Memory output() const override { return {result_.data(), result_.bytes()}; }
  /// With what a kernel takes `besides`, before the result.
  auto arguments(auto... besides) const {
    return std::tuple(in_.data(), in_.size(), besides..., result_.data());
  }
  size_t count() const { return in_.size(); }
  /// Flags and ticket are zero before and after each launch.
  Slot<Op>* slots() const { return slots_.data(); }
  unsigned* ticket() const { return ticket_.data(); }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    generate(in_.data(), in_.size(), [exact = exact_, count = in_.size()] __device__(size_t i) {
      return exact ? Op::exact(i, count) : Op::random(i);
    });
    host_.clear();
  }
  void poison() override {
    Problem::poison();
    on_host_.reset();
  }

  Result<Op> result() const { return on_host_ ? *on_host_ : to_host(result_.data(), 1).front(); }

  Verdict compare() override { return compare(result()); }
  void clear_slots() { check(cudaMemset(slots_.data(), 0, slots_.bytes()), "slots"); }
  /// The result is one part of the sum, and the others are in the slots.
  Verdict compare_with_slots() const {
    Wide<Op> sum = result();
    for (const Slot<Op>& slot : to_host(slots_.data(), kMostSlots)) sum += slot.sum;
    return compare(static_cast<Result<Op>>(sum));
  }

  using Sums = SumAndMagnitude<Wide<Op>>;
  /// The reference: partial sums, which the host adds up.
  Sums expectation() const {
    DeviceBuffer<Sums> parts(std::min<size_t>(in_.size(), 1 << 17));
    generate(parts.data(), parts.size(),
             [in = in_.data(), count = in_.size(), step = parts.size()] __device__(size_t first) {
               // Exact: the square of an int, or that of a float in FP64.
               using Exact = std::conditional_t<kExact, int, double>;
               Sums mine;
               for (size_t i = first; i < count; i += step)
                 mine.add(Op::map(static_cast<Exact>(in[i])));
               return mine;
             });
    const std::vector<Sums> sums = to_host(parts.data(), parts.size());
    return std::accumulate(sums.begin(), sums.end(), Sums{});
  }

  // The serial rung: its input is copied once, its result stays on the host.
  void sum_on_host() {
    if (host_.size() != in_.size()) host_ = to_host(in_.data(), in_.size());
    Result<Op> sum{};
    for (const Value<Op> x : host_) sum += Op::map(x);
    on_host_ = sum;
  }

 private:
  // Relative to the sum of magnitudes: a sum near zero has a large error relative to itself.
  Verdict compare(Result<Op> result) const {
    const auto [expected, magnitude] = expectation();
    if constexpr (kExact) {
      if (result == expected) return {};
      return {.wrong = std::to_string(result) + " instead of " + std::to_string(expected)};
    } else {
      const double error = std::abs(result - expected);
      if (exact_ && error != 0)
        return {.wrong = std::to_string(result) + " instead of " + std::to_string(expected) +
                         ", though the sum is exact in any order"};
      return {.relative_error = error == 0 ? 0 : error / magnitude};
    }
  }

  DeviceBuffer<Value<Op>> in_;
  DeviceBuffer<Result<Op>> result_;
  DeviceBuffer<Slot<Op>> slots_ = zeros<Slot<Op>>(kMostSlots);
  DeviceBuffer<unsigned> ticket_ = zeros<unsigned>(1);
  std::vector<Value<Op>> host_;
  std::optional<Result<Op>> on_host_;
  bool exact_ = false;  // whether the input is the exact one
};

inline std::string too_large_for_fp32(const Case& c, const Device&) {
  return c["operation"] == 2 ? "an FP32 accumulator of a large sum rounds small terms away" : "";
}

}  // namespace ladders::reduction
