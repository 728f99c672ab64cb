// SPDX-License-Identifier: MIT
//
// The problem of a histogram: its keys, its bins, and the reference; and the blocks that count.
#pragma once

#include "common/distribution.cuh"
#include "common/verify.cuh"

namespace ladders {
constexpr int kThreads = 1024, kWarps = kThreads / 32;  // per block

/// As many blocks as the GPU can hold at once.
template <size_t shared_bytes = 0>
LaunchPlan resident(const Case&, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads, .shared_bytes = shared_bytes}, kernel, device);
}

/// Keys below 0 count in the first bin, keys from `bins` on in the last.
__host__ __device__ inline int bin_of(int key, int bins) {
  return key < 0 ? 0 : key >= bins ? bins - 1 : key;
}

/// The reference: one 64-bit atomic per key. Tests compare it with a loop on the host.
template <class Key>
__global__ void count_in_64_bits(const Key* keys, size_t count, unsigned long long* bins,
                                 int bin_count) {
  for_all_in_grid(count, [&](size_t i) { atomicAdd(&bins[bin_of(keys[i], bin_count)], 1ull); });
}

struct CountOf {
  const unsigned long long* counts;
  __device__ double operator()(size_t bin) const { return double(counts[bin]); }
};

/// `count` keys of a distribution, and `bins` counters of 32 bits. Throws DoesNotFit.
template <class Key>
class CountedKeys : public Problem {
 public:
  CountedKeys(const Device& device, size_t count, int bins, Distribution distribution)
      : Problem(device), keys_(count), bins_(bins), expected_(zeros<unsigned long long>(bins)) {
    generate_keys(keys_.data(), count, bins, distribution);
    launch({.grid = looping_blocks(count, 1024), .block = 256}, nullptr, count_in_64_bits<Key>,
           keys_.data(), count, expected_.data(), bins);
    if (count > UINT_MAX && reduce(size_t(bins), CountOf{expected()}).largest > UINT_MAX)
      throw DoesNotFit("a bin counts more keys than 32 bits can");
  }
  Memory output() const override { return {bins_.data(), bins_.bytes()}; }
  auto arguments() const { return std::tuple(keys_.data(), keys_.size(), bins_.data()); }
  const unsigned long long* expected() const { return expected_.data(); }

  Verdict compare() override {
    const auto right = [expected = expected()] __device__(size_t bin) { return expected[bin]; };
    return {.wrong = first_difference("bin", bins_.data(), bins_.size(), right)};
  }

 private:
  DeviceBuffer<Key> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
};

}  // namespace ladders
