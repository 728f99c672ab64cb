// SPDX-License-Identifier: MIT
//
// Searches over schedules: a protocol that is right fails in none, and each fault planted in a copy
// of it is found in one.
#pragma once

#include "support.hpp"

namespace emulator {

struct Found {
  bool any = false;
  std::string how, fault;
};

// All schedules with few preemptions, as many as there is time for, and some random ones.
inline Found search(const std::function<bool()>& run) {
  const auto fails = [&] {
    const bool well = run();
    const bool stopped = cudaGetLastError() != cudaSuccess;
    const std::string fault = stopped ? last_fault() : "";
    clear_fault();
    cudaGetLastError();
    return std::pair(!well, fault);
  };
  const Settings settings({.check = true});
  std::string fault;
  const Exploration explored = explore(150, [&] {
    const auto [failed, text] = fails();
    if (failed) fault = text;
    return !failed;
  });
  if (explored.found) {
    const bool again = !repeat(explored.choices, [&] { return !fails().first; });
    EXPECT_TRUE(again) << "the schedule that was found does not fail again";
    return {true, "schedule " + std::to_string(explored.schedules) + " of the search", fault};
  }
  for (const auto kind : {Schedule::Kind::random, Schedule::Kind::priorities})
    for (unsigned seed = 0; seed < 25; ++seed) {
      options().schedule = {.kind = kind, .seed = seed};
      if (const auto [failed, text] = fails(); failed)
        return {true,
                (kind == Schedule::Kind::random ? "random schedule " : "priorities ") +
                    std::to_string(seed),
                text};
    }
  return {};
}

inline void expect_clean(const std::function<bool()>& run) {
  const Found found = search(run);
  EXPECT_FALSE(found.any) << found.how << ": " << found.fault;
}
inline void expect_found(const std::function<bool()>& run) {
  const Found found = search(run);
  EXPECT_TRUE(found.any);
  ::testing::Test::RecordProperty("found_by", found.how);
  std::printf("           found by %s: %s\n", found.how.c_str(),
              found.fault.empty() ? "the result is wrong" : found.fault.c_str());
}

// Tests, each of one run: what is right is clean, and what is wrong is found.
#define CLEAN(suite, name, ...) \
  TEST(suite, name) { expect_clean(__VA_ARGS__); }
#define FOUND(suite, name, ...) \
  TEST(suite##Faults, name) { expect_found(__VA_ARGS__); }

}  // namespace emulator
