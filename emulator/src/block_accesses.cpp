// SPDX-License-Identifier: MIT
//
// What the threads of a block do in memory: which memory it is, what it costs, and whether it is
// in bounds and free of races.
#include "block.hpp"

namespace emulator {
void Block::replayed(std::uint64_t pc, Event event, const Request& request) {
  if (event == Event::step) {
    ++counts_.steps.warp_steps;
    counts_.steps.lane_steps += static_cast<unsigned>(std::popcount(request.mask));
    return;
  }
  if (event != Event::bulk) return access(pc, event, request);
  for_each_lane(request.mask, [&](unsigned l) {
    bulk_copy(warp(current_warp_)[l], *reinterpret_cast<BulkCopy*>(request.addresses[l]));
  });
}

// ---- races. All that a lane did is noted before it releases or acquires anything: what happens
// before something else is noted before it.

void Block::mark_accesses(Lane& lane, unsigned but_last, const Races::Access* next) {
  if (!lane.next || !launch_->ordered()) return;
  const OutsideLane outside;
  const Record* end = lane.next - but_last;
  const Record* last = nullptr;
  const auto is_compared = [&](const Record& r) {
    return next && next->compares && r.event() == Event::load && r.address() >= next->address &&
           r.address() + r.bytes() <= next->address + next->bytes;
  };
  for (const Record* r = lane.marked; r < end; ++r)
    if (is_compared(*r)) last = r;
  if (Record held = std::exchange(lane.held, {}); held.pc != 0)
    mark(lane, held, !last && is_compared(held));
  for (; lane.marked < end && !conflict_; ++lane.marked)
    mark(lane, const_cast<Record&>(*lane.marked), lane.marked == last);
  lane.marked = lane.next;
}

void Block::mark_full_log(Lane& lane) {
  const Record* end = lane.next;
  while (end > lane.marked && end[-1].event() == Event::step) --end;
  const bool holds = launch_->ordered() && end > lane.marked && end[-1].event() == Event::load;
  mark_accesses(lane, holds ? static_cast<unsigned>(lane.next - end + 1) : 0);
  if (holds) lane.held = end[-1];
}

void Block::mark(Lane& lane, Record& record, bool strong) {
  if (record.event() == Event::store) note_value(record);
  const bool copy = record.event() == Event::copy && record.address() != 0;
  if (record.event() > Event::store && !copy) return;
  const auto value = static_cast<unsigned>(record.value);
  note(lane, {.address = record.address(),
              .bytes = copy ? value : record.bytes(),
              .pc = record.pc,
              .operation = record.event() == Event::store ? Operation::store : Operation::load,
              .strong = strong,
              .is_volatile = record.is_volatile(),
              .value = value});
}

void Block::note(Lane& lane, Races::Access access) {
  Block* const owner = owner_of(access.address);
  access.shared = owner != nullptr;
  if (owner) access.owner = owner->order_.number();
  if (!owner && !launch_->races.is_global(access.address)) return;
  const auto found = launch_->races.note(lane, access);
  if (!conflict_) conflict_ = found;
  if (!owner) return;
  if (access.operation != Operation::store && !unwritten_ &&
      !owner->shared_.written(access.address, access.bytes))
    unwritten_ = {&lane, access, owner};
  if (access.operation != Operation::load)
    owner->shared_.note_written(access.address, access.bytes);
  if (owner != this) owner->visit_ = {this, &lane, access.pc, order_.time()};
}

// Of shared memory: this block or another of its cluster.
Block* Block::owner_of(std::uintptr_t address) const {
  for (unsigned r = 0; r < cluster_size(); ++r)
    if (Block& block = cluster_->block(r); block.shared_.holds(address))
      return is_built_in(address) ? nullptr : &block;
  return nullptr;
}

void Block::check_bounds(std::uintptr_t to, unsigned bytes, std::uintptr_t pc) {
  std::string why;
  {
    const OutsideLane outside;
    why = shared_.out_of_bounds(to, bytes);
  }
  if (!why.empty()) stop(pc, "out-of-bounds shared store ", why);
}

void Block::mark_copy(Lane& lane, Races::Access access) {
  if (!launch_->ordered()) return;
  const OutsideLane outside;
  mark_accesses(lane);
  const std::uintptr_t end = access.address + access.bytes;
  for (; access.address < end && !conflict_; access.address += access.bytes) {
    access.bytes = static_cast<unsigned>(std::min<std::uintptr_t>(16, end - access.address));
    note(lane, access);
  }
}

void Block::land(std::uintptr_t to, unsigned bytes, bool bulk) {
  if (!launch_->ordered()) return;
  const OutsideLane outside;
  for (unsigned i = 0; i < bytes; i += 4) launch_->races.land(to + i, 4, bulk);
}

void Block::before_strong(Lane& lane, std::uintptr_t address, std::uintptr_t pc) {
  if (!launch_->ordered()) return;
  const OutsideLane outside;
  if (!launch_->races.is_global(address)) return;
  Turns& turns = *launch_->turns;
  // One that polls in vain lets others go first.
  constexpr unsigned kInVain = 16, kPatience = 256;
  const std::uintptr_t what = address ^ pc << 16;
  const bool again =
      lane.polled_since == turns.stores() && (lane.polled == what || lane.polls >= kInVain);
  lane.polls = lane.polled_since == turns.stores() ? lane.polls + 1 : 0;
  lane.polled = what;
  lane.polled_since = turns.stores();
  if (again && lane.polls % kPatience == 0)
    turns.yield(runner_);  // the others only seem to wait
  else if (!again || !turns.wait(runner_))
    turns.point(runner_);
  if (launch_->failed) leave(lane, State::stopped);  // never to come back
}

void Block::strong(Lane& lane, const Races::Access& access) {
  if (!launch_->ordered() || access.address - lane.stack < kStackBytes) return;  // not on record
  const OutsideLane outside;
  if (access.is_volatile && owner_of(access.address)) return;  // plain: on record
  mark_accesses(lane, 1, &access);
  note(lane, access);
}

// ---- requests

void Block::access(std::uint64_t pc, Event event, const Request& request) {
  if (event == Event::store) changed_ = true;  // atomics tell themselves
  const bool copy = event == Event::copy;  // reads its source now, and maybe less than it copies
  const Operation what = copy ? Operation::load : operation(event);
  const auto touch = [&](unsigned l) {
    return Touch{pc, copy ? Event::load : event, warp(current_warp_)[l], request.addresses[l],
                 copy ? request.values[l] : request.bytes};
  };
  std::uint32_t left = lanes_where(request.mask, [&](unsigned l) {
    if (is_misaligned(request.addresses[l], request.bytes)) throw misaligned(touch(l));
    return !copy || request.values[l] != 0;
  });
  // Requests to other blocks of the cluster are one, told apart by the upper half of the address.
  std::uint32_t remote = 0;
  std::uint64_t offsets[32], remote_places[32];
  const bool flag = event == Event::flag || event == Event::flag_store;
  // Lanes of one instruction may be at different memories: then it is a request to each.
  while (left != 0) {
    const Place at = place(touch(static_cast<unsigned>(std::countr_zero(left))));
    const std::uint32_t mask = lanes_where(
        left, [&](unsigned l) { return is_at(at, request.addresses[l], touch(l).bytes); });
    left &= ~mask;
    const bool given = !at.owner && !at.buffer && !at.image;
    for_each_lane(copy && !at.buffer ? mask : 0, [&](unsigned l) {
      if (!at.image || is_constant(request.addresses[l]))
        throw fault(touch(l), "asynchronous copy of ", request.bytes,
                    " bytes: its source is not global memory");
    });
    if (given || (flag && at.owner)) continue;
    Request part = request;
    part.mask = mask;
    if (at.owner) {
      for_each_lane(mask, [&](unsigned l) {
        offsets[l] = at.owner->shared_.offset(request.addresses[l]);
        if (launch_->check) check_shared(touch(l), *at.owner);
        remote_places[l] = std::uint64_t{at.owner->rank_} << 32 | offsets[l];
      });
      part.addresses = offsets;
      const bool away = event == Event::store && request.queues;
      if (at.owner != this || away)
        remote |= mask;
      else if (launch_->count)
        count(pc, Space::shared, what, part);
      continue;
    }
    for_each_lane(mask, [&](unsigned l) {
      if (!at.buffer) check_variable(touch(l));
      if (at.buffer && launch_->check) check_global(touch(l), *at.buffer);
    });
    if (!launch_->count || flag) continue;  // a copy of fewer bytes takes the same sector for them
    const bool constant = !at.buffer && is_constant(request.addresses[std::countr_zero(mask)]);
    count(pc, constant ? Space::constant : Space::global, what, part, at.buffer);
  }
  if (remote != 0 && launch_->count)
    count(pc, Space::distributed, what, {remote, request.bytes, remote_places});
}

Block::Place Block::place(const Touch& touch) {
  const std::uintptr_t address = touch.address;
  if (is_argument(address) || is_built_in(address)) return {};
  if (shared_.holds(address)) return {.owner = this};
  GlobalMemory& memory = GlobalMemory::get();
  if (last_buffer_ && last_buffer_->holds(address, touch.bytes)) return {.buffer = last_buffer_};
  for (unsigned r = 0; r < cluster_size(); ++r)
    if (Block& other = cluster_->block(r); r != rank_ && other.shared_.holds(address)) {
      if (!neighbour(r))
        throw fault(touch, "distributed shared memory: access to block ", r, " of the cluster, ",
                    cluster_->met() ? "which has exited"
                                    : "which may not have started (no cluster barrier yet)");
      return {.owner = &other};
    }
  if (in_image(address)) {
    check_variable(touch);
    return {.image = true};
  }
  Buffer* buffer = memory.find(address);
  const std::string_view what = name(operation(touch.event));
  if (stacks_.hold(address))
    throw fault(touch, what, " of the local memory of another thread, or beyond one's own");
  if (!buffer) {
    // Just behind a buffer is what an index that is off by one makes.
    const Buffer* before = memory.find(address - std::min<std::uint64_t>(address, 4096));
    for (std::uint64_t back = 1; !before && back <= 4096; back *= 2)
      before = memory.find(address - std::min(address, back));
    throw fault(touch, "out-of-bounds global ", what, ": ",
                before                      ? before->place(address)
                : memory.was_freed(address) ? "of a buffer that has been freed"
                                            : "not device memory");
  }
  if (!buffer->holds(address, touch.bytes))
    throw fault(touch, "out-of-bounds global ", what, ": ",
                buffer->place(address + touch.bytes - 1));
  last_buffer_ = buffer;
  return {.buffer = buffer};
}

bool Block::is_at(const Place& place, std::uintptr_t address, unsigned bytes) const {
  return place.owner    ? place.owner->shared_.holds(address)
         : place.buffer ? place.buffer->holds(address, bytes)
         : place.image  ? in_image(address)
                        : is_argument(address) || is_built_in(address);
}

// ---- checks

// Of the program's own variables: __device__ ones, constants, and the host's, which look the same.
void Block::check_variable(const Touch& touch) {
  const auto holds = [&](const Variable* v) {
    return v && touch.address >= v->offset && touch.address + touch.bytes <= v->offset + v->bytes;
  };
  const std::string_view what = name(operation(touch.event));
  if (touch.event != Event::load && is_constant(touch.address))
    throw fault(touch, "read-only memory: ", what, " of a constant");
  if (!holds(last_variable_)) {
    const Variable* variable = last_before(Symbols::get().global, touch.address);
    // Constants that the compiler made have no names, nor has anything in a stripped program.
    if (!holds(variable) && variable && !is_compilers_own(touch.address))
      throw fault(touch, "out-of-bounds ", what, ": byte ",
                  touch.address + touch.bytes - 1 - variable->offset, " of ", variable->name(),
                  ", a variable of ", variable->bytes);
    last_variable_ = variable;
  }
  if (!holds(last_variable_)) return;
  for (const volatile void* pointer : launch_->bound.pointers)
    if (address_of(pointer) - last_variable_->offset < last_variable_->bytes)
      throw fault(touch, "host memory: the kernel was given the host's address of ",
                  last_variable_->name(), "; cudaGetSymbolAddress gives the device's");
}

void Block::check_global(const Touch& touch, Buffer& buffer) {
  constexpr std::size_t kMost = 1000;
  const std::uint64_t thread = number_ * kMaxThreads + number_of(touch.lane);
  const Operation what = operation(touch.event);
  const bool known = what == Operation::store || buffer.any_known(touch.address, touch.bytes);
  if (!known) {
    const std::lock_guard lock(launch_->mutex);
    if (launch_->unwritten.size() < kMost)
      launch_->unwritten.push_back(
          {fault(touch, "uninitialised global memory: ", name(what), " of ",
                 buffer.place(touch.address), ", which nothing has written"),
           touch.address, touch.bytes, thread});
    launch_->any_unwritten = true;
  }
  if (what == Operation::load || !known) return;
  // What a thread has read before it writes, as in +=, stays unwritten.
  if (launch_->any_unwritten) {
    const std::lock_guard lock(launch_->mutex);
    for (const Launch::Unwritten& read : launch_->unwritten)
      if (read.address == touch.address && read.thread == thread) return;
  }
  buffer.note_written(touch.address, touch.bytes);
}

// An access of the shared memory of `owner`, this block or another of its cluster.
void Block::check_shared(const Touch& touch, Block& owner) const {
  const auto why = owner.shared_.out_of_bounds(touch.address, touch.bytes);
  if (!why.empty())
    throw fault(touch, "out-of-bounds ", &owner != this ? "distributed " : "shared ",
                name(operation(touch.event)), " ", why);
}

// ---- figures

void Block::count(std::uint64_t pc, Space space, Operation operation, const Request& request,
                  Buffer* buffer) {
  Site& site = counts_.site(pc, space, operation, static_cast<int>(request.bytes));
  if (buffer)
    for_each_lane(request.mask, [&](unsigned l) {
      buffer->touch(request.addresses[l], request.bytes, operation != Operation::store,
                    operation != Operation::load);
    });
  const Traffic one = traffic_of(request, space, operation);
  if (site.replace_if_worse(one.worst, number_, current_warp_))
    for_each_lane(request.mask, [&](unsigned l) {
      const std::uint64_t a = request.addresses[l];
      site.worst[l] = static_cast<std::int64_t>(
          space == Space::shared        ? shared_.offset_in_variable(a)
          : space == Space::distributed ? shared_.offset_in_variable(a & 0xFFFF'FFFF)
          : buffer                      ? a - buffer->start
                                        : image_offset(a));
    });
  site.traffic += one;
}

void* Block::map_shared(void* address, unsigned rank) {
  if (rank == rank_) return address;
  if (rank >= cluster_size()) return nullptr;
  return shared_.in(cluster_->block(rank).shared_, address);
}

}  // namespace emulator
