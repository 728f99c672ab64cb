// SPDX-License-Identifier: MIT
//
// A thread that goes down the image keeps a sum for each row of outputs that a row of the image
// contributes to: it reads each pixel once, for all its products.
#pragma once

#include "convolution/01_tiles.cuh"

namespace ladders::convolution {
constexpr int kOutputs = 4;                // neighbouring outputs per thread: 16 bytes
constexpr int kAcross = kOutputs * kWarp;  // and per warp

// The pixels of a row that a thread's outputs need, and those of two rows.
template <int side>
struct Window {
  float pixels[kOutputs + side - 1];
};
template <int side>
struct Pair {
  Window<side> upper, lower;
};

// Adds the products of two rows of the image. Sum i belongs to the output row that needs the lower
// row with filter row i, and the upper row with filter row i - 1. Each call moves the sums on by
// two output rows: the first FMA of sum i adds to the old sum i - 2, since an FMA may write to
// another register than it reads. Sums outside of [begin, end) belong to no output of the strip.
// They are skipped, three rows of the filter at a time. The branches also limit how many weights
// are live.
template <int side>
__device__ __forceinline__ void add_rows(float (&sums)[side + 1][kOutputs], const Pair<side>& pair,
                                         const Filter& filter, int begin, int end) {
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
          for (int own = 0; own < kOutputs; ++own) {
            const bool moves = x == 0 && (i == y || i == side);
            const float before = !moves ? sums[i][own] : i >= 2 ? sums[i - 2][own] : 0;
            const float pixel = (i == y ? pair.lower : pair.upper).pixels[x + own];
            sums[i][own] = before + filter.weights[y * side + x] * pixel;
          }
  }
}

// Small filters have too few FMAs to hide loads, but registers to load the next two rows ahead.
template <int side>
constexpr int kPairsAhead = side <= 7 ? 1 : 0;

// Computes rows [first, last) of outputs, two rows of the image at a time.
template <int side, int kAhead = kPairsAhead<side>, class Load, class Store>
__device__ __forceinline__ void go_down(const Filter& filter, int first, int last, Load load,
                                        Store store) {
  constexpr int kTurns = kAhead + 1, kReach = reach(side);
  const int end = last + kReach;
  float sums[side + 1][kOutputs] = {};
  Pair<side> pairs[kTurns];
  int row = first - kReach;
  if constexpr (kAhead > 0) pairs[0] = load(row);
  while (row < end)
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      pairs[(turn + kAhead) % kTurns] = load(row + 2 * kAhead);
      const int newest = row + 1 + kReach;  // sum i is of output row newest - i
      add_rows<side>(sums, pairs[turn], filter, newest - last + 1, newest - first + 1);
#pragma unroll
      for (int i = side; i > side - 2; --i)  // the sums that are complete
        if (newest - i >= first && newest - i < last) store(newest - i, sums[i]);
      row += 2;
      if (row >= end) break;
    }
}

// Stores a thread's outputs in a row, as a vector if rows start on 16 bytes.
__device__ __forceinline__ void store(float* out, int row, int column, int columns,
                                      const float (&sums)[kOutputs], bool aligned) {
  if (!aligned) {
#pragma unroll
    for (int own = 0; own < kOutputs; ++own)
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
  constexpr int kPixels = kOutputs + side - 1;
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
  const int first = row0 + warp * T::kRows, column = column0 + lane * kOutputs;
  go_down<side>(
      filter, first, min(first + T::kRows, rows),
      [&](int row) {  // clamped, as the rows loaded ahead may lie beyond the tile
        const int y = min(row - row0 + reach(side), kHeight - 2);
        return Pair<side>{shared_window<side>(&tile[y][lane * kOutputs]),
                          shared_window<side>(&tile[y + 1][lane * kOutputs])};
      },
      [&](int row, const float (&sums)[kOutputs]) {
        store(out, row, column, columns, sums, columns % 4 == 0);
      });
}

// Up to four warps side by side, and as many blocks as an SM has registers for.
template <int side>
struct Strips {
  static constexpr int kWarps = 4, kThreads = kWarps * kWarp;
  static constexpr int kBlocks = side == 3 ? 8 : side == 5 || side == 9 ? 6 : side == 15 ? 4 : 5;
};

// Loads `count` pixels on either side, from the i-th on; rows are aligned: none crosses the edge.
template <int count, int side>
__device__ __forceinline__ void load_beside(Window<side>& window, const float* own, int i,
                                            int column, int columns) {
  float* to = &window.pixels[reach(side)];
  if (column > i) copy_pixels<count>(to - i - count, own - i - count);
  if (column + kOutputs + i < columns) copy_pixels<count>(to + kOutputs + i, own + kOutputs + i);
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
  copy_pixels<kOutputs>(&window.pixels[kReach], own);
#pragma unroll
  for (int i = 0; i + 4 <= kReach; i += 4) load_beside<4>(window, own, i, column, columns);
  if constexpr (kReach % 4 >= 2) load_beside<2>(window, own, kReach / 4 * 4, column, columns);
  if constexpr (kReach % 2 == 1) load_beside<1>(window, own, kReach - 1, column, columns);
  return window;
}

// Straight from the L1, which holds what neighbouring lanes load. Strips can have any length.
template <int side>
__global__ void __launch_bounds__(Strips<side>::kThreads, Strips<side>::kBlocks)
    from_l1(const float* __restrict__ image, const __grid_constant__ Filter filter,
            float* __restrict__ out, int rows, int columns, int strip) {
  const int column = (blockIdx.x * blockDim.x + threadIdx.x) * kOutputs;
  const int first = blockIdx.y * strip;
  if (column >= columns) return;
  const auto window = [&](int row) {
    return global_window<side>(image, row, column, rows, columns);
  };
  go_down<side>(
      filter, first, min(first + strip, rows),
      [&](int row) { return Pair<side>{window(row), window(row + 1)}; },
      [&](int row, const float (&sums)[kOutputs]) {
        store(out, row, column, columns, sums, true);
      });
}

template <int side>
Implementation sums_over_tile() {
  return kernel<Convolution>(sliding_sums<side>,
                             blocks_of<SumsTile::kHeight, kAcross, SumsTile::kThreads, 1>);
}

// The number of warps per block, at most four, that leaves the fewest warps without columns; of
// several such numbers the largest.
inline unsigned warps_across(int64_t columns) {
  const int64_t warps = ceil_div(columns, kAcross);
  const auto blocks_have = [&](int64_t each) { return ceil_div(warps, each) * each; };
  unsigned best = 4;
  for (const unsigned each : {3, 2})
    if (blocks_have(each) < blocks_have(best)) best = each;
  return unsigned(std::min<int64_t>(best, warps));
}

// As many strips as `waves` waves of blocks hold, of at least eight rows each. One wave where FMAs
// are the limit, as all SMs are equally fast; more where DRAM is, which serves some SMs faster.
template <int side, int64_t waves>
LaunchPlan in_strips(const Case& c, const Device& device, const void* kernel) {
  constexpr int64_t kShortest = 8;
  const int64_t rows = c["rows"], columns = c["columns"];
  LaunchPlan plan = {.grid = 0, .block = kWarp};
  if (rows == 0 || columns == 0) return plan;
  plan.block = warps_across(columns) * kWarp;
  const int64_t across = ceil_div(columns, plan.block.x * kOutputs);
  const int64_t blocks = waves * fill_device(plan, kernel, device).grid.x;
  const int64_t strip = std::max(ceil_div(rows, std::max<int64_t>(blocks / across, 1)), kShortest);
  plan.grid = dim3(unsigned(across), unsigned(ceil_div(rows, strip)));
  return plan;
}

template <int side, int64_t waves>
Implementation strips_by(void (*strips)(const float*, Filter, float*, int, int, int)) {
  return kernel<Convolution>(strips, in_strips<side, waves>,
                             [](Convolution& problem, const LaunchPlan& plan) {
                               const auto [image, filter, out, rows, columns] = problem.arguments();
                               const int strip = ceil_div(rows, int(plan.grid.y));
                               return std::tuple(image, filter, out, rows, columns, strip);
                             });
}
template <int side>
Implementation strips_from_l1() {
  return strips_by<side, (side < 9 ? 4 : 1)>(from_l1<side>);
}

inline bool aligned(const Case& c) { return c["columns"] % 4 == 0; }
inline std::string needs_aligned_rows(const Case& c, const Device&) {
  return aligned(c) ? "" : "rows do not start on 16 bytes";
}

}  // namespace ladders::convolution
