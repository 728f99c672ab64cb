// SPDX-License-Identifier: MIT
//
// Rows as Google Benchmark runs them.
#include "program/registration.hpp"

#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "measure/study.hpp"
#include "program/options.hpp"
#include "scratch.hpp"

namespace ladders {
namespace {

class Keep : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& reported) override {
    runs.insert(runs.end(), reported.begin(), reported.end());
  }
  std::vector<Run> runs;
};

TEST(Registration, RowsAreTimedInTheFirstPassAndCountedInTheSecond) {
  NEED_GPU();
  char program[] = "ladder_bench", cases[] = "--cases=small";
  char* arguments[] = {program, cases};
  Options options = parse(2, arguments);
  std::vector<char*> argv;
  for (std::string& argument : options.benchmark_arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  Study study(Device::open(0), {.exactly = 3});
  Outcome outcome;
  const ScratchFile samples("samples.jsonl");
  outcome.samples.open(samples.path);
  register_rows(options, [&]() -> Study& { return study; }, outcome);
  const std::string rows = "^smem_layout/(row_row|column_row)/";
  Keep timed, counted;
  outcome.pass = Outcome::timing;
  EXPECT_EQ(benchmark::RunSpecifiedBenchmarks(&timed, rows), 2u);
  const double measuring = study.spent().measuring;
  outcome.pass = Outcome::counting;
  EXPECT_EQ(benchmark::RunSpecifiedBenchmarks(&counted, rows), 2u);
  benchmark::ClearRegisteredBenchmarks();
  ASSERT_EQ(timed.runs.size(), 2u);
  ASSERT_EQ(counted.runs.size(), 2u);
  EXPECT_EQ(study.spent().measuring, measuring);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(timed.runs[i].run_name.str(), counted.runs[i].run_name.str());
    EXPECT_EQ(timed.runs[i].real_accumulated_time, counted.runs[i].real_accumulated_time);
  }
  std::ifstream file(samples.path);
  std::string line, lines;
  while (std::getline(file, line)) lines += std::regex_replace(line, std::regex("[0-9.]+"), "1");
  const std::string times = kEmulated ? "" : "1,1,1";  // an emulator takes none
  const std::string of_three = R"(/repetitions:1","nanoseconds":[)" + times + "]}";
  EXPECT_EQ(lines, R"({"name":"smem_layout/row_row)" + of_three +
                       R"({"name":"smem_layout/column_row)" + of_three);
  EXPECT_EQ(outcome.measured, 4);
  EXPECT_EQ(outcome.failed, 0);
}

}  // namespace
}  // namespace ladders
