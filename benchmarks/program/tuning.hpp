// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// Values of crossovers, by name, and the GPU that they were measured on.
struct Tuning {
  std::string source;
  std::map<std::string, double> values;
};

/// That of a file which `ladder tune` wrote. Throws UsageError where it is none, or names
/// crossovers that the ladders do not have.
Tuning read_tuning(const std::string& file);

/// Of those in results/ when the program was built: that of this GPU, else of one of the same
/// architecture, else no values, which leaves those that are built in.
Tuning tuning_of(const Device& device);

/// The ladders with nothing but both sides of their crossovers: each choice at the probes of each,
/// with the value below and above all shapes.
std::vector<Ladder> both_sides(const std::vector<Ladder>& ladders);

/// That of such a row.
const Crossover& crossover_of(const Row& row);

}  // namespace ladders
