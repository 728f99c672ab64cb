// SPDX-License-Identifier: MIT
//
// A thread that goes down the image keeps a sum for each row of outputs that a row of the image
// contributes to: it reads each pixel once, for all its products.
#pragma once

#include "convolution/01_tiles.cuh"

namespace ladders::convolution {
constexpr int kOwn = 4;                // neighbouring outputs per thread: 16 bytes
constexpr int kAcross = kOwn * kWarp;  // and per warp

// Rows that do not start on 16 bytes are seen sheared, as if they had columns - skew pixels, which
// is a multiple of 4:
//   row * columns + column = row * (columns - skew) + place, where place = column + row * skew.
// So each row begins `skew` places to the right of the one above, and vectors start at places that
// are multiples of 4. A filter's row is sheared likewise: all offsets are known when compiling.
// Rows are counted from the first of a tile, which is a multiple of 4 if there is a skew.
inline int skew_of(int64_t columns) { return int((columns + 1) % 4) - 1; }
__host__ __device__ constexpr int magnitude(int skew) { return skew < 0 ? -skew : skew; }
// How far a filter reaches to either side of a place.
__host__ __device__ constexpr int reach(int side, int skew) {
  return reach(side) * (1 + magnitude(skew));
}
// Places of all columns of so many rows, and the least, down to a vector's start.
constexpr int64_t width(int64_t columns, int64_t rows, int skew) {
  return skew == 0 ? columns : columns + (rows - 1) * magnitude(skew) + kOwn - 1;
}
__host__ __device__ constexpr int leftmost(int rows, int skew) {
  return skew < 0 ? (rows - 1) * skew & -kOwn : 0;
}

// The pixels of a row that a thread's outputs need, and those of two rows.
template <int side, int skew = 0>
struct Window {
  float pixels[kOwn + 2 * reach(side, skew)];
};
template <int side, int skew = 0>
struct Pair {
  Window<side, skew> upper, lower;
};

// Where in a window the pixels of a thread's first output and row y of the filter begin.
template <int side, int skew>
__host__ __device__ constexpr int first_place(int y) {
  return reach(side, skew) - reach(side) + (y - reach(side)) * skew;
}

// Adds the products of two rows of the image. Sum i is of the output row whose filter row i meets
// the lower of them, and row i - 1 the upper. Sum i - 2 becomes sum i with the first FMA, which may
// write to another register than it reads. Sums outside of [begin, end) are not in the strip and
// skipped, three rows of the filter at a time; the branches also limit how many weights are live.
template <int side, int skew>
__device__ __forceinline__ void add_rows(float (&sums)[side + 1][kOwn],
                                         const Pair<side, skew>& pair, const Filter& filter,
                                         int begin, int end) {
  constexpr int kTogether = 3;
  const unsigned needed = (~0u << max(begin - 1, 0)) & ~(~0u << min(end, side));  // a bit a row
#pragma unroll
  for (int last = side - 1; last >= 0; last -= kTogether) {
    const int first = max(last - kTogether + 1, 0);
    if (!(needed & ((2u << last) - (1u << first)))) continue;
#pragma unroll
    for (int y = last; y >= first; --y)
#pragma unroll
      for (int i = y + 1; i >= y; --i)
#pragma unroll
        for (int x = 0; x < side; ++x)
#pragma unroll
          for (int own = 0; own < kOwn; ++own) {
            const bool moves = x == 0 && (i == y || i == side);
            const float before = !moves ? sums[i][own] : i >= 2 ? sums[i - 2][own] : 0;
            const int place = first_place<side, skew>(y) + x + own;
            const float pixel = (i == y ? pair.lower : pair.upper).pixels[place];
            sums[i][own] = before + filter.weights[y * side + x] * pixel;
          }
  }
}

// Computes rows [first, last) of outputs, two rows of the image at a time.
template <int side, int skew = 0, class Load, class Store>
__device__ __forceinline__ void go_down(const Filter& filter, int first, int last, Load load,
                                        Store store) {
  // Small filters have too few FMAs to hide loads, but registers to load the next rows ahead.
  constexpr int kTurns = side <= (skew == 0 ? 7 : 5) ? 2 : 1, kAhead = kTurns - 1;
  constexpr int kReach = reach(side);
  const int end = last + kReach;
  float sums[side + 1][kOwn] = {};
  Pair<side, skew> pairs[kTurns];
  int row = first - kReach;
  if constexpr (kAhead > 0) pairs[0] = load(row);
  while (row < end)
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      pairs[(turn + kAhead) % kTurns] = load(row + 2 * kAhead);
      const int newest = row + 1 + kReach;  // sum i is of output row newest - i
      add_rows<side, skew>(sums, pairs[turn], filter, newest - last + 1, newest - first + 1);
#pragma unroll
      for (int i = side; i > side - 2; --i)  // the sums that are complete
        if (newest - i >= first && newest - i < last) store(newest - i, sums[i]);
      row += 2;
      if (row >= end) break;
    }
}

// Stores a thread's outputs in a row, as a vector if rows start on 16 bytes.
__device__ __forceinline__ void store(float* out, int row, int column, int columns,
                                      const float (&sums)[kOwn], bool aligned) {
  if (!aligned) {
#pragma unroll
    for (int own = 0; own < kOwn; ++own)
      if (column + own < columns) out[at(row, column + own, columns)] = sums[own];
  } else if (column < columns) {
    __stcs(reinterpret_cast<float4*>(&out[at(row, column, columns)]),
           make_float4(sums[0], sums[1], sums[2], sums[3]));
  }
}

// Copies 1, 2 or 4 neighbouring pixels in one load.
template <int count>
__device__ __forceinline__ void copy_pixels(float* to, const float* from) {
  if constexpr (count == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (count == 2) {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  } else {
    to[0] = *from;
  }
}

// A window in shared memory, aligned to 16 bytes.
template <int side>
__device__ __forceinline__ Window<side> shared_window(const float* from) {
  constexpr int kPixels = kOwn + side - 1;
  Window<side> window;
#pragma unroll
  for (int i = 0; i + 4 <= kPixels; i += 4) copy_pixels<4>(&window.pixels[i], &from[i]);
  if constexpr (kPixels % 4 == 2) copy_pixels<2>(&window.pixels[kPixels - 2], &from[kPixels - 2]);
  return window;
}

// From a tile in shared memory: 64 x 128 outputs per block, 16 x 128 per warp.
struct SumsTile {
  static constexpr int kWarps = 4, kThreads = kWarps * kWarp, kRows = 16, kHeight = kWarps * kRows;
};
template <int side>
__global__ void __launch_bounds__(SumsTile::kThreads, side == 15 ? 4 : 5)
    sliding_sums(const float* __restrict__ image, const __grid_constant__ Filter filter,
                 float* __restrict__ out, int rows, int columns) {
  using T = SumsTile;
  constexpr int kPitch = ceil_div(kAcross + side - 1, 4) * 4;
  constexpr int kHeight = T::kHeight + side - 1;
  __shared__ __align__(16) float tile[kHeight][kPitch];
  const int row0 = blockIdx.y * T::kHeight, column0 = blockIdx.x * kAcross;
  load_tile<T::kThreads>(tile, image, row0 - reach(side), column0 - reach(side), rows, columns);
  __syncthreads();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int first = row0 + warp * T::kRows, column = column0 + lane * kOwn;
  go_down<side>(
      filter, first, min(first + T::kRows, rows),
      [&](int row) {  // clamped, as the rows loaded ahead may lie beyond the tile
        const int y = min(row - row0 + reach(side), kHeight - 2);
        return Pair<side>{shared_window<side>(&tile[y][lane * kOwn]),
                          shared_window<side>(&tile[y + 1][lane * kOwn])};
      },
      [&](int row, const float (&sums)[kOwn]) {
        store(out, row, column, columns, sums, columns % 4 == 0);
      });
}

// Four warps side by side, and as many blocks as an SM has registers for.
template <int side, int skew>
struct Strips {
  static constexpr int kWarps = 4, kThreads = kWarps * kWarp, kColumns = kWarps * kAcross;
  static constexpr int kBlocksIfAligned = side == 3                ? 8
                                          : side == 5 || side == 9 ? 6
                                          : side == 15             ? 4
                                                                   : 5;
  static constexpr int kBlocks = kBlocksIfAligned - magnitude(skew) - (skew != 0 && side <= 5);
};

// Loads `count` pixels on either side, from the i-th on; rows are aligned: none crosses the edge.
template <int count, int side>
__device__ __forceinline__ void load_beside(Window<side>& window, const float* own, int i,
                                            int column, int columns) {
  float* to = &window.pixels[reach(side)];
  if (column > i) copy_pixels<count>(to - i - count, own - i - count);
  if (column + kOwn + i < columns) copy_pixels<count>(to + kOwn + i, own + kOwn + i);
}

// A row's window from global memory: a thread's own pixels, and on either side vectors of 4, 2 and
// 1 as far as the filter reaches; zeros outside of the image.
template <int side>
__device__ __forceinline__ Window<side> global_window(const float* __restrict__ image, int row,
                                                      int column, int rows, int columns) {
  constexpr int kReach = reach(side);
  Window<side> window{};
  if (row < 0 || row >= rows) return window;
  const float* own = &image[at(row, column, columns)];
  copy_pixels<kOwn>(&window.pixels[kReach], own);
#pragma unroll
  for (int i = 0; i + 4 <= kReach; i += 4) load_beside<4>(window, own, i, column, columns);
  if constexpr (kReach % 4 >= 2) load_beside<2>(window, own, kReach / 4 * 4, column, columns);
  if constexpr (kReach % 2 == 1) load_beside<1>(window, own, kReach - 1, column, columns);
  return window;
}

// Whether all of a thread's pixels in a row are of the image.
__device__ __forceinline__ bool is_inside(int column, int columns) {
  return column >= 0 && column + kOwn <= columns;
}

// Stores those of a thread's outputs in a sheared row that are of the image.
__device__ __forceinline__ void store_inside(float* out, int row, int column, int columns,
                                             const float (&sums)[kOwn]) {
  if (is_inside(column, columns)) return store(out, row, column, columns, sums, true);
#pragma unroll
  for (int own = 0; own < kOwn; ++own)
    if (column + own >= 0 && column + own < columns)
      out[at(row, column + own, columns)] = sums[own];
}

// Copies neighbouring pixels of a row; those outside of the image stay as they are.
__device__ __forceinline__ void copy_inside(float* to, const float* __restrict__ image, int row,
                                            int column, int columns) {
  if (is_inside(column, columns))
    copy_pixels<kOwn>(to, &image[at(row, column, columns)]);
  else
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (column + i >= 0 && column + i < columns) to[i] = image[at(row, column + i, columns)];
}

// A window of sheared rows: whole vectors, of which it is a part.
template <int side, int skew>
__device__ __forceinline__ Window<side, skew> sheared_window(const float* __restrict__ image,
                                                             int row, int column, int rows,
                                                             int columns) {
  constexpr int kBeside = ceil_div(reach(side, skew), kOwn) * kOwn;
  float pixels[kOwn + 2 * kBeside] = {};
  const bool inside = column >= kBeside && column + kOwn + kBeside <= columns;
  if (row < 0 || row >= rows) return {};
#pragma unroll
  for (int i = 0; i < kOwn + 2 * kBeside; i += kOwn) {
    const int x = column + i - kBeside;
    if (inside)
      copy_pixels<kOwn>(&pixels[i], &image[at(row, x, columns)]);
    else
      copy_inside(&pixels[i], image, row, x, columns);
  }
  Window<side, skew> window;
#pragma unroll
  for (int i = 0; i < kOwn + 2 * reach(side, skew); ++i)
    window.pixels[i] = pixels[kBeside - reach(side, skew) + i];
  return window;
}

// The rows of a strip in which some of a warp's places are columns.
struct Rows {
  int begin, end;
};
template <int skew>
__device__ __forceinline__ Rows rows_of_warp(int first, int last, int place, int columns) {
  if constexpr (skew == 0) {
    return {first, last};
  } else {
    const int left = place - int(threadIdx.x % kWarp) * kOwn, right = left + kAcross - 1;
    const int above = skew < 0 ? max(-right, 0) : left < columns ? 0 : (left - columns) / skew + 1;
    const int below = skew < 0 ? columns - left : right / skew + 1;
    return {first + above, min(first + below, last)};
  }
}

// Straight from the L1, which holds what neighbouring lanes load. Strips can have any length.
template <int side, int skew>
__global__ void __launch_bounds__(Strips<side, skew>::kThreads, Strips<side, skew>::kBlocks)
    from_l1(const float* __restrict__ image, const __grid_constant__ Filter filter,
            float* __restrict__ out, int rows, int columns, int strip) {
  const int place =
      (blockIdx.x * blockDim.x + threadIdx.x) * kOwn + unsigned(leftmost(strip, skew));
  const int first = blockIdx.y * strip, last = min(first + strip, rows);
  if (skew == 0 && place >= columns) return;
  const auto column = [&](int row) { return place - (row - first) * skew; };
  const auto window = [&](int row) {
    if constexpr (skew == 0)
      return global_window<side>(image, row, place, rows, columns);
    else
      return sheared_window<side, skew>(image, row, column(row), rows, columns);
  };
  const auto [begin, end] = rows_of_warp<skew>(first, last, place, columns);
  if (skew != 0 && begin >= end) return;
  go_down<side, skew>(
      filter, begin, end, [&](int row) { return Pair<side, skew>{window(row), window(row + 1)}; },
      [&](int row, const float (&sums)[kOwn]) {
        if constexpr (skew == 0)
          store(out, row, place, columns, sums, true);
        else
          store_inside(out, row, column(row), columns, sums);
      });
}

template <int side>
Implementation sums_over_tile() {
  return kernel<Convolution>(sliding_sums<side>,
                             blocks_of<SumsTile::kHeight, kAcross, SumsTile::kThreads, 1>);
}

// Rows per strip: a multiple of 4 if there is a skew.
constexpr int64_t strip_rows(int64_t rows, int64_t strips, int skew) {
  return ceil_div(ceil_div(rows, strips), skew == 0 ? 1 : 4) * (skew == 0 ? 1 : 4);
}
// Blocks that share the places of such a strip.
inline unsigned blocks_across(const LaunchPlan& plan, int64_t columns, int64_t strip, int skew) {
  return unsigned(ceil_div(width(columns, strip, skew), plan.block.x * kOwn));
}

// Strips of at least eight rows, as long as waves of blocks allow: one wave where FMAs are the
// limit, as all SMs are equally fast; more where DRAM is, which serves some SMs faster than others.
// Blocks have no more warps than they need to share the columns.
template <int side, int skew>
LaunchPlan in_strips(const Case& c, const Device& device, const void* kernel) {
  using S = Strips<side, skew>;
  constexpr int64_t kWaves = side < 9 ? 4 : 1, kShortest = 8;
  const int64_t rows = c["rows"], columns = c["columns"];
  LaunchPlan plan = {.grid = 0, .block = S::kThreads};
  if (rows == 0 || columns == 0) return plan;
  // How wide a sheared strip is depends on its rows: these are estimated first.
  int64_t strip = kShortest;
  for (int i = 0; i < (skew == 0 ? 1 : 2); ++i) {
    const int64_t places = width(columns, strip, skew), most = ceil_div(places, S::kColumns);
    plan.block.x = unsigned(ceil_div(places, most * kAcross) * kWarp);
    const int64_t blocks = kWaves * fill_device(plan, kernel, device).grid.x;
    strip = std::max(strip_rows(rows, std::max<int64_t>(blocks / most, 1), skew), kShortest);
  }
  plan.grid = dim3(blocks_across(plan, columns, strip, skew), unsigned(ceil_div(rows, strip)));
  return plan;
}

template <int side, int skew>
Implementation strips_of() {
  return kernel<Convolution>(from_l1<side, skew>, in_strips<side, skew>,
                             [](Convolution& problem, const LaunchPlan& plan) {
                               const auto [image, filter, out, rows, columns] = problem.arguments();
                               const int strip = int(strip_rows(rows, plan.grid.y, skew));
                               return std::tuple(image, filter, out, rows, columns, strip);
                             });
}

// of(skew) for the skew of the case's rows, known when compiling.
template <class Of>
Implementation by_skew(const Case& c, Of of) {
  switch (skew_of(c["columns"])) {
    case 0:
      return of(std::integral_constant<int, 0>{});
    case 1:
      return of(std::integral_constant<int, 1>{});
    case 2:
      return of(std::integral_constant<int, 2>{});
    default:
      return of(std::integral_constant<int, -1>{});
  }
}
template <int side>
Implementation strips_from_l1(const Case& c, const Device&) {
  return by_skew(c, [](auto skew) { return strips_of<side, skew.value>(); });
}

}  // namespace ladders::convolution
