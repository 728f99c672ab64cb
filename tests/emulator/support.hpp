// SPDX-License-Identifier: MIT
//
// What the emulator's tests have in common. What only the host runs is in support.cpp, where it is
// compiled once and without what makes accesses seen.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

/// Device memory that goes with its scope, zero at first.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes);
  DeviceBytes(const DeviceBytes&) = delete;
  ~DeviceBytes();
  std::size_t bytes() const { return bytes_; }

 protected:
  void copy_from(const void* host);
  void copy_to(void* host) const;
  void* data_ = nullptr;

 private:
  std::size_t bytes_;
};
template <class T>
class DeviceArray : public DeviceBytes {
 public:
  explicit DeviceArray(std::size_t count) : DeviceBytes(count * sizeof(T)) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    copy_from(values.data());
  }

  T* data() const { return static_cast<T*>(data_); }
  operator T*() const { return data(); }
  std::vector<T> values() const {
    std::vector<T> result(bytes() / sizeof(T));
    copy_to(result.data());
    return result;
  }
};

/// Puts the settings back at the end of a scope.
class Settings {
 public:
  explicit Settings(const Options& wanted);
  Settings(const Settings&) = delete;
  ~Settings();

 private:
  Options saved_;
};

/// emulator::launch with an attribute.
template <class... P, class... A>
cudaError_t launch_with_attribute(cudaLaunchAttribute attribute, const Shape& shape,
                                  void (*kernel)(P...), A&&... arguments) {
  cudaLaunchConfig_t config;
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...);
}
/// emulator::launch with clusters of `cluster` blocks.
template <class... P, class... A>
cudaError_t launch_clusters(unsigned cluster, const Shape& shape, void (*kernel)(P...),
                            A&&... arguments) {
  return launch_with_attribute(
      {.id = cudaLaunchAttributeClusterDimension, .val = {.clusterDim = {cluster, 1, 1}}}, shape,
      kernel, std::forward<A>(arguments)...);
}
/// emulator::launch of blocks that all run at once, so that they may wait for each other.
template <class... P, class... A>
cudaError_t launch_cooperative(const Shape& shape, void (*kernel)(P...), A&&... arguments) {
  return launch_with_attribute({.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}},
                               shape, kernel, std::forward<A>(arguments)...);
}

/// Whether a launch succeeded; if not, the fault is told.
::testing::AssertionResult runs(cudaError_t launched);
#define ASSERT_RUNS(launch) ASSERT_TRUE(runs(launch))

inline constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};
const char* name(Order order);

/// Whether figures are the same in all runs, or what threads do depends on which comes first.
enum class Same { figures, results };
/// Runs `body`, which launches and checks, in every order and with several numbers of workers.
void everywhere(const std::function<void()>& body, Same same = Same::figures);

/// Numbers of the lines of a source file that end in "// mark" within the function of that name.
std::vector<int> marked_lines(const char* path, const std::string& function,
                              const std::string& mark);

/// A fault that a kernel is known to have.
struct Planted {
  const char* what;  ///< regular expression for the kind of fault
  Shape shape{1, 64};
  unsigned cluster = 1;
  const char* who = R"(block \(\d+, \d+, \d+\) thread \(\d+, \d+, \d+\))";
};
/// Which of the lines marked "fault" must be named.
enum class Named { one_line, all_lines, no_line };
/// Expects the fault of `launch` in every order; `kernel` is in the source file `path`.
void expect_planted(const char* path, const std::string& kernel, const Planted& planted,
                    Named named, const std::function<cudaError_t()>& launch);

}  // namespace emulator
