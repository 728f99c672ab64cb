// SPDX-License-Identifier: MIT
//
// Which metrics of CUPTI are read on which GPU, and what counters of a row are made of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/device.hpp"

namespace ladders {

/// A term of a row's counters, and CUPTI's name for it. Several names of one term are added up.
struct Metric {
  std::string term, name;
  int from = 0, to = 999;  ///< compute capabilities that have the name, 90 for 9.0
};

/// The metrics of GPUs with this compute capability, 90 for 9.0.
std::vector<Metric> metrics(int compute_capability);

/// A row's counters from its terms. Those that are undefined (a ratio to 0, say) are left out.
std::map<std::string, double> row_counters(const std::map<std::string, double>& terms,
                                           const Device& device);

}  // namespace ladders
