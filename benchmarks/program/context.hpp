// SPDX-License-Identifier: MIT
#pragma once

#include "measure/study.hpp"
#include "program/options.hpp"

namespace ladders {

/// Adds what a result file must say: the GPU, the build, the cache mode and the ladders.
void add_context(Study& study, const Options& options);

/// Throws std::invalid_argument if the target of a rung is no counter.
void check_targets(const std::vector<Ladder>& ladders);

/// The device in a line: name, compute capability, SMs, clock, L2.
std::string describe(const Device& device);

/// The ladders as a JSON array on one line, so that the scripts hold no kernel names.
std::string to_json(const std::vector<Ladder>& ladders);

}  // namespace ladders
