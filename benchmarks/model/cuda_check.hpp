// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ladders {

/// Whether this is ladder_bench_emulated or ladder_bench, each of which defines it.
extern const bool kEmulated;

/// A CUDA or library call that failed; what() names the call and the reason.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The device is too small for what was asked: a reason to skip a row, not a failure.
struct DoesNotFit : CudaError {
  using CudaError::CudaError;
};

/// Throws CudaError unless `status` is success. `what` names the call for the message.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error for the next row, unless it is sticky
  throw CudaError(std::string(what).append(": ").append(cudaGetErrorString(status)));
}

/// Buffers are allocated in multiples of this. On a GPU it is a page: the offset within a page
/// decides which L2 slices serve a buffer, so small buffers in one page have unstable speeds. On
/// the emulator and in tests it is 1, so that the first byte beyond the end is out of bounds.
inline size_t allocation_granularity = kEmulated ? 1 : size_t{2} << 20;

/// Device memory for `count` elements of T, undefined at first. Throws DoesNotFit.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t count) : count_(count) {
    if (count == 0) return;
    const size_t pages = (bytes() + allocation_granularity - 1) / allocation_granularity;
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, pages * allocation_granularity);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw DoesNotFit("not enough device memory for " + std::to_string(bytes()) + " bytes");
    }
    check(status, "cudaMalloc");
    data_.reset(static_cast<T*>(memory));
  }

  T* data() const { return data_.get(); }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

  /// Its memory or, if that is for fewer than `count` elements, new memory, for which the old is
  /// released first. Throws DoesNotFit.
  T* room_for(size_t count) {
    if (count_ >= count) return data();
    *this = {};
    *this = DeviceBuffer(count);
    return data();
  }

 private:
  struct Free {
    void operator()(T* memory) const { cudaFree(memory); }
  };
  std::unique_ptr<T, Free> data_;
  size_t count_ = 0;
};

/// Device memory for `count` elements, all of them zero. Throws DoesNotFit.
template <class T>
DeviceBuffer<T> zeros(size_t count) {
  DeviceBuffer<T> buffer(count);
  check(cudaMemset(buffer.data(), 0, buffer.bytes()), "cudaMemset");
  return buffer;
}

/// A copy of `count` elements of device memory. Throws CudaError.
template <class T>
std::vector<T> to_host(const T* data, size_t count) {
  std::vector<T> host(count);
  if (count > 0)
    check(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "copy to host");
  return host;
}

}  // namespace ladders
