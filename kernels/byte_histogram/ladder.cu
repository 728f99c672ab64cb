// SPDX-License-Identifier: MIT
//
// Histogram of bytes: bins[key] counts the keys of 8 bits, in 256 counters of 32 bits.
//
// DRAM delivers 18 keys per clock and SM of an H200. Shared memory increments 32 counters per clock
// if they are in different banks. 32 random ones take 3.3 clocks on average, so it reaches half of
// the rate needed. So each lane counts in its own bank. Then the limits are loads in flight,
// instructions per key, and, for few keys, the latency of a launch. The time includes zeroing and
// merging.

#include "byte_histogram/ladder.hpp"

#include "byte_histogram/01_textbook.cuh"
#include "byte_histogram/02_always_reading.cuh"

namespace ladders::byte_histogram {
namespace {

Implementation fastest_at(const Case& c, const Device& device) {
  if (device.shared_bytes_per_block < Copies<64>::kRoom)
    return chosen("one_launch", reading<4, 32, true>());
  return chosen("one_launch", kFourLoadsFrom.reached(c, device) ? reading<4, 64, true>()
                                                                : reading<2, 64, true>());
}

constexpr int64_t kMost = int64_t{1} << 30;

std::vector<Rung> steps() {
  using P = ByteHistogram;
  return {
      // 01_textbook.cuh
      {.name = "global",
       .idea = "One atomic in L2 per key: all of them queue up at 32 sectors.",
       .implementation = kernel<P>(bytes_global, resident<>),
       .zero_output = true,
       .target = "global_atomic_requests",
       .measured =
           [](const Case& c) { return c["keys"] < kMost || c["distribution"] == bytes_uniform; }},
      {.name = "shared",
       .idea = "One histogram per block in shared memory, merged at the end.",
       .implementation = kernel<P>(bytes_shared, resident<>),
       .builds_on = "global",
       .zero_output = true,
       .target = "global_atomic_requests"},
      {.name = "vectorized",
       .idea = "Sixteen keys per load: a request of a warp is 16 sectors instead of one.",
       .implementation = kernel<P>(bytes_vectorized, resident<>),
       .builds_on = "shared",
       .zero_output = true,
       .target = "global_load_sectors_per_request"},
      // 02_always_reading.cuh
      {.name = "lane_copies",
       .idea = "Each lane has a copy of the bins in its own bank: no conflicts for any keys.",
       .implementation = kernel<P>(lane_copies, resident<Copies<32>::kRoom>),
       .builds_on = "vectorized",
       .meant_for =
           [](const Case& c) {
             return c["keys"] >= 1 << 26 &&
                    (c["distribution"] == bytes_uniform || c["distribution"] == bytes_zipf);
           },
       .zero_output = true,
       .target = "shared_atomic_wavefronts_per_request"},
      {.name = "in_flight",
       .idea = "One block per SM, with four loads in flight per thread while it counts.",
       .implementation = reading<4, 32, false>(),
       .builds_on = "lane_copies",
       .zero_output = true},
      {.name = "permuted",
       .idea = "Bins 256 bytes apart: an address takes one instruction instead of three.",
       .implementation = reading<4, 64, false>(),
       .builds_on = "in_flight",
       .zero_output = true,
       .target = "warp_instructions"},
      {.name = "one_launch",
       .idea = "The first block to start zeroes the output while all count: no memset before.",
       .implementation = reading<4, 64, true>(),
       .builds_on = "permuted"},
      // ladder.cu
      {.name = "fastest",
       .idea = "Two loads per thread below 2^24 keys, else four; fewer copies if shared memory is "
               "small.",
       .role = Role::choice,
       .choose = fastest_at},
  };
}

Shape shape(int64_t keys, int64_t distribution) { return {keys, distribution}; }

}  // namespace

Ladder ladder() {
  std::vector<Shape> measured;
  for (const int64_t keys : {int64_t{1} << 22, int64_t{1} << 26, int64_t{1} << 28, kMost})
    for (const int64_t d : {bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few})
      if (keys == kMost || d == bytes_uniform || d == bytes_constant) measured.push_back({keys, d});
  return {
      .name = "byte_histogram",
      .title = "Histogram of bytes",
      .ceiling = "roof/dram_read",
      .input = "as the distribution says; zipf has exponent 1, few keys are 0, 85, 170 and 255",
      .axes = {{.name = "keys", .most = int64_t{1} << 40},
               {.name = "distribution",
                .labels = {"uniform", "constant", "zipf", "sorted", "few"},
                .facet = true}},
      .measured = measured,
      .small = {{1 << 20, bytes_uniform}, {1 << 20, bytes_constant}, {1 << 20, bytes_zipf}},
      .tested = {shape(0, bytes_uniform), shape(1, bytes_constant), shape(15, bytes_uniform),
                 shape(17, bytes_few), shape(4095, bytes_sorted), shape(16384, bytes_uniform),
                 shape(100003, bytes_zipf), shape((1 << 18) + 511, bytes_constant),
                 shape((1 << 19) + 8177, bytes_sorted), shape(1 << 20, bytes_few)},
      .headline = {kMost, bytes_uniform},
      .small_headline = {1 << 20, bytes_uniform},
      .work =
          [](const Case& c, const Device&) {
            return Work{.bytes_read = double(c["keys"]),
                        .bytes_written = sizeof(unsigned) * kByteBins};
          },
      .problem = problem_of<ByteHistogram>,
      .crossovers = {kFourLoadsFrom},
      .rungs = joined(steps(), peers()),
  };
}

}  // namespace ladders::byte_histogram
