// SPDX-License-Identifier: MIT
//
// Reduction: the sum of squares of ints (modulo 2^64), the sum of floats, and that of their
// squares.
//
// Each element is read once and used once, so the rate of reading DRAM is the limit, and a rung is
// good when nothing else shows. What can show: atomics on one address, which the L2 takes one at a
// time; lanes that idle while others add (divergence); bank conflicts; barriers; and too few bytes
// in flight, about 40 KB an SM (latency x bandwidth), which only wide and independent loads reach.
//
// The atomic that ends each block sets a floor of its own: on one address an H200 takes 1.8 ns for
// each float, which hides the trees of the float sum altogether. Look at the integers for the
// trees.
//
// Up to some millions of elements latencies are the limit: of the launch, of one load from DRAM,
// and of the way from the blocks' sums to the result. The last of these is what is left to shorten.

#include "catalogue.hpp"
#include "peers.hpp"
#include "reduction_bulk.cuh"
#include "reduction_problem.cuh"
#include "reduction_single_pass.cuh"
#include "reduction_textbook.cuh"

namespace ladders {
namespace {

// A thread for each element, or for each `per_thread` of them. No elements, no blocks.
template <int per_thread>
LaunchPlan thread_an_element(const Case& c, const Device&, const void*) {
  return {.grid = static_cast<unsigned>(
              ceil_div<int64_t>(c["elements"], int64_t{kThreads} * per_thread)),
          .block = kThreads};
}

template <class Op>
LaunchPlan with_dynamic(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = thread_an_element<1>(c, device, kernel);
  plan.shared_bytes = kThreads * sizeof(typename Op::Result);
  return plan;
}

// The resident blocks, but no more than have `per_thread` elements for each thread.
template <int per_thread>
LaunchPlan resident(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = fill_device({.block = kThreads}, kernel, device);
  plan.grid.x = std::min(plan.grid.x, thread_an_element<per_thread>(c, device, kernel).grid.x);
  return plan;
}

// Rungs without an atomic on the result have a block even where there are no elements: it says so.
LaunchPlan resident_or_one(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = resident<16>(c, device, kernel);
  plan.grid.x = std::clamp(plan.grid.x, 1u, kMostSlots);
  return plan;
}

// How large a grid is that divides its work evenly.
struct Blocks {
  unsigned each;       // loads a thread has at least, where the grid is small
  unsigned per_sm;     // blocks at most; 0 for those that are resident
  bool whole = false;  // so many blocks that each has as many loads, even if SMs have not
};
constexpr Blocks kResident = {.each = 2, .per_sm = 0};

// `plan` has all but the grid.
auto even_blocks(LaunchPlan plan, Blocks blocks) {
  return [=](const Case& c, const Device& device, const void* kernel) {
    LaunchPlan filled = plan;
    const unsigned most = blocks.per_sm ? std::min(blocks.per_sm * device.sms, kMostSlots)
                                        : fill_device(plan, kernel, device).grid.x;
    const auto loads = ceil_div<int64_t>(c["elements"] / 4, int64_t{plan.block.x} * blocks.each);
    const int64_t rounds = blocks.whole ? std::max<int64_t>(ceil_div<int64_t>(loads, most), 1) : 1;
    filled.grid =
        static_cast<unsigned>(std::clamp<int64_t>(ceil_div<int64_t>(loads, rounds), 1, most));
    filled.grid.x = ceil_div(filled.grid.x, plan.cluster) * plan.cluster;
    return filled;
  };
}

template <class Op, int threads, int flight>
Implementation in_flight_with(Blocks blocks) {
  using P = Reduction<Op>;
  return kernel<P>(in_flight<Op, threads, flight>, even_blocks({.block = threads}, blocks),
                   [](P& p, const LaunchPlan& plan) {
                     const auto [in, count, result] = p.arguments();
                     return std::tuple(in, count, divide(count, threads * flight, plan.grid.x),
                                       p.slots(), p.ticket(), result);
                   });
}

// The arguments of all rungs with flags.
template <class Op, size_t tile>
auto flag_arguments(Reduction<Op>& p, const LaunchPlan& plan) {
  const auto [in, count, result] = p.arguments();
  return std::tuple(in, count, divide(count, tile, plan.grid.x), p.slots(), result);
}

template <class Op, int threads, int flight, bool vote = true>
Implementation flagged_with(Blocks blocks) {
  return kernel<Reduction<Op>>(flagged<Op, threads, flight, vote>,
                               even_blocks({.block = threads}, blocks),
                               flag_arguments<Op, threads * flight>);
}

template <class Op, int threads>
Implementation in_one_block() {
  return kernel<Reduction<Op>>(
      one_block<Op, threads, 4>,
      [](const Case&, const Device&, const void*) { return LaunchPlan{.block = threads}; },
      [](Reduction<Op>& p) {
        const auto [in, count, result] = p.arguments();
        return std::tuple(in, static_cast<unsigned>(count), result);
      });
}
template <class Op>
Implementation one_block_at(const Case& c) {
  return c["elements"] <= 1 << 12 ? in_one_block<Op, 256>() : in_one_block<Op, 1024>();
}
std::string not_few(const Case& c, const Device&) {
  return c["elements"] <= 1 << 14 ? "" : "for at most 2^14 elements";
}

template <class Op>
Implementation clusters() {
  return kernel<Reduction<Op>>(
      cluster_fold<Op, 512, 4>,
      even_blocks({.block = 512, .cluster = kCluster}, {.each = 4, .per_sm = 0}),
      flag_arguments<Op, 512 * 4>);
}

// 192 KiB in flight an SM.
template <class Op>
Implementation bulk_copies() {
  constexpr int kThreads = 512, kVectors = 4, kStages = 6;
  const size_t bytes = kStages * kThreads * kVectors * sizeof(typename Op::Vector);
  return kernel<Reduction<Op>>(
      bulk_ring<Op, kThreads, kVectors, kStages>,
      even_blocks({.block = kThreads, .shared_bytes = bytes}, {.each = 1, .per_sm = 1}),
      flag_arguments<Op, kThreads * kVectors>);
}

// As measured on an H200 from 2^12 to 2^30 elements, the L2 cold. One block while its loads are all
// under way at once; then as many small blocks as give each thread a round of loads; then larger
// ones, of which a few rounds are dealt out evenly. From there on what is in flight counts.
template <class Op>
Implementation fastest_at(const Case& c) {
  const int64_t elements = c["elements"];
  constexpr bool kInts = Reduction<Op>::kExact;  // whose squares take twice the registers
  if (elements <= 1 << 14) return one_block_at<Op>(c);
  if (elements <= 1 << 20) return flagged_with<Op, 128, 8>({.each = 8, .per_sm = 4, .whole = true});
  if (elements <= (kInts ? 3 << 23 : 1 << 23))
    return flagged_with<Op, 256, 8>({.each = 8, .per_sm = 2, .whole = true});
  if (elements >= 1 << 26 && has_bulk_copies(200 << 10)) return bulk_copies<Op>();
  if constexpr (kInts)
    return flagged_with<Op, 512, 4>({.each = 4, .per_sm = 2});
  else
    return flagged_with<Op, 256, 8>({.each = 8, .per_sm = 4, .whole = true});
}

// Many add to one float, where what is small beside the sum is lost.
std::string grows(const Case& c, const Device&) {
  return c["operation"] == 2 ? "one float that all add to loses what is small beside it" : "";
}

// What the study measures: steps of the textbook at every 16th size, of squares of floats the ends.
bool at_some(const Case& c) {
  const int64_t n = c["elements"];
  return c["operation"] != 2 && (n == 1 << 16 || n == 1 << 20 || n == 1 << 24 || n == 1 << 28);
}
bool of_integers_or_sums(const Case& c) { return c["operation"] != 2; }

template <class Op>
void cub(Reduction<Op>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  if constexpr (std::is_same_v<Op, Sum>)
    peers::cub_sum(problem, in, count, result, stream);
  else
    peers::cub_sum_of_squares(problem, in, count, result, stream);
}

template <class Op>
std::vector<Rung> rungs() {
  using P = Reduction<Op>;
  return {
      {.name = "serial_cpu",
       .idea = "One CPU core in a plain loop over host memory, for scale.",
       .implementation = on_host<P>([](P& problem) { problem.sum_on_host(); }),
       .skip = grows,
       .measured =
           [](const Case& c) {
             return at_some(c) && (c["elements"] == 1 << 20 || c["elements"] == 1 << 28);
           }},
      {.name = "global_atomic",
       .idea = "Every thread adds its element to one address: the atomics queue up in L2.",
       .implementation = kernel<P>(global_atomic<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "global_atomic_requests",
       .skip =
           [](const Case& c, const Device& device) {
             return c["elements"] > 1 << 28 ? "takes seconds a launch at this size"
                                            : grows(c, device);
           },
       .measured = at_some},
      {.name = "interleaved_modulo",
       .idea = "A tree in shared memory and one atomic a block; neighbours pair up, so lanes of "
               "every warp idle.",
       .implementation = kernel<P>(interleaved_modulo<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "global_atomic_requests",
       .skip = grows,
       .measured = at_some},
      {.name = "interleaved_strided",
       .idea = "The first threads do the adding: no divergence, but strides of 2, 4, 8 words make "
               "banks conflict.",
       .implementation = kernel<P>(interleaved_strided<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "shared_load_requests",
       .skip = grows,
       .measured = at_some},
      {.name = "sequential",
       .idea = "The upper half is folded onto the lower: neighbouring lanes, neighbouring banks.",
       .implementation = kernel<P>(sequential<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "shared_load_wavefronts_per_request",
       .skip = grows,
       .measured = at_some},
      {.name = "sequential_dynamic",
       .idea = "The same with shared memory sized at launch: no difference to expect.",
       .implementation = kernel<P>(sequential_dynamic<Op>, with_dynamic<Op>),
       .zero_output = true,
       .skip = grows,
       .measured = at_some},
      {.name = "first_add_on_load",
       .idea = "Each thread adds two elements on the way in: half the blocks, trees and atomics.",
       .implementation = kernel<P>(first_add_on_load<Op>, thread_an_element<2>),
       .zero_output = true,
       .moves = "global_atomic_requests",
       .skip = grows,
       .measured = at_some},
      {.name = "warp_shuffle",
       .idea = "Shuffles fold a warp in registers: one barrier a block instead of nine.",
       .implementation = kernel<P>(warp_shuffle<Op>, thread_an_element<2>),
       .zero_output = true,
       .moves = "shared_load_requests",
       .skip = grows,
       .measured = at_some},
      {.name = "grid_stride",
       .idea = "Resident blocks stride over the input: one fold and one atomic for each of them.",
       .implementation = kernel<P>(grid_stride<Op>, resident<1>),
       .zero_output = true,
       .moves = "global_atomic_requests",
       .skip = grows,
       .measured = at_some},
      {.name = "vectorized",
       .idea = "16-byte loads, four in flight into four accumulators: enough bytes under way to "
               "cover DRAM's latency.",
       .implementation = kernel<P>(vectorized<Op>, resident<16>),
       .zero_output = true,
       .moves = "global_load_sectors_per_request",
       .skip = grows,
       .measured = at_some},
      {.name = "last_block",
       .idea = "Blocks leave their sums and take a ticket; the last one adds them up, in order: no "
               "zeroing, the same floats every run.",
       .implementation = kernel<P>(last_block<Op>, resident_or_one,
                                   [](P& p) {
                                     const auto [in, count, result] = p.arguments();
                                     return std::tuple(in, count, p.slots(), p.ticket(), result);
                                   })},
      {.name = "in_flight",
       .idea = "Whole tiles in turn, then equal chunks, all loads of a tile under way at once and "
               "first to leave the L2: blocks end together.",
       .implementation = in_flight_with<Op, 512, 4>(kResident),
       .moves = "stall_long_scoreboard",
       .measured = of_integers_or_sums},
      {.name = "flagged",
       .idea = "A sum and its flag in one word, polled by the block that has asked for the words "
               "ahead: no fence, no atomic.",
       .implementation = flagged_with<Op, 512, 4, false>(kResident),
       .moves = "global_atomic_requests",
       .measured = of_integers_or_sums},
      {.name = "warp_votes",
       .idea = "The polling warp votes, and looks as one until all its words are there: lanes that "
               "look on apart are slow.",
       .implementation = flagged_with<Op, 512, 4>(kResident),
       .moves = "stall_barrier",
       .measured = of_integers_or_sums},
      {.name = "one_block",
       .idea = "Few elements: a single block has nobody to meet, and little code to wait for.",
       .moves = "warp_instructions",
       .skip = not_few,
       .measured = [](const Case& c) { return c["elements"] <= 1 << 14; },
       .choose = one_block_at<Op>},
      {.name = "cluster",
       .idea = "Warps store their sums to one block of a cluster through distributed shared "
               "memory: sums meet without the L2.",
       .implementation = clusters<Op>(),
       .moves = "distributed_bytes",
       .compute_capability = 90,
       .measured = of_integers_or_sums},
      {.name = "bulk_ring",
       .idea = "Bulk copies fill a ring of 192 KiB: bytes in flight take no registers, and few "
               "instructions.",
       .implementation = bulk_copies<Op>(),
       .moves = "global_load_requests",
       .compute_capability = 90,
       .hardware_only = "bulk copies",
       .measured = of_integers_or_sums},
      {.name = "fastest",
       .idea = "The kernel, grid and loads in flight that were fastest for as many elements, as "
               "measured.",
       .choose = fastest_at<Op>},
      {.name = "cub",
       .idea = "cub::DeviceReduce: Sum, or TransformReduce for the squares.",
       .implementation = library<P>(cub<Op>),
       .role = Role::peer},
  };
}

std::vector<Rung> rungs() {
  return by_axis("operation", {0, 1, 2},
                 {rungs<SumOfSquares>(), rungs<Sum>(), rungs<SumOfSquaresOfFloats>()});
}

}  // namespace

Ladder reduction() {
  return {
      .name = "reduction",
      .title = "Reduction",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_read",
      .input = "sum_of_squares: random 32-bit ints; of floats: uniform in [-1, 1)",
      .error_unit = "sum of magnitudes",
      .error_limit = 1e-6,
      .axes = {{"elements"},
               {.name = "operation",
                .labels = {"sum_of_squares", "sum", "sum_of_squares_of_floats"},
                .facet = true}},
      // At 2^12 there is little to see but a launch.
      .measured = {{1 << 12, 0}, {1 << 16, 0}, {1 << 20, 0}, {1 << 22, 0}, {1 << 24, 0},
                   {1 << 26, 0}, {1 << 28, 0}, {1 << 30, 0}, {1 << 12, 1}, {1 << 16, 1},
                   {1 << 20, 1}, {1 << 22, 1}, {1 << 24, 1}, {1 << 26, 1}, {1 << 28, 1},
                   {1 << 30, 1}, {1 << 12, 2}, {1 << 20, 2}, {1 << 24, 2}, {1 << 28, 2}},
      .small = {{1 << 20, 0}, {1 << 20, 1}},
      // Around a vector and a tile; on an H200 the last has a round of tiles and more.
      .tested = {{0, 0},     {1, 0},      {31, 0},     {255, 0},    {257, 0}, {1021, 0},
                 {65537, 0}, {300001, 0}, {0, 1},      {1, 1},      {33, 1},  {511, 1},
                 {4099, 1},  {16387, 1},  {262147, 1}, {999983, 1}, {0, 2},   {3, 2},
                 {8192, 2},  {16385, 2},  {65535, 2},  {4400003, 2}},
      .headline = {1 << 28, 0},
      .small_headline = {1 << 20, 0},
      .work =
          [](const Case& c, const Device&) {
            const double elements = double(c["elements"]);
            const bool floats = c["operation"] != 0;
            return Work{.flops = elements * double(c["operation"]),
                        .bytes_read = 4 * elements,
                        .bytes_written = floats ? 4. : 8.};
          },
      .problem = [](const Case& c, const Device&) -> std::unique_ptr<Problem> {
        if (c["operation"] == 0) return std::make_unique<Reduction<SumOfSquares>>(c);
        if (c["operation"] == 1) return std::make_unique<Reduction<Sum>>(c);
        return std::make_unique<Reduction<SumOfSquaresOfFloats>>(c);
      },
      .rungs = rungs(),
  };
}

}  // namespace ladders
