// SPDX-License-Identifier: MIT
//
// Latency: how long a load takes. One thread follows a chain in which each load gives the address
// of the next, so loads cannot overlap, and the time of a launch over their number is the latency.
//
// Each rung is a memory. The fastest of its rows is its latency; the others show where its capacity
// ends. Latency times bandwidth is the number of bytes that must be in flight to reach a roof.

#include "latency/01_chase.cuh"
#include "model/ladder.hpp"

namespace ladders::latency {
namespace {

// Cases whose elements take from `least` to `most` KiB.
auto kibibytes(int64_t least, int64_t most) {
  return [=](const Case& c) { return least <= c["kibibytes"] && c["kibibytes"] <= most; };
}

std::string leaves_l2(const Case& c, const Device& device) {
  if (bytes(c) <= 2 * device.l2_bytes) return {};
  return "the L2 would hold less than half of the chain";
}
std::string loads_again(const Case& c, const Device&) {
  if (size_t(c["loads"]) <= bytes(c) / sizeof(Line)) return {};
  return "the chain would load a line twice, the second time from the L2";
}

std::vector<int64_t> powers_of_two() {
  std::vector<int64_t> values;
  for (int64_t value = 1; value <= 1 << 24; value *= 2) values.push_back(value);
  return values;
}

std::vector<Rung> rungs() {
  std::vector<Rung> all = {
      // 01_chase.cuh
      {.name = "shared",
       .idea = "The block's own shared memory.",
       .implementation = through_shared<unsigned, 1>(chase_shared),
       .measured = kibibytes(1, 128)},
      {.name = "distributed",
       .idea = "Shared memory of the other block of a cluster.",
       .implementation = through_shared<Word, 2>(chase_distributed),
       .needs = kClusters,
       .measured = kibibytes(1, 128)},
      {.name = "global_l1",
       .idea = "Lines of global memory that the block has loaded, which the L1 keeps.",
       .implementation = through_global<l1>(),
       .skip = leaves_l2,
       .measured = kibibytes(1, 1024)},
      {.name = "global_l2",
       .idea = "Lines of global memory, by loads that bypass the L1.",
       .implementation = through_global<l2>(),
       .skip = leaves_l2,
       .measured = kibibytes(1024, 1 << 16)},
      {.name = "global_dram",
       .idea = "Lines that no cache has, since each is loaded once.",
       .implementation = through_global<dram>(),
       .skip = loads_again,
       .measured = kibibytes(1 << 16, 1 << 24)},
  };
  for (Rung& rung : all) rung.role = Role::ceiling;
  return all;
}

}  // namespace

Ladder ladder() {
  return {
      .name = "latency",
      .title = "Latency",
      .input = "a cycle",
      .axes = {{.name = "kibibytes", .only = powers_of_two()}, {.name = "loads", .least = 1}},
      // The number of loads is odd, so that no chain ends where it began: a kernel that does not
      // follow the chain fails the check.
      .measured = every({{32, 128, 1024, 8192, 16384, 32768, 65536, 1 << 22}, {65537}}),
      .small = {{32, 200}},
      .tested = {{1, 1}, {4, 33}, {128, 1000}},
      .headline = {32, 65537},
      .small_headline = {32, 200},
      .work = [](const Case& c, const Device&) { return Work{.loads = double(c["loads"])}; },
      .problem = problem_of<Chase>,
      .memory = [](const Case& c) { return double(bytes(c)); },
      .rungs = rungs(),
  };
}

}  // namespace ladders::latency
