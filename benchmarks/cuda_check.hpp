// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "program.hpp"

namespace ladders {

/// A CUDA or library call that failed; what() names the call and the reason.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What was asked for is more than this device has: a reason to skip a row, not a failure.
struct DoesNotFit : CudaError {
  using CudaError::CudaError;
};

/// Throws CudaError unless `status` is success. `what` names the call for the message.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next row starts clean if it is not sticky
  throw CudaError(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Buffers are allocated in multiples of this many bytes, a page, so that each starts on a page of
/// its own. Where in a page a buffer lies decides which slices of the L2 serve it: with small ones
/// packed together, a histogram of 16 KB ran at 84 or at 140 GB/s depending on what else had been
/// allocated. It is 1 in the tests, so that memcheck sees the first byte beyond an end, and on the
/// emulator, which always looks.
inline size_t allocation_granularity = kEmulated ? 1 : size_t{2} << 20;

/// Device memory for `count` elements of T, freed with its owner. Throws DoesNotFit when there is
/// not enough. Contents are undefined.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t count) : count_(count) {
    if (count == 0) return;
    const size_t pages = (bytes() + allocation_granularity - 1) / allocation_granularity;
    const cudaError_t status = cudaMalloc(&data_, pages * allocation_granularity);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw DoesNotFit("not enough device memory for " + std::to_string(bytes()) + " bytes");
    }
    check(status, "cudaMalloc");
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace ladders
