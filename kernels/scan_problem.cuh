// SPDX-License-Identifier: MIT
//
// What is scanned, its inputs, the reference, and what blocks of one launch leave for each other.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device.cuh"
#include "inputs.cuh"
#include "verify.cuh"

namespace ladders {
namespace {

// 32-bit integers are summed modulo 2^32. Floats have two inputs: random ones in [-1, 1), which are
// timed, and odd multiples of 1/128 around zero, whose sums fit the 24 bits of a float: exact in
// any order, so that one element lost or counted twice shows.
struct Ints {
  static constexpr int kLabel = 0;  // on the axis `type`
  using Value = unsigned;
  using Vector = uint4;
  using Wide = unsigned long long;
  __device__ static unsigned random(size_t i) { return random_bits(i); }
  __device__ static unsigned exact(size_t i) { return static_cast<unsigned>(i % 10); }
};
struct Floats {
  static constexpr int kLabel = 1;
  using Value = float;
  using Vector = float4;
  using Wide = double;
  __device__ static float random(size_t i) { return random_float(i); }
  __device__ static float exact(size_t i) {
    return static_cast<float>(2 * static_cast<int>(random_bits(i, 1) >> 25) - 127) / 128;
  }
};

template <class Type>
struct ScanInput {
  bool exact;
  __device__ auto operator()(size_t i) const { return exact ? Type::exact(i) : Type::random(i); }
};

// The reference goes chunk by chunk: the sums of all chunks, added up on the host, then every
// element of a chunk from the sum before it on.
constexpr size_t kChunk = 1024;
template <class Wide>
struct ChunkSum {
  Wide sum;
  double magnitude;  // the sum of what is added, each without its sign
};
template <class Type>
struct SumOfChunk {
  const typename Type::Value* in;
  size_t count;
  __device__ ChunkSum<typename Type::Wide> operator()(size_t chunk) const {
    ChunkSum<typename Type::Wide> total{};
    for (size_t i = chunk * kChunk; i < min(count, (chunk + 1) * kChunk); ++i) {
      total.sum += in[i];
      total.magnitude += fabs(static_cast<double>(in[i]));
    }
    return total;
  }
};

// What a block of a single pass says of its tile is one word of 64 bits: the sum, and a tag that
// tells what it is a sum of, and in which launch. So a word needs neither fences nor zeroing.
using Word = unsigned long long;
struct Exchange {
  Word* words;      // one a tile
  Word* prefixes;   // one a group of tiles, or a tile
  unsigned* epoch;  // launches so far: the last tile counts
  unsigned* ticket;
};
constexpr size_t kLeastTile = 1024;

template <class Type>
class Scan : public Problem {
 public:
  using Value = typename Type::Value;
  using Wide = typename Type::Wide;
  static constexpr bool kExact = std::is_integral_v<Value>;

  explicit Scan(const Case& c)
      : in_(c["elements"]),
        out_(in_.size()),
        sums_(2 * tiles() + 1),
        words_(2 * tiles()),
        counters_(2) {
    check(cudaMemset(words_.data(), 0, words_.bytes()), "words");
    check(cudaMemset(counters_.data(), 0, counters_.bytes()), "counters");
    generate(in_.data(), in_.size(), ScanInput<Type>{false});
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(in_.data(), in_.size(), out_.data()); }
  /// The sums of tiles, and above them those of tiles of sums.
  Value* sums() const { return sums_.data(); }
  Exchange exchange() const {
    return {words_.data(), words_.data() + tiles(), counters_.data(), counters_.data() + 1};
  }
  /// Room for as many elements again.
  Value* scratch() {
    if (scratch_.size() != in_.size()) scratch_ = DeviceBuffer<Value>(in_.size());
    return scratch_.data();
  }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    generate(in_.data(), in_.size(), ScanInput<Type>{exact_});
  }

  // Floats: the worst error of an element, relative to the magnitudes of all that it sums.
  Verdict compare() override {
    const size_t count = in_.size(), chunks = ceil_div(count, kChunk);
    DeviceBuffer<ChunkSum<Wide>> sums(chunks);
    generate(sums.data(), chunks, SumOfChunk<Type>{in_.data(), count});
    std::vector<ChunkSum<Wide>> before = to_host(sums.data(), chunks);
    ChunkSum<Wide> total{};
    for (ChunkSum<Wide>& sum : before) {
      const ChunkSum<Wide> chunk = std::exchange(sum, total);
      total.sum += chunk.sum;
      total.magnitude += chunk.magnitude;
    }
    if (chunks > 0)
      check(cudaMemcpy(sums.data(), before.data(), sums.bytes(), cudaMemcpyHostToDevice),
            "sums of chunks");
    // Of each chunk: how far from the end the first wrong element is, or the worst error.
    const auto walk = [=, in = in_.data(), out = out_.data(), sums = sums.data(),
                       exact = kExact || exact_] __device__(size_t chunk) {
      ChunkSum<Wide> sum = sums[chunk];
      double worst = 0;
      for (size_t i = chunk * kChunk; i < min(count, (chunk + 1) * kChunk); ++i) {
        sum.sum += in[i];
        if (exact && out[i] != static_cast<Value>(sum.sum)) return static_cast<double>(count - i);
        if (exact) continue;
        sum.magnitude += fabs(static_cast<double>(in[i]));
        const double off = fabs(static_cast<double>(out[i]) - static_cast<double>(sum.sum));
        const double error = off == 0 ? 0 : off / sum.magnitude;
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
      }
      return worst;
    };
    const double largest = fold(chunks, walk).largest;
    if (!kExact && !exact_) return {.relative_error = largest, .worst_error = largest};
    if (largest == 0) return {};
    return {.wrong = "sum up to element " + std::to_string(count - static_cast<size_t>(largest))};
  }

 private:
  size_t tiles() const { return ceil_div(in_.size(), kLeastTile); }

  DeviceBuffer<Value> in_, out_, sums_, scratch_;
  DeviceBuffer<Word> words_;
  DeviceBuffer<unsigned> counters_;
  bool exact_ = false;  // whether the input is the exact one
};

}  // namespace
}  // namespace ladders
