// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::lookup {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Staging a table in shared memory pays for all but the smallest tables, where there are enough
/// lookups: so many if the L1 keeps the table, else so many per entry.
inline constexpr int64_t kMostEntriesInL1 = 16384;
inline const Crossover kStagedFrom{"lookup.staged_from", 257, along("entries"),
                                   every({{64, 128, 256, 512, 1024, 4096}, {1 << 26}, {0, 5}})};
inline const Crossover kStagedFromLookups{
    "lookup.staged_from_lookups", 1 << 24, along("lookups"),
    every({{4096}, {1 << 20, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26}, {0, 5}})};
inline const Crossover kStagedFromLookupsPerEntry{
    "lookup.staged_from_lookups_per_entry", 64,
    [](const Case& c, const Device&) { return double(c["lookups"]) / double(c["entries"]); },
    every({{32768, 57344}, {1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24}, {0, 5}})};

}  // namespace ladders::lookup
