// SPDX-License-Identifier: MIT
//
// The reference of the lookup against the host, where shared memory has an entry, and blocks that
// take many tiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "lookup/03_vectors.cuh"
#include "model/catalogue.hpp"

namespace ladders::lookup {
namespace {

Case table(int64_t entries, int64_t lookups, Distribution distribution) {
  return Case(ladder().axes, {entries, lookups, distribution});
}

void run(Lookup& problem, const Implementation& how, const Case& c, unsigned most_blocks) {
  LaunchPlan plan = how.plan(c, problem.device(), how.kernel);
  plan.grid.x = std::min(plan.grid.x, most_blocks);
  problem.poison();
  how.launch(plan, problem, nullptr);
}

TEST(Gpu, LookupsAreThoseOfTheHost) {
  NEED_GPU();
  const Case c = table(1000, 10007, zipf);
  Lookup problem(c, Device::open(0));
  for (int input = 0; input < problem.inputs(); ++input) {
    problem.prepare(input);
    run(problem, kernel<Lookup>(global, one_block_per_tile<256>), c, ~0u);
    EXPECT_EQ(problem.compare().wrong, "");
    const Lookups l = problem.lookups();
    const auto index = to_host(l.index, l.count);
    const auto values = to_host(l.table, l.entries), out = to_host(l.out, l.count);
    for (size_t i = 0; i < l.count; ++i) ASSERT_EQ(out[i], values.at(index[i])) << i;
  }
}

TEST(Gpu, LookupReferenceNamesTheFirstWrongElement) {
  NEED_GPU();
  const Case c = table(33, 5000, uniform);
  Lookup problem(c, Device::open(0));
  run(problem, in_tiles<InCaches>(), c, ~0u);
  const Lookups l = problem.lookups();
  auto out = to_host(l.out, l.count);
  for (const size_t wrong : {4999, 1024, 0}) {
    const unsigned right = out[wrong];
    out[wrong] ^= 1;
    check(cudaMemcpy(l.out, out.data(), l.count * sizeof(unsigned), cudaMemcpyHostToDevice),
          "spoil");
    EXPECT_EQ(problem.compare().wrong, "lookup " + std::to_string(wrong) + ": " +
                                           std::to_string(out[wrong]) + " instead of " +
                                           std::to_string(right));
    out[wrong] = right;
  }
}

// A place of its own for each entry, in its row; and of 32 entries a power of two of rows apart,
// each in another bank.
TEST(Lookup, SwizzledEntriesSpreadOverBanks) {
  using Swizzled = InSharedMemory<true>;
  for (unsigned row = 0; row < 58112; row += 32) {
    std::set<unsigned> places;
    for (unsigned e = row; e < row + 32; ++e) {
      places.insert(Swizzled::place(e));
      EXPECT_EQ(Swizzled::place(e) / 32, row / 32);
    }
    EXPECT_EQ(places.size(), 32u);
  }
  for (const unsigned stride : {32, 64, 128, 256, 512, 1024})
    for (unsigned start = 0; start < 32; ++start) {
      std::set<unsigned> banks;
      for (unsigned lane = 0; lane < 32; ++lane)
        banks.insert(Swizzled::place(start + lane * stride) % 32);
      EXPECT_EQ(banks.size(), 32u) << stride;
    }
}

// A few blocks, or a single cluster, for all tiles: each goes on from one to the next.
TEST(Gpu, BlocksLookUpManyTiles) {
  NEED_GPU();
  const bool clusters = Device::open(0).compute_capability >= 90;
  struct Kind {
    Implementation how;
    int64_t entries;
    unsigned blocks;
  };
  std::vector<Kind> kinds = {
      {staged<InSharedMemory<false>, false>(), 1000, 1},
      {staged<InSharedMemory<false>>(), 1000, 1},
      {staged<InSharedMemory<true>>(), 1000, 2},
      {staged<InCopies<2>>(), 300, 1},
      {staged<InCopies<4>>(), 300, 1},
      {staged<InCopies<8>>(), 300, 2},
      {staged<InCopies<16>>(), 300, 1},
      {staged<InCopies<32>>(), 300, 1},
      {staged<InRegisters>(), 31, 1},
  };
  if (clusters) {
    kinds.push_back({staged<InCluster<2>, true, 2>(), 999, 2});
    kinds.push_back({staged<InCluster<4>, true, 4>(), 1001, 4});
    kinds.push_back({staged<InCluster<8>, true, 8>(), 57, 8});
    kinds.push_back({staged<InCluster<16>, true, 16>(), 5003, 16});
  }
  for (const Kind& kind : kinds)
    for (const int64_t lookups : {16383, 49152, 49155, 65537, 100000}) {
      SCOPED_TRACE(std::to_string(kind.entries) + " entries, " + std::to_string(lookups));
      const Case c = table(kind.entries, lookups, uniform);
      Lookup problem(c, Device::open(0));
      for (int input = 0; input < problem.inputs(); ++input) {
        problem.prepare(input);
        run(problem, kind.how, c, kind.blocks);
        EXPECT_EQ(problem.compare().wrong, "");
      }
    }
}

}  // namespace
}  // namespace ladders::lookup
