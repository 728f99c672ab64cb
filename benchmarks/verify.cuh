// SPDX-License-Identifier: MIT
//
// Verification on the device: every element is looked at, whatever the size.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "cuda_check.hpp"
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

/// The least i in [0, n) for which `right`, a device predicate, does not hold.
template <class Predicate>
std::optional<size_t> first_wrong(size_t n, Predicate right) {
  // The largest n - i belongs to the least i; exact in a double up to 2^53 elements.
  const Totals totals =
      fold(n, [=] __device__(size_t i) { return right(i) ? 0.0 : static_cast<double>(n - i); });
  if (totals.largest == 0) return std::nullopt;
  return n - static_cast<size_t>(totals.largest);
}

/// A copy of `count` elements of device memory.
template <class T>
std::vector<T> to_host(const T* data, size_t count) {
  std::vector<T> host(count);
  if (count > 0)
    check(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "copy to host");
  return host;
}

}  // namespace ladders
