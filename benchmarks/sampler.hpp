// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "cuda_check.hpp"
#include "device.hpp"

namespace ladders {

/// When to stop sampling, and in which state of the caches to sample. The defaults measure a few
/// hundred rows in minutes; their medians repeat within 1 %.
struct Sampling {
  bool cold = true;              ///< L2 holds nothing of the problem when a sample starts
  double device_seconds = 0.02;  ///< sum of the samples, at least
  int least = 20;                ///< samples, unless the wall limit comes first
  double noise = 0.002;          ///< relative standard error of the median that is good enough
  double wall_seconds = 1;       ///< stop by then, but with 5 samples at least
  double warmup_seconds = 0;     ///< of launches before the first sample, at least one launch
  int exactly = 0;               ///< this many samples, whatever the rest says (0: not set)
};

/// The times of single launches in seconds, in the order they were taken, and the SM clock in Hz
/// while they were (0 if it could not be read).
struct Samples {
  std::vector<double> seconds;
  double sm_clock_hz = 0;
};

/// One SM's clocks at one moment. clock64 counts SM cycles, globaltimer nanoseconds: their ratio
/// over an interval is the clock that the SM really ran at.
struct Tick {
  long long cycles;
  unsigned long long nanoseconds;
};

/// Times launches on one device with events, without the launch latency of the host: cold launches
/// are queued while the device still flushes its L2, warm ones are replayed from a CUDA graph.
class Sampler {
 public:
  explicit Sampler(const Device& device);
  ~Sampler();
  Sampler(const Sampler&) = delete;

  /// The stream that launches must be enqueued on.
  cudaStream_t stream() const { return stream_; }

  /// Samples `launch`, which enqueues one launch on stream(). Throws CudaError.
  Samples sample(const std::function<void()>& launch, const Sampling& sampling);

  /// The cold time of a kernel that does nothing, in seconds: the floor of every sample.
  double launch_seconds();

  /// The same for work on the CPU, with the host's clock; `work` returns when it is done.
  static Samples sample_host(const std::function<void()>& work, const Sampling& sampling);

 private:
  void flush();
  void read_clocks(DeviceBuffer<Tick>& into);
  double clock_between() const;
  /// `samples` times of `enqueue`, which stands for `launches` launches, in seconds a launch.
  std::vector<double> batch(const std::function<void()>& enqueue, bool cold, int samples,
                            int launches);

  Device device_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  DeviceBuffer<unsigned> flush_;
  DeviceBuffer<Tick> before_, after_;  // by SM: counters of different SMs do not compare
};

}  // namespace ladders
