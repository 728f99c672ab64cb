// SPDX-License-Identifier: MIT
//
// Keys of a histogram, indices of a table: integers below a bound, and how they are distributed.
#pragma once

#include <cmath>
#include <vector>

#include "inputs.cuh"
#include "ladder.hpp"

namespace ladders {
namespace {

enum Distribution { uniform, constant, zipf, zipf_1_5, sorted, strided, out_of_range };
const Axis kDistributionAxis = {
    .name = "distribution",
    .labels = {"uniform", "constant", "zipf", "zipf_1_5", "sorted", "strided", "out_of_range"},
    .facet = true};

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

// Fills an array on the device with keys below `bins`.
inline void generate_keys(int* keys, size_t count, int bins, Distribution distribution) {
  std::vector<double> cumulative(bins);
  const double exponent = distribution == zipf_1_5 ? 1.5 : 1;
  double sum = 0;
  for (size_t b = 0; b < cumulative.size(); ++b)
    cumulative[b] = sum += std::pow(double(b + 1), -exponent);
  DeviceBuffer<double> on_device(cumulative.size());
  check(cudaMemcpy(on_device.data(), cumulative.data(), on_device.bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  generate(keys, count, Key{distribution, count, bins, on_device.data()});
  check(cudaDeviceSynchronize(), "keys");  // before the cumulative sums are freed
}

}  // namespace
}  // namespace ladders
