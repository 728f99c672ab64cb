// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// The values of crossovers that were measured on a GPU.
struct Tuning {
  std::string source;  ///< the name of the GPU, or "built in, of NVIDIA H200" without values
  std::map<std::string, double> values;  ///< by crossover, "reduction.bulk_ring_from"
};

/// Reads a file that `ladder tune` wrote. Throws UsageError if the file cannot be read, has another
/// format, or names a crossover that no ladder has.
Tuning read_tuning(const std::string& file);

/// Warnings about a tuning file for this device, each in one line: the file is of another GPU, or
/// lacks crossovers (a file that was cut off does).
std::vector<std::string> unexpected(const Tuning& tuning, const Device& device);

/// Tuning files: name and text of each.
using TuningFiles = std::vector<std::pair<const char*, const char*>>;
/// Returns the tuning from the file of this GPU. If there is none, returns that of the GPU with the
/// nearest compute capability: the same major version comes first, then the smallest difference,
/// then the GPU's name. Returns no values, so that the built-in ones apply, if there are no files,
/// or if the built-in values are of this GPU and it has no file. Throws UsageError.
Tuning tuning_of(const Device& device, const TuningFiles& files);
/// The same for the files results/*/tuning.toml, which were compiled into this program.
Tuning tuning_of(const Device& device);

/// Copies of `ladders` for tuning. Their rows are every choice at the probes of every crossover,
/// once as below the crossover and once as above it.
std::vector<Ladder> both_sides(const std::vector<Ladder>& ladders);

/// The crossover that a row of both_sides() measures.
const Crossover& crossover_of(const Row& row);

}  // namespace ladders
