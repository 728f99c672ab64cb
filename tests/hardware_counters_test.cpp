// SPDX-License-Identifier: MIT
//
// Hardware counters: names that CUPTI knows on every architecture, and what is known of kernels
// before they are counted.
#include "gpu/hardware_counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "gpu.hpp"
#include "gpu/metrics.hpp"
#include "measure/study.hpp"
#include "model/cuda_check.hpp"
#include "model/ladder.hpp"

namespace ladders {
namespace {

struct Chip {
  const char* name;
  int compute_capability;
};

class EveryArchitecture : public testing::TestWithParam<Chip> {};

TEST_P(EveryArchitecture, HasEveryMetric) {
  const auto& [chip, capability] = GetParam();
  try {
    EXPECT_EQ(unknown_metrics(chip, capability), std::vector<std::string>{});
  } catch (const NoCounters& reason) {
    GTEST_SKIP() << reason.what();
  }
  // What is left out on one architecture is left out on purpose.
  std::set<std::string> terms;
  for (const Metric& metric : metrics(capability)) terms.insert(metric.term);
  for (const char* term : {"dram_read_bytes", "dram_write_bytes", "l2_sectors", "l1_bytes",
                           "warp_cycles", "shared_load_wavefronts", "global_load_sectors"})
    EXPECT_TRUE(terms.contains(term)) << term;
  EXPECT_EQ(terms.contains("distributed_requests"), capability >= 90);
}

INSTANTIATE_TEST_SUITE_P(HardwareCounters, EveryArchitecture,
                         testing::Values(Chip{"GA100", 80}, Chip{"GA102", 86}, Chip{"AD102", 89},
                                         Chip{"GH100", 90}, Chip{"GB100", 100}, Chip{"GB202", 120}),
                         [](const auto& info) { return info.param.name; });

TEST(HardwareCounters, AnUnknownMetricIsFound) {
  try {
    // Hopper's shared memory of clusters, on a chip that has none.
    const std::vector<std::string> unknown = unknown_metrics("GA100", 90);
    EXPECT_NE(std::ranges::find(unknown, "l1tex__t_requests_pipe_lsu_mem_dshared.sum"),
              unknown.end());
  } catch (const NoCounters& reason) {
    GTEST_SKIP() << reason.what();
  }
}

TEST(HardwareCounters, WhereNoneAreToBeHadTheReasonSaysWhatToDo) {
  const std::map<int, std::string> expected = {
      // by CUptiResult, for there may be no CUPTI
      {26, "another profiler"},                       // HARDWARE_BUSY
      {27, "newer CUDA Toolkit"},                     // NOT_SUPPORTED
      {33, "the GPU is virtual"},                     // VIRTUALIZED_DEVICE_NOT_SUPPORTED
      {35, "NVreg_RestrictProfilingToAdminUsers=0"},  // INSUFFICIENT_PRIVILEGES
      {39, "another profiler"},                       // MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
      {8, "CUPTI says CUPTI_ERROR_OUT_OF_MEMORY"}};
  try {
    for (const auto& [result, words] : expected) {
      const std::string told = why_not(result);
      EXPECT_NE(told.find(words), std::string::npos) << result << ": " << told;
      EXPECT_EQ(told.find('\n'), std::string::npos);
    }
  } catch (const NoCounters& reason) {
    EXPECT_NE(std::string(reason.what()).find("install cuda-cupti-dev"), std::string::npos);
  }
}

TEST(HardwareCounters, RatiosAreOfTheSums) {
  const auto row = row_counters({{"shared_load_requests", 10},
                                 {"shared_load_wavefronts", 320},
                                 {"warp_cycles", 4800},
                                 {"sm_cycles", 100},
                                 {"scheduler_cycles", 400},
                                 {"issued", 100},
                                 {"tensor_percent", 75},
                                 {"l2_atomic_cycles", 60},
                                 {"l2_cycles", 400},
                                 {"sm_most_cycles", 50},
                                 {"sm_all_cycles", 200},
                                 {"stall_barrier", 1200},
                                 {"l2_sectors", 3},
                                 {"ffma", 5},
                                 {"fadd", 1},
                                 {"fmul", 0},
                                 {"dram_read_bytes", 64},
                                 {"dram_write_bytes", 32}},
                                {.threads_per_sm = 2048});
  EXPECT_DOUBLE_EQ(row.at("shared_load_wavefronts_per_request"), 32);
  EXPECT_DOUBLE_EQ(row.at("achieved_occupancy"), 0.75);
  EXPECT_DOUBLE_EQ(row.at("issue_utilisation"), 0.25);
  EXPECT_DOUBLE_EQ(row.at("tensor_utilisation"), 0.75);
  EXPECT_DOUBLE_EQ(row.at("stall_barrier"), 0.25);
  EXPECT_DOUBLE_EQ(row.at("l2_bytes"), 96);
  EXPECT_DOUBLE_EQ(row.at("fp32_operations"), 11);
  EXPECT_DOUBLE_EQ(row.at("dram_bytes"), 96);
  EXPECT_DOUBLE_EQ(row.at("l2_atomic_utilisation"), 0.6);  // of the quarter in which SMs worked
}

TEST(HardwareCounters, WhatWasNotCountedIsNotReported) {
  const auto row = row_counters(
      {{"issued", 0}, {"scheduler_cycles", 0}, {"ffma", 5}, {"global_load_requests", 0}}, {});
  EXPECT_EQ(row, (std::map<std::string, double>{{"global_load_requests", 0}}));
}

TEST(HardwareCounters, EveryIdeaMovesACounterThatRowsHave) {
  std::map<std::string, double> terms;
  for (const int capability : {80, 90, 120})
    for (const Metric& metric : metrics(capability)) terms[metric.term] = 1;
  auto known = row_counters(terms, {.threads_per_sm = 32});
  known["static_shared_bytes"] = 0;  // of the launch, not counted
  for (const Ladder& ladder : catalogue())
    for (const Rung& rung : ladder.rungs)
      EXPECT_TRUE(rung.target.empty() || known.contains(rung.target))
          << ladder.name << '/' << rung.name;
}

// ---- On a GPU ---------------------------------------------------------------------------------

// One for all tests: a second one could not count in the same context. Throws NoCounters.
Study& counting_study() {
  static Study study(Device::open(0), {.exactly = 3, .hardware_counters = true});
  if (const std::string status = study.hardware_counters(); status.starts_with("none"))
    throw NoCounters(status);
  return study;
}

// The counters of every row of `name` ("ladder/rung"), or why there are none.
std::map<std::string, std::map<std::string, double>> counted(const std::string& name,
                                                             Shapes shapes) {
  Study& study = counting_study();
  std::map<std::string, std::map<std::string, double>> result;
  for (const Ladder& ladder : catalogue())
    for (const Row& row : rows(ladder, shapes)) try {
        if (ladder.name + "/" + row.rung->name == name && skip_reason(row, study.device()).empty())
          result[row.name()] = study.count({row}).front();
      } catch (const DoesNotFit&) {  // a smaller GPU
      }
  return result;
}

#define COUNTED_OR_SKIP(counters, name, shapes)                  \
  std::map<std::string, std::map<std::string, double>> counters; \
  try {                                                          \
    counters = counted(name, shapes);                            \
  } catch (const NoCounters& reason) {                           \
    GTEST_SKIP() << reason.what();                               \
  }                                                              \
  if (counters.empty()) GTEST_SKIP() << "no row of " << name << " can run here"

TEST(GpuCounters, SharedMemoryTakesTheWavefrontsThatWerePredicted) {
  NEED_GPU();
  for (const Ladder& ladder : catalogue()) {
    if (ladder.name != "smem_layout") continue;
    for (const Rung& rung : ladder.rungs) {
      COUNTED_OR_SKIP(rows, "smem_layout/" + rung.name, Shapes::small);
      for (auto& [row, counters] : rows) {
        const auto near = [&](const char* prediction, double counted) {
          const auto found = rung.predictions.find(prediction);
          if (found == rung.predictions.end()) return;
          EXPECT_NEAR(counted, found->second, 0.05 * found->second) << row << ' ' << prediction;
        };
        near("predicted_load_wavefronts", counters["shared_load_wavefronts_per_request"]);
        near("predicted_store_wavefronts", counters["shared_store_wavefronts_per_request"]);
        near("predicted_distributed_sectors_per_request",
             counters["distributed_sectors_per_request"]);
      }
    }
  }
}

TEST(GpuCounters, TransposesTouchTheSectorsThatTheyMust) {
  NEED_GPU();
  const std::string row = "/rows:1024/columns:1024/element:4";
  COUNTED_OR_SKIP(reads, "transpose/naive_coalesced_reads", Shapes::small);
  auto& naive = reads.at("transpose/naive_coalesced_reads" + row);
  EXPECT_NEAR(naive["global_load_sectors_per_request"], 4, 0.04);
  EXPECT_NEAR(naive["global_store_sectors_per_request"], 32, 0.32);
  COUNTED_OR_SKIP(tiles, "transpose/tiled", Shapes::small);
  auto& tiled = tiles.at("transpose/tiled" + row);
  EXPECT_NEAR(tiled["global_load_sectors_per_request"], 4, 0.04);
  EXPECT_NEAR(tiled["global_store_sectors_per_request"], 4, 0.04);
}

TEST(GpuCounters, ACopyMovesItsBytes) {
  NEED_GPU();
  COUNTED_OR_SKIP(rows, "roof/memcpy", Shapes::measured);
  auto& copy = rows.begin()->second;
  const double bytes = 2. * 4096 * (1 << 20);
  EXPECT_NEAR(copy["dram_bytes"], bytes, 0.02 * bytes);
}

// Rows of a case share passes, each with a range of its own.
TEST(GpuCounters, RowsThatAreCountedTogetherHaveTheirOwn) {
  NEED_GPU();
  try {
    counting_study();
  } catch (const NoCounters& reason) {
    GTEST_SKIP() << reason.what();
  }
  Study& study = counting_study();
  // (Of the histogram with 57344 bins, several rows launch one kernel with other shared memory.)
  for (const auto& [name, at] :
       {std::pair{"transpose", 0}, {"sgemm", 0}, {"reduction", 0}, {"histogram", 57344}}) {
    const Ladder& ladder = *std::ranges::find(catalogue(), name, &Ladder::name);
    std::vector<Row> together = rows(ladder, Shapes::small);
    if (at) std::erase_if(together, [&](const Row& row) { return row.point["bins"] != at; });
    std::erase_if(together, [&, first = together.front().shape.name()](const Row& row) {
      return row.shape.name() != first || !skip_reason(row, study.device()).empty();
    });
    ASSERT_GT(together.size(), 10u);  // whose names are in another order than their numbers
    const auto counted = study.count(together);
    for (size_t i = 0; i < together.size(); ++i) {
      SCOPED_TRACE(together[i].name());
      const auto alone = study.count({together[i]}).front();
      ASSERT_EQ(counted[i].size(), alone.size());
      if (alone.empty()) continue;  // on the host
      for (const char* counter :
           {"global_load_sectors", "global_store_sectors", "fp32_operations", "warp_instructions"})
        // (How often a flag is read differs from launch to launch.)
        EXPECT_NEAR(counted[i].at(counter), alone.at(counter), 0.05 * alone.at(counter) + 500)
            << counter;
    }
  }
}

// Each pass of the counting launches it again: what it adds up must start from nothing each time,
// and count() compares what a launch after the last pass has left.
TEST(GpuCounters, KernelsThatAccumulateStayRight) {
  NEED_GPU();
  COUNTED_OR_SKIP(histograms, "histogram/global", Shapes::small);
  for (auto& [row, counters] : histograms) EXPECT_GT(counters["global_atomic_requests"], 0) << row;
}

}  // namespace
}  // namespace ladders
