// SPDX-License-Identifier: MIT
#include "sampling.hpp"

#include <cmath>
#include <numeric>

#include "statistics.hpp"

namespace ladders {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool enough(const std::vector<double>& seconds, int launches, const Sampling& sampling,
            double wall) {
  const int count = static_cast<int>(seconds.size());
  if (sampling.exactly > 0) return count >= sampling.exactly;
  if (wall >= sampling.wall_seconds) return count >= 5;
  return count >= sampling.least &&
         launches * std::accumulate(seconds.begin(), seconds.end(), 0.0) >=
             sampling.device_seconds &&
         median_noise(seconds) <= sampling.noise;
}

bool will_do(const std::vector<double>& seen, double wanted) {
  constexpr double kAlike = 2e-4;  // how near, for each that was seen
  const bool as_wanted = wanted > 0 && seen.size() <= 32;
  if (!as_wanted && seen.size() < 12) return false;
  const double goal = as_wanted ? wanted : quantile(seen, 0.25);
  return std::abs(seen.back() - goal) <= kAlike * double(seen.size()) * goal;
}

Samples sample_host(const std::function<void()>& work, const Sampling& sampling) {
  const auto start = std::chrono::steady_clock::now();
  Samples result;
  while (!enough(result.seconds, 1, sampling, seconds_since(start))) {
    const auto before = std::chrono::steady_clock::now();
    work();
    result.seconds.push_back(seconds_since(before));
  }
  result.measuring_seconds = seconds_since(start);
  return result;
}

}  // namespace ladders
