// SPDX-License-Identifier: MIT
//
// In place: a block swaps two tiles that mirror each other at the diagonal.
#pragma once

#include "transpose/02_vectorized.cuh"

namespace ladders::transpose {
// One block per pair of mirrored tiles. The upper triangle of n x n tiles with its
// diagonal is folded into a rectangle of n x (n + 1) / 2, where n is rounded up to an odd number.
__device__ __forceinline__ int2 upper_of_my_pair(int tiles) {
  const unsigned n = tiles | 1, high = (n + 1) / 2, x = blockIdx.x / high, y = blockIdx.x % high;
  return x >= y ? int2{int(x), int(y)} : int2{int(n - 1 - x), int(n - y)};
}

template <class T>
__global__ void __launch_bounds__(Squares<T>::kThreads) vectorized_in_place(T* data, int n) {
  using S = Squares<T>;
  auto* upper = dynamic_shared<Vector<T>>();
  Vector<T>* lower = upper + S::kVectors;
  const auto [x, y] = upper_of_my_pair(ceil_div(n, S::kSide));
  const int row0 = y * S::kSide, column0 = x * S::kSide;
  by_case(S::inside(n, n, row0, column0), [&](auto inside) {
    typename S::Square above, below;
    S::load(inside, above, data, n, n, row0, column0);
    S::load(inside, below, data, n, n, column0, row0);
    __syncwarp();
    S::transpose_to_shared(upper, above);
    S::transpose_to_shared(lower, below);
    __syncthreads();  // both are read before either is written
    S::store(inside, upper, data, n, n, row0, column0);
    if (x != y) S::store(inside, lower, data, n, n, column0, row0);
  });
}

// The same with single elements, for unaligned rows: 32 x 8 threads as in `coarsened`.
template <class T>
__global__ void __launch_bounds__(Squares<T>::kThreads) elements_in_place(T* data, int n) {
  constexpr int kSide = 32;
  __shared__ T upper[kSide][kSide + 1], lower[kSide][kSide + 1];
  const auto [x, y] = upper_of_my_pair(ceil_div(n, kSide));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = warp; i < kSide; i += 8) {
    const int above = y * kSide + i, below = x * kSide + i;
    if (above < n && x * kSide + lane < n) upper[i][lane] = data[at(above, x * kSide + lane, n)];
    if (below < n && y * kSide + lane < n) lower[i][lane] = data[at(below, y * kSide + lane, n)];
  }
  __syncthreads();
#pragma unroll
  for (int i = warp; i < kSide; i += 8) {
    const int above = y * kSide + i, below = x * kSide + i;
    if (below < n && y * kSide + lane < n) data[at(below, y * kSide + lane, n)] = upper[lane][i];
    if (x != y && above < n && x * kSide + lane < n)
      data[at(above, x * kSide + lane, n)] = lower[lane][i];
  }
}

// Each launch transposes what the last one left, so it is verified once, right after fill(). Two
// timed launches restore the input.
template <class T>
Implementation in_place_at(const Case& c, const Device&) {
  using P = Transpose<T>;
  using S = Squares<T>;
  const bool vectors = aligned(c);
  Implementation result = kernel<P>(
      vectors ? vectorized_in_place<T> : elements_in_place<T>,
      [vectors](const Case& c, const Device&, const void*) {
        const int n = int(ceil_div(c["rows"], vectors ? S::kSide : 32)) | 1;
        return LaunchPlan{.grid = unsigned(n * (n + 1) / 2),
                          .block = S::kThreads,
                          .shared_bytes = vectors ? 2 * S::kVectors * sizeof(Vector<T>) : 0};
      },
      [](P& problem) { return problem.in_place_arguments(); });
  result.fill = [](Problem& problem) { static_cast<P&>(problem).fill_output(); };
  result.not_idempotent = true;
  return result;
}
inline std::string not_square(const Case& c, const Device&) {
  if (c["rows"] != c["columns"]) return "the transpose has another shape";
  return c["rows"] == 1 ? "one element is its own transpose" : "";
}

}  // namespace ladders::transpose
