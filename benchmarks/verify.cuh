// SPDX-License-Identifier: MIT
//
// Verification on the device: every element is looked at, whatever the size.
#pragma once

#include <cmath>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "cuda_check.hpp"
#include "inputs.cuh"
#include "launch.hpp"

namespace ladders {

/// Sum and largest value of f over a range, in FP64.
struct Totals {
  double sum = 0, largest = 0;

  __host__ __device__ void add(const Totals& other) {
    sum += other.sum;
    largest = std::fmax(largest, other.largest);
  }
};

namespace detail {

template <class F>
__global__ void fold(size_t n, F f, Totals* partial) {
  const size_t first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  Totals mine;
  for (size_t i = first; i < n; i += size_t{gridDim.x} * blockDim.x) {
    const double value = f(i);
    mine.sum += value;
    if (!(value <= mine.largest)) mine.largest = isnan(value) ? INFINITY : value;
  }
  partial[first] = mine;
}

// By one block: the host would take longer to fetch all parts than the device does to fold them.
static __global__ void fold_again(unsigned n, const Totals* parts, Totals* partial) {
  Totals mine;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) mine.add(parts[i]);
  partial[threadIdx.x] = mine;
}

}  // namespace detail

/// Sum and largest of f(i) for i in [0, n), where f is a device function of size_t to double that
/// is not negative; a NaN counts as infinity. No atomics: each thread writes its own part, and
/// these are folded in order, so the result is the same in every run.
template <class F>
Totals fold(size_t n, F f) {
  constexpr unsigned kBlocks = 1024, kThreads = 256;
  const unsigned blocks =
      n < kBlocks * kThreads ? unsigned((n + kThreads - 1) / kThreads) : kBlocks;
  if (blocks == 0) return {};
  DeviceBuffer<Totals> partial(size_t{blocks} * kThreads), last(kThreads);
  launch({.grid = blocks, .block = kThreads}, nullptr, detail::fold<F>, n, f, partial.data());
  launch({.grid = 1, .block = kThreads}, nullptr, detail::fold_again, blocks * kThreads,
         static_cast<const Totals*>(partial.data()), last.data());
  std::vector<Totals> parts(last.size());
  check(cudaMemcpy(parts.data(), last.data(), last.bytes(), cudaMemcpyDeviceToHost), "fold");
  Totals total;
  for (const Totals& part : parts) total.add(part);
  return total;
}

/// A copy of `count` elements of device memory.
template <class T>
std::vector<T> to_host(const T* data, size_t count) {
  std::vector<T> host(count);
  if (count > 0)
    check(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "copy to host");
  return host;
}

/// "bin 3: 5 instead of 7", the first of n elements of device memory that is not expected(i), a
/// device function; empty where all are. `what` names an element. In a matrix of so many columns it
/// is "element (3, 1): 5 instead of 7", by row and column.
template <class T, class F>
std::string first_difference(const std::string& what, const T* values, size_t n, F expected,
                             size_t columns = 0) {
  // The largest n - i belongs to the least i; exact in a double up to 2^53 elements.
  const double largest = fold(n, [=] __device__(size_t i) {
                           return values[i] == expected(i) ? 0.0 : static_cast<double>(n - i);
                         }).largest;
  if (largest == 0) return {};
  const size_t first = n - static_cast<size_t>(largest);
  DeviceBuffer<double> both(2);
  generate(both.data(), 2, [=] __device__(size_t i) {
    return static_cast<double>(i == 0 ? values[first] : expected(first));
  });
  const std::vector<double> told = to_host(both.data(), 2);
  std::ostringstream text;
  text << what << ' ';
  if (columns > 0)
    text << '(' << first / columns << ", " << first % columns << ')';
  else
    text << first;
  text << ": " << std::setprecision(17) << told[0] << " instead of " << told[1];
  return text.str();
}

}  // namespace ladders
