// SPDX-License-Identifier: MIT
#include "common/cub.hpp"
#include "scan/ladder.hpp"
#include "scan/problem.cuh"
#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>
#endif

namespace ladders::scan {
#ifdef __CUDACC__
template <class Type>
Implementation inclusive_sum() {
  return calls_cub<Scan<Type>>([](auto& problem, void* memory, size_t& bytes, auto stream) {
    const auto [in, count, out] = problem.arguments();
    return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, count, stream);
  });
}
#endif

std::vector<Rung> peers() {
  return {{.name = "cub",
           .idea = "cub::DeviceScan::InclusiveSum.",
           .role = Role::peer,
           .choose = LADDERS_GPU_ONLY([](const Case& c, const Device&) {
             return c["type"] == Ints::kLabel ? inclusive_sum<Ints>() : inclusive_sum<Floats>();
           })}};
}

}  // namespace ladders::scan
