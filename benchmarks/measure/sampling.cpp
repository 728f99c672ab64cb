// SPDX-License-Identifier: MIT
#include "measure/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ladders {
namespace {

// The value at index i with its equals spread evenly between the values next to them.
double untied(const std::vector<double>& sorted, size_t i) {
  const auto [first, last] = std::ranges::equal_range(sorted, sorted[i]);
  const double below = first == sorted.begin() ? INFINITY : *first - *(first - 1);
  const double above = last == sorted.end() ? INFINITY : *last - *first;
  const double gap = std::min(below, above);
  if (std::isinf(gap)) return sorted[i];
  const double place = double(i) - double(first - sorted.begin()) + 0.5;
  return sorted[i] + gap * (place / double(last - first) - 0.5);
}

double quantile_of_sorted(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * double(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  return std::lerp(untied(sorted, below), untied(sorted, std::min(below + 1, sorted.size() - 1)),
                   position - double(below));
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  std::ranges::sort(values);
  return quantile_of_sorted(values, fraction);
}

double median_noise(std::vector<double> values) {
  std::ranges::sort(values);
  const double reach = std::min(0.5, 1 / std::sqrt(double(values.size())));
  const double width =
      quantile_of_sorted(values, 0.5 + reach) - quantile_of_sorted(values, 0.5 - reach);
  return width / 4 / quantile_of_sorted(values, 0.5);
}

double mean_noise(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = double(values.size());
  return std::sqrt(squares / (n * (n - 1))) / mean;
}

double Samples::launch_seconds() const {
  return settled ? mean_of(seconds) : quantile(seconds, 0.5);
}
double Samples::noise() const { return settled ? mean_noise(seconds) : median_noise(seconds); }

bool enough_samples(const std::vector<double>& seconds, int launches, const Sampling& sampling,
                    double wall) {
  const int count = static_cast<int>(seconds.size());
  if (sampling.exactly > 0) return count >= sampling.exactly;
  if (wall >= sampling.wall_seconds) return count >= kFewest;
  const double device_seconds = launches * std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return count >= sampling.least && device_seconds >= sampling.device_seconds &&
         median_noise(seconds) <= sampling.noise;
}

constexpr int kMeans = 10;  // they take as long as settling may

double mean_seconds(const Sampling& sampling) { return sampling.settle_seconds / kMeans; }

bool enough_means(const std::vector<double>& means, const Sampling& sampling, double wall) {
  if (means.size() < kFewest) return false;
  if (wall >= 3 * sampling.settle_seconds) return true;
  // Few means tell their own error badly, so it must then be smaller.
  const double strictness = std::min(1.0, double(means.size()) / kMeans);
  return mean_noise(means) <= strictness * sampling.noise;
}

bool context_is_fast_enough(const std::vector<double>& seen, double wanted) {
  constexpr double kTolerance = 2e-4;  // relative, times the number seen
  const bool as_wanted = wanted > 0 && seen.size() <= 32;
  if (!as_wanted && seen.size() < 12) return false;
  const double goal = as_wanted ? wanted : quantile(seen, 0.25);
  return std::abs(seen.back() - goal) <= kTolerance * double(seen.size()) * goal;
}

void settle(double least, double most, const std::function<double()>& clock_of_interval) {
  constexpr double kSteady = 5e-3;
  const auto start = std::chrono::steady_clock::now();
  bool is_steady = false;
  for (double before = NAN, wall = 0; wall < most && !(is_steady && wall >= least);
       wall = seconds_since(start)) {
    const double now = clock_of_interval();
    is_steady = std::abs(now / before - 1) <= kSteady;
    before = now;
  }
}

Samples sample_host(const std::function<void()>& work, const Sampling& sampling) {
  const auto start = std::chrono::steady_clock::now();
  Samples result;
  while (!enough_samples(result.seconds, 1, sampling, seconds_since(start))) {
    const auto before = std::chrono::steady_clock::now();
    work();
    result.seconds.push_back(seconds_since(before));
  }
  result.measuring_seconds = seconds_since(start);
  return result;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace ladders
