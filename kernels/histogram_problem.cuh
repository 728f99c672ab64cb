// SPDX-License-Identifier: MIT
//
// The keys of the histogram, how they are distributed, and the reference.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device.cuh"
#include "inputs.cuh"
#include "ladder.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

enum Distribution { uniform, constant, zipf, zipf_1_5, sorted, strided, out_of_range };
constexpr Distribution kDistributions[] = {uniform, constant, zipf, zipf_1_5, sorted, strided};

// The key at place i. Zipf's law with exponent s: bin b is hit in proportion to 1 / (b + 1)^s,
// drawn by searching a uniform number in the cumulative sums. Strided keys are 32 apart, so that
// those of a warp are in one bank if bins lie in order, and start at the next bin each time round.
struct Key {
  Distribution distribution;
  size_t count;
  int bins;
  const double* cumulative;

  __device__ int operator()(size_t i) const {
    const double unit = random_unit(i);
    switch (distribution) {
      case constant:
        return bins / 2;
      case sorted:
        return static_cast<int>(static_cast<double>(i) * bins / count);
      case out_of_range:
        return static_cast<int>((2 * unit - 0.5) * bins);
      case strided:
        return static_cast<int>((i * 32 % bins + i * 32 / bins) % bins);
      case zipf:
      case zipf_1_5:
        return search(unit * cumulative[bins - 1]);
      default:
        return static_cast<int>(unit * bins);
    }
  }
  __device__ int search(double target) const {
    int low = 0, high = bins - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (cumulative[middle] < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

__host__ __device__ inline int bin_of(int key, int bins) {
  return key < 0 ? 0 : key >= bins ? bins - 1 : key;
}

// The reference: one atomic a key with no shared memory and no tricks, in 64 bits. The tests hold
// it against a loop on the host.
__global__ void reference(const int* keys, size_t count, unsigned long long* bins, int bin_count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    atomicAdd(&bins[bin_of(keys[i], bin_count)], 1ull);
}

class Histogram : public Problem {
 public:
  explicit Histogram(const Case& c)
      : keys_(c["keys"]), bins_(c["bins"]), expected_(c["bins"]), credits_(c["bins"]) {
    fill(static_cast<Distribution>(c["distribution"]));
    check(cudaMemset(credits_.data(), 0, credits_.bytes()), "cudaMemset");
    const int bins = static_cast<int>(bins_.size());
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

  // Scratch memory, kept from launch to launch: room for counters that blocks write down, and a
  // word a bin that is zero between launches.
  unsigned* room_for_counters(size_t words) {
    if (counters_.size() < words) counters_ = DeviceBuffer<unsigned>(words);
    return counters_.data();
  }
  unsigned* credits() { return credits_.data(); }

  Verdict compare() override {
    const unsigned* bins = bins_.data();
    const unsigned long long* expected = this->expected();
    if (const auto wrong =
            first_wrong(bins_.size(), [=] __device__(size_t i) { return bins[i] == expected[i]; }))
      return {.wrong = "bin " + std::to_string(*wrong) + " of " + std::to_string(bins_.size())};
    return {};
  }

 private:
  void fill(Distribution distribution) {
    std::vector<double> cumulative(bins_.size());
    const double exponent = distribution == zipf_1_5 ? 1.5 : 1;
    double sum = 0;
    for (size_t b = 0; b < cumulative.size(); ++b)
      cumulative[b] = sum += std::pow(double(b + 1), -exponent);
    DeviceBuffer<double> on_device(cumulative.size());
    check(
        cudaMemcpy(on_device.data(), cumulative.data(), on_device.bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
    generate(keys_.data(), keys_.size(),
             Key{distribution, keys_.size(), static_cast<int>(bins_.size()), on_device.data()});
    check(cudaDeviceSynchronize(), "keys");  // before the cumulative sums are freed
  }

  DeviceBuffer<int> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
  DeviceBuffer<unsigned> credits_, counters_;
};

}  // namespace
}  // namespace ladders
