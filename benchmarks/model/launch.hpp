// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>
#include <type_traits>

#include "model/ladder.hpp"

/// What only a GPU can run: compiled by nvcc, `{}` on the emulator.
#ifdef __CUDACC__
#define LADDERS_GPU_ONLY(...) __VA_ARGS__
#else
#define LADDERS_GPU_ONLY(...) \
  {                           \
  }
#endif

namespace ladders {

/// When a kernel starts. `programmatic`: while the previous kernel of the stream ends, which it
/// must wait for itself (from compute capability 9.0 on). `cooperative`: once all of its blocks are
/// resident, so that they may wait for one another.
struct LaunchMode {
  bool programmatic = false, cooperative = false;
};

/// A launch plan as cudaLaunchKernelEx and the occupancy calls take it.
class LaunchConfig {
 public:
  LaunchConfig(const LaunchPlan& plan, cudaStream_t stream, const LaunchMode& mode = {})
      : config_{plan.grid, plan.block, plan.shared_bytes, stream, attributes_, 0} {
    if (plan.cluster > 1) {
      auto& cluster = add(cudaLaunchAttributeClusterDimension).clusterDim;
      cluster.x = plan.cluster, cluster.y = cluster.z = 1;
    }
#ifdef CUDART_VERSION  // emulated launches never overlap
    if (mode.programmatic)
      add(cudaLaunchAttributeProgrammaticStreamSerialization)
          .programmaticStreamSerializationAllowed = 1;
#endif
    if (mode.cooperative) add(cudaLaunchAttributeCooperative).cooperative = 1;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttributeValue& add(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute.val;
  }

  cudaLaunchConfig_t config_;
  cudaLaunchAttribute attributes_[3]{};
};

/// Allows `kernel` what the plan asks for beyond the defaults. Throws DoesNotFit.
inline void allow(const void* kernel, const LaunchPlan& plan) {
  const auto set = [kernel](cudaFuncAttribute attribute, size_t value, const char* what) {
    if (cudaFuncSetAttribute(kernel, attribute, int(value)) == cudaSuccess) return;
    cudaGetLastError();
    throw DoesNotFit(std::string("the device does not allow ") + what);
  };
  if (plan.shared_bytes > 0)  // the default limit is 48 KiB less the kernel's static memory
    set(cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes,
        "that much dynamic shared memory");
  if (plan.cluster > 8)
    set(cudaFuncAttributeNonPortableClusterSizeAllowed, 1, "clusters of more than 8 blocks");
}

/// Launches `kernel` as planned; does nothing for an empty grid. Throws CudaError.
template <class... Parameters, class... Arguments>
void launch(const LaunchPlan& plan, const LaunchMode& mode, cudaStream_t stream,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (plan.grid.x == 0 || plan.grid.y == 0 || plan.grid.z == 0) return;
  const LaunchConfig config(plan, stream, mode);
  check(cudaLaunchKernelEx(config.get(), kernel, std::forward<Arguments>(arguments)...), "launch");
}
template <class... Parameters, class... Arguments>
void launch(const LaunchPlan& plan, cudaStream_t stream, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  launch(plan, LaunchMode{}, stream, kernel, std::forward<Arguments>(arguments)...);
}

// These functions make the rows of tables. They run once, so they are marked cold, which saves
// compile time.

/// The implementation of what `enqueue(P&, plan, stream)` launches on problems of type P: several
/// kernels, for all of which `kernel` and its plan stand.
template <class P, class Kernel, class Plan, class Enqueue>
[[gnu::cold]] Implementation launches(Kernel* kernel, Plan plan, Enqueue enqueue) {
  return {.kernel = reinterpret_cast<const void*>(kernel),
          .plan = plan,
          .launch = [=](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            enqueue(static_cast<P&>(problem), plan, stream);
          }};
}

/// That of one kernel. `arguments(P&)` or `arguments(P&, plan)` returns the tuple of its arguments.
template <class P, class Plan, class Arguments, class... Parameters>
[[gnu::cold]] Implementation kernel(void (*kernel)(Parameters...), Plan plan, Arguments arguments,
                                    LaunchMode mode = {}) {
  return launches<P>(kernel, plan, [=](P& problem, const LaunchPlan& plan, cudaStream_t stream) {
    const auto run = [&](auto... values) { launch(plan, mode, stream, kernel, values...); };
    if constexpr (std::is_invocable_v<Arguments, P&, const LaunchPlan&>)
      std::apply(run, arguments(problem, plan));
    else
      std::apply(run, arguments(problem));
  });
}

/// The same with P::arguments(), which all rungs of the ladder share.
template <class P, class Plan, class... Parameters>
[[gnu::cold]] Implementation kernel(void (*kernel)(Parameters...), Plan plan) {
  return ladders::kernel<P>(kernel, plan, [](P& problem) { return problem.arguments(); });
}

/// The implementation that calls a library: `call(P&, cudaStream_t)` enqueues on the stream.
template <class P, class Call>
[[gnu::cold]] Implementation library(Call call) {
  return {.launch = [call](const LaunchPlan&, Problem& problem, cudaStream_t stream) {
    call(static_cast<P&>(problem), stream);
  }};
}

/// `implementation` as a choice returns it: the kernel of the rung of that name.
[[gnu::cold]] inline Implementation chosen(std::string rung, Implementation implementation) {
  implementation.chosen = std::move(rung);
  return implementation;
}

/// `implementation`, verified by `check(const P&)` instead of its problem's own comparison.
template <class P, class Check>
[[gnu::cold]] Implementation checked(Implementation implementation, Check check) {
  implementation.check = [check](const Problem& problem) {
    return check(static_cast<const P&>(problem));
  };
  return implementation;
}

}  // namespace ladders
