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

// How many schedules a search tries, as many as there is time for.
struct Effort {
  unsigned schedules = 150;  // with few preemptions
  unsigned seeds = 25;       // of random schedules, and of random priorities
};

inline Found search(const std::function<bool()>& run, const Effort& effort) {
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
  const Exploration explored = explore(effort.schedules, [&] {
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
    for (unsigned seed = 0; seed < effort.seeds; ++seed) {
      options().schedule = {.kind = kind, .seed = seed};
      if (const auto [failed, text] = fails(); failed)
        return {true,
                (kind == Schedule::Kind::random ? "random schedule " : "priorities ") +
                    std::to_string(seed),
                text};
    }
  return {};
}

inline void expect_clean(const std::function<bool()>& run, const Effort& effort = {}) {
  const Found found = search(run, effort);
  EXPECT_FALSE(found.any) << found.how << ": " << found.fault;
}
// What is said of the fault contains `message`.
inline void expect_found(const std::function<bool()>& run, const std::string& message = "",
                         const Effort& effort = {}) {
  const Found found = search(run, effort);
  ASSERT_TRUE(found.any);
  const std::string text = found.fault.empty() ? "the result is wrong" : found.fault;
  EXPECT_NE(text.find(message), std::string::npos) << text;
  ::testing::Test::RecordProperty("found_by", found.how);
  std::printf("           found by %s: %s\n", found.how.c_str(), text.c_str());
}

// Tests, each of one run: what is right is clean, and what is wrong is found.
#define CLEAN(suite, name, ...) \
  TEST(suite, name) { emulator::expect_clean(__VA_ARGS__); }
#define FOUND(suite, name, ...) \
  TEST(suite##Faults, name) { emulator::expect_found(__VA_ARGS__); }

}  // namespace emulator
