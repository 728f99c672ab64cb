// SPDX-License-Identifier: MIT
//
// The keys of the histogram, and the reference.
#pragma once

#include <algorithm>
#include <tuple>

#include "common/device.cuh"
#include "common/distribution.cuh"
#include "common/verify.cuh"
#include "model/launch.hpp"

namespace ladders::histogram {
constexpr int kThreads = 1024, kWarps = kThreads / 32;  // per block

__host__ __device__ inline int bin_of(int key, int bins) {
  return key < 0 ? 0 : key >= bins ? bins - 1 : key;
}

// The reference: one 64-bit atomic per key. A test compares it with a loop on the host.
inline __global__ void reference(const int* keys, size_t count, unsigned long long* bins,
                                 int bin_count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    atomicAdd(&bins[bin_of(keys[i], bin_count)], 1ull);
}

class Histogram : public Problem {
 public:
  Histogram(const Case& c, const Device& device)
      : Problem(device),
        keys_(c["keys"]),
        bins_(c["bins"]),
        expected_(c["bins"]),
        credits_(c["bins"]) {
    const int bins = static_cast<int>(bins_.size());
    generate_keys(keys_.data(), keys_.size(), bins, static_cast<Distribution>(c["distribution"]));
    check(cudaMemset(credits_.data(), 0, credits_.bytes()), "cudaMemset");
    check(cudaMemset(expected_.data(), 0, expected_.bytes()), "cudaMemset");
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(keys_.size(), 256), 1024));
    launch({.grid = blocks, .block = 256}, nullptr, reference, keys_.data(), keys_.size(),
           expected_.data(), bins);
  }
  Memory output() const override { return {bins_.data(), bins_.bytes()}; }
  auto arguments() const {
    return std::tuple(keys_.data(), keys_.size(), bins_.data(), static_cast<int>(bins_.size()));
  }

  const unsigned long long* expected() const { return expected_.data(); }

  // Scratch memory: room for the counters that blocks store, and one word per bin that is zero
  // between launches.
  unsigned* room_for_counters(size_t words) {
    if (counters_.size() < words) counters_ = DeviceBuffer<unsigned>(words);
    return counters_.data();
  }
  unsigned* credits() { return credits_.data(); }

  Verdict compare() override {
    const auto right = [expected = expected()] __device__(size_t bin) { return expected[bin]; };
    return {.wrong = first_difference("bin", bins_.data(), bins_.size(), right)};
  }

 private:
  DeviceBuffer<int> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
  DeviceBuffer<unsigned> credits_, counters_;
};

}  // namespace ladders::histogram
