// SPDX-License-Identifier: MIT
//
// Hardware counters of a row, read in this process by CUPTI's range profiler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/meter.hpp"

namespace ladders {

/// Nothing can be counted; what() says in one line why, and what to do about it.
struct NoCounters : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The names of metrics() that CUPTI does not know for a chip ("GH100"), or will drop. Throws
/// NoCounters without CUPTI, but needs no GPU.
std::vector<std::string> unknown_metrics(const std::string& chip, int compute_capability);

/// What a CUptiResult means for the user, in one line. Throws NoCounters without CUPTI.
std::string why_not(int cupti_result);

/// So many launches can share the passes of CUPTI.
constexpr size_t kCountedTogether = 16;

/// Counts on the current device, in its current context.
class HardwareCounters {
 public:
  virtual ~HardwareCounters() = default;

  /// "CUPTI 13.0, 10 passes", for the results.
  virtual std::string description() const = 0;

  /// The counters of each, in the order given. Beginning a pass takes longer than a launch, so
  /// count kCountedTogether at once. Throws CudaError, NoCounters.
  virtual std::vector<std::map<std::string, double>> count(const std::vector<Counted>&) = 0;
};

/// Throws NoCounters: no CUPTI in this build, no permission, a virtual GPU, another profiler.
std::unique_ptr<HardwareCounters> hardware_counters(const Device& device);

}  // namespace ladders
