// SPDX-License-Identifier: MIT
//
// Keys of a histogram or indices of a table: integers below a bound, from several distributions.
#pragma once

#include <cmath>

#include "common/inputs.cuh"

namespace ladders {
enum Distribution { uniform, constant, zipf, zipf_1_5, sorted, strided, out_of_range, few };
inline const Axis kDistributionAxis = {
    .name = "distribution",
    .labels = {"uniform", "constant", "zipf", "zipf_1_5", "sorted", "strided", "out_of_range"},
    .facet = true};

inline bool distributed_as(const Case& c, std::initializer_list<Distribution> any) {
  return std::ranges::find(any, c["distribution"]) != any.end();
}

// Fills a device array with keys below `bins`, except that half of `out_of_range` are outside. By
// Zipf's law with exponent s, the probability of bin b is proportional to 1 / (b + 1)^s. Strided
// keys are 32 apart, and each pass over the bins starts one bin later. From 1024 bins on, the bins
// of a warp lie in one bank, except where a pass ends. `few` has four different keys.
template <class T>
void generate_keys(T* keys, size_t count, int bins, Distribution distribution) {
  std::vector<double> cumulative(bins);
  const double exponent = distribution == zipf_1_5 ? 1.5 : 1;
  double sum = 0;
  for (int b = 0; b < bins; ++b) cumulative[b] = sum += std::pow(double(b + 1), -exponent);
  DeviceBuffer<double> on_device(cumulative.size());
  check(cudaMemcpy(on_device.data(), cumulative.data(), on_device.bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  const double* sums = on_device.data();
  const auto key = [distribution, count, bins, sums] __device__(size_t i) -> int {
    const double unit = random_bits(i) * 0x1p-32;  // in [0, 1)
    if (distribution == constant) return bins / 2;
    if (distribution == sorted) return int(double(i) * bins / count);
    if (distribution == out_of_range) return int((2 * unit - 0.5) * bins);
    if (distribution == strided) return int((i * 32 % bins + i * 32 / bins) % bins);
    if (distribution == few) return bins / 3 * int(unit * 4);
    if (distribution == uniform) return int(unit * bins);
    const double target = unit * sums[bins - 1];  // of Zipf's law
    int low = 0, high = bins - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (sums[middle] < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  generate(keys, count, key);
  check(cudaDeviceSynchronize(), "keys");  // before the cumulative sums are freed
}

}  // namespace ladders
