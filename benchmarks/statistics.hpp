// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace ladders {

/// Order statistics with linear interpolation; `fraction` in 0..1, `values` not empty. Ties count
/// as spread over the step they were rounded to, as in grouped data: events tick every 32 ns on
/// Hopper, half a percent of the shortest kernels, and a median may not jump by that.
double quantile(std::vector<double> values, double fraction);

/// The relative standard error of the median: a quarter of its 95 % confidence interval between
/// order statistics, which n values have at n / 2 - sqrt(n) and n / 2 + sqrt(n). So outliers do not
/// count, and a median between two modes is as uncertain as it looks.
double median_noise(std::vector<double> values);

}  // namespace ladders
