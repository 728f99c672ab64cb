// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::reduction {
std::vector<Rung> peers();  ///< the library and the CPU in peers.cu

/// Clusters that hold all elements, 2^16 each. One cluster is faster than flags on an H200, but
/// slower on an H100. So without tuning no cluster is used.
inline const Crossover kFlagsFrom{
    "reduction.flags_from", 1,
    [](const Case& c, const Device&) { return double((c["elements"] + 65535) / 65536); },
    every({{1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19}, {0, 1}})};

/// Numbers of elements. As they grow: first blocks of 128 threads, then of 256, then twice as many
/// threads per SM (ints in larger blocks, floats in more blocks), then a ring of bulk copies.
/// Squares of ints take twice the registers, so they need another crossover to more threads.
inline const Crossover kLargerBlocksFrom{
    "reduction.larger_blocks_from", (1 << 20) + 1, along("elements"),
    every({{1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22}, {0, 1}})};
inline const Crossover kMoreThreadsFrom{
    "reduction.more_threads_from", (1 << 23) + 1, along("elements"),
    every({{1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25}, {1}})};
inline const Crossover kMoreThreadsOfIntsFrom{
    "reduction.more_threads_of_ints_from", (3 << 23) + 1, along("elements"),
    every({{1 << 22, 1 << 23, 1 << 24, 3 << 23, 1 << 25}, {0}})};
inline const Crossover kBulkRingFrom{
    "reduction.bulk_ring_from", 1 << 26, along("elements"),
    every({{1 << 22, 1 << 24, 1 << 25, 1 << 26, 1 << 27, 1 << 28}, {0, 1}})};

}  // namespace ladders::reduction
