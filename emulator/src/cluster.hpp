// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <semaphore>
#include <string>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

class Block;

/// What a kernel did wrong, in words for its author. Ends the launch. An empty one only unwinds a
/// block of a cluster in which another block was at fault.
struct Fault {
  std::string text;
};

/// The blocks of a cluster, each on a host thread of its own and one of them running at a time: the
/// turn changes at cluster barriers and when a block ends. All of this is touched by who has it.
class Cluster {
 public:
  explicit Cluster(unsigned size) : members_(size), order_(size) {}

  unsigned size() const { return static_cast<unsigned>(members_.size()); }
  void enter(unsigned rank, Block* block) { members_[rank].block = block; }
  Block& block(unsigned rank) { return *members_[rank].block; }
  /// A cluster starts whose first block has that number in the grid.
  void start(Order order, std::uint64_t first_block);
  void wait_for_turn(unsigned rank);  ///< throws an empty Fault if another block failed
  /// At the barrier. Returns when all blocks have come or exited.
  void arrive(unsigned rank);
  void exit(unsigned rank);
  /// The block only spins, and will until the progress of the launch changes: the other
  /// blocks run, and it returns when its turn has come again. False if all of them spin.
  bool let_others_run(unsigned rank, std::uint64_t progress);
  bool running(unsigned rank) const { return !members_[rank].exited; }
  /// Whether there has been a barrier, so that all blocks have surely started.
  bool met() const { return met_; }
  void abort();

 private:
  struct Member {
    Block* block = nullptr;
    std::counting_semaphore<> go{0};
    bool at_barrier = false, exited = false;
    std::uint64_t circling_since = 0;
    bool waits() const { return at_barrier || exited; }
  };
  void pass_turn();

  std::vector<Member> members_;
  std::vector<unsigned> order_;
  std::mt19937 random_;
  unsigned turn_ = 0;  // index into order_
  bool met_ = false;
  std::atomic<bool> aborted_ = false;
};

}  // namespace emulator
