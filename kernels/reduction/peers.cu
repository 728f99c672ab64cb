// SPDX-License-Identifier: MIT
#include "common/cub.hpp"
#include "reduction/ladder.hpp"
#include "reduction/problem.cuh"
#ifdef __CUDACC__
#include <cub/device/device_reduce.cuh>
#endif

namespace ladders::reduction {
#ifdef __CUDACC__
template <class Op>
struct Map {
  __host__ __device__ auto operator()(Value<Op> x) const { return Op::map(x); }
};
struct Plus {
  __host__ __device__ auto operator()(auto a, auto b) const { return a + b; }
};

template <class Op>
Implementation cub_reduce() {
  return calls_cub<Reduction<Op>>([](auto& problem, void* memory, size_t& bytes, auto stream) {
    const auto [in, count, result] = problem.arguments();
    if constexpr (std::is_same_v<Op, Sum>)
      return cub::DeviceReduce::Sum(memory, bytes, in, result, count, stream);
    else
      return cub::DeviceReduce::TransformReduce(memory, bytes, in, result, count, Plus{}, Map<Op>{},
                                                Result<Op>{}, stream);
  });
}
#endif

std::vector<Rung> peers() {
  return {{.name = "serial_cpu",
           .idea = "One CPU core in a plain loop over host memory, for scale.",
           .role = Role::peer,
           .skip = too_large_for_fp32,
           .measured =
               [](const Case& c) {
                 return c["operation"] != 2 &&
                        (c["elements"] == 1 << 20 || c["elements"] == 1 << 28);
               },
           .choose =
               [](const Case& c, const Device&) {
                 return of_operation(c, []<class Op>(Op) {
                   Implementation serial = library<Reduction<Op>>(
                       [](auto& problem, cudaStream_t) { problem.sum_on_host(); });
                   serial.on_host = true;
                   return serial;
                 });
               }},
          {.name = "cub",
           .idea = "cub::DeviceReduce: Sum, or TransformReduce for the squares.",
           .role = Role::peer,
           .choose = LADDERS_GPU_ONLY([](const Case& c, const Device&) {
             return of_operation(c, []<class Op>(Op) { return cub_reduce<Op>(); });
           })}};
}

}  // namespace ladders::reduction
