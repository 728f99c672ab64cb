// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::transpose {
std::vector<Rung> peers();  ///< the library in peers.cu

/// The size of both matrices, relative to that of the L2.
inline double share_of_l2(const Case& c, const Device& device) {
  return 2. * double(c["rows"]) * double(c["columns"]) * double(c["element"]) /
         double(device.l2_bytes);
}
inline std::vector<Shape> squares(const std::vector<int64_t>& sides,
                                  const std::vector<int64_t>& elements) {
  std::vector<Shape> shapes;
  for (const Shape& s : every({sides, elements})) shapes.push_back({s[0], s[0], s[1]});
  return shapes;
}

/// Numbers of columns: from so many on, aligned matrices are moved in vectors, below by `shifted`.
inline const Crossover kWideFrom{"transpose.wide_from", 33, along("columns"),
                                 every({{1 << 18}, {8, 16, 24, 32, 40, 48, 64}, {4}})};
/// Shares of the L2. Small matrices: elements of 4 bytes, one by one. Larger: vectors in small
/// tiles, so that every SM has tiles. Larger still: bands of tiles.
inline const Crossover kVectorsFrom{"transpose.vectors_from", 0, share_of_l2,
                                    squares({512, 1024, 1536, 2048, 2560, 3072}, {4})};
inline const Crossover kBandsFrom{"transpose.bands_from", 0.95, share_of_l2,
                                  squares({1024, 2048, 2560, 3072, 4096, 6144}, {4, 8})};

}  // namespace ladders::transpose
