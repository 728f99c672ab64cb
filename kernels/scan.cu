// SPDX-License-Identifier: MIT
//
// Scan: each element becomes the sum of all up to it (the inclusive prefix sum), of 32-bit integers
// modulo 2^32 or of floats.
//
// A byte comes in for each that goes out, and an addition or two is all there is to do: the limit
// is the copy. But the last element depends on all others. Blocks that cannot wait for each other
// learn of it from one launch to the next, and read and write everything again for that; a single
// launch moves each element once, and then what counts is how long a block waits for those before
// it. An H200 reads 16 KB a us and SM while it copies. A block that loads, waits and stores has
// nothing on its way while it waits, so that in the end blocks stay, and copies run ahead of them.

#include <algorithm>

#include "catalogue.hpp"
#include "peers.hpp"
#include "scan_bulk.cuh"
#include "scan_problem.cuh"
#include "scan_single_pass.cuh"
#include "scan_textbook.cuh"
#include "scan_tile.cuh"

namespace ladders {
namespace {

// A block for each tile. No elements, no blocks.
template <size_t tile, unsigned threads>
LaunchPlan tiles_of(size_t count) {
  return {.grid = static_cast<unsigned>(ceil_div(count, tile)), .block = threads};
}
template <size_t tile, unsigned threads>
LaunchPlan a_block_a_tile(const Case& c, const Device&, const void*) {
  return tiles_of<tile, threads>(c["elements"]);
}

// ---- Several launches ---------------------------------------------------------------------------

template <class Type>
Implementation hillis_steele() {
  using P = Scan<Type>;
  using T = typename Type::Value;
  return {.kernel = reinterpret_cast<const void*>(hillis_steele_step<T>),
          .plan = a_block_a_tile<kStepThreads, kStepThreads>,
          .launch = [](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            auto& p = static_cast<P&>(problem);
            const auto [in, count, out] = p.arguments();
            int steps = 1;
            while (size_t{1} << steps < count) ++steps;
            // Back and forth between two arrays, so that the last step ends in the output.
            T* const targets[] = {out, steps > 1 ? p.scratch() : out};
            const T* from = in;
            for (int step = 0; step < steps; ++step) {
              T* const to = targets[(steps - 1 - step) % 2];
              launch(plan, stream, hillis_steele_step<T>, from, count, to, size_t{1} << step);
              from = to;
            }
          }};
}

// Tiles, their sums in the same way, and the sums added to the tiles.
template <class T>
using ScanTiles = void (*)(const T*, size_t, T*, T*);
template <class T, unsigned threads>
void scan_then_add(ScanTiles<T> scan, const T* in, size_t count, T* out, T* sums,
                   cudaStream_t stream) {
  const LaunchPlan plan = tiles_of<kTile, threads>(count);
  launch(plan, stream, scan, in, count, out, sums);
  if (plan.grid.x <= 1) return;
  scan_then_add<T, threads>(scan, sums, plan.grid.x, sums, sums + plan.grid.x, stream);
  launch(tiles_of<kTile, kTile>(count), stream, add_sums_before<T>, out, count, sums);
}
template <class Type, unsigned threads>
Implementation scanned_then_added(ScanTiles<typename Type::Value> scan) {
  return {.kernel = reinterpret_cast<const void*>(scan),
          .plan = a_block_a_tile<kTile, threads>,
          .launch = [scan](const LaunchPlan&, Problem& problem, cudaStream_t stream) {
            auto& p = static_cast<Scan<Type>&>(problem);
            const auto [in, count, out] = p.arguments();
            scan_then_add<typename Type::Value, threads>(scan, in, count, out, p.sums(), stream);
          }};
}

// The sums of tiles, these in the same way, and the scan of the tiles from them on.
template <class T>
struct SumsFirst {
  void (*sum)(const T*, size_t, T*);
  void (*scan)(const T*, size_t, T*, const T*);
};
template <class T, size_t tile, unsigned threads>
void sums_first(SumsFirst<T> kernels, const T* in, size_t count, T* out, T* sums,
                cudaStream_t stream) {
  const LaunchPlan plan = tiles_of<tile, threads>(count);
  if (plan.grid.x > 1) {
    launch(plan, stream, kernels.sum, in, count, sums);
    sums_first<T, tile, threads>(kernels, sums, plan.grid.x, sums, sums + plan.grid.x, stream);
  }
  launch(plan, stream, kernels.scan, in, count, out, sums);
}
template <class Type, size_t tile, unsigned threads>
Implementation summed_first(SumsFirst<typename Type::Value> kernels) {
  return {.kernel = reinterpret_cast<const void*>(kernels.scan),
          .plan = a_block_a_tile<tile, threads>,
          .launch = [kernels](const LaunchPlan&, Problem& problem, cudaStream_t stream) {
            auto& p = static_cast<Scan<Type>&>(problem);
            const auto [in, count, out] = p.arguments();
            sums_first<typename Type::Value, tile, threads>(kernels, in, count, out, p.sums(),
                                                            stream);
          }};
}

// ---- One launch ---------------------------------------------------------------------------------

template <class Type, int threads, int vectors, class Way>
Implementation in_one_pass() {
  return kernel<Scan<Type>>(
      single_pass<Type, threads, vectors, Way>,
      a_block_a_tile<Tile<Type, threads, vectors>::kElements, threads>,
      [](Scan<Type>& p) { return std::tuple_cat(p.arguments(), std::tuple(p.exchange())); });
}

// ---- Blocks that stay ---------------------------------------------------------------------------

// All of them are resident: each waits for all others. With less than the least tile for each there
// are fewer.
template <class Type>
Implementation in_a_ring() {
  constexpr int threads = 384, vectors = 3, stages = 10;
  constexpr size_t kStageBytes = size_t{threads} * vectors * sizeof(typename Type::Vector);
  return kernel<Scan<Type>>(
      bulk_ring<Type, threads, vectors, stages>,
      [](const Case& c, const Device& device, const void* kernel) {
        LaunchPlan plan = fill_device(
            {.block = threads + 32 * (stages + 2), .shared_bytes = stages * kStageBytes}, kernel,
            device);
        const size_t tiles = ceil_div<size_t>(c["elements"], kLeastTile);
        plan.grid.x = static_cast<unsigned>(std::min<size_t>(tiles, plan.grid.x));
        return plan;
      },
      [](Scan<Type>& p, const LaunchPlan& plan) {
        const auto [in, count, out] = p.arguments();
        const size_t tile = size_t{4} * threads * vectors;
        return std::tuple(in, count, out, make_schedule(count, tile, plan.grid.x, stages),
                          p.exchange());
      });
}

// As measured on an H200 from 2^16 to 2^28 elements. Small tiles while more SMs come to work by
// them; a ring where blocks go round often enough to keep it full.
template <class Type>
Implementation fastest(const Case& c) {
  const int64_t elements = c["elements"];
  if (elements <= 1 << 18) return in_one_pass<Type, 256, 2, LookBack>();
  if (elements < 1 << 24 || !has_bulk_copies(200 << 10))
    return in_one_pass<Type, 512, 6, LookBack>();
  return in_a_ring<Type>();
}

template <class Type>
std::vector<Rung> rungs() {
  using P = Scan<Type>;
  using T = typename Type::Value;
  return {
      {.name = "naive",
       .idea = "A launch for each power of two: every element adds the one so far before it "
               "(Hillis and Steele).",
       .implementation = hillis_steele<Type>()},
      {.name = "work_efficient",
       .idea = "A tree of sums in shared memory, up and down again (Blelloch), for tiles, for "
               "their sums, then added: n additions.",
       .implementation = scanned_then_added<Type, kTile / 2>(blelloch<T, false>),
       .moves = "global_load_sectors"},
      {.name = "padded",
       .idea = "A spare word after each 32: strides that are powers of two no longer meet in one "
               "bank.",
       .implementation = scanned_then_added<Type, kTile / 2>(blelloch<T, true>),
       .moves = "shared_load_wavefronts_per_request"},
      {.name = "warp_shuffle",
       .idea = "Warps scan in registers, one of them their sums: two barriers a tile instead of "
               "twenty.",
       .implementation = scanned_then_added<Type, kTile>(scan_tiles<T>),
       .moves = "shared_load_requests"},
      {.name = "sums_first",
       .idea = "The first launch only adds, the last scans from the sums on: elements are written "
               "once, read twice.",
       .implementation = summed_first<Type, kTile, kTile>({sum_tiles<T>, scan_from_sums<T>}),
       .moves = "global_store_sectors"},
      {.name = "vectorized",
       .idea = "Four 16-byte vectors a thread, scanned row by row where they were loaded: bytes in "
               "flight, no exchange through shared memory.",
       .implementation = summed_first<Type, Tile<Type, 256, 4>::kElements, 256>(
           {sum_wide_tiles<Type, 256, 4>, scan_wide_tiles<Type, 256, 4>}),
       .moves = "global_load_requests"},
      {.name = "chained",
       .idea = "One launch: a tile waits in registers for the sum of all before it, which blocks "
               "hand on one to the next.",
       .implementation = in_one_pass<Type, 256, 4, Chain>(),
       .moves = "global_load_sectors"},
      {.name = "lookback",
       .idea = "A tile's own sum is known at once: a warp adds up those of the 32 tiles before, "
               "back to one that knows all (Merrill and Garland).",
       .implementation = in_one_pass<Type, 512, 6, LookBack>(),
       .moves = "stall_barrier"},
      {.name = "groups",
       .idea = "All threads look, one at each tile of a group: a single look however many blocks "
               "are under way, floats in a fixed order.",
       .implementation = in_one_pass<Type, 512, 6, Groups>()},
      {.name = "bulk_ring",
       .idea =
           "Resident blocks take tiles as they have room, bulk copies bring and fetch them, one "
           "warp adds up all sums.",
       .implementation = in_a_ring<Type>(),
       .moves = "stall_barrier",
       .compute_capability = 90,
       .hardware_only = "bulk copies"},
      {.name = "fastest",
       .idea = "The rung and the tile that were fastest for as many elements, as measured.",
       .choose = fastest<Type>},
      {.name = "cub",
       .idea = "cub::DeviceScan::InclusiveSum.",
       .implementation = library<P>([](P& problem, cudaStream_t stream) {
         const auto [in, count, out] = problem.arguments();
         peers::cub_inclusive_sum(problem, in, count, out, stream);
       }),
       .role = Role::peer},
  };
}

}  // namespace

Ladder scan() {
  return {
      .name = "scan",
      .title = "Inclusive scan",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_copy",
      .input = "int: random 32 bits, sums modulo 2^32; float: uniform in [-1, 1)",
      .error_unit = "sum of magnitudes up to the element",
      .error_limit = 1e-6,
      .axes = {{"elements"}, {.name = "type", .labels = {"int", "float"}, .facet = true}},
      .measured = {{1 << 16, 0},
                   {1 << 20, 0},
                   {1 << 22, 0},
                   {1 << 24, 0},
                   {1 << 26, 0},
                   {1 << 28, 0},
                   {1 << 20, 1},
                   {1 << 24, 1},
                   {1 << 28, 1}},
      .small = {{1 << 16, 0}, {1 << 16, 1}},
      // Around a warp, the tiles, and a window of 32 of them.
      .tested = {{0, 0},
                 {1, 0},
                 {31, 0},
                 {1023, 0},
                 {1025, 0},
                 {4096, 0},
                 {8193, 0},
                 {65537, 0},
                 {139999, 0},
                 {0, 1},
                 {1, 1},
                 {33, 1},
                 {1024, 1},
                 {4097, 1},
                 {8191, 1},
                 {131073, 1}},
      .headline = {1 << 28, 0},
      .small_headline = {1 << 16, 0},
      .work =
          [](const Case& c, const Device&) {
            const double elements = double(c["elements"]);
            return Work{.flops = c["type"] == 1 ? elements : 0,
                        .bytes_read = 4 * elements,
                        .bytes_written = 4 * elements};
          },
      .problem = [](const Case& c, const Device&) -> std::unique_ptr<Problem> {
        if (c["type"] == 0) return std::make_unique<Scan<Ints>>(c);
        return std::make_unique<Scan<Floats>>(c);
      },
      .rungs = by_axis("type", {0, 1}, {rungs<Ints>(), rungs<Floats>()}),
  };
}

}  // namespace ladders
