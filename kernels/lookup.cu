// SPDX-License-Identifier: MIT
//
// Lookup: out[i] = table[index[i]], values of 4 bytes and indices that are known to be in the
// table.
//
// Four bytes come in and four go out, so the limit is the copy: on an H200 about two lookups a
// clock and SM. A warp's 32 then have 15 clocks of whatever gives them their entries before that is
// the limit instead. For lanes that each want an entry of their own
//   - the L2 gives a sector of 32 bytes for 4 of them, and about one sector a clock and SM: over 30
//     clocks, and less only as far as the L1 has the entry;
//   - constant memory gives one word at a time: 32 turns, but one if all lanes agree;
//   - shared memory takes as many wavefronts as there are different words wanted of one bank: of
//     random entries 3.5 on average, of 64 and 128 in all 2.0 and 2.8, of up to 32 in all one; of
//     entries that are 32 apart 32;
//   - 32 copies take one wavefront, 16 two, and 8 still 3: entries of one copy meet as before;
//   - registers take a shuffle;
//   - another block's shared memory gives a sector over a network that has a third of one a clock.
// So random bank conflicts are hidden behind DRAM, and getting rid of them gains nothing; those of
// a stride are not. What does count where the table fits is what any copy needs: bytes in flight,
// in the order of memory, and no SM that has more to do than it can.

#include <algorithm>
#include <set>
#include <utility>

#include "catalogue.hpp"
#include "lookup_problem.cuh"
#include "lookup_tables.cuh"
#include "lookup_vectors.cuh"
#include "peers.hpp"

namespace ladders {
namespace {

// ---- A thread a lookup --------------------------------------------------------------------------

constexpr unsigned kElementThreads = 256;

// All that is read goes through the L1 and all goes through the L2, the table as much as the rest.
__global__ void global(const Lookups l) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < l.count) l.out[i] = l.table[l.index[i]];
}

// What is used once is first to leave, so that the table stays.
__global__ void streamed(const Lookups l) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < l.count) __stcs(l.out + i, __ldg(l.table + __ldcs(l.index + i)));
}

// The others look up four at a time (lookup_vectors.cuh), each in a table that lies somewhere else
// (lookup_tables.cuh).

// ---- Launch plans -------------------------------------------------------------------------------

// No lookups, no blocks.
template <unsigned lookups, unsigned threads>
LaunchPlan a_block_a_tile(const Case& c, const Device&, const void*) {
  return {.grid = static_cast<unsigned>(ceil_div<int64_t>(c["lookups"], lookups)),
          .block = threads};
}

template <class Table>
Implementation in_tiles() {
  return kernel<Lookup>(look_up_tile<Table>, a_block_a_tile<4 * kTileThreads, kTileThreads>);
}

// Blocks, or clusters of them, that are all resident; none without a tile.
template <class Table, bool dynamic = true, unsigned cluster = 1>
Implementation staged() {
  return kernel<Lookup>(look_up_tiles<Table, dynamic>, [](const Case& c, const Device& device,
                                                          const void* kernel) {
    const auto entries = static_cast<unsigned>(c["entries"]);
    LaunchPlan plan = fill_device({.block = kThreads,
                                   .shared_bytes = sizeof(unsigned) * Table::words_of(entries),
                                   .cluster = cluster},
                                  kernel, device);
    const int64_t enough = ceil_div<int64_t>(c["lookups"], 4 * kTile * cluster) * cluster;
    const unsigned one_an_sm = std::max(static_cast<unsigned>(device.sms) / cluster, 1u) * cluster;
    plan.grid.x = static_cast<unsigned>(std::min<int64_t>({plan.grid.x, one_an_sm, enough}));
    return plan;
  });
}

Implementation in_constant_memory() {
  Implementation constant = in_tiles<InConstantMemory>();
  constant.launch = [launch = constant.launch](const LaunchPlan& plan, Problem& problem,
                                               cudaStream_t stream) {
    const Lookups l = static_cast<Lookup&>(problem).lookups();
    const size_t bytes = l.entries * sizeof(unsigned);
#ifdef __CUDACC__
    check(cudaMemcpyToSymbolAsync(constant_table, l.table, bytes, 0, cudaMemcpyDeviceToDevice,
                                  stream),
          "cudaMemcpyToSymbolAsync");
#else
    check(cudaMemcpyToSymbol(constant_table, l.table, bytes), "cudaMemcpyToSymbol");
#endif
    launch(plan, problem, stream);
  };
  return constant;
}

// ---- What fits ----------------------------------------------------------------------------------

// Words of shared memory that a table may take, in whole rows of banks, beside what the kernel has
// for itself.
int64_t room(const Device& device) {
  return (static_cast<int64_t>(device.shared_bytes_per_block) - 128) / 128 * 32;
}

std::string at_most(int64_t fitting, const Case& c) {
  return c["entries"] <= fitting ? ""
                                 : "does not fit: " + std::to_string(fitting) + " entries at most";
}

template <int64_t blocks>
std::string too_large_for(const Case& c, const Device& device) {
  return at_most(blocks * room(device), c);
}

// As many copies as there is room for.
Implementation in_copies(const Case& c) {
  const int64_t copies = room(current_gpu()) / c["entries"];
  if (copies >= 32) return staged<InCopies<32>>();
  if (copies >= 16) return staged<InCopies<16>>();
  if (copies >= 8) return staged<InCopies<8>>();
  if (copies >= 4) return staged<InCopies<4>>();
  return staged<InCopies<2>>();
}

// As few blocks as have room: the fewer, the more of the lookups are at home.
Implementation in_clusters(const Case& c) {
  const int64_t blocks = ceil_div<int64_t>(c["entries"], room(current_gpu()));
  if (blocks <= 2) return staged<InCluster<2>, true, 2>();
  if (blocks <= 4) return staged<InCluster<4>, true, 4>();
  if (blocks <= 8) return staged<InCluster<8>, true, 8>();
  return staged<InCluster<16>, true, 16>();
}

// Staging brings the whole table to every SM, 528 bytes an entry where there are 132; the caches
// bring a sector of 32 bytes for each lookup. They would be even at 16 lookups an entry, but those
// overlap, and little does with staging. And as measured on an H200, up to 2^24 lookups in small
// tables are answered sooner by the L1, and more at least as fast, but for indices with a stride.
Implementation fastest(const Case& c) {
  const bool fits = c["entries"] <= room(current_gpu());
  const int64_t worth = c["entries"] <= 16384 ? 1 << 26 : 64 * c["entries"];
  return fits && c["lookups"] >= worth ? staged<InSharedMemory<true>>() : in_tiles<InCaches>();
}

// ---- What is measured ---------------------------------------------------------------------------

constexpr int64_t kMany = 1 << 28;

// Of 2^28 lookups, the tables where a rung tells something; the fastest is measured on everything.
std::function<bool(const Case&)> of(std::set<std::pair<int64_t, Distribution>> tables) {
  return [tables](const Case& c) {
    return c["lookups"] == kMany &&
           tables.contains({c["entries"], static_cast<Distribution>(c["distribution"])});
  };
}

}  // namespace

Ladder lookup() {
  using P = Lookup;
  return {
      .name = "lookup",
      .title = "Table lookup",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_copy",
      .input =
          "values: random 32 bits; indices as the distribution says, zipf has exponent 1, "
          "strided ones are 32 apart",
      .error_unit = "exact",
      .axes = {{"entries"}, {"lookups"}, kDistributionAxis},
      .measured = {{32, kMany, uniform},
                   {256, kMany, uniform},
                   {1024, kMany, uniform},
                   {4096, kMany, uniform},
                   {16384, kMany, uniform},
                   {57344, kMany, uniform},
                   {458752, kMany, uniform},
                   {1 << 22, kMany, uniform},
                   {4096, kMany, constant},
                   {4096, kMany, sorted},
                   {4096, kMany, zipf},
                   {458752, kMany, zipf},
                   {4096, kMany, strided},
                   {57344, kMany, strided},
                   {256, 1 << 20, uniform},
                   {57344, 1 << 20, uniform},
                   {256, 1 << 24, uniform},
                   {57344, 1 << 24, uniform}},
      .small = {{32, 1 << 16, uniform},
                {4096, 1 << 16, uniform},
                {4096, 1 << 16, constant},
                {4096, 1 << 16, zipf},
                {4096, 1 << 16, strided}},
      // Around a vector and a tile of them; tables that just fit and just do not,
      // in constant memory, in shared memory with copies and without, and in clusters.
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
            const auto lookups = double(c["lookups"]), entries = double(c["entries"]);
            return Work{.bytes_read = 4 * (lookups + entries), .bytes_written = 4 * lookups};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<Lookup>(c); },
      .rungs =
          {
              {.name = "global",
               .idea = "A thread a lookup, the table wherever the caches happen to have it.",
               .implementation =
                   kernel<P>(global, a_block_a_tile<kElementThreads, kElementThreads>),
               .measured = of({{4096, uniform}, {57344, uniform}, {458752, uniform}})},
              {.name = "streamed",
               .idea = "Indices and values leave the caches first: what is used once does not push "
                       "out the table.",
               .implementation =
                   kernel<P>(streamed, a_block_a_tile<kElementThreads, kElementThreads>),
               .moves = "l2_read_bytes",
               .measured = of({{4096, uniform}, {57344, uniform}, {458752, uniform}})},
              {.name = "vectorized",
               .idea =
                   "A vector of four indices a thread, past the L1: bytes in flight, a quarter of "
                   "the loads and stores.",
               .implementation = in_tiles<InCaches>(),
               .moves = "global_load_requests"},
              {.name = "constant",
               .idea = "The table in constant memory: one word for a whole warp that agrees, a "
                       "turn for each entry where it does not.",
               .implementation = in_constant_memory(),
               .skip = [](const Case& c, const Device&) { return at_most(kConstants, c); },
               .measured = of({{32, uniform},
                               {4096, uniform},
                               {4096, constant},
                               {4096, sorted},
                               {4096, zipf}})},
              {.name = "shared",
               .idea = "Resident blocks copy the table to shared memory: a lookup is a word of a "
                       "bank, not a sector of a cache.",
               .implementation = staged<InSharedMemory<false>, false>(),
               .moves = "global_load_sectors",
               .skip = too_large_for<1>,
               .measured = of({{32, uniform},
                               {4096, uniform},
                               {57344, uniform},
                               {4096, strided},
                               {57344, strided}})},
              {.name = "dynamic_tiles",
               .idea =
                   "Blocks take tiles when they are ready for one, instead of equally many: not "
                   "all SMs are equally fast.",
               .implementation = staged<InSharedMemory<false>>(),
               .skip = too_large_for<1>,
               .measured = of({{4096, uniform}, {57344, uniform}})},
              {.name = "swizzled",
               .idea =
                   "An entry's bank is XORed with digits of its number: powers of two up to 1024 "
                   "apart no longer meet in one bank.",
               .implementation = staged<InSharedMemory<true>>(),
               .moves = "shared_load_wavefronts_per_request",
               .skip = too_large_for<1>,
               .measured = [](const Case& c) { return c["entries"] <= 57344; }},
              {.name = "replicated",
               .idea = "As many copies as fit, up to one a lane: with 32 no two lanes ever meet in "
                       "a bank, with 16 two at most.",
               .moves = "shared_load_wavefronts_per_request",
               .skip = [](const Case& c, const Device& d) { return at_most(room(d) / 2, c); },
               .measured = of({{256, uniform}, {1024, uniform}, {4096, uniform}, {4096, strided}}),
               .choose = in_copies},
              {.name = "shuffled",
               .idea = "An entry a lane in registers: a lookup is a shuffle, and no memory is "
                       "needed.",
               .implementation = staged<InRegisters>(),
               .moves = "shared_load_requests",
               .skip = [](const Case& c,
                          const Device&) { return at_most(InRegisters::kEntries, c); },
               .measured = of({{32, uniform}})},
              {.name = "distributed",
               .idea = "A table that one block cannot hold, dealt out to those of a cluster: most "
                       "lookups cross the SM-to-SM network.",
               .moves = "distributed_requests",
               .compute_capability = 90,
               .skip = too_large_for<16>,
               .measured = of({{458752, uniform}, {458752, zipf}}),
               .choose = in_clusters},
              {.name = "fastest",
               .idea = "Swizzled shared memory where the table fits and lookups are many, else "
                       "vectors through the caches, as measured.",
               .choose = fastest},
              {.name = "thrust",
               .idea = "The library's gather, thrust::gather, which does not wait for the stream.",
               .implementation = library<P>([](P& problem, cudaStream_t stream) {
                 const Lookups l = problem.lookups();
                 peers::thrust_gather(l.index, l.count, l.table, l.out, stream);
               }),
               .role = Role::peer,
               .measured =
                   [](const Case& c) {
                     return c["distribution"] == uniform || c["distribution"] == zipf;
                   }},
          },
  };
}

}  // namespace ladders
