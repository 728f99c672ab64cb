// SPDX-License-Identifier: MIT
//
// Convolution: each pixel of a single-channel image becomes the sum of its neighbours, weighted by
// a filter of odd side that need not be separable, with zeros outside of the image. The filter is
// not flipped (correlation):
//   out[r][c] = sum over y, x of filter[y][x] * image[r + y - side / 2][c + x - side / 2].
//
// 8 bytes per pixel in and out, 2 side^2 FLOPs: a 3 x 3 filter is bound by DRAM, a 15 x 15 one by
// FMAs; on an H200 the two meet at 8 x 8. But each pixel is used side^2 times, and an SM does 128
// FMAs per clock while its shared memory or L1 gives 32 words: each word loaded has to serve at
// least four FMAs from registers. Weights are the same for all lanes: the constant bank has them.

#include "convolution/ladder.hpp"

#include "convolution/01_tiles.cuh"
#include "convolution/02_sliding_sums.cuh"
#include "convolution/03_small_tiles.cuh"
#include "convolution/04_row_ring.cuh"
#include "convolution/05_staged_tiles.cuh"
#include "model/ladder.hpp"

namespace ladders::convolution {
namespace {

template <int side>
Implementation fastest(const Case& c, const Device& device) {
  constexpr int64_t kMostBlocks = 65535;  // in a grid's y
  const bool few_rows = c["rows"] <= kMostBlocks * SmallTile<side>::kRows;
  const bool small = few_rows && !kFullFrom.reached(c, device);
  if constexpr (side <= kMostStaged)
    if (aligned(c) ? small : few_rows && (side == 3 || !kRowRingFrom.reached(c, device)))
      return chosen("staged_tiles", in_staged_tiles<side>());
  if constexpr (side > kMostUnrolled)
    if (small) return chosen("column", in_columns<side>());
  if (!aligned(c)) return chosen("row_ring", strips_by_ring<side>());
  if constexpr (side <= kMostUnrolled)
    if (few_rows && !kStripsFrom.reached(c, device) &&
        (side < 7 ? kSmallTilesFrom : kSmallTilesOfSevenFrom).reached(c, device))
      return chosen("small_tiles", in_small_tiles<side>());
  return chosen("from_l1", strips_from_l1<side>());
}

// The large image has all rungs, others those that are useful there.
bool is_large(const Case& c) { return c["rows"] == 8192; }
bool at_some(const Case& c) {
  return is_large(c) && (c["filter"] == 3 || c["filter"] == 7 || c["filter"] == 15);
}
bool is_large_or_unaligned(const Case& c) { return is_large(c) || !aligned(c); }
bool is_large_small_or_unaligned(const Case& c) {
  return is_large_or_unaligned(c) || c["rows"] <= 1024;
}

template <int side>
std::vector<Rung> rungs() {
  using P = Convolution;
  return {
      // 01_tiles.cuh
      {.name = "global",
       .idea = "One pixel per thread: two loads and four edge checks for each product.",
       .implementation = kernel<P>(global, blocks_of<kGlobalRows, kWarp>,
                                   [](P& problem) { return problem.global_arguments(); }),
       .measured = at_some},
      {.name = "constant_filter",
       .idea = "The filter is a kernel parameter and its side a template argument: no loops, no "
               "loads of weights.",
       .implementation = kernel<P>(constant_filter<side>, blocks_of<kGlobalRows, kWarp>),
       .builds_on = "global",
       .target = "global_load_requests",
       .measured = at_some},
      {.name = "shared_halo",
       .idea = "A tile with its border and zeros in shared memory: no edge checks per product.",
       .implementation = kernel<P>(shared_halo<side>, blocks_of<kHaloSide, kHaloSide>),
       .builds_on = "constant_filter",
       .meant_for = [](const Case& c) { return is_large(c) && c["filter"] >= 7; },
       .target = "global_load_requests",
       .measured = is_large},
      {.name = "column",
       .idea = "Eight outputs of a column per thread: each shared word serves up to eight FMAs.",
       .implementation = in_columns<side>(),
       .builds_on = "shared_halo",
       .target = "shared_load_requests",
       .measured = is_large_small_or_unaligned},
      // 02_sliding_sums.cuh
      {.name = "sliding_sums",
       .idea = "Threads go down four columns with sums for all outputs that still need products.",
       .implementation = sums_over_tile<side>(),
       .builds_on = "column",
       .target = "shared_load_requests",
       .measured = is_large_or_unaligned},
      {.name = "from_l1",
       .idea = "No tile and no barrier: inputs come from the L1, and strips fill the device.",
       .implementation = strips_from_l1<side>(),
       .builds_on = "sliding_sums",
       .target = "shared_wavefronts",
       .skip = needs_aligned_rows},
      // 03_small_tiles.cuh
      {.name = "small_tiles",
       .idea = "A few unrolled rows per thread in small tiles, without edge checks inside.",
       .implementation = in_small_tiles<std::min(side, kMostUnrolled)>(),
       .builds_on = "from_l1",
       .meant_for =
           [](const Case& c) { return c["rows"] * c["columns"] >= 1 << 22 && c["filter"] < 11; },
       .target = "warp_instructions",
       .skip = no_small_tiles,
       .measured = [](const Case& c) { return c["filter"] <= kMostUnrolled; }},
      // 04_row_ring.cuh
      {.name = "row_ring",
       .idea = "For rows that start anywhere: warps copy words to a ring of rows, from which they "
               "load aligned vectors.",
       .implementation = strips_by_ring<side>(),
       .builds_on = "sliding_sums",
       .meant_for = [](const Case& c) { return !aligned(c) && c["filter"] > 3; },
       .target = "shared_wavefronts",
       .measured = is_large_or_unaligned},
      // 05_staged_tiles.cuh
      {.name = "staged_tiles",
       .idea = "Small tiles pass word by word through shared memory: rows may start anywhere.",
       .implementation = in_staged_tiles<std::min(side, kMostStaged)>(),
       .builds_on = "row_ring",
       .meant_for = [](const Case& c) { return !aligned(c) && c["filter"] == 3; },
       .target = "warp_instructions",
       .skip =
           [](const Case& c, const Device&) {
             return c["filter"] <= kMostStaged ? "" : "tiles would be read too often";
           },
       .measured =
           [](const Case& c) {
             return is_large_small_or_unaligned(c) && c["filter"] <= kMostStaged;
           }},
      // ladder.cu
      {.name = "fastest",
       .idea = "Tiles, strips or a ring: the fastest measured for the filter and image.",
       .role = Role::choice,
       .choose = fastest<side>},
  };
}

const std::vector<int64_t> kFilters = {3, 5, 7, 9, 11, 15};

}  // namespace

Ladder ladder() {
  std::vector<Shape> measured;
  for (const int64_t side : kFilters) measured.push_back({8192, 8192, side});
  for (const int64_t side : {3, 15}) measured.push_back({4096, 4096, side});
  for (const int64_t side : {3, 15}) measured.push_back({1024, 1024, side});
  for (const int64_t side : {3, 7, 9, 11, 15}) measured.push_back({4095, 4097, side});
  for (const int64_t side : {7, 15})
    for (const int64_t columns : {4095, 4098}) measured.push_back({4096, columns, side});
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
      .axes = {{.name = "rows", .facet = true},
               {.name = "columns", .facet = true},
               {.name = "filter", .only = kFilters}},
      .measured = measured,
      .small = {{256, 256, 3}, {256, 256, 7}, {128, 128, 15}},
      // Images smaller than filters, unaligned rows, whole tiles and strips and one pixel more.
      .tested = {{1, 1, 3},     {1, 1, 15},     {0, 5, 3},      {1, 100, 5},   {100, 1, 7},
                 {3, 2, 9},     {7, 5, 15},     {4, 4, 11},     {31, 33, 9},   {33, 31, 11},
                 {16, 128, 3},  {64, 128, 15},  {65, 132, 15},  {63, 129, 5},  {130, 260, 7},
                 {97, 516, 3},  {129, 1028, 5}, {70, 1000, 11}, {1, 1024, 15}, {40, 4, 9},
                 {257, 515, 3}, {61, 262, 9},   {130, 263, 15}, {64, 261, 15}, {129, 514, 7},
                 {40, 518, 15}, {70, 1001, 11}, {33, 259, 5},   {40, 1034, 7}, {40, 1035, 9},
                 {3000, 2, 3},  {1001, 5, 7},   {515, 31, 15}},
      .headline = {8192, 8192, 15},
      .small_headline = {128, 128, 15},
      .work =
          [](const Case& c, const Device&) {
            const double n = c["rows"] * c["columns"], side = c["filter"];
            return Work{.flops = 2 * side * side * n, .bytes_read = 4 * n, .bytes_written = 4 * n};
          },
      .problem = problem_of<Convolution>,
      .crossovers = {kFullFrom, kRowRingFrom, kStripsFrom, kSmallTilesFrom, kSmallTilesOfSevenFrom},
      .memory = [](const Case& c) { return 24. * c["rows"] * c["columns"]; },
      .rungs = by_axis("filter", kFilters,
                       {rungs<3>(), rungs<5>(), rungs<7>(), rungs<9>(), rungs<11>(), rungs<15>()}),
  };
}

}  // namespace ladders::convolution
