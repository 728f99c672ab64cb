// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::lookup {
std::vector<Rung> peers();  ///< the library in peers.cu

/// From so many entries on, the gain for strided indices outweighs the loss for random ones.
inline const Crossover kStagedFrom{"lookup.staged_from", 257, along("entries"),
                                   every({{64, 128, 256, 512, 1024, 4096}, {1 << 26}, {0, 5}})};

}  // namespace ladders::lookup
