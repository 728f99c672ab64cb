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

// The rung that is launched so.
template <GemmLaunch (*launch_of)(const Gemm&, const Device&)>
Implementation gemm_at(const Case& c, const Device& device) {
  const int m = int(c["m"]), n = int(c["n"]), k = int(c["k"]);
  const GemmLaunch found = launch_of({nullptr, k, nullptr, n, nullptr, n, m, n, k, 1, 0}, device);
  const auto plan = [plan = found.plan](const Case&, const Device&, const void*) { return plan; };
  return kernel<Sgemm>(found.kernel, plan, [](Sgemm& p) { return std::tuple(p.gemm()); });
}

// The terms of each sum: A and B are not read if alpha is 0.
__device__ __forceinline__ int terms(const Gemm& g) { return g.alpha == 0 ? 0 : g.k; }

}  // namespace ladders::sgemm
