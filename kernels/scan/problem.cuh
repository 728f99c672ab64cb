// SPDX-License-Identifier: MIT
//
// What is scanned, its inputs, the reference, and the words that blocks exchange.
#pragma once

#include "common/verify.cuh"

namespace ladders::scan {
// random() is the input that is timed: any bits, summed modulo 2^32, or floats in [-1, 1). Sums of
// exact() are the same in any order, so that one element lost or counted twice shows.
struct Ints {
  static constexpr int kLabel = 0;  // on the axis `type`
  using Value = unsigned;
  using Vector = uint4;
  using Wide = unsigned long long;
  __device__ static unsigned random(size_t i) { return random_bits(i); }
  __device__ static unsigned exact(size_t i) { return unsigned(i % 10); }
};
struct Floats {
  static constexpr int kLabel = 1;
  using Value = float;
  using Vector = float4;
  using Wide = double;
  __device__ static float random(size_t i) { return random_float(i); }
  __device__ static float exact(size_t i) { return random_fraction(i); }
};

template <class Type>
using Value = typename Type::Value;

// In a single pass each block publishes words of 64 bits: a sum, and a tag that says what was
// summed, in which launch. Sum and tag arrive together, so no fence is needed. Old tags differ, so
// no word is zeroed.
using Word = unsigned long long;
struct Exchange {
  Word* words;      // one per tile
  Word* prefixes;   // one per group of tiles, or per tile
  unsigned* epoch;  // the number of launches so far
  unsigned* ticket;
};
constexpr size_t kLeastTile = 1024;

template <class Type>
class Scan : public Problem {
 public:
  static constexpr bool kExact = std::is_integral_v<Value<Type>>;

  Scan(const Case& c, const Device& device)
      : Problem(device),
        in_(c["elements"]),
        out_(in_.size()),
        scratch_(2 * tiles() + 1),
        words_(zeros<Word>(2 * tiles())) {
    prepare(1);
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(in_.data(), in_.size(), out_.data()); }
  /// Room for the sums of tiles, then those of tiles of sums; or for `elements`.
  Value<Type>* scratch(size_t elements = 0) { return scratch_.room_for(elements); }
  Exchange exchange() const {
    return {words_.data(), words_.data() + tiles(), counters_.data(), counters_.data() + 1};
  }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    generate(in_.data(), in_.size(), [exact = exact_] __device__(size_t i) {
      return exact ? Type::exact(i) : Type::random(i);
    });
  }

  // The reference adds up chunks, then their sums on the host, then the elements of each chunk. For
  // floats the error is that of the worst element, relative to the magnitudes that it sums.
  Verdict compare() override {
    using Sums = SumAndMagnitude<typename Type::Wide>;
    constexpr size_t kChunk = 1024;
    const size_t count = in_.size(), chunks = ceil_div(count, kChunk);
    DeviceBuffer<Sums> sums(chunks);
    generate(sums.data(), chunks, [=, in = in_.data()] __device__(size_t chunk) {
      Sums total;
      for (size_t i = chunk * kChunk; i < min(count, (chunk + 1) * kChunk); ++i) total.add(in[i]);
      return total;
    });
    std::vector<Sums> before = to_host(sums.data(), chunks);
    std::exclusive_scan(before.begin(), before.end(), before.begin(), Sums{});
    if (chunks > 0)
      check(cudaMemcpy(sums.data(), before.data(), sums.bytes(), cudaMemcpyHostToDevice),
            "sums of chunks");
    // Of each chunk: how far the first wrong element is from the end, or the worst error.
    const auto walk = [=, in = in_.data(), out = out_.data(), sums = sums.data(),
                       exact = kExact || exact_] __device__(size_t chunk) {
      Sums sum = sums[chunk];
      double worst = 0;
      for (size_t i = chunk * kChunk; i < min(count, (chunk + 1) * kChunk); ++i) {
        sum.add(in[i]);
        if (exact && out[i] != static_cast<Value<Type>>(sum.sum)) return double(count - i);
        if (exact) continue;
        const double off = fabs(double(out[i]) - double(sum.sum));
        const double error = off == 0 ? 0 : off / sum.magnitude;
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
      }
      return worst;
    };
    const double largest = reduce(chunks, walk).largest;
    if (!kExact && !exact_) return {.relative_error = largest, .worst_error = largest};
    if (largest == 0) return {};
    return {.wrong = "sum up to element " + std::to_string(count - size_t(largest))};
  }

  static Verdict check_copy(const Scan& problem) {
    return {.wrong =
                first_difference("element", problem.out_.data(), problem.out_.size(),
                                 [in = problem.in_.data()] __device__(size_t i) { return in[i]; })};
  }

 private:
  size_t tiles() const { return ceil_div(in_.size(), kLeastTile); }

  DeviceBuffer<Value<Type>> in_, out_, scratch_;
  DeviceBuffer<Word> words_;
  DeviceBuffer<unsigned> counters_ = zeros<unsigned>(2);
  bool exact_ = false;  // whether the input is the exact one
};

}  // namespace ladders::scan
