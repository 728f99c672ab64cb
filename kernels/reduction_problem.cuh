// SPDX-License-Identifier: MIT
//
// What is summed, its inputs, and the reference.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "device.cuh"
#include "inputs.cuh"
#include "verify.cuh"

namespace ladders {
namespace {

// An operation is what becomes of each element (map) before all are added. Rungs from last_block on
// add the elements of a thread's vectors as Terms, and all else as Wide.
//
// random() is the input that is timed: any bits, or floats in [-1, 1). exact() is one whose sum is
// the same in any order of summation, so that one element lost or counted twice shows.
struct SumOfSquares {
  using Value = int;
  using Vector = int4;
  using Result = unsigned long long;
  using Term = int;
  using Wide = unsigned long long;
  // Sign-extended first: the square of an int needs 63 bits.
  __host__ __device__ static Result map(int x) {
    return static_cast<Result>(static_cast<long long>(x) * x);
  }
  __device__ static int random(size_t i) { return static_cast<int>(random_bits(i)); }
  // Their squares have a known sum.
  __device__ static int exact(size_t i, size_t) { return static_cast<int>(i % 10); }
};

struct Floats {
  using Value = float;
  using Vector = float4;
  using Result = float;
  using Term = float;
  using Wide = double;
  __device__ static float random(size_t i) { return random_float(i); }
};

// Of the random floats it stays near zero, since one accumulator that grows past 2^24 elements
// would swallow what is added to it.
struct Sum : Floats {
  template <class T>
  __host__ __device__ static T map(T x) {
    return x;
  }
  // Odd multiples of 1/128 around zero: partial sums fit the 24 bits of a float.
  __device__ static float exact(size_t i, size_t) {
    return static_cast<float>(2 * static_cast<int>(random_bits(i, 1) >> 25) - 127) / 128;
  }
};

// This one does grow.
struct SumOfSquaresOfFloats : Floats {
  template <class T>
  __host__ __device__ static T map(T x) {
    return x * x;
  }
  // Ones and twos of either sign, among as many zeros as keep the sum below 2^24.
  __device__ static float exact(size_t i, size_t count) {
    constexpr size_t kMost = 1 << 22;
    const uint32_t bits = random_bits(i, 1);
    const bool zero = random_bits(i, 2) % ceil_div(count, kMost) != 0;
    return zero ? 0 : static_cast<float>(1 + bits % 2) * (bits & 2 ? -1.f : 1.f);
  }
};

template <class Op>
struct RandomInput {
  __device__ auto operator()(size_t i) const { return Op::random(i); }
};
template <class Op>
struct ExactInput {
  size_t count;
  __device__ auto operator()(size_t i) const { return Op::exact(i, count); }
};

// The reference: 64-bit integers or FP64, a partial sum a thread, added up on the host.
template <class Wide>
struct Partial {
  Wide sum;
  double magnitude;  // the sum of what is added, each without its sign
};
template <class Op>
__global__ void reference(const typename Op::Value* in, size_t count,
                          Partial<typename Op::Wide>* out) {
  // Exact: the square of an int, or that of a float in FP64.
  using Exact = std::conditional_t<std::is_integral_v<typename Op::Value>, int, double>;
  const size_t first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  Partial<typename Op::Wide> mine{};
  for (size_t i = first; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const auto term = Op::map(static_cast<Exact>(in[i]));
    mine.sum += term;
    mine.magnitude += fabs(static_cast<double>(term));
  }
  out[first] = mine;
}

// What the blocks of a launch leave for the one that adds it up: a sum, and whether it is there.
template <class Wide>
struct alignas(16) Slot {
  Wide sum;
  unsigned long long there;
};
constexpr unsigned kMostSlots = 4096;

template <class Op>
class Reduction : public Problem {
 public:
  using Value = typename Op::Value;
  using Result = typename Op::Result;
  using Wide = typename Op::Wide;
  static constexpr bool kExact = std::is_integral_v<Value>;

  explicit Reduction(const Case& c)
      : in_(c["elements"]), result_(1), slots_(kMostSlots), ticket_(1) {
    check(cudaMemset(slots_.data(), 0, slots_.bytes()), "slots");
    check(cudaMemset(ticket_.data(), 0, ticket_.bytes()), "ticket");
    fill(RandomInput<Op>{});
  }
  Memory output() const override { return {result_.data(), result_.bytes()}; }
  auto arguments() const { return std::tuple(in_.data(), in_.size(), result_.data()); }
  /// Zeros between launches, but for the sums.
  Slot<Wide>* slots() const { return slots_.data(); }
  unsigned* ticket() const { return ticket_.data(); }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    exact_ ? fill(ExactInput<Op>{in_.size()}) : fill(RandomInput<Op>{});
  }
  void poison() override {
    Problem::poison();
    on_host_.reset();
  }

  Result result() const { return on_host_ ? *on_host_ : to_host(result_.data(), 1).front(); }

  // Floats: the error relative to the sum of magnitudes, which bounds what rounding can do; a sum
  // near zero is far off relative to itself in any order of summation.
  Verdict compare() override {
    const auto [expected, magnitude] = expectation();
    const Result result = this->result();
    if constexpr (kExact) {
      if (result == expected) return {};
      return {.wrong = std::to_string(result) + " instead of " + std::to_string(expected)};
    } else {
      const double error = std::abs(result - expected);
      if (exact_ && error != 0) return {.wrong = "a sum that is exact in any order is off"};
      return {.relative_error = error == 0 ? 0 : error / magnitude};
    }
  }

  std::pair<Wide, double> expectation() const {
    constexpr unsigned kThreads = 256;
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(in_.size(), kThreads), 512));
    DeviceBuffer<Partial<Wide>> parts(blocks * kThreads);
    launch({.grid = blocks, .block = kThreads}, nullptr, reference<Op>, in_.data(), in_.size(),
           parts.data());
    std::pair<Wide, double> total{};
    for (const Partial<Wide>& part : to_host(parts.data(), parts.size())) {
      total.first += part.sum;
      total.second += part.magnitude;
    }
    return total;
  }

  // The serial rung: its input is copied once, its result stays on the host.
  void sum_on_host() {
    if (host_.size() != in_.size()) host_ = to_host(in_.data(), in_.size());
    Result sum{};
    for (const Value x : host_) sum += Op::map(x);
    on_host_ = sum;
  }

 private:
  template <class Input>
  void fill(Input input) {
    generate(in_.data(), in_.size(), input);
    host_.clear();
  }

  DeviceBuffer<Value> in_;
  DeviceBuffer<Result> result_;
  DeviceBuffer<Slot<Wide>> slots_;
  DeviceBuffer<unsigned> ticket_;
  std::vector<Value> host_;
  std::optional<Result> on_host_;
  bool exact_ = false;  // whether the input is the exact one
};

}  // namespace
}  // namespace ladders
