// SPDX-License-Identifier: MIT
#include "block.hpp"

namespace emulator {

void Cluster::start(Order order, std::uint64_t first_block) {
  for (Member& member : members_) {
    member.at_barrier = member.exited = false;
    member.circling_since = 0;
  }
  if (order == Order::random) random_.seed(static_cast<unsigned>(first_block));
  put_in_order(order_, order, random_);
  turn_ = size() - 1;  // so that the first in order is next
  met_ = false;
  pass_turn();
}

void Cluster::wait_for_turn(unsigned rank) {
  members_[rank].go.acquire();
  if (aborted_) throw Fault{};
}

void Cluster::arrive(unsigned rank) {
  members_[rank].at_barrier = true;
  pass_turn();
  wait_for_turn(rank);
}

void Cluster::exit(unsigned rank) {
  members_[rank].exited = true;
  pass_turn();
}

bool Cluster::let_others_run(unsigned rank, std::uint64_t progress) {
  members_[rank].circling_since = progress;
  if (std::ranges::all_of(members_, [&](const Member& member) {
        return member.waits() || member.circling_since == progress;
      }))
    return false;
  pass_turn();
  wait_for_turn(rank);
  return true;
}

// To the next block that can run; when all wait or have exited, the barrier opens.
void Cluster::pass_turn() {
  if (std::ranges::all_of(members_, &Member::waits)) {
    Knowledge all;
    for (const Member& member : members_) member.block->order().add_to(all);
    for (Member& member : members_) {
      member.at_barrier = false;
      member.block->cluster_met(all);
    }
    met_ = true;
    turn_ = size() - 1;
  }
  for (unsigned i = 1; i <= size(); ++i) {
    const unsigned next = (turn_ + i) % size();
    Member& member = members_[order_[next]];
    if (member.waits()) continue;
    turn_ = next;
    return member.go.release();  // from here on all is the other's to touch
  }
}

void Cluster::abort() {
  aborted_ = true;
  for (Member& member : members_) member.go.release();
}

}  // namespace emulator
