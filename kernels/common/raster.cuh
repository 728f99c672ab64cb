// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

namespace ladders {
/// The order in which the tiles of a matrix are taken: `band` rows of tiles at a time, downwards,
/// then on to the right, so that concurrent tiles share rows of A and columns of B in the L2.
struct Raster {
  int rows, columns, band;  // of tiles

  struct Place {
    int row, column;  // of a tile
  };
  __host__ __device__ int tiles() const { return rows * columns; }
  __device__ __forceinline__ Place place(int tile) const {
    const int first = tile / (band * columns) * band, high = min(band, rows - first);
    const int within = tile % (band * columns);
    return {.row = first + within % high, .column = within / high};
  }
};

}  // namespace ladders
