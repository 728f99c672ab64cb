// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::convolution {
/// Tiles of 8 x 256 pixels per SM.
inline double tiles_per_sm(const Case& c, const Device& device) {
  return double((c["rows"] + 7) / 8 * ((c["columns"] + 255) / 256)) / device.sms;
}
/// Below, staged_tiles (or, for filters of 15 x 15, column) are faster than strips, since there are
/// too few warps to hide latency: strips load row after row, these tiles all their rows at once.
inline const Crossover kFullFrom{
    "convolution.full_from", 8, tiles_per_sm,
    every({{512, 1024, 1536, 2048, 4096}, {320, 512, 2048}, {3, 7, 15}})};
/// The same if rows do not start on 16 bytes, for filters of 5 x 5 and 7 x 7.
inline const Crossover kRowRingFrom{
    "convolution.row_ring_from", 40, tiles_per_sm,
    every({{1024, 2048, 3072, 4096}, {1025, 2049, 3073, 4097}, {5, 7}})};
/// Small tiles are faster than strips from the L1 where filters are small, and there are enough
/// products of pixels and weights. (The number of products is the same on an H100 and an H200.)
inline const Crossover kStripsFrom{"convolution.strips_from", 10, along("filter"),
                                   every({{4096, 8192}, {4096}, {3, 5, 7, 9, 11, 15}})};
/// Products of pixels and weights.
inline double products(const Case& c, const Device&) {
  return double(c["rows"]) * double(c["columns"]) * double(c["filter"] * c["filter"]);
}
inline const Crossover kSmallTilesFrom{"convolution.small_tiles_from", 150e6, products,
                                       every({{2048, 3072, 4096, 8192}, {2048}, {3, 5}})};
/// The same for filters of 7 x 7 and 9 x 9.
inline const Crossover kSmallTilesOfSevenFrom{
    "convolution.small_tiles_of_7_from", 150e6, products,
    every({{1024, 1536, 2048, 4096, 8192}, {320, 2048, 2980}, {7, 9}})};

}  // namespace ladders::convolution
