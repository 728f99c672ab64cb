// SPDX-License-Identifier: MIT
//
// What the hardware counts while a row runs, read in this process by CUPTI's range profiler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.hpp"

namespace ladders {

/// That nothing can be counted here; what() says in one line why, and what to do about it.
struct NoCounters : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A term of the counters of a row, and CUPTI's name for it on some of the architectures: over the
/// whole GPU and all that a row launches. Several names of one term are added up.
struct Metric {
  const char* term;
  const char* name;
  int from = 0, to = 999;  ///< compute capabilities, 90 for 9.0
};

/// The terms that a GPU of this compute capability counts: all there is to say about differences
/// between architectures.
std::vector<Metric> metrics(int compute_capability);

/// What a row reports, from the values of its terms. A counter that cannot be told from them (a
/// ratio to nothing, say) is left out.
std::map<std::string, double> row_counters(const std::map<std::string, double>& terms,
                                           const Device& device);

/// Every name that row_counters() may give.
std::vector<std::string> row_counter_names();

/// Those of metrics() that CUPTI does not know for a chip ("GH100"), or not for long: no GPU is
/// needed to ask.
/// Throws NoCounters in a build without CUPTI.
std::vector<std::string> unknown_metrics(const std::string& chip, int compute_capability);

/// Why nothing is counted where CUPTI answers with this CUptiResult, and what to do about it, in
/// one line. Throws NoCounters in a build without CUPTI.
std::string why_not(int cupti_result);

/// Counts on the device that is current, in its current context.
class HardwareCounters {
 public:
  /// Throws NoCounters if nothing can be counted: no CUPTI in this build, no permission, a virtual
  /// GPU, another profiler.
  explicit HardwareCounters(const Device& device);
  ~HardwareCounters();

  /// How the counters were taken, for the results: "CUPTI 13.0, 10 passes".
  std::string description() const;

  /// Counts what `launch` enqueues on any stream, as one whole, however many kernels and copies
  /// it is. No launch yields everything at once: for each pass `prepare` and `launch` are called
  /// again, and only `launch` is counted. Throws CudaError.
  std::map<std::string, double> count(const std::function<void()>& prepare,
                                      const std::function<void()>& launch);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ladders
