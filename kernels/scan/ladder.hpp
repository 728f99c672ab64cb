// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::scan {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Numbers of elements: small tiles keep more SMs busy; a ring needs many tiles per block to stay
/// full.
inline const Crossover kLargeTilesFrom{
    "scan.large_tiles_from", (1 << 18) + 1, along("elements"),
    every({{1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21}, {0, 1}})};
inline const Crossover kBulkRingFrom{
    "scan.bulk_ring_from", 1 << 24, along("elements"),
    every({{1 << 20, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26}, {0, 1}})};

}  // namespace ladders::scan
