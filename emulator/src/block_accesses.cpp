// SPDX-License-Identifier: MIT
//
// What the threads of a block do in memory: which memory it is, what it costs, and whether it is
// in bounds and free of races.
#include <algorithm>
#include <bit>

#include "block.hpp"
#include "record.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

Operation operation(Event event) {
  return event == Event::load     ? Operation::load
         : event == Event::atomic ? Operation::atomic
                                  : Operation::store;  // or a copy, to shared memory
}

}  // namespace

void Block::step(std::uint32_t lanes) {
  ++counts_.warp_steps;
  counts_.lane_steps += static_cast<unsigned>(std::popcount(lanes));
}

void Block::sync(const Request& numbers) {
  for_each_lane(numbers.mask, [&](unsigned l) {
    Lane& lane = warp(current_warp_)[l];
    lane.syncs = static_cast<unsigned>(numbers.addresses[l]);
    const WarpMeeting& met = warp_syncs_[current_warp_][lane.syncs - 1];
    if (met.orders_memory) lane.moment = met.moment;
  });
}

void Block::moment(const Request& numbers) {
  for_each_lane(numbers.mask, [&](unsigned l) {
    Lane& lane = warp(current_warp_)[l];
    lane.moment = lane.moments[numbers.addresses[l]];
  });
}

// ---- orders between blocks. All that a lane did is marked before it releases or acquires
// anything: what happens before something else is marked before it.

void Block::mark_accesses(Lane& lane, unsigned but_last) {
  if (!lane.next || !launch_->ordered()) return;
  const Record* end = lane.next - but_last;
  for (; lane.marked < end && !conflict_; ++lane.marked) {
    const Record& record = *lane.marked;
    if (record.event() == Event::store) note_value(const_cast<Record&>(record));
    const bool copy = record.event() == Event::copy && record.address() != 0;
    if (record.event() > Event::store && !copy) continue;
    if (shared_.holds(record.address())) continue;
    conflict_ = launch_->global.weak(order_, lane, number_of(lane), record);
  }
  lane.marked = lane.next;
}

void Block::before_strong(Lane& lane, std::uintptr_t address, std::uintptr_t pc) {
  if (!launch_->ordered()) return;
  {
    const OutsideLane outside;
    if (!launch_->global.holds(address)) return;
  }
  Turns& turns = *launch_->turns;
  // One that polls in vain lets others go first.
  constexpr unsigned kInVain = 16, kPatience = 256;
  const std::uintptr_t what = address ^ pc << 16;
  const bool again =
      lane.polled_since == turns.stores() && (lane.polled == what || lane.polls >= kInVain);
  lane.polls = lane.polled_since == turns.stores() ? lane.polls + 1 : 0;
  lane.polled = what;
  lane.polled_since = turns.stores();
  {
    const OutsideLane outside;
    if (again && lane.polls % kPatience == 0)
      turns.yield(runner_);  // the others only seem to wait
    else if (!again || !turns.wait(runner_))
      turns.point(runner_);
  }
  if (launch_->failed) leave(lane, State::stopped);
}

void Block::strong(Lane& lane, std::uintptr_t address, unsigned bytes, GlobalOrder::Kind kind,
                   Strength strength, std::uintptr_t pc, bool recorded) {
  if (!launch_->check || (launch_->blocks() > 1 && !launch_->turns)) return;
  const OutsideLane outside;
  if (!launch_->global.holds(address)) return;
  mark_accesses(lane, recorded);
  const auto found =
      launch_->global.strong(order_, lane, number_of(lane), address, bytes, kind, strength, pc);
  if (!conflict_) conflict_ = found;
  if (kind == GlobalOrder::Kind::load || recorded) return;
  if (Buffer* buffer = GlobalMemory::get().find(address)) buffer->note_written(address, bytes);
}

void Block::access(std::uint64_t pc, Event event, const Request& request) {
  ++requests_;
  if (event == Event::store) changed_ = true;  // atomics tell themselves
  if (event == Event::atomic) warp_took_turns_[current_warp_] = true;
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
                        : at.region == Region::image ? in_image(address)
                                                     : is_argument(address) || is_built_in(address);
      if (here) mask |= 1u << l;
    });
    left &= ~mask;
    const Request part{mask, request.bytes, request.addresses, request.queues, request.values};
    if (at.region == Region::shared) {
      std::uint64_t offsets[32];
      for_each_lane(mask, [&](unsigned l) { offsets[l] = shared_.offset(request.addresses[l]); });
      const Request own{mask, request.bytes, offsets, request.queues, request.values};
      if (launch_->check) check_shared(pc, event, own);
      if (launch_->count) count(pc, Space::shared, event, own, at);
    } else if (at.region == Region::distributed) {
      std::uint64_t offsets[32];
      const SharedMemory& memory = cluster_->block(at.rank).shared_;
      for_each_lane(mask, [&](unsigned l) { offsets[l] = memory.offset(request.addresses[l]); });
      const Request theirs{mask, request.bytes, offsets, request.queues, request.values};
      if (launch_->check) note_remote(pc, event, theirs, at.rank);
      remote |= mask;
      for_each_lane(
          mask, [&](unsigned l) { remote_places[l] = std::uint64_t{at.rank} << 32 | offsets[l]; });
    } else if (at.region == Region::constant) {
      continue;
    } else {
      if (launch_->check && event == Event::store && !warp_took_turns_[current_warp_])
        check_one_value(pc, part);
      if (launch_->check && at.buffer) check_global(pc, event, part, *at.buffer);
      if (at.region == Region::image)
        for_each_lane(mask, [&](unsigned l) {
          check_variable(request.addresses[l], request.bytes, event, pc, warp(current_warp_)[l]);
        });
      if (!launch_->count) continue;
      const bool constant = at.region == Region::image && is_constant(request.addresses[first]);
      count(pc, constant ? Space::constant : Space::global, event, part, at);
    }
  }
  if (remote != 0 && launch_->count)
    count(pc, Space::distributed, event, {remote, request.bytes, remote_places}, {});
}

// An asynchronous copy reads its source now. Its destination is in flight until the thread's wait
// is replayed: whatever anybody does there is a race, and both ends count as stores, so that a
// barrier must lie before the issue and another after the wait.
void Block::copy(std::uint64_t pc, const Request& sources) {
  ++requests_;
  const std::span<Lane> lanes = warp(current_warp_);
  const AsyncCopy* copies[32];
  std::uint32_t left = 0;
  for_each_lane(sources.mask, [&](unsigned l) {
    copies[l] = &lanes[l].copies[lanes[l].replayed++];
    if (copies[l]->read > 0) left |= 1u << l;
  });
  while (left != 0) {
    const unsigned first = static_cast<unsigned>(std::countr_zero(left));
    const Place at = place(sources.addresses[first], copies[first]->read, Event::load, pc, first);
    std::uint32_t mask = 0;
    for_each_lane(left, [&](unsigned l) {
      const std::uint64_t address = sources.addresses[l];
      const bool here =
          at.buffer ? at.buffer->holds(address, copies[l]->read)
                    : at.region == Region::image && in_image(address) && !is_constant(address);
      if (here) mask |= 1u << l;
    });
    if (mask == 0)
      throw fault("asynchronous copy of " + std::to_string(sources.bytes) +
                      " bytes: its source is not global memory",
                  lanes[first], pc);
    left &= ~mask;
    if (launch_->check && at.buffer)
      for_each_lane(mask, [&](unsigned l) {
        check_global(pc, Event::load, {1u << l, copies[l]->read, sources.addresses}, *at.buffer);
      });
    // A copy that reads only some of its bytes takes the same sector for them.
    if (launch_->count)
      count(pc, Space::global, Event::load, {mask, sources.bytes, sources.addresses}, at);
  }
  if (!launch_->check) return;
  std::uint64_t offsets[32];
  for_each_lane(sources.mask, [&](unsigned l) { offsets[l] = shared_.offset(copies[l]->to); });
  check_shared(pc, Event::copy, {sources.mask, sources.bytes, offsets});
}

void Block::arrival(const Request& numbers) {
  ++requests_;
  for_each_lane(numbers.mask, [&](unsigned l) {
    Lane& lane = warp(current_warp_)[l];
    const auto count = static_cast<unsigned>(numbers.addresses[l]);
    for (unsigned i = 0; launch_->check && i < count; ++i) {
      const AsyncCopy& copy = lane.copies[i];
      check_race(copy.pc, Event::arrival, shared_.offset(copy.to), copy.bytes, 0, lane, *this);
    }
    lane.drop_copies(count);
  });
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
  if (is_argument(address) || is_built_in(address)) return {Region::constant};
  if (shared_.holds(address)) return {Region::shared};
  GlobalMemory& memory = GlobalMemory::get();
  if (last_buffer_ && last_buffer_->holds(address, bytes)) return {Region::global, last_buffer_};
  for (unsigned r = 0; r < cluster_size(); ++r)
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
  if (in_image(address)) {
    check_variable(address, bytes, event, pc, warp(current_warp_)[lane]);
    return {Region::image};
  }
  Buffer* buffer = memory.find(address);
  const std::string what(name(operation(event)));
  const Lane& who = warp(current_warp_)[lane];
  if (stacks_.hold(address))
    throw fault(what + " of the local memory of another thread, or beyond one's own", who, pc);
  if (!buffer) {
    // Just behind a buffer is what an index that is off by one makes.
    Buffer* before = memory.find(address - std::min<std::uint64_t>(address, 4096));
    for (std::uint64_t back = 1; !before && back <= 4096; back *= 2)
      before = memory.find(address - std::min(address, back));
    throw fault("out-of-bounds global " + what +
                    (before ? ": byte " + std::to_string(address - before->start) +
                                  " of a buffer of " + std::to_string(before->bytes)
                     : memory.was_freed(address) ? ": of a buffer that has been freed"
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

// Of the program's own variables: __device__ ones, constants, and the host's, which look the same.
void Block::check_variable(std::uint64_t address, unsigned bytes, Event event, std::uint64_t pc,
                           const Lane& lane) {
  const auto holds = [&](const Variable* v) {
    return v && address >= v->offset && address + bytes <= v->offset + v->bytes;
  };
  const std::string what = std::string(name(operation(event)));
  if (event != Event::load && is_constant(address))
    throw fault("read-only memory: " + what + " of a constant", lane, pc);
  if (!holds(last_variable_)) {
    const Variable* variable = last_before(Symbols::get().global(), address);
    // Constants that the compiler made have no names, nor has anything in a stripped program.
    if (!holds(variable) && variable && !is_compilers_own(address))
      throw fault("out-of-bounds " + what + ": byte " +
                      std::to_string(address + bytes - 1 - variable->offset) + " of " +
                      variable->name() + ", a variable of " + std::to_string(variable->bytes),
                  lane, pc);
    last_variable_ = variable;
  }
  if (!holds(last_variable_)) return;
  for (const volatile void* pointer : launch_->bound.pointers)
    if (reinterpret_cast<std::uintptr_t>(pointer) - last_variable_->offset < last_variable_->bytes)
      throw fault("host memory: the kernel was given the host's address of " +
                      last_variable_->name() + "; cudaGetSymbolAddress gives the device's",
                  lane, pc);
}

void Block::check_global(std::uint64_t pc, Event event, const Request& request, Buffer& buffer) {
  constexpr std::size_t kMost = 1000;
  for_each_lane(request.mask, [&](unsigned l) {
    const std::uintptr_t address = request.addresses[l];
    const std::uint64_t thread = number_ * kMaxThreads + current_warp_ * 32 + l;
    const bool known = event == Event::store || buffer.any_known(address, request.bytes);
    if (!known) {
      const std::lock_guard lock(launch_->mutex);
      if (launch_->unwritten.size() < kMost)
        launch_->unwritten.push_back(
            {fault("uninitialised global memory: " + std::string(name(operation(event))) +
                       " of byte " + std::to_string(address - buffer.start) + " of a buffer of " +
                       std::to_string(buffer.bytes) + ", which nothing has written",
                   warp(current_warp_)[l], pc),
             address, request.bytes, thread});
      launch_->any_unwritten = true;
    }
    if (event == Event::load || !known) return;
    // What a thread has read before it writes, as in +=, stays unwritten.
    if (launch_->any_unwritten) {
      const std::lock_guard lock(launch_->mutex);
      for (const Launch::Unwritten& read : launch_->unwritten)
        if (read.address == address && read.thread == thread) return;
    }
    buffer.note_written(address, request.bytes);
  });
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
  if (is_worst(site, cost.transactions))
    for_each_lane(request.mask, [&](unsigned l) {
      const std::uint64_t a = request.addresses[l];
      site.worst[l] = static_cast<std::int64_t>(
          space == Space::shared        ? shared_.offset_in_variable(a)
          : space == Space::distributed ? shared_.offset_in_variable(a & 0xFFFF'FFFF)
          : place.buffer                ? a - place.buffer->start
                                        : image_offset(a));
    });
  site.traffic += one;
}

// Whether the request took the most of its site so far: then it tells where its lanes pointed.
bool Block::is_worst(Site& site, std::uint64_t transactions) const {
  if (transactions < site.traffic.worst ||
      (transactions == site.traffic.worst &&
       (site.worst_block != number_ || current_warp_ >= site.worst_warp)))
    return false;
  site.worst.fill(-1);
  site.worst_block = number_;
  site.worst_warp = current_warp_;
  return true;
}

void Block::check_shared(std::uint64_t pc, Event event, const Request& request) {
  for_each_lane(request.mask, [&](unsigned l) {
    const Lane& lane = warp(current_warp_)[l];
    const std::size_t offset = request.addresses[l];
    const std::string name(emulator::name(operation(event)));
    if (const auto why = shared_.out_of_bounds(offset, request.bytes); !why.empty())
      throw fault("out-of-bounds shared " + name + " " + why, lane, pc);
    if (operation(event) != Operation::store && !unwritten_ &&
        !shared_.written(offset, request.bytes))
      unwritten_ =
          fault("uninitialised shared memory: " + name + " of " + shared_.variable(offset) +
                    ", which nobody in the block has written yet",
                lane, pc);
    check_race(pc, event, offset, request.bytes, request.values ? request.values[l] : 0, lane,
               *this);
  });
}

// Which lane's value stays is left open by CUDA.
void Block::check_one_value(std::uint64_t pc, const Request& request) const {
  for_each_lane(request.mask, [&](unsigned l) {
    for_each_lane(request.mask & ((1u << l) - 1), [&](unsigned before) {
      if (request.addresses[l] == request.addresses[before] &&
          request.values[l] != request.values[before])
        throw fault("lanes " + std::to_string(before) + " and " + std::to_string(l) +
                        " of one instruction store different values at one address, and CUDA does "
                        "not say which remains",
                    lanes_[current_warp_ * 32 + l], pc);
    });
  });
}

// Of one of this block's lanes with others at the shared memory of `owner`.
void Block::check_race(std::uint64_t pc, Event event, std::size_t offset, unsigned bytes,
                       std::uint16_t value, const Lane& lane, Block& owner) {
  const auto number = static_cast<unsigned>(&lane - lanes_.data());
  using Copy = SharedMemory::Access::Copy;
  const auto race = owner.shared_.note(offset, bytes,
                                       {.thread = rank_ * kMaxThreads + number,
                                        .epoch = shared_.epoch(),
                                        .syncs = lane.syncs,
                                        .warp_syncs = warp_syncs_[number / 32],
                                        .request = requests_,
                                        .pc = pc,
                                        .value = value,
                                        .time = lane.moment.time,
                                        .first_block = number_ - rank_,
                                        .known = {order_.base(), lane.moment.known.get()},
                                        .kind = operation(event),
                                        .copy = event == Event::copy      ? Copy::issued
                                                : event == Event::arrival ? Copy::arrived
                                                                          : Copy::none});
  if (!race || (race->one_instruction && warp_took_turns_[number / 32])) return;
  const unsigned other_rank = race->thread / kMaxThreads;
  const Block& other = other_rank == rank_ ? *this : cluster_->block(other_rank);
  const Lane& other_lane = other.lanes_[race->thread % kMaxThreads];
  const bool one_warp = other_rank == rank_ && race->thread % kMaxThreads / 32 == current_warp_;
  const char* who = other_rank != rank_ ? "between blocks of the cluster"
                    : one_warp          ? "inside a warp"
                                        : "between warps";
  unwritten_.reset();
  throw fault(std::string("shared-memory race ") + who + ": " + race->what + " of " +
                  owner.shared_.variable(offset) + " with " +
                  (other_rank == rank_ ? thread(other_lane) : other.where(other_lane)) + " at " +
                  source_line(race->pc).text() +
                  (one_warp && !race->one_instruction
                       ? " (since compute capability 7.0 lanes need not run in lockstep, and "
                         "volatile orders nothing between them: __syncwarp() does)"
                       : ""),
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
    check_race(pc, event, offset, request.bytes, request.values[l], lane, other);
  });
  const Lane& lane = warp(current_warp_)[std::countr_zero(request.mask)];
  other.visit_ = {this, &lane, pc, lane.moment.time};
}

void* Block::map_shared(void* address, unsigned rank) {
  if (rank == rank_) return address;
  if (rank >= cluster_size()) return nullptr;
  return shared_.in(cluster_->block(rank).shared_, address);
}

}  // namespace emulator
