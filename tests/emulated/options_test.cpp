// SPDX-License-Identifier: MIT
//
// The flags of ladder_bench_emulated, in words for those who get them wrong.
#include "program/options.hpp"

#include <gtest/gtest.h>

#include <string>

#include "emulator/gpu.hpp"

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
