// SPDX-License-Identifier: MIT
//
// Which tiles the blocks of the ring take. A test on the host compiles it too.
#pragma once

#include <algorithm>

#include "common/device.cuh"

namespace ladders::scan {
// A block's number gives its first tiles, one per stage; for each later tile it takes a ticket,
// once it has room: a tile that waits in a block delays the prefixes of all later tiles.
struct Schedule {
  unsigned tiles;
  unsigned tile_elements;  // of all but the last
  unsigned last_ticket;    // after it the counter is zero again, for the next launch
};
inline Schedule make_schedule(size_t count, size_t largest_tile, unsigned blocks, unsigned stages) {
  if (blocks == 0) return {};
  constexpr size_t kLine = 32;  // elements
  const size_t rounds = ceil_div(count, largest_tile * blocks);
  const size_t tile = ceil_div(ceil_div(count, rounds * blocks), kLine) * kLine;
  const auto tiles = unsigned(ceil_div(count, tile));
  // One ticket per tile after the first ones, and one for each block that finds no more tiles.
  const unsigned by_ticket = tiles > stages * blocks ? tiles - stages * blocks : 0;
  const unsigned takers = std::min(blocks, tiles - std::min(tiles, (stages - 1) * blocks));
  return {tiles, unsigned(tile), std::max(by_ticket + takers, 1u) - 1};
}

}  // namespace ladders::scan
