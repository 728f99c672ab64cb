// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_check.hpp"
#include "ladder.hpp"

namespace ladders {

/// A launch plan in the form that cudaLaunchKernelEx and the occupancy calls take.
class LaunchConfig {
 public:
  LaunchConfig(const LaunchPlan& plan, cudaStream_t stream) {
    config_.gridDim = plan.grid;
    config_.blockDim = plan.block;
    config_.dynamicSmemBytes = plan.shared_bytes;
    config_.stream = stream;
    if (plan.cluster > 1) {
      attribute_.id = cudaLaunchAttributeClusterDimension;
      attribute_.val.clusterDim.x = plan.cluster;
      attribute_.val.clusterDim.y = attribute_.val.clusterDim.z = 1;
      config_.attrs = &attribute_;
      config_.numAttrs = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchConfig_t config_{};
  cudaLaunchAttribute attribute_{};
};

/// Lets `kernel` have what the plan asks for beyond the defaults: dynamic shared memory above
/// 48 KiB, clusters of more than 8 blocks. Throws DoesNotFit where the device has not that much.
inline void allow(const void* kernel, const LaunchPlan& plan) {
  const auto set = [kernel](cudaFuncAttribute attribute, size_t value, const char* what) {
    if (cudaFuncSetAttribute(kernel, attribute, static_cast<int>(value)) == cudaSuccess) return;
    cudaGetLastError();
    throw DoesNotFit(std::string("the device does not allow ") + what);
  };
  if (plan.shared_bytes > 48 * 1024)
    set(cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes,
        "that much dynamic shared memory");
  if (plan.cluster > 8)
    set(cudaFuncAttributeNonPortableClusterSizeAllowed, 1, "clusters of more than 8 blocks");
}

/// Launches `kernel` as planned; an empty grid is nothing to do. Throws CudaError.
template <class... Parameters, class... Arguments>
void launch(const LaunchPlan& plan, cudaStream_t stream, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (plan.grid.x == 0 || plan.grid.y == 0 || plan.grid.z == 0) return;
  LaunchConfig config(plan, stream);
  check(cudaLaunchKernelEx(config.get(), kernel, std::forward<Arguments>(arguments)...), "launch");
}

/// The implementation that launches `kernel` on problems of type P, with the tuple that
/// `arguments(P&)` or `arguments(P&, plan)` makes.
template <class P, class Plan, class Arguments, class... Parameters>
Implementation kernel(void (*kernel)(Parameters...), Plan plan, Arguments arguments) {
  return {.kernel = reinterpret_cast<const void*>(kernel),
          .plan = plan,
          .launch = [=](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            auto& data = static_cast<P&>(problem);
            const auto values = [&] {
              if constexpr (std::is_invocable_v<Arguments, P&, const LaunchPlan&>)
                return arguments(data, plan);
              else
                return arguments(data);
            }();
            std::apply([&](auto... value) { launch(plan, stream, kernel, value...); }, values);
          }};
}

/// The same with the arguments that all rungs of the ladder share, P::arguments().
template <class P, class Plan, class... Parameters>
Implementation kernel(void (*kernel)(Parameters...), Plan plan) {
  return ladders::kernel<P>(kernel, plan, [](P& problem) { return problem.arguments(); });
}

/// The implementation that calls a library: `call(P&, cudaStream_t)` enqueues on the stream.
template <class P, class Call>
Implementation library(Call call) {
  return {.launch = [call](const LaunchPlan&, Problem& problem, cudaStream_t stream) {
    call(static_cast<P&>(problem), stream);
  }};
}

/// `implementation`, verified by `check` instead of its problem's own comparison.
template <class P>
Implementation checked(Implementation implementation, Verdict (*check)(const P&)) {
  implementation.check = [check](const Problem& problem) {
    return check(static_cast<const P&>(problem));
  };
  return implementation;
}

/// The implementation that runs on the CPU: `call(P&)` returns when it is done.
template <class P, class Call>
Implementation on_host(Call call) {
  return {.launch = [call](const LaunchPlan&, Problem& problem,
                           cudaStream_t) { call(static_cast<P&>(problem)); },
          .on_host = true};
}

}  // namespace ladders
