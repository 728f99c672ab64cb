// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::convolution {
/// Small tiles are faster than strips from the L1 where filters are small, and there are enough
/// products of pixels and weights. (The number of products is the same on an H100 and an H200.)
inline const Crossover kStripsFrom{"convolution.strips_from", 10, along("filter"),
                                   every({{4096, 8192}, {4096}, {3, 5, 7, 9, 11, 15}})};
inline const Crossover kSmallTilesFrom{
    "convolution.small_tiles_from", 150e6,
    [](const Case& c, const Device&) {
      return double(c["rows"]) * double(c["columns"]) * double(c["filter"] * c["filter"]);
    },
    every({{512, 1024, 2048, 3072, 4096, 8192}, {2048}, {3, 5, 7, 9}})};

}  // namespace ladders::convolution
