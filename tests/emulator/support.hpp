// SPDX-License-Identifier: MIT
//
// What the emulator's tests have in common.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

/// Device memory that goes with its scope.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  std::size_t bytes() const { return count_ * sizeof(T); }
  T* data() const { return data_; }
  operator T*() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    EXPECT_EQ(cudaMemcpy(result.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return result;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// Puts the settings back at the end of a scope.
class Settings {
 public:
  explicit Settings(const Options& wanted) { options() = wanted; }
  Settings(const Settings&) = delete;
  ~Settings() { options() = saved_; }

 private:
  Options saved_ = options();
};

/// emulator::launch with clusters of `cluster` blocks.
template <class... P, class... A>
cudaError_t launch_clusters(unsigned cluster, const Shape& shape, void (*kernel)(P...),
                            A&&... arguments) {
  cudaLaunchAttribute attribute{.id = cudaLaunchAttributeClusterDimension,
                                .val = {.clusterDim = {cluster, 1, 1}}};
  cudaLaunchConfig_t config;
  config.grid = shape.grid;
  config.block = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...);
}

inline constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};

/// Numbers of the lines of a source file that end in "// mark" within the function of that name.
inline std::vector<int> marked_lines(const char* path, const std::string& function,
                                     const std::string& mark) {
  std::ifstream source(path);
  std::vector<int> lines;
  bool inside = false;
  std::string text;
  for (int line = 1; std::getline(source, text); ++line) {
    if (text.find(" " + function + "(") != text.npos) inside = true;
    if (inside && text.ends_with("// " + mark)) lines.push_back(line);
    if (inside && text == "}") break;
  }
  return lines;
}

inline const char* name(Order order) {
  static constexpr const char* kNames[] = {"forward", "reverse", "random"};
  return kNames[static_cast<int>(order)];
}

}  // namespace emulator
