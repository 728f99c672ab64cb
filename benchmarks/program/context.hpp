// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "measure/study.hpp"
#include "model/ladder.hpp"
#include "program/options.hpp"

namespace ladders {

/// Adds to Google Benchmark's context what a result file must say of itself: the GPU (or the one
/// emulated), the build, the cache mode and the ladders.
void add_context(Study& study, const Options& options);

/// The device in a line: name, compute capability, SMs, clock, L2.
std::string describe(const Device& device);

/// The ladders as a JSON array on one line: names, titles, axes, ideas, roles. Plots and tables are
/// made from it, so that the scripts hold no kernel names.
std::string to_json(const std::vector<Ladder>& ladders);

}  // namespace ladders
