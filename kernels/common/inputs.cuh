// SPDX-License-Identifier: MIT
//
// Inputs are functions of the index, so that a reference can recompute any element. They are
// random: zeros hide unwritten outputs, draw less power and run too fast.
#pragma once

#include <algorithm>

#include "common/device.cuh"
#include "model/launch.hpp"

namespace ladders {
/// 32 well-mixed bits for index i of stream `seed` (splitmix64's finalizer, Steele et al. 2014).
__host__ __device__ inline uint32_t random_bits(uint64_t i, uint64_t seed = 0) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return uint32_t((z ^ (z >> 31)) >> 32);
}

/// Uniform in [-1, 1), 24 random bits.
__host__ __device__ inline float random_float(uint64_t i, uint64_t seed = 0) {
  return float(random_bits(i, seed) >> 8) * 0x1p-23f - 1.0f;
}

/// Odd multiples of 1/128 in (-1, 1). Sums of 2^30 of them fit the 24 bits of a float in any order
/// that does not depend on the values: such sums grow with the square root of the count.
__host__ __device__ inline float random_fraction(uint64_t i) {
  return float(2 * int(random_bits(i, 1) >> 25) - 127) / 128;
}

namespace detail {

template <class T, class F>
__global__ void generate(T* out, size_t n, F value) {
  for_all_in_grid(n, [&](size_t i) { out[i] = value(i); });
}

}  // namespace detail

/// How many blocks of 256 threads, at most `most`, go over n elements in a loop. An emulator is
/// faster with few.
inline unsigned looping_blocks(size_t n, unsigned most) {
  return unsigned(std::min<size_t>(ceil_div(n, 256), kEmulated ? 16 : most));
}

/// out[i] = value(i) for i in [0, n), on the device; `value` is a device function of size_t.
template <class T, class F>
void generate(T* out, size_t n, F value) {
  launch({.grid = looping_blocks(n, 2048), .block = 256}, nullptr, detail::generate<T, F>, out, n,
         value);
}

}  // namespace ladders
