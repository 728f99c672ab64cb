// SPDX-License-Identifier: MIT
//
// Reduction: the sum of squares of ints (modulo 2^64), the sum of floats, and that of their
// squares.
//
// Each element is read and used once, so the limit is the rate of reading DRAM. What can keep a
// kernel below it: atomics on one address, which the L2 performs one at a time; divergent lanes;
// bank conflicts; barriers; and too few bytes in flight: latency x bandwidth is 12 KB per SM, but
// requests queue, and it takes about 32 KB to reach that rate. (An atomic on a float takes 1.8 ns
// on an H200, which would hide how the trees differ. So compare them on integers.)
//
// Up to some millions of elements latencies are the limit: of the launch, of one load from DRAM,
// and of the exchange of the blocks' sums.

#include "reduction/ladder.hpp"

#include "reduction/01_textbook.cuh"
#include "reduction/02_last_block.cuh"
#include "reduction/03_flags.cuh"
#include "reduction/04_clusters.cuh"
#include "reduction/05_bulk_ring.cuh"

namespace ladders::reduction {
namespace {

// As the input grows: small blocks with one round of loads per thread, then larger blocks with a
// few rounds. make<threads, loads>(rule) returns a kernel whose grid has that size.
template <class Op>
Implementation tuned(const Case& c, const Device& device, auto make) {
  constexpr bool kInts = Reduction<Op>::kExact;
  if (!kLargerBlocksFrom.reached(c, device))
    return make.template operator()<128, 8>(
        GridRule{.loads_per_thread = 8, .blocks_per_sm = 4, .equal_loads = true});
  if (!(kInts ? kMoreThreadsOfIntsFrom : kMoreThreadsFrom).reached(c, device))
    return make.template operator()<256, 8>(
        GridRule{.loads_per_thread = 8, .blocks_per_sm = 2, .equal_loads = true});
  if constexpr (kInts)
    return make.template operator()<512, 4>(GridRule{.loads_per_thread = 4, .blocks_per_sm = 2});
  else
    return make.template operator()<256, 8>(
        GridRule{.loads_per_thread = 8, .blocks_per_sm = 4, .equal_loads = true});
}

// One block for few elements, or one cluster; the most bytes in flight for many.
template <class Op>
Implementation fastest_at(const Case& c, const Device& device) {
  if (c["elements"] <= kMostOfOneBlock) return chosen("one_block", one_block_at<Op>(c, device));
  if (!kFlagsFrom.reached(c, device) && device.clusters_at_once[kCluster] > 0)
    return chosen("cluster", clusters<Op>());
  if (kBulkRingFrom.reached(c, device) && device.has_bulk_copies(kRingRoom))
    return chosen("bulk_ring", in_a_ring<Op>());
  return chosen("warp_votes", tuned<Op>(c, device, [&]<int threads, int loads>(GridRule rule) {
                  return flagged_with<Op, threads, loads>(rule);
                }));
}

template <class Op>
Implementation partial_sums_at(const Case& c, const Device& device) {
  return tuned<Op>(c, device, [&]<int threads, int loads>(GridRule rule) {
    return partial_sums_with<Op, threads, loads>(rule);
  });
}

bool of_integers_or_sums(const Case& c) { return c["operation"] != 2; }

// A step of the textbook: it adds to a zeroed output. It is measured at four sizes.
Rung textbook(Rung rung) {
  rung.zero_output = true;
  if (!rung.skip) rung.skip = too_large_for_fp32;
  rung.measured = [](const Case& c) {
    const int64_t n = c["elements"];
    return of_integers_or_sums(c) && (n == 1 << 16 || n == 1 << 20 || n == 1 << 24 || n == 1 << 28);
  };
  return rung;
}

template <class Op>
std::vector<Rung> rungs() {
  using P = Reduction<Op>;
  return {
      // 01_textbook.cuh
      textbook({.name = "global_atomic",
                .idea = "Every thread adds its element to one address: the atomics queue up in L2.",
                .implementation = kernel<P>(global_atomic<Op>, elements_per_thread<1>),
                .target = "global_atomic_requests",
                .skip =
                    [](const Case& c, const Device& device) {
                      return c["elements"] > 1 << 28 ? "takes seconds a launch at this size"
                                                     : too_large_for_fp32(c, device);
                    }}),
      textbook({.name = "interleaved_modulo",
                .idea = "A tree in shared memory, one atomic per block; lanes of every warp idle.",
                .implementation = kernel<P>(interleaved<Op, false>, elements_per_thread<1>),
                .builds_on = "global_atomic",
                .target = "global_atomic_requests"}),
      textbook({.name = "interleaved_strided",
                .idea = "The first threads add: whole warps idle, not lanes, but strided lanes "
                        "make banks conflict.",
                .implementation = kernel<P>(interleaved<Op, true>, elements_per_thread<1>),
                .builds_on = "interleaved_modulo",
                .shows = "With less divergence, but with bank conflicts, the tree is slower.",
                .target = "shared_load_requests"}),
      textbook(
          {.name = "sequential",
           .idea = "The upper half is added to the lower: whole warps idle, and no bank conflicts.",
           .implementation = kernel<P>(sequential<Op>, elements_per_thread<1>),
           .builds_on = "interleaved_modulo",
           .target = "shared_load_requests"}),
      textbook({.name = "sequential_dynamic",
                .idea = "The same with shared memory sized at launch: no difference to expect.",
                .implementation =
                    kernel<P>(sequential_dynamic<Op>,
                              elements_per_thread<1, kTextbookThreads * sizeof(Result<Op>)>),
                .builds_on = "sequential",
                .shows = "Shared memory that is sized at launch costs nothing."}),
      textbook({.name = "first_add_on_load",
                .idea = "Each thread adds two elements as it loads: half the blocks and atomics.",
                .implementation = kernel<P>(first_add_on_load<Op>, elements_per_thread<2>),
                .builds_on = "sequential",
                .target = "global_atomic_requests"}),
      textbook(
          {.name = "warp_shuffle",
           .idea = "Shuffles add up a warp in registers: one barrier per block instead of nine.",
           .implementation = kernel<P>(warp_shuffle<Op>, elements_per_thread<2>),
           .builds_on = "first_add_on_load",
           .meant_for = [](const Case& c) { return c["elements"] <= 1 << 24; },
           .target = "shared_load_requests"}),
      textbook({.name = "grid_stride",
                .idea = "Resident blocks stride over the input: one sum and one atomic for each.",
                .implementation = kernel<P>(grid_stride<Op>, resident<1>),
                .builds_on = "warp_shuffle",
                .target = "global_atomic_requests"}),
      textbook({.name = "vectorized",
                .idea = "Four 16-byte loads in flight per thread cover the latency of DRAM.",
                .implementation = kernel<P>(vectorized<Op>, resident<16>),
                .builds_on = "grid_stride",
                .meant_for = [](const Case& c) { return c["elements"] >= 1 << 20; },
                .target = "global_load_sectors_per_request"}),
      // 02_last_block.cuh
      {.name = "last_block",
       .idea = "The last block adds all sums in order: no zeroing, and reproducible floats.",
       .implementation = with_last_block<Op>(),
       .builds_on = "vectorized",
       .meant_for = [](const Case& c) { return c["elements"] >= 1 << 28; },
       .shows = "Reproducible sums of floats have a cost, which vanishes as the input grows."},
      {.name = "in_flight",
       .idea = "Blocks get equal shares, whose last loads are in flight together, too.",
       .implementation = in_flight_with<Op, 512, 4>(kResident),
       .builds_on = "last_block",
       .meant_for = [](const Case& c) { return c["elements"] >= 1 << 22; },
       .target = "stall_long_scoreboard",
       .measured = of_integers_or_sums},
      // 03_flags.cuh
      {.name = "partial_sums",
       .idea = "Blocks leave their sums, and nobody adds them up: what reading alone takes.",
       .role = Role::ceiling,
       .measured = of_integers_or_sums,
       .choose = partial_sums_at<Op>},
      {.name = "flagged",
       .idea =
           "Sum and flag in one word; the block with the highest index polls: no fence, no atomic.",
       .implementation = flagged_with<Op, 512, 4, false>(kResident),
       .builds_on = "in_flight",
       .target = "global_atomic_requests",
       .measured = of_integers_or_sums},
      {.name = "warp_votes",
       .idea =
           "Each polling warp votes and leaves the loop as one, since divergent polling is slow.",
       .implementation = flagged_with<Op, 512, 4>(kResident),
       .builds_on = "flagged",
       .target = "stall_barrier",
       .measured = of_integers_or_sums},
      {.name = "one_block",
       .idea = "Few elements take one block: no synchronization with others, and short code.",
       .builds_on = "warp_votes",
       .target = "warp_instructions",
       .skip =
           [](const Case& c, const Device&) {
             return c["elements"] <= kMostOfOneBlock ? "" : "for at most 2^14 elements";
           },
       .measured = [](const Case& c) { return c["elements"] <= 1 << 14; },
       .choose = one_block_at<Op>},
      // 04_clusters.cuh
      {.name = "cluster",
       .idea = "Warps send their sums to one block through distributed shared memory.",
       .implementation = clusters<Op>(),
       .builds_on = "warp_votes",
       .shows = "Sums in a cluster avoid the L2: at 2^16 faster on an H200, slower on an H100.",
       .target = "distributed_bytes",
       .needs = kClusters,
       .measured = of_integers_or_sums},
      // 05_bulk_ring.cuh
      {.name = "bulk_ring",
       .idea = "Bulk copies fill a ring of 192 KiB: bytes in flight take no registers.",
       .implementation = in_a_ring<Op>(),
       .builds_on = "warp_votes",
       .meant_for = [](const Case& c) { return c["elements"] >= 1 << 26; },
       .target = "global_load_requests",
       .needs = kTma,
       .measured = of_integers_or_sums},
      // ladder.cu
      {.name = "fastest",
       .idea = "The kernel and the grid that measured fastest for as many elements.",
       .role = Role::choice,
       .choose = fastest_at<Op>},
  };
}

}  // namespace

Ladder ladder() {
  return {
      .name = "reduction",
      .title = "Reduction",
      .ceiling = "roof/dram_read",
      .input = "sum_of_squares: random 32-bit ints; of floats: uniform in [-1, 1)",
      .error_unit = "sum of magnitudes",
      .error_limit = 1e-6,
      .axes = {{.name = "elements", .most = int64_t{1} << 40},
               {.name = "operation",
                .labels = {"sum_of_squares", "sum", "sum_of_squares_of_floats"},
                .facet = true}},
      // At 2^12 a launch is most of the time.
      .measured = {{1 << 12, 0}, {1 << 16, 0}, {1 << 20, 0}, {1 << 22, 0}, {1 << 24, 0},
                   {1 << 26, 0}, {1 << 28, 0}, {1 << 30, 0}, {1 << 12, 1}, {1 << 16, 1},
                   {1 << 20, 1}, {1 << 22, 1}, {1 << 24, 1}, {1 << 26, 1}, {1 << 28, 1},
                   {1 << 30, 1}, {1 << 12, 2}, {1 << 20, 2}, {1 << 24, 2}, {1 << 28, 2}},
      .small = {{1 << 20, 0}, {1 << 20, 1}},
      // Around a vector and a tile; on an H200 the last has more than a round of tiles.
      .tested = {{0, 0},     {1, 0},      {31, 0},     {255, 0},    {257, 0}, {1021, 0},
                 {65537, 0}, {300001, 0}, {0, 1},      {1, 1},      {33, 1},  {511, 1},
                 {4099, 1},  {16387, 1},  {262147, 1}, {999983, 1}, {0, 2},   {3, 2},
                 {8192, 2},  {16385, 2},  {65535, 2},  {4400003, 2}},
      .headline = {1 << 28, 0},
      .small_headline = {1 << 20, 0},
      .work =
          [](const Case& c, const Device&) {
            const double elements = double(c["elements"]);
            return Work{.flops = elements * double(c["operation"]),
                        .bytes_read = 4 * elements,
                        .bytes_written = c["operation"] == 0 ? 8. : 4.};
          },
      .problem =
          [](const Case& c, const Device& device) {
            return of_operation(c,
                                [&]<class Op>(Op) { return problem_of<Reduction<Op>>(c, device); });
          },
      .crossovers = {kFlagsFrom, kLargerBlocksFrom, kMoreThreadsFrom, kMoreThreadsOfIntsFrom,
                     kBulkRingFrom},
      .rungs = joined(by_axis("operation", {0, 1, 2},
                              {rungs<SumOfSquares>(), rungs<Sum>(), rungs<SumOfSquaresOfFloats>()}),
                      peers()),
  };
}

}  // namespace ladders::reduction
