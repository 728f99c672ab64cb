// SPDX-License-Identifier: MIT
//
// The model of GPUs that are not here, against cases worked by hand. runtime_occupancy_test.cpp
// holds it against the toolkit's and the runtime's own answers.
#include <gtest/gtest.h>

#include <climits>
#include <set>
#include <string_view>

#include "emulator/gpu.hpp"

namespace emulator {
namespace {

TEST(Occupancy, EachLimitAlone) {
  const Gpu& h200 = *find_gpu("h200");
  // 2048 / 256 threads; 16 registers in units of 256 a warp: 512, 32 warps on a quarter of the SM.
  OccupancyLimits o = occupancy_limits(h200, 256, 16, 0);
  EXPECT_EQ(o.blocks, 32);
  EXPECT_EQ(o.warps, 8);
  EXPECT_EQ(o.registers, 16);
  EXPECT_EQ(o.shared, 228);  // the reserved KiB a block
  EXPECT_EQ(o.blocks_per_sm(), 8);
  EXPECT_EQ(o.limiter(), "warps");

  o = occupancy_limits(h200, 32, 16, 0);
  EXPECT_EQ(o.blocks_per_sm(), 32);
  EXPECT_EQ(o.limiter(), "blocks");

  // 128 registers: 4096 a warp, 4 warps on a quarter, 16 on the SM.
  o = occupancy_limits(h200, 256, 128, 8192);
  EXPECT_EQ(o.blocks_per_sm(), 2);
  EXPECT_EQ(o.limiter(), "registers");
  // 113 are rounded up to 120: 3840 a warp, still 4 on a quarter.
  EXPECT_EQ(occupancy_limits(h200, 256, 113, 8192).registers, 2);

  // 100 KiB and the reserved one: two fit into 228.
  o = occupancy_limits(h200, 128, 32, 100 * 1024);
  EXPECT_EQ(o.shared, 2);
  EXPECT_EQ(o.limiter(), "shared memory");
}

TEST(Occupancy, WhatDoesNotFitIsZeroAndNamed) {
  const Gpu& h200 = *find_gpu("h200");
  EXPECT_EQ(occupancy_limits(h200, 1024, 64, 0).blocks_per_sm(), 1);
  EXPECT_EQ(occupancy_limits(h200, 1024, 65, 0).blocks_per_sm(), 0);
  EXPECT_EQ(occupancy_limits(h200, 1024, 65, 0).limiter(), "registers");
  EXPECT_EQ(occupancy_limits(h200, 128, 16, 227 * 1024).blocks_per_sm(), 1);
  EXPECT_EQ(occupancy_limits(h200, 128, 16, 227 * 1024 + 1).blocks_per_sm(), 0);
  EXPECT_EQ(occupancy_limits(h200, 128, 16, 227 * 1024 + 1).limiter(), "shared memory");
  EXPECT_EQ(occupancy_limits(h200, 1025, 16, 0).limiter(), "warps");
}

TEST(Occupancy, GranularityAndUnknowns) {
  const Gpu& t4 = *find_gpu("t4");
  EXPECT_EQ(occupancy_limits(t4, 64, 0, 0).registers, INT_MAX);
  EXPECT_EQ(occupancy_limits(t4, 64, 0, 0).shared, INT_MAX);  // Turing reserves none
  EXPECT_EQ(occupancy_limits(t4, 64, 0, 1).shared, 256);      // units of 256 bytes
  EXPECT_EQ(occupancy_limits(*find_gpu("a100"), 64, 0, 1).shared, 164 * 1024 / (1024 + 128));
  // A warp that is not full takes the room of one that is.
  EXPECT_EQ(occupancy_limits(t4, 33, 32, 0).warps, 16);
}

TEST(Occupancy, ClustersAsMeasuredOnAnH200) {
  const Gpu& h200 = *find_gpu("h200");
  struct {
    int cluster, blocks_per_sm, clusters;
  } constexpr kMeasured[] = {{1, 1, 132}, {1, 2, 264}, {2, 1, 66}, {2, 2, 132}, {4, 1, 30},
                             {4, 2, 62},  {8, 1, 15},  {8, 2, 30}, {16, 2, 14}, {3, 1, 39},
                             {5, 5, 124}, {6, 7, 141}, {9, 2, 23}, {10, 1, 7},  {12, 2, 16},
                             {13, 5, 42}, {16, 7, 49}, {16, 8, 58}};
  for (const auto& m : kMeasured)
    EXPECT_EQ(resident_clusters(h200, m.blocks_per_sm, m.cluster), m.clusters)
        << m.cluster << " blocks, " << m.blocks_per_sm << " an SM";
  EXPECT_EQ(resident_clusters(h200, 1, 17), 0);
  EXPECT_EQ(resident_clusters(h200, 0, 4), 0);
  EXPECT_EQ(resident_clusters(*find_gpu("a100"), 2, 1), 216);
  EXPECT_EQ(resident_clusters(*find_gpu("a100"), 2, 2), 0);
}

TEST(Gpus, AreNamedAndWhole) {
  std::set<std::string_view> names;
  for (const Gpu& gpu : gpus()) {
    SCOPED_TRACE(gpu.name);
    EXPECT_TRUE(names.insert(gpu.name).second);
    EXPECT_EQ(find_gpu(gpu.name), &gpu);
    EXPECT_GE(gpu.compute_capability, 75);
    EXPECT_GE(gpu.sms, 40);
    EXPECT_EQ(gpu.threads_per_sm % 512, 0);
    EXPECT_EQ(gpu.shared_bytes_per_block + gpu.reserved_shared_bytes_per_block,
              gpu.shared_bytes_per_sm);
    EXPECT_EQ(gpu.blocks_per_cluster > 0, gpu.compute_capability >= 90);
    EXPECT_GT(gpu.memory_bytes, gpu.l2_bytes);
    EXPECT_GT(gpu.l2_bytes, 1u << 20);
    EXPECT_GT(gpu.sm_clock_hz, 1e9);
  }
  EXPECT_EQ(find_gpu("H200"), nullptr);
  EXPECT_EQ(find_gpu(""), nullptr);
}

// A kernel without options or templates, whose name is not likely to change.
constexpr std::string_view kSgemmTiled = "_ZN7ladders5sgemm5tiledEPKfS2_Pfiiiff";

TEST(KernelResources, OfEveryArchitecture) {
  for (const Gpu& gpu : gpus()) {
    const auto r = resources(kSgemmTiled, gpu.compute_capability);
    ASSERT_TRUE(r.has_value()) << gpu.name;
    EXPECT_EQ(r->static_shared_bytes, 2 * 32 * 32 * sizeof(float));
    EXPECT_GT(r->registers, 16);
    EXPECT_LT(r->registers, 65);  // or 1024 threads would not fit
    EXPECT_GT(occupancy_limits(gpu, 1024, r->registers, r->static_shared_bytes).blocks_per_sm(), 0);
  }
}

TEST(KernelResources, OfLaterMinorVersionsButNotOfOtherMajorOnes) {
  EXPECT_EQ(resources(kSgemmTiled, 87)->registers, resources(kSgemmTiled, 86)->registers);
  EXPECT_EQ(resources(kSgemmTiled, 103)->registers, resources(kSgemmTiled, 100)->registers);
  EXPECT_FALSE(resources(kSgemmTiled, 70));
  EXPECT_FALSE(resources(kSgemmTiled, 110));
  EXPECT_FALSE(resources("_Z4nonev", 90));
}

}  // namespace
}  // namespace emulator
