// SPDX-License-Identifier: MIT
#include <pthread.h>

#include "block.hpp"

namespace emulator {
namespace {

// Blocks keep their stacks, logs and shadow memory from launch to launch.
std::mutex pool_mutex;
constinit std::vector<std::unique_ptr<Block>> pool;
std::unique_ptr<Block> take_block() {
  const std::lock_guard lock(pool_mutex);
  if (pool.empty()) return std::make_unique<Block>();
  auto block = std::move(pool.back());
  pool.pop_back();
  return block;
}

// A host thread needs room for the shared variables of every kernel in the program, which glibc
// takes from its stack. std::jthread takes no size, so that of all threads made from here on is
// enlarged.
void enlarge_stacks() {
  [[maybe_unused]] static const bool once = [] {
    pthread_attr_t attributes;
    std::size_t bytes = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_setstacksize(&attributes, bytes + thread_storage().size());
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    return true;
  }();
}

std::jthread host_thread(auto work) {
  enlarge_stacks();
  return std::jthread([work] {
    alignas(16) std::byte stack[64 * 1024];
    handle_lane_traps(stack);
    work();
  });
}

}  // namespace

Cluster::Cluster(Launch& launch, unsigned number)
    : launch_(launch), number_(number), members_(launch.cluster), order_(launch.cluster) {
  const bool complete = launch.attempt([&] {
    threads_.reserve(launch.cluster);  // one that is lost on the way would wait for the others
    for (unsigned rank = 0; rank < launch.cluster; ++rank)
      threads_.push_back(host_thread([this, rank] { run(rank); }));
  });
  if (!complete)
    end();  // or those that are there would wait for ever
  else if (launch.turns)
    launch.turns->add(number);
}

void Cluster::run(unsigned rank) {
  Member& own = members_[rank];
  bool whole = launch_.attempt([&] {
    own.block = take_block();
    own.block->enter(launch_, *this, rank, number_);
  });
  if (++here_ == launch_.cluster) {
    began_ = true;
    if (launch_.turns) launch_.turns->begin(number_);
    draw();
  }
  while (own.go.acquire(), !over_) {
    const bool ran = launch_.attempt([&] {
      own.block->run(first_ + rank);
      own.exited = true;
      pass_turn();
    });
    whole &= ran;
    if (!ran) end();
  }
  if (--here_ == 0 && began_) {
    --launch_.running;
    if (launch_.turns) launch_.turns->end(number_);
  }
  current_block = nullptr;
  if (!whole) return;  // the lanes that were left in the middle of something go with the block
  launch_.attempt([&] {
    const std::scoped_lock lock(launch_.mutex, pool_mutex);
    launch_.counts += own.block->counts();
    pool.push_back(std::move(own.block));
  });
}

// All threads have come, or have run the last cluster: the next one of the grid starts.
void Cluster::draw() {
  first_ = launch_.failed ? launch_.blocks() : launch_.next.fetch_add(launch_.cluster);
  if (first_ >= launch_.blocks()) return end();
  for (Member& member : members_) {
    member.at_barrier = member.exited = false;
    member.circling_since = 0;
  }
  if (launch_.order == Order::random) random_.seed(static_cast<unsigned>(first_));
  put_in_order(order_, launch_.order, random_);
  turn_ = launch_.cluster - 1;  // so that the first in order is next
  met_ = false;
  if (launch_.turns) launch_.turns->took(number_, first_);
  pass_turn();
}

void Cluster::end() {
  over_ = true;
  for (Member& member : members_) member.go.release();
}

void Cluster::wait_for_turn(unsigned rank) {
  members_[rank].go.acquire();
  if (over_) throw Fault{};
}

void Cluster::arrive(unsigned rank) {
  members_[rank].at_barrier = true;
  pass_turn();
  wait_for_turn(rank);
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
  if (std::ranges::all_of(members_, &Member::exited)) return draw();
  if (std::ranges::all_of(members_, &Member::waits)) {
    Knowledge all;
    for (const Member& member : members_) all.join(member.block->released());
    for (Member& member : members_) {
      member.at_barrier = false;
      member.block->cluster_met(all);
    }
    met_ = true;
    turn_ = launch_.cluster - 1;
  }
  for (unsigned i = 1; i <= launch_.cluster; ++i) {
    const unsigned next = (turn_ + i) % launch_.cluster;
    Member& member = members_[order_[next]];
    if (member.waits()) continue;
    turn_ = next;
    return member.go.release();  // from here on all is the other's to touch
  }
}

}  // namespace emulator
