// SPDX-License-Identifier: MIT
//
// What a row of the emulated program says, where it is known without an emulator.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "measure/study.hpp"
#include "model/cuda_check.hpp"
#include "model/ladder.hpp"

namespace ladders {
namespace {

Study& study() {
  allocation_granularity = 1;
  static Study study(Device::open(0), {});
  return study;
}

// A ladder's rung at its small headline.
Row small_row(const std::string& ladder_name, const std::string& rung_name) {
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, Shapes::small))
      if (ladder.name == ladder_name && row.rung->name == rung_name) return row;
  throw std::out_of_range(ladder_name + "/" + rung_name);
}

Measurement counted(const std::string& ladder_name, const std::string& rung_name) {
  return study().measure(small_row(ladder_name, rung_name));
}

// Figures need a build in which accesses are seen, which is several times as slow.
bool counts() {
  static const bool answer =
      kEmulated && counted("smem_layout", "row_row").samples.counters.contains("global_bytes");
  return answer;
}

TEST(Emulated, MeasuresARowWithoutTimes) {
  if (!kEmulated) GTEST_SKIP() << "rows are timed";
  const Measurement m = counted("transpose", "naive_coalesced_reads");
  const Samples& samples = m.samples;
  EXPECT_TRUE(samples.seconds.empty());
  EXPECT_GT(samples.host_seconds, 0);
  EXPECT_EQ(samples.counters.at("verified"), 1);
  if (m.occupancy->registers == 0) GTEST_SKIP() << "no nvcc, and a table of other kernels";
  EXPECT_GT(samples.counters.at("occupancy_limit_warps"), 0);
  EXPECT_NE(samples.details.occupancy.find("\"by_block\":[{\"threads\":32,"), std::string::npos);
}

TEST(Emulated, CountsTheRequestsOfTheNaiveTranspose) {
  if (!counts()) GTEST_SKIP() << "nothing is counted";
  const Measurement m = counted("transpose", "naive_coalesced_reads");
  const auto& counters = m.samples.counters;
  constexpr double kRequests = 1024 * 1024 / 32;
  EXPECT_EQ(counters.at("global_load_requests"), kRequests);
  EXPECT_EQ(counters.at("global_load_sectors_per_request"), 4);
  EXPECT_EQ(counters.at("global_store_sectors"), 32 * kRequests);
  EXPECT_EQ(counters.at("global_store_sectors_ideal"), 4 * kRequests);
  EXPECT_EQ(counters.at("global_bytes"), 2 * 128 * kRequests);
  EXPECT_EQ(counters.at("compulsory_bytes"), 2 * 128 * kRequests);
  EXPECT_EQ(counters.at("active_lanes"), 32);
  EXPECT_EQ(counters.count("shared_load_requests"), 0u);
  EXPECT_EQ(m.samples.details.lines.size(), 2u);
  EXPECT_NE(m.samples.details.text.find("01_tiled.cuh:"), std::string::npos);
}

TEST(Emulated, SharedMemoryTakesTheWavefrontsThatArePredicted) {
  if (!counts()) GTEST_SKIP() << "nothing is counted";
  for (const Ladder& ladder : catalogue()) {
    if (ladder.name != "smem_layout") continue;
    for (const Rung& rung : ladder.rungs) {
      SCOPED_TRACE(rung.name);
      const auto counters = counted(ladder.name, rung.name).samples.counters;
      for (const auto& [name, predicted] : rung.predictions) {
        if (name == "predicted_store_wavefronts") {
          EXPECT_EQ(counters.at("shared_store_wavefronts_per_request"), predicted);
        } else if (name == "predicted_load_wavefronts") {
          EXPECT_EQ(counters.at("shared_load_wavefronts_per_request"), predicted);
        } else if (name == "predicted_bytes_per_wavefront") {
          const double bytes = work(small_row(ladder.name, rung.name), study().device()).bytes();
          EXPECT_NEAR(bytes / (counters.at("shared_store_wavefronts") +
                               counters.at("shared_load_wavefronts")),
                      predicted, 1e-9 * predicted);
        } else {
          EXPECT_EQ(name, "predicted_distributed_sectors_per_request");
          EXPECT_EQ(counters.at("distributed_sectors_per_request"), predicted);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ladders
