// SPDX-License-Identifier: MIT
#include "gpu/sm_clock.hpp"

#include <vector>

#include "measure/sampling.hpp"
#include "model/launch.hpp"

namespace ladders {
namespace {

// %smid can exceed the SM count where some SMs are disabled. Those with such a number are left out.
__global__ void read_counters(SmClock::Reading* readings, unsigned count) {
#ifdef __CUDA_ARCH__
  unsigned sm;
  unsigned long long now;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  if (sm < count) readings[sm] = {clock64(), now};
#endif
}

}  // namespace

SmClock::SmClock(const Device& device) : start_(device.sms), stop_(device.sms) {}

double SmClock::hz() const {
  const auto start = to_host(start_.data(), start_.size());
  const auto stop = to_host(stop_.data(), stop_.size());
  std::vector<double> hz;
  for (size_t i = 0; i < start.size(); ++i)
    if (start[i].nanoseconds != 0 && stop[i].nanoseconds > start[i].nanoseconds)
      hz.push_back(1e9 * double(stop[i].cycles - start[i].cycles) /
                   double(stop[i].nanoseconds - start[i].nanoseconds));
  return hz.empty() ? 0 : quantile(hz, 0.5);
}

// There is a block for each SM. An SM that gets none has a reading of 0, which hz() leaves out.
void SmClock::enqueue_reading(DeviceBuffer<Reading>& readings) {
  check(cudaMemsetAsync(readings.data(), 0, readings.bytes(), nullptr), "cudaMemsetAsync");
  const auto sms = static_cast<unsigned>(readings.size());
  launch({.grid = sms, .block = 1}, nullptr, read_counters, readings.data(), sms);
}

}  // namespace ladders
