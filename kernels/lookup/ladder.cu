// SPDX-License-Identifier: MIT
//
// Lookup: out[i] = table[index[i]], values of 4 bytes, indices known to be in the table.
//
// Four bytes come in and four go out, so the limit is the copy: on an H200 about two lookups per
// clock and SM. A warp's 32 lookups may take 16 clocks before their source becomes the limit. Where
// each lane wants another entry
//   - the L2 takes 28 clocks for 32 sectors of 32 bytes, fewer with L1 hits;
//   - constant memory gives one word at a time. With random entries a warp takes 43 clocks in a
//     table of 32 entries. In one of 4096 it takes 840: probably the SM's small constant cache
//     misses;
//   - shared memory takes one wavefront per different word in the busiest bank: in theory 3.5 for
//     random entries (2.8 in tables of 128, 2.0 of 64, 1 of 32), 32 for entries 32 apart;
//   - 32 copies take one wavefront, 16 take two, 8 still 3;
//   - registers take a shuffle;
//   - another block's shared memory gives a third of a sector per clock over the network.
// So DRAM hides random bank conflicts, but not those of a stride. Where the table fits, what counts
// is what any copy needs: bytes in flight, in the order of memory, evenly shared by the SMs.

#include "lookup/ladder.hpp"

#include <set>

#include "lookup/01_elements.cuh"
#include "lookup/02_tables.cuh"
#include "lookup/03_vectors.cuh"
#include "lookup/04_constant_memory.cuh"

namespace ladders::lookup {
namespace {

constexpr int64_t kMostEntriesInL1 = 16384;

// Staging brings the whole table to every SM, 528 bytes per entry on 132 of them; the caches bring
// a 32-byte sector per lookup, overlapped with others. For random indices, a table that fits in the
// L1 is 6 % faster there. For strided indices it is half as fast there, unless the lines that a
// warp needs are so few that DRAM hides them.
Implementation robust(const Case& c, const Device& device) {
  const int64_t entries = c["entries"];
  // A block begins no tile while it stages the table. That takes too long for large tables if few
  // tiles follow, and for others if the second wave of tiles leaves half of the SMs idle.
  const double waves = double(c["lookups"]) / kTileLookups / device.sms;
  const bool few = waves < 1.5 && (waves > 1 || entries > kMostEntriesInL1);
  if (entries <= max_entries(device) && !few && kStagedFrom.reached(c, device))
    return chosen("swizzled", staged<InSharedMemory<true>>());
  return chosen("vectorized", in_tiles<InCaches>());
}

constexpr int64_t kMany = 1 << 28;

// The tables, by distribution, where the study measures a step; the choice is measured on all.
std::function<bool(const Case&)> of(std::map<int64_t, std::set<int64_t>> tables) {
  return [tables](const Case& c) {
    const auto entries = tables.find(c["distribution"]);
    return c["lookups"] == kMany && entries != tables.end() &&
           entries->second.contains(c["entries"]);
  };
}

std::vector<Rung> rungs() {
  return {
      // 01_elements.cuh
      {.name = "global",
       .idea = "One lookup per thread, the table wherever the caches hold it.",
       .implementation = kernel<Lookup>(global, one_block_per_tile<256>),
       .measured = of({{uniform, {4096, 57344, 458752}}})},
      {.name = "streamed",
       .idea = "Caches evict indices and values first, so that they do not push out the table.",
       .implementation = kernel<Lookup>(streamed, one_block_per_tile<256>),
       .builds_on = "global",
       .target = "l2_read_bytes",
       .measured = of({{uniform, {4096, 57344, 458752}}})},
      // 03_vectors.cuh
      {.name = "vectorized",
       .idea = "Four indices per 16-byte load, past the L1: a quarter of index loads and stores.",
       .implementation = in_tiles<InCaches>(),
       .builds_on = "streamed",
       .target = "global_load_requests"},
      // 04_constant_memory.cuh
      {.name = "constant",
       .idea = "The table in constant memory, which gives a warp one word at a time: fast if its "
               "lanes agree.",
       .implementation = in_constant_memory(),
       .builds_on = "vectorized",
       .meant_for = [](const Case& c) { return distributed_as(c, {constant, sorted}); },
       .shows = "As fast as the caches if the lanes of a warp agree, up to 50 times slower if not.",
       .skip = [](const Case& c, const Device&) { return at_most(kConstants, c); },
       .measured =
           of({{uniform, {32, 4096}}, {constant, {4096}}, {sorted, {4096}}, {zipf, {4096}}})},
      // 02_tables.cuh, 03_vectors.cuh
      {.name = "shared",
       .idea = "Resident blocks copy the table to shared memory: a word per lookup, not a sector.",
       .implementation = staged<InSharedMemory<false>, false>(),
       .builds_on = "vectorized",
       .meant_for = of({{uniform, {57344}}, {strided, {4096, 57344}}}),
       .target = "global_load_sectors",
       .skip = too_large_for<1>,
       .measured = of({{uniform, {32, 4096, 57344}}, {strided, {4096, 57344}}})},
      {.name = "dynamic_tiles",
       .idea = "Blocks take the next tile when they are ready: not all SMs are equally fast.",
       .implementation = staged<InSharedMemory<false>>(),
       .builds_on = "shared",
       .meant_for = of({{uniform, {4096}}}),
       .skip = too_large_for<1>,
       .measured = of({{uniform, {4096, 57344}}, {strided, {4096}}})},
      {.name = "swizzled",
       .idea = "The bank is XORed with higher bits of the entry: at most two strided entries share "
               "one.",
       .implementation = staged<InSharedMemory<true>>(),
       .builds_on = "dynamic_tiles",
       .target = "shared_load_wavefronts_per_request",
       .skip = too_large_for<1>,
       .measured = [](const Case& c) { return c["entries"] <= 57344; }},
      {.name = "replicated",
       .idea =
           "As many copies of the table as fit, up to one per lane, which has no bank conflicts.",
       .builds_on = "swizzled",
       .shows = "Without bank conflicts it is no faster: DRAM hides those of random indices.",
       .target = "shared_load_wavefronts_per_request",
       .skip = [](const Case& c, const Device& d) { return at_most(max_entries(d) / 2, c); },
       .measured = of({{uniform, {256, 1024, 4096}}, {strided, {4096}}}),
       .choose = in_copies},
      {.name = "shuffled",
       .idea = "One entry per lane in a register: a lookup is a shuffle and needs no memory.",
       .implementation = staged<InRegisters>(),
       .builds_on = "swizzled",
       .shows = "A shuffle is no faster than a load from shared memory: DRAM is the limit.",
       .target = "shared_load_requests",
       .skip = [](const Case& c, const Device&) { return at_most(InRegisters::kEntries, c); },
       .measured = of({{uniform, {32}}})},
      {.name = "distributed",
       .idea = "The table spread over a cluster: most lookups cross the SM-to-SM network.",
       .builds_on = "dynamic_tiles",
       .shows = "The network gives a third of a sector per clock: even random L2 reads are faster.",
       .target = "distributed_requests",
       .needs = kClusters,
       .skip = too_large_for<16>,
       .measured = of({{uniform, {458752}}, {zipf, {458752}}}),
       .choose = in_clusters},
      // ladder.cu
      {.name = "robust",
       .idea = "Swizzled shared memory where staging the table pays, else vectors and caches.",
       .role = Role::choice,
       .choose = robust},
  };
}

}  // namespace

Ladder ladder() {
  std::vector<Shape> measured, small = {{32, 1 << 16, uniform}};
  for (const int64_t entries : {32, 256, 1024, 4096, 16384, 57344, 458752, 1 << 22})
    measured.push_back({entries, kMany, uniform});
  for (const Distribution d : {constant, sorted, zipf}) measured.push_back({4096, kMany, d});
  measured.push_back({458752, kMany, zipf});
  for (const int64_t entries : {4096, 57344, 256}) measured.push_back({entries, kMany, strided});
  for (const int64_t lookups : {1 << 20, 1 << 24})
    for (const int64_t entries : {256, 57344}) measured.push_back({entries, lookups, uniform});
  for (const Distribution d : {uniform, constant, zipf, strided})
    small.push_back({4096, 1 << 16, d});
  return {
      .name = "lookup",
      .title = "Table lookup",
      .ceiling = "roof/dram_copy",
      .input = "random 32-bit values; zipf has exponent 1, strided indices are 32 apart",
      .axes = {{.name = "entries", .least = 1},
               {.name = "lookups", .most = int64_t{1} << 40},
               kDistributionAxis},
      .measured = measured,
      .small = small,
      // Around vectors and tiles; tables that just fit each kind of memory, and just do not.
      .tested = {{1, 0, uniform},          {1, 1, uniform},        {31, 3, uniform},
                 {32, 31, zipf},           {33, 4097, uniform},    {257, 513, strided},
                 {1000, 65537, zipf_1_5},  {1815, 5002, strided},  {1816, 5003, uniform},
                 {4099, 4095, sorted},     {9001, 3001, uniform},  {29040, 1025, zipf},
                 {16384, 33333, constant}, {16385, 2047, zipf},    {57344, 4099, strided},
                 {58080, 2051, uniform},   {58081, 2051, uniform}, {200003, 8191, uniform},
                 {458752, 4096, sorted},   {929280, 8193, zipf},   {929281, 1025, uniform}},
      .headline = {4096, kMany, uniform},
      .small_headline = {4096, 1 << 16, uniform},
      .work =
          [](const Case& c, const Device&) {
            const double lookups = c["lookups"], entries = c["entries"];
            return Work{.bytes_read = 4 * (lookups + entries), .bytes_written = 4 * lookups};
          },
      .problem = problem_of<Lookup>,
      .crossovers = {kStagedFrom},
      .rungs = joined(rungs(), peers()),
  };
}

}  // namespace ladders::lookup
