// SPDX-License-Identifier: MIT
#pragma once

#include "model/cuda_check.hpp"
#include "model/device.hpp"

namespace ladders {

/// The actual SM clock between two points of the default stream: cycles of an SM (clock64()) over
/// nanoseconds of the GPU's timer (%globaltimer in the PTX ISA).
class SmClock {
 public:
  /// Both counters of one SM, read together.
  struct Reading {
    long long cycles;
    unsigned long long nanoseconds;  ///< 0 if the SM was not read
  };

  explicit SmClock(const Device& device);

  /// Enqueues the reading that starts the interval. Throws CudaError.
  void start() { enqueue_reading(start_); }
  /// Enqueues the reading that ends the interval. Throws CudaError.
  void stop() { enqueue_reading(stop_); }

  /// Waits for both readings. Returns the median of the SMs' clocks in Hz, 0 if no SM was read
  /// twice. Throws CudaError.
  double hz() const;

 private:
  void enqueue_reading(DeviceBuffer<Reading>& readings);

  DeviceBuffer<Reading> start_, stop_;  // by SM: cycles of different SMs cannot be compared
};

}  // namespace ladders
