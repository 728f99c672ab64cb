// SPDX-License-Identifier: MIT
//
// How kernels would be launched on GPUs that need not be here.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/warpgroups.cuh"
#include "gpu.hpp"
#include "model/catalogue.hpp"
#include "model/ladder.hpp"
#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
namespace {

const Device kA100{.name = "A100",
                   .compute_capability = 80,
                   .sms = 108,
                   .threads_per_sm = 2048,
                   .l2_bytes = 40 << 20,
                   .shared_bytes_per_block = 163 << 10,
                   .shared_bytes_per_sm = 164 << 10,
                   .clusters_at_once = {0, 108}};
const Device kT4{.name = "T4",
                 .compute_capability = 75,
                 .sms = 40,
                 .threads_per_sm = 1024,
                 .l2_bytes = 4 << 20,
                 .shared_bytes_per_block = 64 << 10,
                 .shared_bytes_per_sm = 64 << 10,
                 .clusters_at_once = {0, 40}};
const Device kRtx4090{.name = "RTX 4090",
                      .compute_capability = 89,
                      .sms = 128,
                      .threads_per_sm = 1536,
                      .l2_bytes = 72 << 20,
                      .shared_bytes_per_block = 99 << 10,
                      .shared_bytes_per_sm = 100 << 10,
                      .clusters_at_once = {0, 128}};

// Zero where neither a GPU nor the emulator can tell.
size_t static_bytes(const Rung& rung, const Case& shape, const Device& device) {
  cudaFuncAttributes found{};
  const bool told = cudaFuncGetAttributes(&found, rung.at(shape, device).kernel) == cudaSuccess;
  return told ? found.sharedSizeBytes : 0;
}

LaunchPlan plan_of(const Rung& rung, const Case& shape, const Device& device) {
  const Implementation how = rung.at(shape, device);
  return how.plan(shape, device, how.kernel);
}

// How many blocks a shared memory holds, 1 KiB of each the system's.
int blocks_on_an_sm(const LaunchPlan& plan, const Device& device) {
  return static_cast<int>(device.shared_bytes_per_sm / (plan.shared_bytes + 1024));
}

TEST(SgemmPlans, FitGpusWithLessSharedMemory) {
  const Ladder all = ladder();
  for (const Device& device : {kT4, kA100, kRtx4090, kH200})
    for (const Shapes shapes : {Shapes::measured, Shapes::tested})
      for (const Row& row : rows(all, shapes)) {
        if (!skip_reason(row, device).empty()) continue;
        SCOPED_TRACE(device.name + ", " + row.name());
        if (!row.rung->at(row.point, device).plan) continue;  // a library's
        // Others are skipped there if they do not fit.
        if (device.name == "T4" && row.rung->role != Role::choice) continue;
        const LaunchPlan plan = plan_of(*row.rung, row.point, device);
        EXPECT_LE(plan.shared_bytes + static_bytes(*row.rung, row.point, device),
                  device.shared_bytes_per_block);
        EXPECT_GE(blocks_on_an_sm(plan, device), 1);
        EXPECT_LE(plan.block.x * plan.block.y * plan.block.z, 1024u);
        EXPECT_TRUE(plan.cluster == 1 || device.compute_capability >= 90);
      }
}

TEST(SgemmPlans, LeaveOutWhatIsHoppersAlone) {
  const Ladder all = ladder();
  for (const Rung& rung : all.rungs) {
    if (rung.role == Role::peer || (kEmulated && !rung.needs.hardware_only.empty())) continue;
    SCOPED_TRACE(rung.name);
    const Case headline(all.axes, all.headline);
    const Case shape = rung.name == "thin" ? Case(all.axes, {1, 4096, 4096}) : headline;
    EXPECT_EQ(skip_reason({&all, &rung, shape, shape}, kA100).empty(),
              rung.needs.compute_capability <= 80);
    EXPECT_EQ(skip_reason({&all, &rung, shape, shape}, kRtx4090).empty(),
              rung.needs.compute_capability <= 80);
  }
}

// A thread takes all sums of a row or column alone where they are short and many.
TEST(SgemmPlans, ShareOutSumsThatAreLongOrFew) {
  const Ladder all = ladder();
  const auto alone = [&](int64_t m, int64_t n, int64_t k) {
    const LaunchPlan plan = plan_of(*find_rung(all, "thin"), Case(all.axes, {m, n, k}), kH200);
    return plan.block.x * plan.block.y * plan.block.z == 128;
  };
  EXPECT_TRUE(alone(1, 5000, 32));
  EXPECT_FALSE(alone(1, 5000, 64));
  EXPECT_TRUE(alone(8, 5000, 64));
  EXPECT_TRUE(alone(8, 100'000, 256));
  EXPECT_FALSE(alone(8, 100'000, 257));
  EXPECT_TRUE(alone(5000, 1, 8));
  EXPECT_FALSE(alone(5000, 1, 32));
  EXPECT_TRUE(alone(20'000, 8, 64));
  EXPECT_FALSE(alone(20'000, 1, 64));
  EXPECT_TRUE(alone(200'000, 8, 128));
  EXPECT_FALSE(alone(200'000, 4, 65));
}

TEST(SgemmPlans, HaveAsManyStagesAsThereIsRoomFor) {
  const Ladder all = ladder();
  const Case shape(all.axes, all.headline);
  const Rung& rung = *find_rung(all, "async_copies");
  constexpr size_t kStage = 4 * 32 * (128 + 256);
  EXPECT_EQ(plan_of(rung, shape, kH200).shared_bytes, 4 * kStage);
  EXPECT_EQ(plan_of(rung, shape, kA100).shared_bytes, 3 * kStage);
  EXPECT_EQ(plan_of(rung, shape, kRtx4090).shared_bytes, 2 * kStage);
}

#ifdef CUDART_VERSION  // plans of kernels that the emulator does not have
struct Expected {
  unsigned grid, block;
  size_t shared_bytes;
  unsigned cluster;
};

// As measured: other choices are other figures.
TEST(SgemmPlans, AreThoseOfTheStudyOnAnH200) {
  const Ladder all = ladder();
  const std::map<Shape, std::pair<Expected, Expected>> expected = {
      {{512, 512, 512}, {{256, 128, 98304, 2}, {256, 128, 98304, 2}}},
      {{1024, 1024, 1024}, {{128, 256, 196608, 2}, {128, 256, 196608, 2}}},
      {{2048, 2048, 2048}, {{256, 256, 196608, 1}, {256, 256, 196608, 1}}},
      {{4096, 4096, 4096}, {{1024, 256, 196608, 1}, {1024, 256, 196608, 1}}},
      {{4097, 4097, 4097}, {{2178, 256, 196608, 2}, {2178, 256, 196608, 2}}},
      {{1000, 3000, 77}, {{752, 128, 49152, 1}, {752, 128, 40960, 1}}},
      {{128, 8192, 8192}, {{128, 256, 196608, 2}, {128, 256, 196608, 2}}},
      {{8192, 32, 8192}, {{256, 128, 98304, 2}, {256, 128, 98304, 2}}},  // 64 x 32
      // 15 clusters share the k of a tile, 8 that of each of 16.
      {{64, 64, 65536}, {{120, 256, 196608, 8}, {120, 256, 196608, 8}}},
      {{256, 256, 65536}, {{128, 256, 196608, 2}, {128, 256, 196608, 2}}}};
  for (const auto& [shape, plans] : expected) {
    const Case c(all.axes, shape);
    for (const auto& [name, e] : {std::pair{"tf32x3", plans.first}, {"bf16x6", plans.second}}) {
      SCOPED_TRACE(std::string(name) + ", " + c.name());
      const LaunchPlan plan = plan_of(*find_rung(all, name), c, kH200);
      EXPECT_EQ(plan.grid.x * plan.grid.y, e.grid);
      EXPECT_EQ(plan.block.x, e.block);
      EXPECT_EQ(plan.shared_bytes, e.shared_bytes);
      EXPECT_EQ(plan.cluster, e.cluster);
    }
  }
}

// Those that were fastest, or nearly so, on an H100 and an H200, and one with more than the four
// tiles per SM that few_tiles serves.
TEST(SgemmPlans, ChooseByTheNumberOfTilesIfKIsShort) {
  const std::map<Shape, Scheme> expected = {{{4640, 64, 48}, Scheme::few_tiles},
                                            {{5015, 86, 48}, Scheme::few_tiles},
                                            {{9000, 64, 48}, Scheme::bf16x6},
                                            {{512, 544, 48}, Scheme::bf16x6},
                                            {{768, 736, 48}, Scheme::bf16x6},
                                            {{320, 4064, 80}, Scheme::bf16x6},
                                            {{1024, 1056, 48}, Scheme::bf16x6},
                                            {{1504, 1536, 80}, Scheme::bf16x6},
                                            {{1504, 1536, 81}, Scheme::bf16x6},
                                            {{4096, 4096, 16}, Scheme::few_terms},
                                            {{1700, 2000, 48}, Scheme::bf16x6},
                                            {{1000, 3000, 100}, Scheme::bf16x6},
                                            {{1000, 1000, 128}, Scheme::bf16x6},
                                            {{2000, 2000, 128}, Scheme::bf16x6},
                                            // Rows do not start on 16 bytes:
                                            {{1001, 1001, 129}, Scheme::bf16x6},
                                            {{2777, 555, 201}, Scheme::bf16x6},
                                            {{2001, 2001, 129}, Scheme::small_tiles},
                                            {{5015, 86, 183}, Scheme::bf16x6}};
  for (const auto& [shape, scheme] : expected) {
    SCOPED_TRACE(Case(ladder().axes, shape).name());
    const int m = int(shape[0]), n = int(shape[1]), k = int(shape[2]);
    EXPECT_EQ(scheme_for({nullptr, k, nullptr, n, nullptr, n, m, n, k, 1, 0}, kH200), scheme);
  }
  // small_tiles would need a grid of more rows than there can be.
  EXPECT_EQ(scheme_for({nullptr, 40, nullptr, 127, nullptr, 127, 4'200'000, 127, 40, 1, 0}, kH200),
            Scheme::bf16x6);
  // With all of k in shared memory, the grid has rows and columns of tiles of 64 x 64.
  const auto grid = [](int m, int n, int k) { return bf16x6_launch(m, n, k, kH200).plan.grid; };
  EXPECT_EQ(grid(1504, 1536, 80).y, 24u);
  EXPECT_EQ(grid(1504, 1536, 208).y, 24u);
  EXPECT_EQ(grid(1504, 1536, 209).y, 1u);
}

TEST(SgemmPlans, UseFewerStagesWithLessSharedMemory) {
  const Ladder all = ladder();
  const Case square(all.axes, {2048, 2048, 2048});
  const auto shared_bytes = [&](const Device& device) {
    return plan_of(*find_rung(all, "tf32x3"), square, device).shared_bytes;
  };
  constexpr size_t kStage = 4 * 32 * (128 + 128);
  EXPECT_EQ(shared_bytes(kH200), 6 * kStage);
  EXPECT_EQ(shared_bytes(kA100), 5 * kStage);
  EXPECT_EQ(shared_bytes(kRtx4090), 3 * kStage);
}

TEST(SgemmPlans, ShareTilesWithoutClusters) {
  const Ladder all = ladder();
  const Case few(all.axes, {64, 64, 65536}), none(all.axes, {0, 64, 65536});
  const LaunchPlan plan = plan_of(*find_rung(all, "tf32x3"), few, kA100);
  EXPECT_EQ(plan.cluster, 1u);
  EXPECT_EQ(plan.grid.x, 108u);  // one per SM
  EXPECT_EQ(plan_of(*find_rung(all, "tf32x3"), none, kA100).grid.x, 0u);
}

TEST(SgemmPlans, ChooseTheSchemeThatIsExactAndFast) {
  const Ladder all = ladder();
  const Rung& fastest = *find_rung(all, "fastest");
  const auto chosen_for = [&](const Shape& shape, const Device& device) {
    return fastest.at(Case(all.axes, shape), device).chosen;
  };
  for (const Device& device : {kA100, kRtx4090, kH200}) {
    EXPECT_EQ(chosen_for({512, 512, 512}, device), "bf16x6");
    EXPECT_EQ(chosen_for({1000, 3000, 77}, device), "bf16x6");
    EXPECT_EQ(chosen_for({1024, 1024, 256}, device), "tf32x3");
    EXPECT_EQ(chosen_for({128, 8192, 8192}, device), "tf32x3");
    EXPECT_EQ(chosen_for({1, 4096, 4096}, device), "thin");
    EXPECT_EQ(chosen_for({8, 8192, 4096}, device), "thin");
    EXPECT_EQ(chosen_for({8192, 4, 4096}, device), "thin");
    EXPECT_EQ(chosen_for({1024, 8, 4096}, device), "thin");
    EXPECT_EQ(chosen_for({8192, 8, 4096}, device), "bf16x6");  // a large A
    EXPECT_EQ(chosen_for({1 << 20, 8, 16}, device), "thin");
    EXPECT_EQ(chosen_for({4096, 4096, 16}, device), "few_terms");
    EXPECT_EQ(chosen_for({1024, 1024, 80}, device), "bf16x6");
    EXPECT_EQ(chosen_for({2001, 2001, 129}, device), "small_tiles");  // unaligned
    EXPECT_EQ(chosen_for({1024, 1024, 15}, device), "few_terms");
    EXPECT_EQ(chosen_for({2048, 2048, 48}, device), "bf16x6");
    EXPECT_EQ(chosen_for({2048, 2048, 128}, device), "bf16x6");
    EXPECT_EQ(chosen_for({130, 200, 48}, device), "few_tiles");
    EXPECT_EQ(chosen_for({256, 256, 64}, device), "few_tiles");
  }
  EXPECT_EQ(chosen_for({32, 64, 512}, kH200), "few_tiles");    // shared by a cluster
  EXPECT_EQ(chosen_for({16, 300, 1001}, kH200), "few_tiles");  // bf16x6 is less accurate there
  EXPECT_EQ(chosen_for({32, 64, 512}, kA100), "bf16x6");       // which has none
  EXPECT_EQ(chosen_for({4096, 4096, 4096}, kA100), "tf32x3");
  EXPECT_EQ(chosen_for({1024, 1024, 512}, kH200), kBuiltForHopper ? "fp16x3" : "tf32x3");
  EXPECT_EQ(chosen_for({1024, 1024, 1024}, kH200), kBuiltForHopper ? "fp16x3" : "tf32x3");
  EXPECT_EQ(chosen_for({4096, 4096, 4096}, kH200), kBuiltForHopper ? "fp16x3" : "tf32x3");
}

TEST(SgemmPlans, Fp16x3HasTilesThatFillWaves) {
  if (!kBuiltForHopper) GTEST_SKIP() << "no wgmma";
  const Ladder all = ladder();
  const Rung& rung = *find_rung(all, "fp16x3");
  const auto blocks = [&](int64_t side) {
    return plan_of(rung, Case(all.axes, {side, side, side}), kH200).grid.x;
  };
  EXPECT_EQ(blocks(1024), 128u);  // 4 x 16 pairs of tiles of 64 columns
  EXPECT_EQ(blocks(1408), 132u);  // 6 x 11 of 128
  EXPECT_EQ(blocks(1600), 126u);  // 7 x 9 of 192
  EXPECT_EQ(blocks(2048), 128u);  // 8 x 8 of 256
}
#endif

}  // namespace
}  // namespace ladders::sgemm
