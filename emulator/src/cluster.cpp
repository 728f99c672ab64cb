// SPDX-License-Identifier: MIT
#include "block.hpp"

namespace emulator {

void Cluster::start(Order order, std::uint64_t first_block) {
  for (Member& member : members_) member = {member.block};
  if (order == Order::random) random_.seed(static_cast<unsigned>(first_block));
  put_in_order(order_, order, random_);
  turn_ = 0;
  met_ = aborted_ = false;
}

void Cluster::wait_for_turn(unsigned rank) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return aborted_ || (order_[turn_] == rank && !members_[rank].at_barrier); });
  if (aborted_) throw Fault{};
}

void Cluster::arrive(unsigned rank) {
  {
    const std::lock_guard lock(mutex_);
    members_[rank].at_barrier = true;
    pass_turn();
  }
  wait_for_turn(rank);
}

void Cluster::exit(unsigned rank) {
  const std::lock_guard lock(mutex_);
  members_[rank].exited = true;
  pass_turn();
}

bool Cluster::let_others_run(unsigned rank, std::uint64_t progress) {
  {
    const std::lock_guard lock(mutex_);
    members_[rank].circling_since = progress;
    if (std::ranges::all_of(members_, [&](const Member& m) {
          return m.at_barrier || m.exited || m.circling_since == progress;
        }))
      return false;
    pass_turn();
  }
  wait_for_turn(rank);
  return true;
}

// To the next block that can run; when all wait or have exited, the barrier opens.
void Cluster::pass_turn() {
  if (std::ranges::all_of(members_, [](const Member& m) { return m.at_barrier || m.exited; })) {
    Knowledge all;
    for (const Member& member : members_) member.block->order().add_to(all);
    for (Member& member : members_) {
      member.at_barrier = false;
      member.block->cluster_met(all);
    }
    met_ = true;
    turn_ = size() - 1;  // so that the first in order is next
  }
  for (unsigned i = 1; i <= size(); ++i) {
    const unsigned next = (turn_ + i) % size();
    const Member& member = members_[order_[next]];
    if (member.at_barrier || member.exited) continue;
    turn_ = next;
    break;
  }
  changed_.notify_all();
}

void Cluster::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

}  // namespace emulator
