// SPDX-License-Identifier: MIT
#include "block.hpp"

#include <thread>

namespace emulator {
namespace {

// How often a block looks in vain for the words that its threads wait for, before these poll for
// good: while others run, and where the others only wait, too.
constexpr unsigned kLooks = 1'000'000, kRounds = 1000;

}  // namespace

constinit thread_local Block* current_block = nullptr;
constinit thread_local Lane* current_lane = nullptr;

void yield(Lane& lane, State state) { current_block->leave(lane, state); }

void Launch::fail(Fault what) {
  const std::lock_guard lock(mutex);
  if (!failed.exchange(true)) fault = std::move(what.text);
}

void Block::cluster_met(const Knowledge& all) {
  order_.acquire(all);
  for (Lane& lane : lanes_) {
    lane.knowledge.level = all.level;
    lane.told = launch_->races.changes();
  }
  visit_ = {};
}

Block* Block::neighbour(unsigned rank) {
  if (rank == rank_) return this;
  const bool runs = rank < cluster_size() && cluster_->met() && cluster_->running(rank);
  return runs ? &cluster_->block(rank) : nullptr;
}

// The built-in variables by their own names, which the language's header declares as constants.
constinit thread_local uint3 thread_index asm("threadIdx"){}, block_index asm("blockIdx"){};
constinit thread_local uint3 block_size asm("blockDim"){}, grid_size asm("gridDim"){};

void Block::free_at_end(void* data) {
  const std::lock_guard lock(launch_->mutex);
  launch_->freed.push_back(data);
}

// clang, and code that takes their addresses, reports reads of them.
bool Block::is_built_in(std::uintptr_t address) {
  for (const uint3* one : {&thread_index, &block_index, &block_size, &grid_size})
    if (address - address_of(one) < sizeof(uint3)) return true;
  return false;
}

void Block::enter(Launch& launch, Cluster& cluster, unsigned rank, unsigned runner) {
  launch_ = &launch;
  cluster_ = &cluster;
  rank_ = rank;
  runner_ = runner;
  counts_ = {};
  last_buffer_ = nullptr;
  last_variable_ = nullptr;
  circling_since_ = 0;
  shared_.attach(launch.kernel);
  current_block = this;
  block_size = launch.block;
  grid_size = launch.grid;
}

void Block::run(std::uint64_t number) {
  number_ = number;
  index_ = index_in(launch_->grid, number);
  block_index = index_;
  if (launch_->recorded() && !replay_) replay_ = std::make_unique<WarpReplay>(*this);
  order_.start(number);
  released_ = {};
  conflict_.reset();
  shared_.start(launch_->dynamic_bytes);
  bulk_ = {};
  polls_once_ = polls_itself_ = false;
  in_vain_ = 0;
  live_ = launch_->threads();
  lanes_.resize(live_);
  uint3 place{};
  for (unsigned i = 0; i < live_; ++i) {
    lanes_[i].start(i, place);
    if (++place.x < launch_->block.x) continue;
    place.x = 0;
    if (++place.y == launch_->block.y) place.y = 0, ++place.z;
  }
  stacks_.reset(live_);
  const unsigned warps = (live_ + 31) / 32;
  warps_.resize(warps);
  warp_order_.resize(warps);
  if (launch_->order == Order::random) random_.seed(static_cast<unsigned>(number));
  visit_ = {};
  unwritten_.reset();

  while (live_ > 0) {
    if (launch_->failed) throw Fault{};  // elsewhere
    put_in_order(warp_order_, launch_->order, random_);
    changed_ = false;
    const unsigned before = live_;
    const bool ran = run_warps();
    if (live_ == 0) break;
    const bool arrived = release_block_barrier() || release_cluster_barrier();
    polls_once_ = false;
    if (!ran && !arrived && wait_for_others()) continue;
    if (!ran && !arrived)
      throw Fault{"deadlock: threads of a block wait for each other" + who_waits()};
    if (arrived || changed_ || live_ < before) {
      ++launch_->progress;
      in_vain_ = 0;
    } else {
      check_progress();
    }
  }
  ++launch_->progress;
  for (const auto& [address, barrier] : bulk_.barriers)
    if (barrier.under_way > 0)
      throw barrier.phase->copies.front()->block->fault(
          *barrier.phase->copies.front()->lane, barrier.phase->copies.front()->pc,
          "bulk copy: a block exits while ", barrier.under_way,
          " bytes are under way to its memory");
  if (launch_->check && cluster_size() > 1) released_ = order_.released(lanes_, Orders::all);
  if (visit_.by)
    throw visit_.by->fault(*visit_.lane, visit_.pc,
                           "distributed shared memory: a block exits while another may still be "
                           "at its memory (no cluster barrier since)");
}

void Block::enter_thread(Lane& lane) {
  launch_->bound.thread(launch_->bound.data);
  arrive(lane, lane.group + 1);
  end_copies(lane);
  --live_;
  leave(lane, State::exited);
}

void Block::leave(Lane& lane, State state) {
  if (lane.next && state != State::stopped) {
    note_value(lane.next[-1]);
    state == State::log_full ? mark_full_log(lane) : mark_accesses(lane);
  }
  lane.state = state;
  current_lane = nullptr;
  switch_context(&lane.context, scheduler_);
}

// ---- barriers

bool Block::release_block_barrier() {
  unsigned waiting = 0, votes = 0;
  std::uintptr_t last = 0;
  bool same = true;  // line, of which the compiler may have made several calls
  for (const Lane& lane : lanes_) {
    if (lane.state != State::at_block_barrier) continue;
    if (last != 0 && lane.pc != last) same &= source_line(lane.pc) == source_line(last);
    last = lane.pc;
    ++waiting;
    votes += lane.value != 0;
  }
  if (waiting == 0 || waiting < live_) return false;
  if (!same)
    throw Fault{
        "divergent barrier: threads of a block wait at different lines, where CUDA allows "
        "__syncthreads() in conditional code only if the condition is the same for all of them" +
        who_waits()};
  for (Lane& lane : lanes_) {
    if (lane.state != State::at_block_barrier) continue;
    lane.value = lane.vote == Vote::count ? votes
                 : lane.vote == Vote::all ? votes == waiting
                                          : votes != 0;
    lane.state = State::ready;
  }
  ++counts_.steps.barriers;
  if (launch_->check) order_.barrier(lanes_);
  return true;
}

bool Block::release_cluster_barrier() {
  const auto waiting = std::ranges::count(lanes_, State::at_cluster_barrier, &Lane::state);
  if (waiting == 0 || waiting < live_) return false;
  if (launch_->check) {
    auto strongest = static_cast<std::uint64_t>(Orders::nothing);
    for (const Lane& lane : lanes_)
      if (lane.state == State::at_cluster_barrier) strongest = std::min(strongest, lane.value);
    released_ = order_.released(lanes_, static_cast<Orders>(strongest));
  }
  cluster_->arrive(rank_);
  ++counts_.steps.cluster_barriers;
  for (Lane& lane : lanes_)
    if (lane.state == State::at_cluster_barrier) lane.state = State::ready;
  return true;
}

// ---- spins

// A lane whose stack and registers are what they were before will do again what it has done since,
// as long as nobody changes what it reads.
void Block::look(Lane& lane) {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto top = reinterpret_cast<const std::uint64_t*>(lane.stack + kStackBytes);
  for (auto word = static_cast<const std::uint64_t*>(lane.context); word < top; ++word)
    hash = (hash ^ *word) * 0x9E3779B97F4A7C15 ^ hash >> 29;
  if (lane.spin.seen_progress != launch_->progress) {
    lane.spin = {hash, launch_->progress};
  } else if (hash == lane.spin.reference) {
    lane.spin.circling = true;
  } else if (++lane.spin.looks ==
             lane.spin.next_reference) {  // after Brent: finds circles of any length
    lane.spin.reference = hash;
    lane.spin.next_reference *= 2;
  }
}

// Whether none of the lanes will get on before something changes.
bool Block::circling(std::span<const Lane> lanes) const {
  return std::ranges::all_of(lanes, [&](const Lane& lane) {
    return !lane.runs() || (lane.spin.circling && lane.spin.seen_progress == launch_->progress);
  });
}

// When all threads that do not wait spin, in every block that runs, it is a livelock: nothing will
// ever change.
void Block::check_progress() {
  const std::uint64_t progress = launch_->progress;
  if (std::ranges::none_of(lanes_, &Lane::runs) || !circling(lanes_)) return;
  if (cluster_->let_others_run(rank_, progress)) return;
  {
    const std::lock_guard lock(launch_->mutex);
    if (launch_->circling_since != progress) {
      launch_->circling_since = progress;
      launch_->circling = 0;
    }
    if (circling_since_ != progress) ++launch_->circling;
    circling_since_ = progress;
    const int running = launch_->turns ? launch_->turns->running() : launch_->running.load();
    if (launch_->circling >= running && launch_->progress == progress)
      throw Fault{"spin without progress: no thread changes memory, arrives or exits any more" +
                  who_waits()};
  }
  if (launch_->turns)
    launch_->turns->yield(runner_);
  else
    std::this_thread::yield();
}

// Lets other blocks run, if a thread waits for what one of them may do. False if none will.
bool Block::wait_for_others() {
  const auto any = [](const Block& block, State state) {
    return std::ranges::count(block.lanes_, state, &Lane::state) > 0;
  };
  Block* polls = nullptr;
  for (unsigned r = 0; r < cluster_size(); ++r)
    if (any(cluster_->block(r), State::at_word)) polls = &cluster_->block(r);
  if (any(*this, State::at_word)) polls = this;
  if (!polls && (cluster_size() == 1 || !any(*this, State::at_mbarrier))) return false;
  if (cluster_size() > 1 && cluster_->let_others_run(rank_, launch_->progress)) return true;
  if (!polls) return false;
  if (!launch_->turns && launch_->blocks() > cluster_size()) {
    const auto may_go_on = [&](const Lane& lane) { return polls->waits_no_more(lane); };
    while (std::ranges::none_of(polls->lanes_, may_go_on) && !launch_->failed &&
           !polls->polls_itself_) {
      polls->polls_itself_ = ++polls->in_vain_ > kLooks;
      std::this_thread::yield();
    }
  } else if (!launch_->turns || !launch_->turns->wait(runner_)) {
    polls->polls_once_ = true;
    polls->polls_itself_ = ++polls->in_vain_ > kRounds;
    if (launch_->turns) launch_->turns->yield(runner_);
  }
  // It is the other's turn, whether anything has changed or not.
  if (polls != this) cluster_->let_others_run(rank_, ++launch_->progress);
  if (launch_->failed) throw Fault{};
  return true;
}

}  // namespace emulator
