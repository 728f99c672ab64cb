// SPDX-License-Identifier: MIT
//
// The keys, their distributions, and the reference.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include "common/device.cuh"
#include "common/inputs.cuh"
#include "common/verify.cuh"
#include "model/ladder.hpp"

namespace ladders::byte_histogram {
using Byte = unsigned char;
constexpr int kByteBins = 256;

enum ByteDistribution { bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few };

// The key at index i. Zipf's law with exponent 1: the probability of bin b is proportional to
// 1 / (b + 1); `sums` are cumulative, and a uniform number is searched in them.
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
  // The number of sums that are less than the target; the last is not.
  __device__ Byte search(double target) const {
    int less = 0;
    for (int step = kByteBins / 2; step > 0; step /= 2)
      if (sums[less + step - 1] < target) less += step;
    return static_cast<Byte>(less);
  }
};

// The reference: one 64-bit atomic per key. The tests compare it with a loop on the host.
inline __global__ void count_in_64_bits(const Byte* keys, size_t count, unsigned long long* bins) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    atomicAdd(&bins[keys[i]], 1ull);
}

// How the blocks of one launch synchronize: zero before the launch and after it.
struct Meeting {
  unsigned blocks;  // number of arrivals and departures
  unsigned zeroed;  // whether the bins are zero
};

class ByteHistogram : public Problem {
 public:
  ByteHistogram(const Case& c, const Device& device)
      : Problem(device), keys_(c["keys"]), bins_(kByteBins), expected_(kByteBins), meeting_(1) {
    double sums[kByteBins], sum = 0;  // of Zipf's law
    for (int b = 0; b < kByteBins; ++b) sums[b] = sum += 1. / (b + 1);
    DeviceBuffer<double> on_device(kByteBins);
    check(cudaMemcpy(on_device.data(), sums, sizeof sums, cudaMemcpyHostToDevice), "cudaMemcpy");
    generate(
        keys_.data(), keys_.size(),
        ByteKey{static_cast<ByteDistribution>(c["distribution"]), keys_.size(), on_device.data()});
    check(cudaMemset(meeting_.data(), 0, meeting_.bytes()), "cudaMemset");
    check(cudaMemset(expected_.data(), 0, expected_.bytes()), "cudaMemset");
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(keys_.size(), 256), 1024));
    launch({.grid = blocks, .block = 256}, nullptr, count_in_64_bits, keys_.data(), keys_.size(),
           expected_.data());
    check(cudaDeviceSynchronize(), "keys");  // before the sums are freed
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
  DeviceBuffer<Byte> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
  DeviceBuffer<Meeting> meeting_;
};

}  // namespace ladders::byte_histogram
