// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

class Block;
struct Launch;

/// What a kernel did wrong, in words for its author. Ends the launch. An empty one only unwinds a
/// block of a cluster in which another block was at fault.
struct Fault {
  std::string text;
};

/// As many host threads as a cluster has blocks, which run cluster after cluster; without clusters
/// each block is one. One of the threads runs at a time: the turn changes at cluster barriers and
/// when a block ends. All of this is touched by who has it.
class Cluster {
 public:
  /// Of the launch's runners the one of that number.
  Cluster(Launch& launch, unsigned number);

  Block& block(unsigned rank) { return *members_[rank].block; }
  /// At the barrier. Returns when all blocks have come or exited; throws an empty Fault if another
  /// block failed.
  void arrive(unsigned rank);
  /// The block only spins, and will until the progress of the launch changes: the other
  /// blocks run, and it returns when its turn has come again. False if all of them spin.
  bool let_others_run(unsigned rank, std::uint64_t progress);
  bool running(unsigned rank) const { return !members_[rank].exited; }
  /// Whether there has been a barrier, so that all blocks have surely started.
  bool met() const { return met_; }

 private:
  struct Member {
    std::unique_ptr<Block> block;
    std::counting_semaphore<> go{0};
    bool at_barrier = false, exited = false;
    std::uint64_t circling_since = 0;
    bool waits() const { return at_barrier || exited; }
  };
  void run(unsigned rank);
  void draw();
  void wait_for_turn(unsigned rank);
  void pass_turn();
  void end();

  Launch& launch_;
  const unsigned number_;
  std::atomic<unsigned> here_ = 0;  // threads
  std::atomic<bool> over_ = false;  // there is no cluster left, or a block failed
  bool began_ = false;              // all of them have come
  std::uint64_t first_ = 0;         // block of the grid
  std::vector<Member> members_;
  std::vector<unsigned> order_;
  std::mt19937 random_;
  unsigned turn_ = 0;  // index into order_
  bool met_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace emulator
