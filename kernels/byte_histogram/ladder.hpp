// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::byte_histogram {
std::vector<Rung> peers();  ///< the library in peers.cu

/// With two loads per thread, chunks are half as large, so that few keys occupy more warps.
inline const Crossover kFourLoadsFrom{
    "byte_histogram.four_loads_from", 1 << 24, along("keys"),
    every({{1 << 20, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 28}, {0, 1}})};

}  // namespace ladders::byte_histogram
