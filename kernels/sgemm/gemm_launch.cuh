// SPDX-License-Identifier: MIT
//
// Kernels whose only argument is a Gemm, for rungs and for callers of sgemm.hpp.
#pragma once

#include "sgemm/problem.cuh"

namespace ladders::sgemm {
struct GemmLaunch {
  void (*kernel)(Gemm);
  LaunchPlan plan;
};

constexpr int kMostGridRows = 65535;  // of blocks

constexpr int kThin = 8;  // rows or columns of a thin C, at most
GemmLaunch thin_launch(const Gemm& gemm, const Device& device);
GemmLaunch few_terms_launch(const Gemm& gemm, const Device& device);

// The tiles of small_tiles, and the larger ones of few_terms.
struct Tiles64x128 {
  static constexpr int kRows = 64, kColumns = 128;
  static constexpr int64_t count(int m, int n) {
    return int64_t{ceil_div(m, kRows)} * ceil_div(n, kColumns);
  }
};

// Into how many pieces k is split: 1, 2, 4 or 8. `work` is the number of independent pieces of work
// without a split. The number doubles while there are fewer than `enough` pieces in all and each
// keeps `terms_each` terms.
inline unsigned k_splits(int64_t work, int64_t enough, int64_t terms_each, int k) {
  unsigned splits = 1;
  while (splits < 8 && work * splits < enough && k >= 2 * splits * terms_each) splits *= 2;
  return splits;
}

// The largest cluster of at most so many blocks, a power of two.
inline unsigned largest_cluster(unsigned blocks, const Device& device) {
  if (device.compute_capability < 90) return 1;
  while (blocks > 1 && device.clusters_at_once[blocks] == 0) blocks /= 2;
  return blocks;
}

// Whether B and C can be loaded and stored four words at a time.
inline bool are_b_and_c_float4_aligned(const Gemm& g) {
  return is_float4_aligned(g.b, g.ldb, g.n) && is_float4_aligned(g.c, g.ldc, g.n);
}

// The product of a case, for choices: its matrices start on 16 bytes and rows are contiguous.
inline Gemm aligned_gemm(const Case& c) {
  const int m = int(c["m"]), n = int(c["n"]), k = int(c["k"]);
  return {nullptr, k, nullptr, n, nullptr, n, m, n, k, 1, 0};
}

// The implementation of a rung whose kernel takes only a Gemm.
template <GemmLaunch (*launch_of)(const Gemm&, const Device&)>
Implementation gemm_at(const Case& c, const Device& device) {
  const GemmLaunch found = launch_of(aligned_gemm(c), device);
  const auto plan = [plan = found.plan](const Case&, const Device&, const void*) { return plan; };
  return kernel<Sgemm>(found.kernel, plan, [](Sgemm& p) { return std::tuple(p.gemm()); });
}

// The terms of each sum: A and B are not read if alpha is 0.
__device__ __forceinline__ int terms(const Gemm& g) { return g.alpha == 0 ? 0 : g.k; }

}  // namespace ladders::sgemm
