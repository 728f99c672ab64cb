// SPDX-License-Identifier: MIT
//
// A library that scans.
#include "model/launch.hpp"
#include "scan/ladder.hpp"
#include "scan/problem.cuh"
#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "common/cub.hpp"
#endif

namespace ladders::scan {

#ifdef __CUDACC__
namespace {

template <class Type>
Implementation inclusive_sum() {
  return library<Scan<Type>>([](Scan<Type>& problem, cudaStream_t stream) {
    const auto [in, count, out] = problem.arguments();
    with_workspace(problem, "cub::DeviceScan::InclusiveSum", [&](void* memory, size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, count, stream);
    });
  });
}
Implementation cub_at(const Case& c, const Device&) {
  return c["type"] == Ints::kLabel ? inclusive_sum<Ints>() : inclusive_sum<Floats>();
}

}  // namespace
#endif

std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceScan::InclusiveSum.",
           .role = Role::peer,
           .choose = LADDERS_GPU_ONLY(cub_at)}};
}

}  // namespace ladders::scan
