// SPDX-License-Identifier: MIT
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace ladders {
namespace {

// The value at index i with its equals spread evenly between the values next to them.
double untied(const std::vector<double>& sorted, size_t i) {
  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), sorted[i]);
  const double below = first == sorted.begin() ? INFINITY : *first - *(first - 1);
  const double above = last == sorted.end() ? INFINITY : *last - *first;
  const double gap = std::min(below, above);
  if (std::isinf(gap)) return sorted[i];
  const double place = double(i) - double(first - sorted.begin()) + 0.5;
  return sorted[i] + gap * (place / double(last - first) - 0.5);
}

double quantile_of_sorted(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double low = untied(sorted, below);
  const double high = untied(sorted, std::min(below + 1, sorted.size() - 1));
  return low + (position - static_cast<double>(below)) * (high - low);
}

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, fraction);
}

double median_noise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double reach = std::min(0.5, 1 / std::sqrt(double(values.size())));
  const double width =
      quantile_of_sorted(values, 0.5 + reach) - quantile_of_sorted(values, 0.5 - reach);
  return width / 4 / quantile_of_sorted(values, 0.5);
}

}  // namespace ladders
