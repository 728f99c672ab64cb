// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study.hpp"

namespace ladders {

/// How many rows came to what, over the whole run.
struct Outcome {
  int measured = 0, skipped = 0, failed = 0;
};

/// Registers every row of the catalogue with Google Benchmark. `study` is called when the first
/// row runs, so that listing needs no GPU; `outcome` is counted up as rows run. Both must outlive
/// the run.
void register_rows(const std::function<Study&()>& study, Outcome& outcome);

/// Every counter that a row may have.
std::vector<std::string> counter_names();

}  // namespace ladders
