// SPDX-License-Identifier: MIT
//
// The flags of ladder_bench_emulated, in words for those who get them wrong.
#include "program/options.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "emulator/gpu.hpp"
#include "model/catalogue.hpp"
#include "program/context.hpp"

namespace ladders {
namespace {

std::string complaint(std::string argument) {
  char program[] = "ladder_bench_emulated";
  char* argv[] = {program, argument.data()};
  try {
    parse(2, argv);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Targets, AreCounters) {
  std::vector<Ladder> ladders = catalogue();
  EXPECT_NO_THROW(check_targets(ladders));
  Ladder& ladder = ladders.front();
  ladder.rungs.front().target = "global_store_sector";  // the end of a name is missing
  try {
    check_targets(ladders);
    ADD_FAILURE() << "taken for a counter";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), ladder.name + "/" + ladder.rungs.front().name +
                                ": its target global_store_sector is no counter");
  }
}

TEST(Flags, WantTheirValues) {
  for (const std::string flag : {"--gpu", "--cases", "--order", "--workers", "--details_out",
                                 "--device", "--benchmark_out", "--benchmark_min_time"}) {
    EXPECT_EQ(complaint(flag), flag + " needs a value: " + flag + "=...");
    EXPECT_EQ(complaint(flag + "="), flag + "= needs a value: " + flag + "=...");
  }
  for (const char* flag : {"--check", "--per_line"}) EXPECT_EQ(complaint(flag), "none") << flag;
}

TEST(Flags, HelpNamesEveryGpu) {
  testing::internal::CaptureStdout();
  print_help();
  const std::string help = testing::internal::GetCapturedStdout();
  const auto start = help.find("--gpu="), end = help.find("\n  --", start);
  ASSERT_NE(end, help.npos);
  std::string names = help.substr(start, end - start) + ",";
  std::erase(names, '\n');
  for (const emulator::Gpu& gpu : emulator::gpus())
    EXPECT_NE(names.find(" " + std::string(gpu.name) + ","), names.npos) << gpu.name << names;
}

}  // namespace
}  // namespace ladders
