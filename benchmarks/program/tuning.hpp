// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// Values of crossovers, by name, and the GPU that they were measured on.
struct Tuning {
  std::string source;
  std::map<std::string, double> values;
};

/// Reads a file that `ladder tune` wrote. Throws UsageError if it is none, or names crossovers that
/// the ladders do not have.
Tuning read_tuning(const std::string& file);

/// What users may not know of the file that they gave, a line each: that it is of another GPU, or
/// lacks crossovers, as one that was cut off does.
std::vector<std::string> unexpected(const Tuning& tuning, const Device& device);

/// The tuning for this GPU, of files by name and text: that of the GPU's name, else of the nearest
/// compute capability, of the same major version if there is one, and of those of one distance the
/// first by the name of the GPU. No values, which leaves those that are built in, if there is no
/// file, or if these were measured on this GPU. Throws UsageError.
using TuningFiles = std::vector<std::pair<const char*, const char*>>;
Tuning tuning_of(const Device& device, const TuningFiles& files);
/// The same, of the files in results/ when the program was built.
Tuning tuning_of(const Device& device);

/// The ladders with nothing but both sides of their crossovers: each choice at the probes of each,
/// with the value below and above all shapes.
std::vector<Ladder> both_sides(const std::vector<Ladder>& ladders);

/// The crossover that a row of both_sides() measures.
const Crossover& crossover_of(const Row& row);

}  // namespace ladders
