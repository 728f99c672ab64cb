// SPDX-License-Identifier: MIT
//
// Which block goes on. Where orders are checked, the blocks of a grid run one at a time, and the
// turn may change before each strong access to global memory, when a block spins and when it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <semaphore>
#include <set>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

class Turns {
 public:
  /// At most so many runners, for so many groups of blocks. `make` makes one, and adds it if it is
  /// complete: not before its turn, since host threads are dear.
  Turns(const Schedule& schedule, unsigned runners, std::uint64_t groups,
        std::function<void(unsigned)> make);

  /// Returns when all groups have run.
  void run() {
    if (give(0)) done_.acquire();
  }
  void add(unsigned runner) { runners_[runner].there = true; }
  void begin(unsigned runner) { runners_[runner].go.acquire(); }
  /// The runner, whose turn it is, goes on with these blocks.
  void took(unsigned runner, std::uint64_t first_block);
  /// Others may go first.
  void point(unsigned runner);
  /// It waits until somebody has stored something. False if all others do.
  bool wait(unsigned runner);
  /// Whether a load reads an older value where it may.
  bool lags();
  /// The whole block spins: whoever has not finished is next.
  void yield(unsigned runner);
  void end(unsigned runner);
  /// Those that run, or may yet.
  int running() const {
    return static_cast<int>(std::ranges::count(runners_, true, &Runner::there)) + has_more();
  }
  void note_store() { ++stores_; }
  /// Whether what may happen between polls is of interest.
  bool explores() const { return schedule_.kind != Schedule::Kind::in_order; }
  std::uint64_t stores() const { return stores_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Runner {
    std::binary_semaphore go{0};
    bool there = false;
    std::uint64_t first_block = kNone;
    std::uint64_t waits_since = kNone;  // stores then
    std::uint64_t priority = 0;
  };
  // The others that can go on, in the order of their blocks.
  std::vector<unsigned> others(unsigned runner, bool even_if_they_wait) const;
  bool has_more() const { return !closed_ && made_ < runners_.size() && taken_ < groups_; }
  unsigned choose(const std::vector<unsigned>& options, bool first_could_go_on);
  unsigned prescribed(unsigned count, bool preempts);
  bool give(unsigned runner);
  void pass(unsigned from, unsigned to) {
    if (from != to && give(to)) runners_[from].go.acquire();
  }

  const Schedule& schedule_;
  const std::uint64_t groups_;
  std::function<void(unsigned)> make_;
  std::vector<Runner> runners_;
  unsigned made_ = 0;
  std::uint64_t taken_ = 0;
  bool closed_ = false;  // one got no group any more
  std::binary_semaphore done_{0};
  std::uint64_t stores_ = 0, points_ = 0, lowest_ = 1u << 30;
  std::set<std::uint64_t> changes_;  // points at which the priority of a runner falls
  std::mt19937 random_;
};

}  // namespace emulator
