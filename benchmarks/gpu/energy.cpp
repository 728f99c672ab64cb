// SPDX-License-Identifier: MIT
#include "gpu/energy.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>
#include <vector>

#include "gpu/cuda_handles.hpp"

namespace ladders {
namespace {

// In seconds:
constexpr double kInterval = 0.4, kLongInterval = 1.6;  // of the first measurement, of a second
constexpr double kWarmUp = 0.25;                        // before a measurement
constexpr double kTimeout = 10;                         // of a measurement, plus 4 launches
constexpr double kBatch = 10e-3;                        // a batch of launches
constexpr double kLongLaunch = 0.1;

constexpr double kNearLimit = 0.9;         // of the board's power limit
constexpr double kMaxDisagreement = 0.03;  // of power readings and the energy counter, relative
constexpr int kMaxGraphLaunches = 500;     // a larger graph takes long to create

// Batches of launches. Several are always queued, so that the GPU is not idle between them.
class Batches {
 public:
  // `estimate`: seconds of a launch.
  Batches(const Subject& subject, double estimate, cudaStream_t capture_stream)
      : graph_launches_(rotations(subject, estimate) * subject.buffers),
        replays_(std::max(1, static_cast<int>(kBatch / (graph_launches_ * estimate)))),
        queued_ahead_(estimate < kLongLaunch ? 4 : 2),
        graph_(capture_stream, subject.launch, graph_launches_) {}

  void fill_queue() {
    while (ends_.size() < completed_ + queued_ahead_) {
      for (int i = 0; i < replays_; ++i) graph_.replay();
      check(cudaEventRecord(ends_.emplace_back().get(), nullptr), "cudaEventRecord");
    }
  }

  // The number of batches that have completed, without waiting.
  size_t completed() {
    for (; completed_ < ends_.size(); ++completed_) {
      const cudaError_t status = cudaEventQuery(ends_[completed_].get());
      if (status == cudaErrorNotReady) break;
      check(status, "launches for the energy counter");
    }
    return completed_;
  }

  // Mean seconds of a launch in the batches from number `from`, counted from 0, to before `to`.
  double launch_seconds(size_t from, size_t to) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, ends_[from - 1].get(), ends_[to - 1].get()),
          "cudaEventElapsedTime");
    return 1e-3 * milliseconds / (double(to - from) * replays_ * graph_launches_);
  }

 private:
  // How often a graph uses each of the buffers. A graph uses all equally often.
  static int rotations(const Subject& subject, double estimate) {
    return std::clamp(static_cast<int>(kBatch / (estimate * subject.buffers)), 1,
                      std::max(1, kMaxGraphLaunches / subject.buffers));
  }

  int graph_launches_, replays_;  // launches of a graph, replays of the graph in a batch
  size_t queued_ahead_;           // batches
  Graph graph_;
  std::deque<Event> ends_;  // of all batches
  size_t completed_ = 0;
};

// The driver updates its energy counter in steps. So the measurement lasts from one update to
// another, which comes at least `interval` seconds later.
std::map<std::string, double> measure_once(const Subject& subject, double estimate,
                                           const Nvml& nvml, SmClock& sm_clock,
                                           cudaStream_t capture_stream, double interval) {
  struct Update {
    std::chrono::steady_clock::time_point time;
    double joules = 0;
    size_t completed = 0;  // batches
  };
  std::optional<Update> first, last;
  const auto seconds = [&] {
    return std::chrono::duration<double>(last->time - first->time).count();
  };
  const auto is_complete = [&] {
    return last && seconds() >= interval && last->completed > first->completed;
  };
  Batches batches(subject, estimate, capture_stream);
  std::vector<double> watts, driver_clocks;
  const auto start = std::chrono::steady_clock::now();
  double previous_joules = nvml.joules();
  while (!is_complete()) {
    if (seconds_since(start) > kTimeout + 4 * subject.buffers * estimate)
      throw NoNvml("the driver's energy counter does not change");
    batches.fill_queue();
    const double joules = nvml.joules();
    const size_t completed = batches.completed();
    if (joules != previous_joules && completed > 0 && seconds_since(start) > kWarmUp) {
      if (!first) sm_clock.start();
      (first ? last : first) = Update{std::chrono::steady_clock::now(), joules, completed};
    }
    previous_joules = joules;
    if (!first) continue;
    if (const auto now = try_read([&] { return nvml.watts(); })) watts.push_back(*now);
    if (const auto now = try_read([&] { return nvml.sm_clock_hz(); }))
      driver_clocks.push_back(*now);
  }
  sm_clock.stop();
  check(cudaDeviceSynchronize(), "launches for the energy counter");

  const double launch_seconds = batches.launch_seconds(first->completed, last->completed);
  const double power = (last->joules - first->joules) / seconds();
  std::map<std::string, double> counters = {{"watts", power},
                                            {"joules", power * launch_seconds},
                                            {"energy_launch_seconds", launch_seconds},
                                            {"energy_clock_hz", sm_clock.hz()}};
  if (!watts.empty())
    counters["power_over_energy"] =
        std::accumulate(watts.begin(), watts.end(), 0.0) / double(watts.size()) / power;
  if (!driver_clocks.empty()) counters["driver_clock_hz"] = quantile(driver_clocks, 0.5);
  if (const auto hz = try_read([&] { return nvml.memory_clock_hz(); }))
    counters["memory_clock_hz"] = *hz;
  if (const auto degrees = try_read([&] { return nvml.celsius(); })) counters["celsius"] = *degrees;
  return counters;
}

}  // namespace

std::map<std::string, double> measure_energy(const Subject& subject,
                                             const std::function<double()>& launch_seconds,
                                             const Nvml& nvml, SmClock& sm_clock,
                                             cudaStream_t capture_stream) {
  const auto measure = [&](double interval) {
    const double estimate = std::max(launch_seconds(), 1e-6);
    return measure_once(subject, estimate, nvml, sm_clock, capture_stream, interval);
  };
  const auto counters = measure(kInterval);
  // Near its limit a board may take more until the driver has lowered the clock. Then power may
  // oscillate. So a short measurement is not exact, and may disagree with the readings.
  const auto limit = try_read([&] { return nvml.watts_limit(); });
  const auto agreement = counters.find("power_over_energy");
  if ((limit && counters.at("watts") > kNearLimit * *limit) ||
      (agreement != counters.end() && std::abs(agreement->second - 1) > kMaxDisagreement))
    return measure(kLongInterval);
  return counters;
}

}  // namespace ladders
