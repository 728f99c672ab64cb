// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace ladders {

/// Order statistics with linear interpolation; `fraction` in 0..1, `values` not empty. Ties count
/// as spread over the step they were rounded to, as in grouped data: events tick every 32 ns on
/// Hopper, half a percent of the shortest kernels, and a median may not jump by that.
double quantile(std::vector<double> values, double fraction);

/// The relative standard error of the median, estimated from the quartiles so that a few
/// outliers do not count (1.253 sigma / sqrt(n), sigma = IQR / 1.349).
double median_noise(std::vector<double> values);

}  // namespace ladders
