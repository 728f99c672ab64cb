// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::histogram {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Merging counters in pairs of blocks is faster than atomics from each where bins are many and
/// keys few.
inline const Crossover kMergeInPairsFrom{
    "histogram.merge_in_pairs_from", 32768, along("bins"),
    every({{4096, 8192, 16384, 32768, 57344}, {1 << 22, 1 << 24}, {0}})};
inline const Crossover kMergeAloneFrom{
    "histogram.merge_alone_from", (1 << 26) + 1, along("keys"),
    every({{57344}, {1 << 22, 1 << 24, 1 << 25, 1 << 26, 1 << 27, 1 << 28}, {0}})};

}  // namespace ladders::histogram
