// SPDX-License-Identifier: MIT
#include "block.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <numeric>
#include <thread>

#include "fiber.hpp"
#include "symbols.hpp"

namespace emulator {

constinit thread_local Block* current_block = nullptr;
constinit thread_local Lane* current_lane = nullptr;

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kLogRecords = 4096;  // a lane
// Logs start in different cache sets.
constexpr std::size_t kLogStride = kLogRecords + 12;
// A warp whose lanes keep filling their logs makes way for the others after so many fillings.
constexpr int kPatience = 64;
constexpr int kAnswers = 1 << 14;  // likewise one that asks and asks in warp functions
// Basic blocks that a lane without a log goes through until it makes way for the others.
constexpr unsigned kStepsAtOnce = 1 << 16;
// Stacks are followed by a page without access while there are this many at most; every one splits
// a mapping, of which a process has 65530.
constexpr int kGuards = 16 * 1024;
constexpr std::size_t kPage = 4096;
std::atomic<int> guards{0};

template <class F>
void for_each_lane(std::uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

std::string to_text(uint3 v) {
  std::string text = "(";  // gcc 12 warns of "(" + ... for no reason
  return text + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

SourceLine line_of(std::uintptr_t pc) { return source_lines({&pc, 1}).front(); }

std::string base_name(const char* path) {
  const std::string text(path);
  return text.substr(text.rfind('/') + 1);
}

std::string too_much_local() {
  return "a thread needs more than " + std::to_string(kStackBytes / 1024) + " KiB of local memory";
}

Operation operation(Event event) {
  return event == Event::load    ? Operation::load
         : event == Event::store ? Operation::store
                                 : Operation::atomic;
}

void fiber_main() {
  current_block->enter_thread(*current_lane);
  __builtin_unreachable();
}

}  // namespace

void yield(Lane& lane, State state) { current_block->leave(lane, state); }

void stop(Lane& lane, const char* what, std::uintptr_t pc) {
  lane.stopped_by = what;
  lane.pc = pc;
  yield(lane, State::stopped);
  __builtin_unreachable();
}

void Launch::fail(const Fault& what) {
  const std::lock_guard lock(mutex);
  if (!failed.exchange(true)) fault = what.text;
}

// ---- clusters

void Cluster::start(std::vector<unsigned> order) {
  for (Member& member : members_) member.at_barrier = member.exited = false;
  order_ = std::move(order);
  turn_ = 0;
  met_ = aborted_ = false;
}

void Cluster::wait_for_turn(unsigned rank) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return aborted_ || (order_[turn_] == rank && !members_[rank].at_barrier); });
  if (aborted_) throw Fault{};
}

bool Cluster::arrive(unsigned rank) {
  {
    const std::lock_guard lock(mutex_);
    members_[rank].at_barrier = true;
    pass_turn();
  }
  wait_for_turn(rank);
  return all_met_;
}

void Cluster::exit(unsigned rank) {
  const std::lock_guard lock(mutex_);
  members_[rank].exited = true;
  pass_turn();
}

// To the next block that can run; when all wait or have exited, the barrier opens.
void Cluster::pass_turn() {
  if (std::ranges::all_of(members_, [](const Member& m) { return m.at_barrier || m.exited; })) {
    for (Member& member : members_) {
      member.at_barrier = false;
      member.block->cluster_met();
    }
    met_ = true;
    all_met_ = std::ranges::none_of(members_, &Member::exited);
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

// ---- a block

Block::Block()
    : stacks_(static_cast<char*>(mmap(nullptr, kMaxThreads * kStackBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  if (stacks_ == MAP_FAILED) throw std::bad_alloc();
  guarded_.resize(kMaxThreads);
}

Block::~Block() {
  munmap(stacks_, kMaxThreads * kStackBytes);
  guards -= static_cast<int>(std::ranges::count(guarded_, true));
}

// Places a guard at the low end of a stack, where it overflows.
void Block::guard(char* stack) {
  const auto number = static_cast<std::size_t>(stack - stacks_) / kStackBytes;
  if (guarded_[number] || guards >= kGuards) return;
  guarded_[number] = mprotect(stack, kPage, PROT_NONE) == 0;
  guards += guarded_[number] ? 1 : 0;
}

void Block::cluster_met() {
  visitor_ = {};
  shared_.next_cluster_epoch();
}

void Block::enter(Launch& launch, Cluster* cluster, unsigned rank) {
  launch_ = &launch;
  cluster_ = cluster;
  rank_ = rank;
  counts_ = {};
  last_buffer_ = nullptr;
  circling_since_ = 0;
  if (launch.recorded()) logs_.resize(32 * kLogStride);
  shared_.attach(launch.kernel);
  current_block = this;
  if (cluster) cluster->enter(rank, this);
}

void Block::run(std::uint64_t number) {
  const dim3 grid = launch_->grid, block = launch_->block;
  number_ = number;
  index_ = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
            static_cast<unsigned>(number / grid.x / grid.y)};
  shared_.start(launch_->dynamic_bytes);
  live_ = launch_->threads();
  lanes_.assign(live_, Lane{});
  for (unsigned i = 0; i < live_; ++i) {
    Lane& lane = lanes_[i];
    lane.number = i % 32;
    lane.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
  }
  free_stacks_.clear();
  for (unsigned i = live_; i-- > 0;) free_stacks_.push_back(stacks_ + i * kStackBytes);
  const unsigned warps = (live_ + 31) / 32;
  warp_syncs_.resize(warps);
  for (auto& syncs : warp_syncs_) syncs.clear();
  warp_order_.resize(warps);
  std::iota(warp_order_.begin(), warp_order_.end(), 0u);
  if (launch_->order == Order::reverse) std::ranges::reverse(warp_order_);
  if (launch_->order == Order::random) random_.seed(static_cast<unsigned>(number));
  visitor_ = {};

  while (live_ > 0) {
    if (launch_->failed) throw Fault{};  // elsewhere
    if (launch_->order == Order::random) std::ranges::shuffle(warp_order_, random_);
    changed_ = false;
    const unsigned before = live_;
    bool ran = false;
    for (const unsigned w : warp_order_) ran |= run_warp(w);
    if (live_ == 0) break;
    const bool arrived = release_block_barrier() || release_cluster_barrier();
    if (!ran && !arrived)
      throw Fault{"deadlock: threads of a block wait for each other" + who_waits()};
    if (arrived || changed_ || live_ < before)
      ++launch_->progress;
    else
      check_progress();
  }
  ++launch_->progress;
  if (visitor_.any)
    throw Fault{
        "distributed shared memory: a block exits while another may still be at its memory "
        "(no cluster barrier since): " +
        visitor_.who};
}

// A lane whose stack and registers are what they were before will do again what it has done since,
// as long as nobody changes what it reads.
void Block::look(Lane& lane) {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto top = reinterpret_cast<const std::uint64_t*>(lane.stack + kStackBytes);
  for (auto word = static_cast<const std::uint64_t*>(lane.context); word < top; ++word)
    hash = (hash ^ *word) * 0x9E3779B97F4A7C15 ^ hash >> 29;
  if (lane.seen_progress != launch_->progress) {
    lane.seen_progress = launch_->progress;
    lane.reference = hash;
    lane.looks = 0;
    lane.next_reference = 1;
    lane.circling = false;
  } else if (hash == lane.reference) {
    lane.circling = true;
  } else if (++lane.looks == lane.next_reference) {  // after Brent: finds circles of any length
    lane.reference = hash;
    lane.next_reference *= 2;
  }
}

// Whether none of the lanes will get on before something changes.
bool Block::circling(std::span<const Lane> lanes) const {
  return std::ranges::all_of(lanes, [&](const Lane& lane) {
    const bool runs = lane.state == State::ready || lane.state == State::log_full;
    return !runs || (lane.circling && lane.seen_progress == launch_->progress);
  });
}

// When all threads that do not wait go round in circles, in every block that runs, nothing will
// ever change.
void Block::check_progress() {
  const std::uint64_t progress = launch_->progress;
  const bool all_wait = std::ranges::none_of(lanes_, [](const Lane& lane) {
    return lane.state == State::ready || lane.state == State::log_full;
  });
  if (all_wait || !circling(lanes_)) return;
  {
    const std::lock_guard lock(launch_->mutex);
    if (launch_->circling_since != progress) {
      launch_->circling_since = progress;
      launch_->circling = 0;
    }
    if (circling_since_ != progress) ++launch_->circling;
    circling_since_ = progress;
    if (launch_->circling >= launch_->running && launch_->progress == progress)
      throw Fault{"spin without progress: no thread changes memory, arrives or exits any more" +
                  who_waits()};
  }
  std::this_thread::yield();
}

void Block::enter_thread(Lane& lane) {
  launch_->thread(launch_->arguments);
  --live_;
  leave(lane, State::exited);
}

void Block::leave(Lane& lane, State state) {
  lane.state = state;
  current_lane = nullptr;
  emulator_switch(&lane.context, scheduler_);
}

// ---- warps

std::span<Lane> Block::warp(unsigned w) {
  return std::span(lanes_).subspan(w * 32, std::min<std::size_t>(32, lanes_.size() - w * 32));
}

// Runs the lanes of a warp until each of them waits or has exited, or they have been at it for
// long. True if any of them got on.
bool Block::run_warp(unsigned w) {
  const std::span<Lane> lanes = warp(w);
  current_warp_ = w;
  bool got_on = false;
  for (int filled = 0, answered = 0;;) {
    got_on |= resume_ready(lanes);
    const bool recorded = launch_->recorded();
    const bool runs =
        std::ranges::any_of(lanes, [](const Lane& lane) { return lane.state == State::log_full; });
    const bool tired = !recorded || filled >= kPatience || (runs && circling(lanes));
    const bool full = recorded && replay(lanes, tired);
    if (resolve_warp_functions(w)) {
      if (++answered < kAnswers) continue;
    } else if (full && !tired) {
      ++filled;
      continue;
    }
    if (recorded && !tired) replay(lanes, true);  // the logs are the next warp's
    return got_on;
  }
}

// True if there was a lane that could run.
bool Block::resume_ready(std::span<Lane> lanes) {
  unsigned order[32];
  const unsigned count = static_cast<unsigned>(lanes.size());
  std::iota(order, order + count, 0u);
  if (launch_->order == Order::reverse) std::reverse(order, order + count);
  if (launch_->order == Order::random) std::shuffle(order, order + count, random_);
  bool ran = false;
  for (unsigned i = 0; i < count; ++i) {
    Lane& lane = lanes[order[i]];
    if (lane.state == State::log_full && lane.next == lane.end) continue;  // held up in the replay
    if (lane.state != State::ready && lane.state != State::log_full) continue;
    if (!lane.started) {
      lane.started = true;
      char* stack = free_stacks_.back();
      free_stacks_.pop_back();
      guard(stack);
      lane.stack = reinterpret_cast<std::uintptr_t>(stack);
      // Stacks start at different distances from a page, or all would share a few cache sets.
      const std::size_t color = static_cast<std::size_t>(stack - stacks_) / kStackBytes % 128 + 1;
      lane.context = make_fiber(stack + kStackBytes - 192 * color, fiber_main);
    }
    if (launch_->recorded() && lane.next == nullptr) {
      lane.next = logs_.data() + lane.number * kLogStride;
      lane.end = lane.next + kLogRecords;
    }
    if (lane.answered != 0 && lane.next != nullptr) {
      if (lane.next == lane.end) {
        lane.state = State::log_full;
        continue;
      }
      *lane.next++ = {lane.answered | static_cast<std::uint64_t>(Event::sync) << 56, lane.pc};
    }
    lane.answered = 0;
    lane.steps_left = kStepsAtOnce;
    lane.state = State::ready;
    current_lane = &lane;
    emulator_switch(&scheduler_, lane.context);
    if (lane.state == State::stopped) throw fault_of_stopped(lane);
    if (lane.state == State::log_full && launch_->recorded()) look(lane);
    if (lane.state == State::exited) free_stacks_.push_back(reinterpret_cast<char*>(lane.stack));
    if (reinterpret_cast<std::uintptr_t>(lane.context) < lane.stack)
      throw fault(too_much_local(), lane, lane.step);
    ran = true;
  }
  return ran;
}

// Hands the lanes' logs to the replay. True if a lane that wants to go on filled its log.
bool Block::replay(std::span<Lane> lanes, bool all) {
  Log logs[32];
  bool full = false;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    const Record* start = logs_.data() + l * kLogStride;
    // A lane that has not run yet, or has been switched to from another warp, has nothing.
    const bool is_full = lanes[l].state == State::log_full;
    logs[l] = {start, lanes[l].next ? lanes[l].next : start,
               is_full || lanes[l].state == State::at_warp_function, &lanes[l].step};
    full |= is_full;
  }
  replay_.replay(std::span(logs, lanes.size()), all);
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    Record* start = logs_.data() + l * kLogStride;
    Record* rest = std::copy(logs[l].next, logs[l].end, start);
    // Logs are the warp's while it runs. One that waits for others leaves nothing behind.
    const bool stays = logs[l].more || rest != start;
    lanes[l].next = stays ? rest : nullptr;
    lanes[l].end = stays ? start + kLogRecords : nullptr;
  }
  return full;
}

// Answers warp functions for which all lanes have come. True if there was one.
bool Block::resolve_warp_functions(unsigned w) {
  const std::span<Lane> lanes = warp(w);
  const std::uint32_t existing = lanes.size() == 32 ? ~0u : (1u << lanes.size()) - 1;
  std::uint32_t waiting = 0, running = 0;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    if (lanes[l].state == State::at_warp_function) waiting |= 1u << l;
    if (lanes[l].state == State::ready || lanes[l].state == State::log_full) running |= 1u << l;
  }
  bool answered = false;
  while (waiting != 0) {
    const Lane& first = lanes[std::countr_zero(waiting)];
    std::uint32_t members = first.mask & existing;
    if (first.function == WarpFunction::active_mask) {
      // Whoever waits at the same call is active together, once nobody can come any more.
      members = 0;
      for_each_lane(waiting, [&](unsigned l) {
        if (lanes[l].pc == first.pc) members |= 1u << l;
      });
      waiting &= ~members;
      if (running != 0) continue;
    } else {
      if (!(members >> first.number & 1))
        throw fault("warp function: the calling lane is not in its own mask", first, first.pc);
      bool all = true;
      for_each_lane(members, [&](unsigned l) {
        if (lanes[l].state == State::exited)
          throw fault(
              "warp function: the mask names lane " + std::to_string(l) + ", which has exited",
              first, first.pc);
        all &= lanes[l].state == State::at_warp_function && lanes[l].mask == first.mask &&
               lanes[l].function == first.function;
      });
      waiting &= all ? ~members : ~(1u << first.number);
      if (!all) continue;
    }
    answer(lanes, members);
    answered = true;
    ++counts_.warp_functions;
    if (first.function == WarpFunction::active_mask) continue;  // which waits for nobody
    // Of the warp functions only this one orders what the lanes do in memory.
    if (first.function == WarpFunction::sync && launch_->check) {
      warp_syncs_[w].push_back(members);
      for_each_lane(members, [&](unsigned l) {
        lanes[l].answered = static_cast<unsigned>(warp_syncs_[w].size());
      });
    }
  }
  return answered;
}

void Block::answer(std::span<Lane> lanes, std::uint32_t members) {
  const WarpFunction function = lanes[std::countr_zero(members)].function;
  std::uint32_t ballot = 0;
  std::uint64_t sum = 0, all_bits = ~0ull, any_bits = 0, odd_bits = 0;
  std::uint64_t least = ~0ull, most = 0;
  std::int64_t least_signed = INT64_MAX, most_signed = INT64_MIN;
  for_each_lane(members, [&](unsigned l) {
    const std::uint64_t value = lanes[l].value;
    const auto signed_value = static_cast<std::int32_t>(value);
    if (value != 0) ballot |= 1u << l;
    sum += value;
    all_bits &= value;
    any_bits |= value;
    odd_bits ^= value;
    least = std::min(least, value);
    most = std::max(most, value);
    least_signed = std::min<std::int64_t>(least_signed, signed_value);
    most_signed = std::max<std::int64_t>(most_signed, signed_value);
  });
  std::uint64_t answers[32];
  for_each_lane(members, [&](unsigned l) {
    const Lane& lane = lanes[l];
    const int width = lane.width;
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
      throw fault("shuffle of a width of " + std::to_string(width) + ", not 1, 2, 4 ... 32", lane,
                  lane.pc);
    const int me = static_cast<int>(l), first = me / width * width;
    const auto take_from = [&](int source) {
      if (!(members >> source & 1))
        throw fault("shuffle reads lane " + std::to_string(source) + ", which is not in the mask",
                    lane, lane.pc);
      return lanes[source].value;
    };
    // Distances are unsigned; beyond a warp they are all the same.
    const int distance = static_cast<int>(std::min(static_cast<unsigned>(lane.argument), 32u));
    const int up = me - distance, down = me + distance, other = me ^ (lane.argument & 31);
    std::uint64_t& result = answers[l];
    switch (function) {
      case WarpFunction::sync:
        result = 0;
        break;
      case WarpFunction::active_mask:
        result = members;
        break;
      case WarpFunction::shuffle:
        result = take_from(first + (lane.argument & (width - 1)));
        break;
      case WarpFunction::shuffle_up:
        result = take_from(up < first ? me : up);
        break;
      case WarpFunction::shuffle_down:
        result = take_from(down >= first + width ? me : down);
        break;
      case WarpFunction::shuffle_xor:
        result = take_from(other >= first + width ? me : other);
        break;
      case WarpFunction::ballot:
        result = ballot;
        break;
      case WarpFunction::all:
        result = ballot == members;
        break;
      case WarpFunction::any:
        result = ballot != 0;
        break;
      case WarpFunction::match_any:
        result = 0;
        for_each_lane(members, [&](unsigned o) {
          if (lanes[o].value == lane.value) result |= 1u << o;
        });
        break;
      case WarpFunction::add:
        result = sum;
        break;
      case WarpFunction::minimum:
        result = least;
        break;
      case WarpFunction::maximum:
        result = most;
        break;
      case WarpFunction::minimum_signed:
        result = static_cast<std::uint64_t>(least_signed);
        break;
      case WarpFunction::maximum_signed:
        result = static_cast<std::uint64_t>(most_signed);
        break;
      case WarpFunction::bit_and:
        result = all_bits;
        break;
      case WarpFunction::bit_or:
        result = any_bits;
        break;
      case WarpFunction::bit_xor:
        result = odd_bits;
        break;
    }
  });
  for_each_lane(members, [&](unsigned l) {
    lanes[l].value = answers[l];
    lanes[l].state = State::ready;
  });
}

// ---- barriers

bool Block::release_block_barrier() {
  unsigned waiting = 0, votes = 0;
  const Lane* first = nullptr;
  bool same = true;
  for (const Lane& lane : lanes_) {
    if (lane.state != State::at_block_barrier) continue;
    if (!first) first = &lane;
    same &= lane.line == first->line && std::strcmp(lane.file, first->file) == 0;
    ++waiting;
    votes += lane.predicate != 0;
  }
  if (waiting == 0 || waiting < live_) return false;
  if (!same)
    throw Fault{"divergent barrier: threads of a block wait at different lines" + who_waits()};
  if (live_ < lanes_.size() && !launch_->exited_may_miss_barriers)
    throw Fault{"missed barrier: some threads of the block have exited" + who_waits()};
  for (Lane& lane : lanes_) {
    if (lane.state != State::at_block_barrier) continue;
    lane.predicate = static_cast<int>(lane.vote == Vote::count ? votes
                                      : lane.vote == Vote::all ? votes == waiting
                                                               : votes != 0);
    lane.state = State::ready;
  }
  ++counts_.barriers;
  next_epoch();
  return true;
}

// All that threads have done so far is over.
void Block::next_epoch() {
  shared_.next_epoch();
  for (auto& syncs : warp_syncs_) syncs.clear();
  for (Lane& lane : lanes_) lane.syncs = lane.answered = 0;
}

bool Block::release_cluster_barrier() {
  unsigned waiting = 0;
  for (const Lane& lane : lanes_) waiting += lane.state == State::at_cluster_barrier;
  if (waiting == 0 || waiting < live_) return false;
  if (live_ < lanes_.size() && !launch_->exited_may_miss_barriers)
    throw Fault{"missed cluster barrier: some threads of the block have exited" + who_waits()};
  if (cluster_ && !cluster_->arrive(rank_) && !launch_->exited_may_miss_barriers)
    throw Fault{"missed cluster barrier: a block of the cluster has exited" + who_waits()};
  ++counts_.cluster_barriers;
  next_epoch();
  for (Lane& lane : lanes_)
    if (lane.state == State::at_cluster_barrier) lane.state = State::ready;
  return true;
}

// ---- accesses

void Block::step(std::uint32_t lanes) {
  ++counts_.warp_steps;
  counts_.lane_steps += static_cast<unsigned>(std::popcount(lanes));
}

void Block::sync(const Request& numbers) {
  for_each_lane(numbers.mask, [&](unsigned l) {
    warp(current_warp_)[l].syncs = static_cast<unsigned>(numbers.addresses[l]);
  });
}

void Block::access(std::uint64_t pc, Event event, const Request& request) {
  ++requests_;
  if (event == Event::store) changed_ = true;  // atomics tell themselves
  // Lanes of one instruction may be at different memories: then it is a request to each, but one
  // to all other blocks of the cluster, told apart by the upper half of the address.
  std::uint32_t left = request.mask, remote = 0;
  std::uint64_t remote_places[32];
  check_alignment(pc, event, request);
  while (left != 0) {
    const unsigned first = static_cast<unsigned>(std::countr_zero(left));
    const Place at = place(request.addresses[first], request.bytes, event, pc, first);
    std::uint32_t mask = 0;
    for_each_lane(left, [&](unsigned l) {
      const std::uint64_t address = request.addresses[l];
      const bool here = at.region == Region::shared   ? shared_.holds(address)
                        : at.region == Region::global ? at.buffer->holds(address, request.bytes)
                        : at.region == Region::distributed
                            ? cluster_->block(at.rank).shared_.holds(address)
                            : in_image(address);
      if (here) mask |= 1u << l;
    });
    left &= ~mask;
    const Request part{mask, request.bytes, request.addresses};
    if (at.region == Region::shared) {
      std::uint64_t offsets[32];
      for_each_lane(mask, [&](unsigned l) { offsets[l] = shared_.offset(request.addresses[l]); });
      const Request own{mask, request.bytes, offsets};
      if (launch_->check) check_shared(pc, event, own);
      if (launch_->count) count(pc, Space::shared, event, own, at);
    } else if (at.region == Region::distributed) {
      std::uint64_t offsets[32];
      const SharedMemory& memory = cluster_->block(at.rank).shared_;
      for_each_lane(mask, [&](unsigned l) { offsets[l] = memory.offset(request.addresses[l]); });
      const Request theirs{mask, request.bytes, offsets};
      if (launch_->check) note_remote(pc, event, theirs, at.rank);
      remote |= mask;
      for_each_lane(
          mask, [&](unsigned l) { remote_places[l] = std::uint64_t{at.rank} << 32 | offsets[l]; });
    } else if (launch_->count) {
      const bool constant = at.region == Region::image && is_constant(request.addresses[first]);
      count(pc, constant ? Space::constant : Space::global, event, part, at);
    }
  }
  if (remote != 0 && launch_->count)
    count(pc, Space::distributed, event, {remote, request.bytes, remote_places}, {});
}

// Every access is as wide as its type wants it aligned.
void Block::check_alignment(std::uint64_t pc, Event event, const Request& request) const {
  for_each_lane(request.mask, [&](unsigned l) {
    if ((request.addresses[l] & (request.bytes - 1)) != 0)
      throw fault("misaligned " + std::string(name(operation(event))) + " of " +
                      std::to_string(request.bytes) + " bytes",
                  lanes_[current_warp_ * 32 + l], pc);
  });
}

Block::Place Block::place(std::uint64_t address, unsigned bytes, Event event, std::uint64_t pc,
                          unsigned lane) {
  if (shared_.holds(address)) return {Region::shared};
  if (last_buffer_ && last_buffer_->holds(address, bytes)) return {Region::global, last_buffer_};
  if (cluster_)
    for (unsigned r = 0; r < cluster_->size(); ++r)
      if (r != rank_ && cluster_->block(r).shared_.holds(address)) {
        if (!cluster_->met())
          throw fault("distributed shared memory: access to block " + std::to_string(r) +
                          " of the cluster, which may not have started (no cluster barrier yet)",
                      warp(current_warp_)[lane], pc);
        if (!cluster_->running(r))
          throw fault("distributed shared memory: access to block " + std::to_string(r) +
                          " of the cluster, which has exited",
                      warp(current_warp_)[lane], pc);
        return {Region::distributed, nullptr, r};
      }
  if (in_image(address)) return {Region::image};
  Buffer* buffer = GlobalMemory::get().find(address);
  const std::string what(name(operation(event)));
  const Lane& who = warp(current_warp_)[lane];
  if (address - reinterpret_cast<std::uintptr_t>(stacks_) < kMaxThreads * kStackBytes)
    throw fault(what + " of the local memory of another thread, or beyond one's own", who, pc);
  if (!buffer) {
    // Just behind a buffer is what an index that is off by one makes.
    Buffer* before = GlobalMemory::get().find(address - std::min<std::uint64_t>(address, 4096));
    for (std::uint64_t back = 1; !before && back <= 4096; back *= 2)
      before = GlobalMemory::get().find(address - std::min(address, back));
    throw fault("out-of-bounds global " + what +
                    (before ? ": byte " + std::to_string(address - before->start) +
                                  " of a buffer of " + std::to_string(before->bytes)
                     : GlobalMemory::get().was_freed(address) ? ": of a buffer that has been freed"
                                                              : ": not device memory"),
                who, pc);
  }
  if (!buffer->holds(address, bytes))
    throw fault("out-of-bounds global " + what + ": byte " +
                    std::to_string(address + bytes - 1 - buffer->start) + " of a buffer of " +
                    std::to_string(buffer->bytes),
                who, pc);
  last_buffer_ = buffer;
  return {Region::global, buffer};
}

void Block::count(std::uint64_t pc, Space space, Event event, const Request& request,
                  const Place& place) {
  Site& site = counts_.site(pc, space, operation(event), static_cast<int>(request.bytes));
  const auto lanes = static_cast<unsigned>(std::popcount(request.mask));
  Cost cost{1, 1};
  if (space == Space::global || space == Space::distributed) {
    cost = event == Event::atomic ? global_atomic_cost(request) : global_cost(request);
    if (place.buffer)
      for_each_lane(request.mask, [&](unsigned l) {
        place.buffer->touch(request.addresses[l], request.bytes, event != Event::store,
                            event != Event::load);
      });
  } else if (space != Space::constant) {
    cost = shared_cost(request, event == Event::load);
  }
  Traffic one{.requests = 1,
              .lanes = lanes,
              .bytes = std::uint64_t{lanes} * request.bytes,
              .transactions = cost.transactions,
              .ideal = cost.ideal,
              .worst = cost.transactions};
  if (event == Event::atomic) one.serialised = most_on_one_address(request);
  if (cost.transactions > site.traffic.worst ||
      (cost.transactions == site.traffic.worst && site.worst_block == number_ &&
       current_warp_ < site.worst_warp)) {
    site.worst.fill(-1);
    site.worst_block = number_;
    site.worst_warp = current_warp_;
    for_each_lane(request.mask, [&](unsigned l) {
      const std::uint64_t a = request.addresses[l];
      site.worst[l] = static_cast<std::int64_t>(
          space == Space::shared        ? shared_.offset_in_variable(a)
          : space == Space::distributed ? shared_.offset_in_variable(a & 0xFFFF'FFFF)
          : place.buffer                ? a - place.buffer->start
                                        : image_offset(a));
    });
  }
  site.traffic += one;
}

void Block::check_shared(std::uint64_t pc, Event event, const Request& request) {
  for_each_lane(request.mask, [&](unsigned l) {
    const Lane& lane = warp(current_warp_)[l];
    const std::size_t offset = request.addresses[l];
    const std::string name(emulator::name(operation(event)));
    if (const auto why = shared_.out_of_bounds(offset, request.bytes); !why.empty())
      throw fault("out-of-bounds shared " + name + " " + why, lane, pc);
    if (event != Event::store && !shared_.written(offset, request.bytes))
      throw fault("uninitialised shared memory: " + name + " of " + shared_.variable(offset) +
                      ", which nobody in the block has written",
                  lane, pc);
    check_race(pc, event, offset, request.bytes, lane, *this);
  });
}

// Of one of this block's lanes with others at the shared memory of `owner`.
void Block::check_race(std::uint64_t pc, Event event, std::size_t offset, unsigned bytes,
                       const Lane& lane, Block& owner) {
  const auto thread = static_cast<unsigned>(&lane - lanes_.data());
  const auto race = owner.shared_.note(offset, bytes,
                                       {.thread = rank_ * kMaxThreads + thread,
                                        .epoch = shared_.epoch(),
                                        .syncs = lane.syncs,
                                        .warp_syncs = warp_syncs_[thread / 32],
                                        .request = requests_,
                                        .pc = pc,
                                        .kind = operation(event)});
  if (!race) return;
  const unsigned other_rank = race->thread / kMaxThreads;
  const Block& other = other_rank == rank_ ? *this : cluster_->block(other_rank);
  const Lane& other_lane = other.lanes_[race->thread % kMaxThreads];
  const char* who = other_rank != rank_ ? "between blocks of the cluster"
                    : race->thread % kMaxThreads / 32 == current_warp_ ? "inside a warp"
                                                                       : "between warps";
  throw fault(
      std::string("shared-memory race ") + who + ": " + race->what + " of " +
          owner.shared_.variable(offset) + " with " +
          (other_rank == rank_ ? "thread " + to_text(other_lane.index) : other.where(other_lane)) +
          " at " + line_of(race->pc).text(),
      lane, pc);
}

void Block::note_remote(std::uint64_t pc, Event event, const Request& request, unsigned rank) {
  Block& other = cluster_->block(rank);
  for_each_lane(request.mask, [&](unsigned l) {
    const Lane& lane = warp(current_warp_)[l];
    const std::size_t offset = request.addresses[l];
    if (const auto why = other.shared_.out_of_bounds(offset, request.bytes); !why.empty())
      throw fault("out-of-bounds distributed access " + why, lane, pc);
    if (event != Event::store && !other.shared_.written(offset, request.bytes))
      throw fault("uninitialised distributed memory: " + std::string(name(operation(event))) +
                      " of " + other.shared_.variable(offset) + " of block " +
                      std::to_string(rank) + ", which nobody has written",
                  lane, pc);
    check_race(pc, event, offset, request.bytes, lane, other);
  });
  if (other.visitor_.any) return;
  const Lane& lane = warp(current_warp_)[std::countr_zero(request.mask)];
  other.visitor_ = {
      "kernel " + kernel_name(launch_->kernel) + " at " + line_of(pc).text() + ", " + where(lane),
      true};
}

void* Block::map_shared(void* address, unsigned rank) {
  if (rank == rank_) return address;
  if (rank >= cluster_size()) return nullptr;
  return shared_.in(cluster_->block(rank).shared_, address);
}

// ---- words

std::string Block::where(const Lane& lane) const {
  return "block " + to_text(index_) + " thread " + to_text(lane.index);
}

Fault Block::fault(const std::string& what, const Lane& lane, std::uintptr_t pc) const {
  return {what + "; kernel " + kernel_name(launch_->kernel) + " at " + line_of(pc).text() + ", " +
          where(lane)};
}

// What a lane had on its mind when it stopped in the middle of something.
Fault Block::fault_of_stopped(const Lane& lane) {
  if (lane.stopped_by) return fault(lane.stopped_by, lane, lane.pc);
  const Record* first = logs_.data() + lane.number * kLogStride;
  if (lane.trap_address - lane.stack < kPage) return fault(too_much_local(), lane, lane.pc);
  if (lane.trap == SIGFPE) return fault("division of an integer by zero", lane, lane.pc);
  // An access that is on record, or one of those that a copy makes.
  if (lane.next)
    for (const Record* r = lane.next; r-- != first && r->pc == lane.next[-1].pc;)
      if (r->event() != Event::step && r->event() != Event::sync)
        place(r->address(), r->bytes(), r->event(), r->pc, lane.number);
  return fault("out-of-bounds access: not device memory", lane, lane.pc);
}

// "; kernel k: 16 threads at the block barrier of k.cu:12 (first: block (0, 0, 0) thread ..."
std::string Block::who_waits() const {
  std::map<std::string, std::pair<unsigned, const Lane*>> groups;
  for (const Lane& lane : lanes_) {
    std::string what;
    switch (lane.state) {
      case State::exited:
        what = "have exited";
        break;
      case State::at_block_barrier:
      case State::at_cluster_barrier:
        what = std::string("wait at the ") +
               (lane.state == State::at_block_barrier ? "block" : "cluster") + " barrier of " +
               base_name(lane.file) + ":" + std::to_string(lane.line);
        break;
      case State::at_warp_function:
        what = "wait in a warp function at " + line_of(lane.pc).text();
        break;
      default:
        what = "run at " + line_of(lane.step).text();
        break;
    }
    auto& [count, first] = groups[what];
    if (count++ == 0) first = &lane;
  }
  std::string text = "; kernel " + kernel_name(launch_->kernel);
  const char* separator = ": ";
  for (const auto& [what, group] : groups) {
    text += separator + std::to_string(group.first) + " threads " + what + " (first " +
            where(*group.second) + ")";
    separator = ", ";
  }
  return text;
}

}  // namespace emulator
