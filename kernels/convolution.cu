// SPDX-License-Identifier: MIT
//
// Convolution: each pixel of a single-channel image becomes the sum of those around it, weighted by
// a filter of odd side that need not be separable; zeros outside of the image. It is taken in the
// correlation form, with no turn of the filter:
//   out[r][c] = sum over y, x of filter[y][x] * image[r + y - side / 2][c + x - side / 2].
//
// 8 bytes a pixel in and out, 2 side^2 FLOPs: a 3 x 3 filter is bound by DRAM, a 15 x 15 one by
// FMAs, and on an H200 the two meet at 8 x 8. But a pixel is wanted side^2 times. An SM does 128
// FMAs a clock and its shared memory or L1 gives 32 words, so that each word loaded has to serve
// four FMAs at least, from registers; weights are the same for all lanes, and come from the
// constant bank. And then there is little that an SM has to do but FMAs, as long as pixels come in
// time.

#include <algorithm>

#include "catalogue.hpp"
#include "convolution_problem.cuh"
#include "convolution_small_tiles.cuh"
#include "convolution_sums.cuh"
#include "convolution_tile.cuh"

namespace ladders {
namespace {

using P = Convolution;

// A block for each so many rows and columns of outputs.
template <int64_t rows, int64_t columns, unsigned x, unsigned y>
LaunchPlan blocks_of(const Case& c, const Device&, const void*) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div(c["columns"], columns)),
                       static_cast<unsigned>(ceil_div(c["rows"], rows))),
          .block = dim3(x, y)};
}

// Strips of such a length that so many waves of blocks fill the device; short ones if need be.
LaunchPlan in_strips(LaunchPlan plan, int64_t columns, int waves, const Case& c,
                     const Device& device, const void* kernel) {
  constexpr int64_t kShortest = 8;
  const int64_t rows = c["rows"], across = ceil_div(c["columns"], columns);
  if (rows == 0 || across == 0) return {.grid = 0, .block = plan.block};
  const int64_t blocks = int64_t{waves} * fill_device(plan, kernel, device).grid.x;
  const int64_t strip = std::max(ceil_div(rows, std::max<int64_t>(blocks / across, 1)), kShortest);
  plan.grid = dim3(static_cast<unsigned>(across), static_cast<unsigned>(ceil_div(rows, strip)));
  return plan;
}
int strip_of(int rows, const LaunchPlan& plan) {
  return plan.grid.y == 0 ? 0 : ceil_div(rows, static_cast<int>(plan.grid.y));
}

// One wave of blocks where FMAs take the time: all of them have as many. More where DRAM does,
// which is not as near to all SMs.
template <int side>
constexpr int kWaves = side < 9 ? 4 : 1;

template <int side>
Implementation strips_from_l1() {
  using S = Strips<side>;
  return kernel<P>(
      from_l1<side>,
      [](const Case& c, const Device& device, const void* kernel) {
        return in_strips({.block = S::kThreads}, S::kColumns, kWaves<side>, c, device, kernel);
      },
      [](P& problem, const LaunchPlan& plan) {
        const auto [image, filter, out, rows, columns] = problem.arguments();
        return std::tuple(image, filter, out, rows, columns, strip_of(rows, plan));
      });
}

template <int side>
Implementation columns_of_tile() {
  return kernel<P>(column<side>, blocks_of<Columns::kRows, kWarp, kWarp, Columns::kThreadsY>);
}
template <int side>
Implementation sums_over_tile() {
  return kernel<P>(sliding_sums<side>,
                   blocks_of<SumsTile::kHeight, kAcross, SumsTile::kThreads, 1>);
}

bool aligned(const Case& c) { return c["columns"] % 4 == 0; }
std::string unaligned(const Case& c, const Device&) {
  return aligned(c) ? "" : "needs rows that start on 16 bytes";
}

template <int side, int own>
Implementation tiles_of() {
  using T = SmallTile<side, own>;
  return kernel<P>(small_tiles<side, own>, blocks_of<T::kRows, T::kColumns, T::kThreads, 1>);
}
template <int side>
Implementation in_small_tiles(const Case& c) {
  return aligned(c) ? tiles_of<side, 4>() : tiles_of<side, 1>();
}

// On an H200 unrolled tiles are slower than strips from 11 x 11 on, and on images of a million
// pixels.
template <int side>
Implementation fastest(const Case& c) {
  constexpr int64_t kMostBlocks = 65535;  // of a grid's y
  const bool few_rows = c["rows"] <= kMostBlocks * SmallTile<side, 4>::kRows;
  const bool large = c["rows"] * c["columns"] >= 1 << 22;
  if (side <= 9 && few_rows && (large || !aligned(c))) return in_small_tiles<side>(c);
  return aligned(c) ? strips_from_l1<side>() : sums_over_tile<side>();
}

// The large image has all rungs, others those that one would use there.
bool is_large(const Case& c) { return c["rows"] == 8192; }
bool at_some(const Case& c) {
  return is_large(c) && (c["filter"] == 3 || c["filter"] == 7 || c["filter"] == 15);
}
bool for_tiles(const Case& c) { return is_large(c) || !aligned(c); }

template <int side>
std::vector<Rung> rungs() {
  return {
      {.name = "global",
       .idea = "A thread a pixel: each product loads pixel and weight from global memory, and asks "
               "four times for the edge.",
       .implementation = kernel<P>(global, blocks_of<kGlobalRows, kWarp, kWarp, kGlobalRows>,
                                   [](P& problem) { return problem.global_arguments(); }),
       .measured = at_some},
      {.name = "constant_filter",
       .idea =
           "The filter is a parameter of the kernel, its side a constant: no loops, and weights "
           "come from the constant bank, one for a warp.",
       .implementation =
           kernel<P>(constant_filter<side>, blocks_of<kGlobalRows, kWarp, kWarp, kGlobalRows>),
       .moves = "global_load_requests",
       .measured = at_some},
      {.name = "shared_halo",
       .idea = "A tile with its border in shared memory, zeros outside of the image and all: "
               "nothing to ask for any more.",
       .implementation =
           kernel<P>(shared_halo<side>, blocks_of<kHaloSide, kHaloSide, kHaloSide, kHaloSide>),
       .moves = "global_load_requests",
       .measured = is_large},
      {.name = "column",
       .idea = "Eight outputs of a column a thread: a word of shared memory serves up to eight "
               "FMAs from its register.",
       .implementation = columns_of_tile<side>(),
       .moves = "shared_load_requests",
       .measured = for_tiles},
      {.name = "sliding_sums",
       .idea =
           "A thread goes down four columns with sums for all outputs under way: 16-byte loads, "
           "each pixel once for all its products.",
       .implementation = sums_over_tile<side>(),
       .moves = "shared_load_requests",
       .measured = for_tiles},
      {.name = "from_l1",
       .idea =
           "No tile and no barrier: windows come straight from the L1, and strips are as long as "
           "the device has room for.",
       .implementation = strips_from_l1<side>(),
       .moves = "shared_wavefronts",
       .skip = unaligned,
       .measured = aligned},
      {.name = "small_tiles",
       .idea = "A few rows a thread, all unrolled, in tiles that the hardware deals out; inside of "
               "the image nothing asks for the edge.",
       .moves = "warp_instructions",
       .measured = [](const Case& c) { return c["filter"] <= 11; },
       .choose = in_small_tiles<side>},
      {.name = "fastest",
       .idea = "Small tiles up to 9 x 9, but for small images; else strips from the L1, or tiles "
               "where rows do not start on 16 bytes, as measured.",
       .choose = fastest<side>},
  };
}

}  // namespace

Ladder convolution() {
  std::vector<Shape> measured;
  for (const int64_t side : {3, 5, 7, 9, 11, 15}) measured.push_back({8192, 8192, side});
  for (const int64_t side : {3, 15}) measured.push_back({4096, 4096, side});
  for (const int64_t side : {3, 15}) measured.push_back({1024, 1024, side});
  for (const int64_t side : {3, 7}) measured.push_back({4095, 4097, side});
  for (const int64_t side : {3, 7}) measured.push_back({10000, 3000, side});
  return {
      .name = "convolution",
      .title = "2-D convolution",
      .quantity = Quantity::flops,
      .ceiling = "roof/fma",
      .other_ceiling = "roof/dram_copy",
      .input = "image and filter uniform in [-1, 1)",
      .error_unit = "sum of the magnitudes of a pixel's products",
      .error_limit = 1e-6,
      .axes = {{.name = "rows", .facet = true}, {.name = "columns", .facet = true}, {"filter"}},
      .measured = measured,
      .small = {{256, 256, 3}, {256, 256, 7}, {128, 128, 15}},
      // Images smaller than filters, rows that start anywhere, tiles and strips and one more.
      .tested = {{1, 1, 3},    {1, 1, 15},     {0, 5, 3},      {1, 100, 5},   {100, 1, 7},
                 {3, 2, 9},    {7, 5, 15},     {4, 4, 11},     {31, 33, 9},   {33, 31, 11},
                 {16, 128, 3}, {64, 128, 15},  {65, 132, 15},  {63, 129, 5},  {130, 260, 7},
                 {97, 516, 3}, {129, 1028, 5}, {70, 1000, 11}, {1, 1024, 15}, {40, 4, 9},
                 {257, 515, 3}},
      .headline = {8192, 8192, 15},
      .small_headline = {128, 128, 15},
      .work =
          [](const Case& c, const Device&) {
            const double pixels = double(c["rows"]) * double(c["columns"]);
            const double side = double(c["filter"]);
            return Work{.flops = 2 * side * side * pixels,
                        .bytes_read = 4 * pixels,
                        .bytes_written = 4 * pixels};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<Convolution>(c); },
      .rungs = by_axis("filter", {3, 5, 7, 9, 11, 15},
                       {rungs<3>(), rungs<5>(), rungs<7>(), rungs<9>(), rungs<11>(), rungs<15>()}),
  };
}

}  // namespace ladders
