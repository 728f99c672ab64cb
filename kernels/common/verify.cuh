// SPDX-License-Identifier: MIT
//
// Verification on the device, of every element.
#pragma once

#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "common/inputs.cuh"

namespace ladders {
/// A sum, and that of absolute values, which bounds its rounding errors.
template <class T>
struct SumAndMagnitude {
  T sum{};
  double magnitude = 0;

  __device__ void add(T term) {
    sum += term;
    magnitude += fabs(double(term));
  }
  SumAndMagnitude operator+(const SumAndMagnitude& other) const {
    return {sum + other.sum, magnitude + other.magnitude};
  }
};

struct Totals {
  double sum = 0, largest = 0;

  __host__ __device__ void add(const Totals& other) {
    sum += other.sum;
    largest = std::fmax(largest, other.largest);
  }
};

namespace detail {

template <class F>
__global__ void reduce(size_t n, F f, Totals* partial) {
  Totals mine;
  for_all_in_grid(n, [&](size_t i) {
    const double value = f(i);
    mine.sum += value;
    if (!(value <= mine.largest)) mine.largest = isnan(value) ? INFINITY : value;
  });
  partial[blockIdx.x * size_t{blockDim.x} + threadIdx.x] = mine;
}

// One block: faster than a copy of all parts to the host.
inline __global__ void reduce_again(unsigned n, const Totals* parts, Totals* partial) {
  Totals mine;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) mine.add(parts[i]);
  partial[threadIdx.x] = mine;
}

}  // namespace detail

/// Sum and largest of f(i) >= 0 for i in [0, n), where f is a device function of size_t to double.
/// A NaN makes the largest infinite and the sum NaN. Without atomics, the result is deterministic.
template <class F>
Totals reduce(size_t n, F f) {
  constexpr unsigned kThreads = 256;
  if (n == 0) return {};
  const unsigned blocks = looping_blocks(n, 1024);
  DeviceBuffer<Totals> partial(size_t{blocks} * kThreads), last(kThreads);
  launch({.grid = blocks, .block = kThreads}, nullptr, detail::reduce<F>, n, f, partial.data());
  launch({.grid = 1, .block = kThreads}, nullptr, detail::reduce_again, blocks * kThreads,
         static_cast<const Totals*>(partial.data()), last.data());
  Totals total;
  for (const Totals& part : to_host(last.data(), kThreads)) total.add(part);
  return total;
}

/// Compares the n elements at `values` in device memory with expected(i), a device function.
/// Returns the first difference, or "" if there is none: "bin 3: 5 instead of 7", where `what` is
/// "bin". If `columns` is not 0 it gives row and column: "bin (3, 1): 5 instead of 7".
template <class T, class F>
std::string first_difference(const std::string& what, const T* values, size_t n, F expected,
                             size_t columns = 0) {
  // The largest n - i has the least i; exact in FP64 up to 2^53 elements.
  const double largest = reduce(n, [=] __device__(size_t i) {
                           return values[i] == expected(i) ? 0.0 : double(n - i);
                         }).largest;
  if (largest == 0) return {};
  const size_t first = n - size_t(largest);
  DeviceBuffer<T> both(2);
  generate(both.data(), 2,
           [=] __device__(size_t i) { return i == 0 ? values[first] : T(expected(first)); });
  const std::vector<T> shown = to_host(both.data(), 2);
  std::ostringstream text;
  text << what << ' ';
  if (columns > 0)
    text << '(' << first / columns << ", " << first % columns << ')';
  else
    text << first;
  text << ": " << std::setprecision(17) << +shown[0] << " instead of " << +shown[1];
  return text.str();
}

}  // namespace ladders
