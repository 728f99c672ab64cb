// SPDX-License-Identifier: MIT
//
// The keys of the histogram of bytes, how they are distributed, and the reference.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include "device.cuh"
#include "inputs.cuh"
#include "ladder.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

using Byte = unsigned char;
constexpr int kByteBins = 256;

enum ByteDistribution { bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few };

// The key at place i. Zipf's law with exponent 1: bin b is hit in proportion to 1 / (b + 1), drawn
// by searching a uniform number in the cumulative sums. Few keys are 0, 85, 170 and 255.
struct ByteKey {
  ByteDistribution distribution;
  size_t count;
  const double* sums;

  __device__ Byte operator()(size_t i) const {
    const double unit = random_unit(i);
    switch (distribution) {
      case bytes_constant:
        return kByteBins / 2;
      case bytes_sorted:
        return static_cast<Byte>(static_cast<double>(i) * kByteBins / count);
      case bytes_few:
        return static_cast<Byte>(85 * static_cast<int>(unit * 4));
      case bytes_zipf:
        return search(unit * sums[kByteBins - 1]);
      default:
        return static_cast<Byte>(unit * kByteBins);
    }
  }
  // How many sums are less; there are 2^8 of them, the last of which is not.
  __device__ Byte search(double target) const {
    int less = 0;
    for (int step = kByteBins / 2; step > 0; step /= 2)
      if (sums[less + step - 1] < target) less += step;
    return static_cast<Byte>(less);
  }
};

// The reference: one atomic a key with no shared memory and no tricks, in 64 bits. The tests hold
// it against a loop on the host.
__global__ void count_in_64_bits(const Byte* keys, size_t count, unsigned long long* bins) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    atomicAdd(&bins[keys[i]], 1ull);
}

// What blocks of one launch tell each other: zero before it, and after it again.
struct Meeting {
  unsigned blocks;  // that have come, and that have left
  unsigned zeroed;  // whether the bins are
};

class ByteHistogram : public Problem {
 public:
  explicit ByteHistogram(const Case& c)
      : keys_(c["keys"]), bins_(kByteBins), expected_(kByteBins), meeting_(1) {
    fill(static_cast<ByteDistribution>(c["distribution"]));
    check(cudaMemset(meeting_.data(), 0, meeting_.bytes()), "cudaMemset");
    check(cudaMemset(expected_.data(), 0, expected_.bytes()), "cudaMemset");
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(keys_.size(), 256), 1024));
    launch({.grid = blocks, .block = 256}, nullptr, count_in_64_bits, keys_.data(), keys_.size(),
           expected_.data());
  }
  Memory output() const override { return {bins_.data(), bins_.bytes()}; }
  auto arguments() const { return std::tuple(keys_.data(), keys_.size(), bins_.data()); }

  const unsigned long long* expected() const { return expected_.data(); }
  Meeting* meeting() { return meeting_.data(); }

  Verdict compare() override {
    const auto right = [expected = expected()] __device__(size_t bin) { return expected[bin]; };
    return {.wrong = first_difference("bin", bins_.data(), kByteBins, right)};
  }

 private:
  void fill(ByteDistribution distribution) {
    double sums[kByteBins], sum = 0;  // of Zipf's law
    for (int b = 0; b < kByteBins; ++b) sums[b] = sum += 1. / (b + 1);
    DeviceBuffer<double> on_device(kByteBins);
    check(cudaMemcpy(on_device.data(), sums, sizeof sums, cudaMemcpyHostToDevice), "cudaMemcpy");
    generate(keys_.data(), keys_.size(), ByteKey{distribution, keys_.size(), on_device.data()});
    check(cudaDeviceSynchronize(), "keys");  // before the sums are freed
  }

  DeviceBuffer<Byte> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
  DeviceBuffer<Meeting> meeting_;
};

}  // namespace
}  // namespace ladders
