// SPDX-License-Identifier: MIT
//
// Scan: each element becomes the sum of all up to it (the inclusive prefix sum), of 32-bit integers
// modulo 2^32 or of floats.
//
// Each element is read and written once, and takes an addition or two: the limit is the copy. But
// the last element depends on all others. Blocks that do not communicate need several launches, of
// which more than one reads every element. A single launch moves each element once; then
// the limit is how long a block waits for earlier ones, since a block that loads, waits and stores
// has nothing in flight while it waits. So in the last step copies run ahead of resident blocks.

#include "scan/ladder.hpp"

#include "scan/01_textbook.cuh"
#include "scan/02_register_tiles.cuh"
#include "scan/03_single_pass.cuh"
#include "scan/04_bulk_ring.cuh"

namespace ladders::scan {
namespace {

template <class Type>
Implementation fastest_at(const Case& c, const Device& device) {
  if (kBulkRingFrom.reached(c, device) && device.has_bulk_copies(kRingRoom))
    return chosen("bulk_ring", in_a_ring<Type>());
  return chosen("lookback", kLargeTilesFrom.reached(c, device)
                                ? in_one_pass<Type, 512, 6, LookBack>()
                                : in_one_pass<Type, 256, 2, LookBack>());
}

template <class Type>
void copy(Scan<Type>& problem, cudaStream_t stream) {
  const auto [in, count, out] = problem.arguments();
  check(cudaMemcpyAsync(out, in, sizeof(*in) * count, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}

template <class Type>
std::vector<Rung> rungs() {
  using T = Value<Type>;
  return {
      {.name = "copy",
       .idea = "The same bytes copied with cudaMemcpy: what copying as many elements takes.",
       .implementation =
           checked<Scan<Type>>(library<Scan<Type>>(copy<Type>), Scan<Type>::check_copy),
       .role = Role::ceiling},
      // 01_textbook.cuh
      {.name = "naive",
       .idea = "One launch for each distance 1, 2, 4, ...: adds the element that far before "
               "(Hillis, Steele).",
       .implementation = hillis_steele<Type>()},
      {.name = "work_efficient",
       .idea = "A tree of sums in shared memory, up and down: additions grow as n, not n log n "
               "(Blelloch).",
       .implementation = scanned_then_added<Type, kTile / 2, blelloch<T, false>>(),
       .builds_on = "naive",
       .target = "global_load_sectors"},
      {.name = "padded",
       .idea = "One spare word after every 32: strides of powers of two no longer conflict.",
       .implementation = scanned_then_added<Type, kTile / 2, blelloch<T, true>>(),
       .builds_on = "work_efficient",
       .target = "shared_load_wavefronts_per_request"},
      {.name = "warp_shuffle",
       .idea = "Warps scan in registers: two barriers per tile instead of 22.",
       .implementation = scanned_then_added<Type, kTile, scan_tiles<T>>(),
       .builds_on = "padded",
       .target = "shared_load_requests"},
      {.name = "sums_first",
       .idea = "The first launch only adds: elements are read twice but written once.",
       .implementation = summed_first<Type, kTile, kTile, sum_tiles<T>, scan_from_sums<T>>(),
       .builds_on = "warp_shuffle",
       .shows = "Fewer bytes gain nothing while each thread has one load in flight.",
       .target = "global_store_sectors"},
      // 02_register_tiles.cuh
      {.name = "vectorized",
       .idea = "Four 16-byte vectors per thread, scanned in registers row by row.",
       .implementation =
           summed_first<Type, Tile<Type, 256, 4>::kElements, 256, sum_wide_tiles<Type, 256, 4>,
                        scan_wide_tiles<Type, 256, 4>>(),
       .builds_on = "sums_first",
       .meant_for = [](const Case& c) { return c["elements"] >= 1 << 20; },
       .target = "global_load_requests"},
      // 03_single_pass.cuh
      {.name = "chained",
       .idea = "One launch: each block passes the sum of all before on to the next.",
       .implementation = in_one_pass<Type, 256, 4, Chain>(),
       .builds_on = "vectorized",
       .meant_for = [](const Case& c) { return c["elements"] <= 1 << 16; },
       .shows = "One hop through the L2 per tile is slower than a second launch.",
       .target = "global_load_sectors"},
      {.name = "lookback",
       .idea = "Blocks publish their own sums at once; a warp adds them back to the nearest known "
               "prefix (Merrill, Garland).",
       .implementation = in_one_pass<Type, 512, 6, LookBack>(),
       .builds_on = "vectorized",
       .target = "dram_bytes"},
      {.name = "groups",
       .idea = "All threads poll, one per tile of a group: one round, and a fixed order.",
       .implementation = in_one_pass<Type, 512, 6, Groups>(),
       .builds_on = "lookback",
       .shows = "Reproducible sums of floats cost a few percent."},
      // 04_bulk_ring.cuh
      {.name = "bulk_ring",
       .idea = "Bulk copies keep a ring of tiles full in each resident block.",
       .implementation = in_a_ring<Type>(),
       .builds_on = "lookback",
       .meant_for = [](const Case& c) { return c["elements"] >= 1 << 24; },
       .target = "stall_barrier",
       .needs = kTma},
      // ladder.cu
      {.name = "fastest",
       .idea = "The kernel and the tile that measured fastest for as many elements.",
       .role = Role::choice,
       .choose = fastest_at<Type>},
  };
}

// So many elements each, of ints and of floats.
std::vector<Shape> shapes(const std::vector<int64_t>& ints, const std::vector<int64_t>& floats) {
  std::vector<Shape> all;
  for (const int64_t elements : ints) all.push_back({elements, Ints::kLabel});
  for (const int64_t elements : floats) all.push_back({elements, Floats::kLabel});
  return all;
}

}  // namespace

Ladder ladder() {
  return {
      .name = "scan",
      .title = "Inclusive scan",
      .ceiling = "roof/dram_copy",
      .input = "int: random 32 bits, sums modulo 2^32; float: uniform in [-1, 1)",
      .error_unit = "sum of magnitudes up to the element",
      .error_limit = 1e-6,
      .axes = {{.name = "elements", .most = int64_t{1} << 40},
               {.name = "type", .labels = {"int", "float"}, .facet = true}},
      .measured = shapes({1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28},
                         {1 << 20, 1 << 24, 1 << 28}),
      .small = shapes({1 << 16}, {1 << 16}),
      // Around a warp, the tiles, and a window of 32 of them.
      .tested = shapes({0, 1, 31, 1023, 1025, 4096, 8193, 65537, 139999},
                       {0, 1, 33, 1024, 4097, 8191, 131073}),
      .headline = {1 << 28, 0},
      .small_headline = {1 << 16, 0},
      .work =
          [](const Case& c, const Device&) {
            const double elements = double(c["elements"]);
            return Work{.flops = c["type"] == 1 ? elements : 0,
                        .bytes_read = 4 * elements,
                        .bytes_written = 4 * elements};
          },
      .problem =
          [](const Case& c, const Device& d) {
            return c["type"] == 0 ? problem_of<Scan<Ints>>(c, d) : problem_of<Scan<Floats>>(c, d);
          },
      .crossovers = {kLargeTilesFrom, kBulkRingFrom},
      .memory = [](const Case& c) { return 12. * c["elements"]; },
      .rungs = joined(by_axis("type", {0, 1}, {rungs<Ints>(), rungs<Floats>()}), peers()),
  };
}

}  // namespace ladders::scan
