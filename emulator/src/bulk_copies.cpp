// SPDX-License-Identifier: MIT
//
// mbarriers and bulk copies. Where nobody checks, a copy is done when it is issued. In checked
// launches it is done as late as hardware may: one to shared memory when a thread waits for its
// phase, one to global memory when its thread waits for it or exits.
#include "bulk_copies.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "block.hpp"
#include "record.hpp"

namespace emulator {
namespace {

constexpr int kMost = (1 << 20) - 1;  // arrivals, and bytes on their way, of a phase

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

template <class... A>
[[noreturn]] void refuse(std::uintptr_t pc, const char* format, A... values) {
  char what[200];
  if constexpr (sizeof...(values) == 0) stop(*current_lane, format, pc);
  std::snprintf(what, sizeof(what), format, values...);
  stop(*current_lane, what, pc);
}

void note(Event event, const void* about, unsigned kind, std::uintptr_t pc) {
  append(*current_lane,
         {address_of(about) | std::uint64_t{kind} << 48 | static_cast<std::uint64_t>(event) << 56,
          pc, 0});
}

Barrier& find(const MBarrier& barrier, Block& owner, std::uintptr_t pc) {
  const auto found = owner.bulk().barriers.find(address_of(&barrier));
  if (found == owner.bulk().barriers.end()) refuse(pc, "mbarrier: used before it was initialised");
  if (barrier.state != found->second.bits())
    refuse(pc, "mbarrier: something was stored where it lies");
  return found->second;
}

// Ends the phase if nothing is missing.
void settle(MBarrier& barrier, Barrier& state, Block& owner) {
  if (state.pending == 0 && state.bytes == 0 && state.under_way == 0) {
    ++state.number;
    state.pending = state.expected;
    state.last = state.phase;
    if (state.phase) state.phase = &owner.bulk().phases.emplace_back();
  }
  barrier.state = state.bits();
  current_block->note_change();
}

// The same place in the memory of a block of the cluster.
struct There {
  Block& block;
  void* address;
};
constexpr int kOwn = -1;
There at(const void* own, int block, std::uintptr_t pc) {
  const unsigned rank = block == kOwn ? current_block->rank() : static_cast<unsigned>(block);
  Block* owner = current_block->neighbour(rank);
  if (!owner)
    refuse(pc, "mbarrier: block %u of the cluster may not have started, has exited, or is none",
           rank);
  return {*owner, current_block->map_shared(const_cast<void*>(own), rank)};
}

void arrive(MBarrier& own, int block, int bytes, std::uintptr_t pc) {
  make_room(*current_lane, 2);
  const auto [owner, there] = at(&own, block, pc);
  auto& barrier = *static_cast<MBarrier*>(there);
  Barrier& state = find(barrier, owner, pc);
  if (state.pending == 0)
    refuse(pc, "mbarrier: more arrivals than the %u of a phase%s", state.expected,
           state.under_way > 0 ? ", whose copies nobody has waited for" : "");
  if (bytes < 0 || state.bytes + bytes > kMost)
    refuse(pc, "mbarrier: %d bytes expected in a phase, at most %d can be",
           bytes < 0 ? bytes : state.bytes + bytes, kMost);
  Phase* phase = state.phase;
  if (phase) release(*current_lane, phase->released);
  state.bytes += bytes;
  --state.pending;
  {
    const OutsideLane outside;
    settle(barrier, state, owner);
  }
  if (!phase) return;
  phase->ends = state.phase != phase || state.ends();
  note(Event::mbarrier, phase, Phase::kArrival, pc);
  // What others may do now, they do before the rest of this thread.
  if (phase->ends) yield(*current_lane, State::gave_way);
}

// Brings the bytes of a phase, all of which are expected.
void land(MBarrier& barrier, Barrier& state) {
  const OutsideLane outside;
  for (const BulkCopy* copy : state.phase->copies)
    copy->transfer(reinterpret_cast<char*>(copy->shared));
  state.bytes = state.under_way = 0;
  settle(barrier, state, *current_block);
}

// A copy to shared memory, or a store to another block's.
void start(BulkCopy&& copy, MBarrier& barrier, Block& owner) {
  make_room(*current_lane, 2);
  Barrier& state = find(barrier, owner, copy.pc);
  const std::uintptr_t pc = copy.pc;
  Lane& lane = *current_lane;
  const bool recorded = lane.next && copy.way == BulkCopy::Way::in;
  BulkCopy* issued = nullptr;
  Phase* const phase = state.phase;
  {
    const OutsideLane outside;
    if (recorded || state.phase) issued = &owner.bulk().copies.emplace_back(std::move(copy));
    if (state.phase) {
      issued->lane = &lane;
      issued->block = current_block;
      issued->phase = state.phase;
      state.phase->copies.push_back(issued);
      state.under_way += static_cast<int>(issued->bytes);
      state.phase->ends = state.ends();
      current_block->note_change();
    } else {
      const BulkCopy& now = issued ? *issued : copy;
      now.transfer(reinterpret_cast<char*>(now.shared));
      state.bytes -= static_cast<int>(now.bytes);
      settle(barrier, state, owner);
    }
  }
  if (recorded) note(Event::bulk, issued, 0, pc);
  if (!phase) return;
  if (recorded) current_block->mark_copy(lane, *issued);
  release(lane, phase->released);  // what is written is known to those that wait for it
}

// What is wrong with a copy, whoever looks. The rows inside of the tensor must be of one buffer.
void check(const BulkCopy& copy, const MBarrier* barrier) {
  const auto wrong = [&](const char* why) {
    refuse(copy.pc, "bulk copy of %u bytes: %s", copy.bytes, why);
  };
  const bool in = copy.way == BulkCopy::Way::in, box = copy.map.dimensions > 1;
  if (copy.bytes == 0 || copy.bytes % 16 != 0) wrong("only multiples of 16 can be copied");
  if (!current_block->is_shared(copy.shared) ||
      !current_block->is_shared(copy.shared + copy.bytes - 1))
    wrong(in ? "its destination is not the block's shared memory"
             : "its source is not the block's shared memory");
  if (copy.shared % (copy.map.swizzle ? 8 * copy.map.swizzle : box ? 128 : 16) != 0)
    wrong(in ? "its destination is misaligned" : "its source is misaligned");
  if (barrier && !current_block->is_shared(address_of(barrier)))
    wrong("its mbarrier is not the block's");
  std::uintptr_t first = 0, end = 0;
  copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
    if (from == to) return;
    if (first == 0) first = row + from;
    end = row + to;
  });
  if (address_of(copy.map.data) % 16 != 0)
    wrong(in ? "its source is misaligned" : "its destination is misaligned");
  const Buffer* buffer = first ? GlobalMemory::get().find(first) : nullptr;
  if (first == 0 || (!buffer && in_image(first))) return;
  if (!buffer)
    wrong(in ? "its source is not global memory" : "its destination is not global memory");
  if (!buffer->holds(first, end - first))
    refuse(copy.pc, "bulk copy of %u bytes: out-of-bounds global %s: byte %zu of a buffer of %zu",
           copy.bytes, in ? "load" : "store", end - 1 - buffer->start, buffer->bytes);
}

BulkCopy bytes_of(BulkCopy::Way way, const void* shared, const void* global, unsigned bytes,
                  std::uintptr_t pc) {
  return {.way = way,
          .shared = address_of(shared),
          .pc = pc,
          .bytes = bytes,
          .map = {.data = const_cast<void*>(global),
                  .sizes = {bytes, 1, 1},
                  .box = {bytes, 1, 1},
                  .element_bytes = 1,
                  .dimensions = 1}};
}
BulkCopy box_of(BulkCopy::Way way, const void* shared, const CUtensorMap& map, int matrix, int row,
                int column, unsigned dimensions, std::uintptr_t pc) {
  if (map.dimensions != dimensions)
    refuse(pc, "bulk copy of a box of %u dimensions: its map has %u", dimensions, map.dimensions);
  return {.way = way,
          .shared = address_of(shared),
          .pc = pc,
          .bytes = map.box[0] * map.box[1] * map.box[2] * map.element_bytes,
          .map = map,
          .at = {column, row, matrix}};
}

void start_in(BulkCopy&& copy, MBarrier& barrier) {
  check(copy, &barrier);
  start(std::move(copy), barrier, *current_block);
}

void start_out(BulkCopy&& copy) {
  check(copy, nullptr);
  Lane& lane = *current_lane;
  const std::uintptr_t pc = copy.pc;
  const Launch& launch = current_block->launch();
  char* from = reinterpret_cast<char*>(copy.shared);
  BulkCopy* issued = nullptr;
  {
    const OutsideLane outside;
    if (launch.recorded()) issued = &current_block->bulk().copies.emplace_back(std::move(copy));
    if (launch.check) {
      issued->source.assign(from, from + issued->bytes);
      lane.copies_out.push_back(issued);
    } else {
      (issued ? *issued : copy).transfer(from);
    }
    current_block->note_change();
  }
  if (issued) note(Event::bulk, issued, 0, pc);
}

}  // namespace

template <class F>
void BulkCopy::for_each_row(F f) const {
  const std::int64_t element = map.element_bytes, width = map.box[0] * element;
  const auto inside = [&](std::int64_t columns) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(columns * element, 0, width));
  };
  const unsigned from = inside(-at[0]),
                 to = inside(static_cast<std::int64_t>(map.sizes[0]) - at[0]);
  unsigned place = 0;
  for (unsigned z = 0; z < map.box[2]; ++z)
    for (unsigned y = 0; y < map.box[1]; ++y, place += static_cast<unsigned>(width)) {
      const std::int64_t row = at[1] + y, matrix = at[2] + z;
      const bool there = row >= 0 && row < static_cast<std::int64_t>(map.sizes[1]) && matrix >= 0 &&
                         matrix < static_cast<std::int64_t>(map.sizes[2]) && from < to;
      f(place,
        address_of(map.data) +
            static_cast<std::uintptr_t>(matrix * static_cast<std::int64_t>(map.strides[1]) +
                                        row * static_cast<std::int64_t>(map.strides[0]) +
                                        at[0] * element),
        there ? from : 0, there ? to : 0);
    }
}

void BulkCopy::transfer(char* box) const {
  if (way == Way::store) {
    std::memcpy(box, &value, sizeof(value));
    return;
  }
  const unsigned width = map.box[0] * map.element_bytes, step = map.swizzle ? 16 : width;
  // The 16-byte chunks of 128 bytes are XORed with the number of these, by address.
  const auto swizzled = [this](unsigned place) {
    const std::uintptr_t address = shared + place;
    if (map.swizzle == 0) return place;
    return static_cast<unsigned>((address ^ (address >> 7 & (map.swizzle / 16 - 1)) << 4) - shared);
  };
  for_each_row([&](unsigned place, std::uintptr_t row, unsigned from, unsigned to) {
    for (unsigned i = 0; i < width; i += step) {
      char* there = box + swizzled(place + i);
      const unsigned first = std::max(i, from), end = std::min(i + step, to);
      const unsigned bytes = first < end ? end - first : 0;
      if (way == Way::in && bytes < step) std::memset(there, 0, step);
      if (bytes == 0) continue;
      auto* global = reinterpret_cast<char*>(row + first);
      if (way == Way::in)
        std::memcpy(there + (first - i), global, bytes);
      else
        std::memcpy(global, there + (first - i), bytes);
    }
  });
}

const char* refusal(const CUtensorMap& map) {
  const unsigned row = map.box[0] * map.element_bytes;
  if (address_of(map.data) % 16 != 0) return "the tensor does not start on 16 bytes";
  for (unsigned d = 0; d < map.dimensions; ++d) {
    if (map.sizes[d] == 0 || map.sizes[d] > std::uint64_t{1} << 32)
      return "it is empty or too large";
    if (map.box[d] == 0 || map.box[d] > 256) return "a side of a box has 1 to 256 elements";
    if (d > 0 && map.strides[d - 1] % 16 != 0) return "rows do not start on 16 bytes";
  }
  if (row % 16 != 0) return "a row of a box is not a multiple of 16 bytes";
  return map.swizzle != 0 && row > map.swizzle ? "a row of a box is longer than the swizzle"
                                               : nullptr;
}

void initialize(MBarrier& barrier, int arrivals) {
  const std::uintptr_t pc = RETURN_ADDRESS, where = address_of(&barrier);
  if (!current_block->is_shared(where) || where % sizeof(barrier) != 0)
    refuse(pc, "mbarrier: misaligned, or not in the block's shared memory");
  if (arrivals < 1 || arrivals > kMost)
    refuse(pc, "mbarrier: %d arrivals, 1 to %d can be", arrivals, kMost);
  BulkState& all = current_block->bulk();
  bool fresh = false;
  {
    const OutsideLane outside;
    Barrier state{.expected = static_cast<unsigned>(arrivals),
                  .pending = static_cast<unsigned>(arrivals)};
    if (current_block->launch().check) state.phase = &all.phases.emplace_back();
    fresh = all.barriers.emplace(where, state).second;
    barrier.state = state.bits();
    current_block->note_change();
  }
  if (!fresh) refuse(pc, "mbarrier: initialised while it is in use");
}

void arrive(MBarrier& barrier) { arrive(barrier, kOwn, 0, RETURN_ADDRESS); }
void arrive_expecting(MBarrier& barrier, int bytes) {
  arrive(barrier, kOwn, bytes, RETURN_ADDRESS);
}
void arrive_at_block(MBarrier& barrier, int block) { arrive(barrier, block, 0, RETURN_ADDRESS); }
void arrive_after_copies(MBarrier& barrier) {
  land_copies(RETURN_ADDRESS);
  arrive(barrier, kOwn, 0, RETURN_ADDRESS);
}

static void wait(MBarrier& barrier, unsigned parity, std::uintptr_t pc) {
  Lane& lane = *current_lane;
  for (;;) {
    Barrier& state = find(barrier, *current_block, pc);
    if (!state.is_over(parity) && state.ends()) {
      if (state.bytes < state.under_way)
        refuse(pc, "mbarrier: copies bring %d bytes more than its phase expects",
               state.under_way - state.bytes);
      land(barrier, state);
    }
    if (state.is_over(parity)) {
      if (Phase* const phase = state.last) {
        note(Event::mbarrier, phase, Phase::kWait, pc);
        acquire(lane, phase->released);
      }
      return;
    }
    lane.pc = pc;
    lane.waits_for = &state;
    lane.waits_at = address_of(&barrier);
    lane.parity = parity;
    yield(lane, State::at_mbarrier);
  }
}
void wait(MBarrier& barrier, unsigned parity) { wait(barrier, parity, RETURN_ADDRESS); }
void wait_for_cluster(MBarrier& barrier, unsigned parity) { wait(barrier, parity, RETURN_ADDRESS); }

void copy_in(void* to, const void* from, unsigned bytes, MBarrier& barrier) {
  start_in(bytes_of(BulkCopy::Way::in, to, from, bytes, RETURN_ADDRESS), barrier);
}
void copy_box(void* to, const CUtensorMap& map, int row, int column, MBarrier& barrier) {
  start_in(box_of(BulkCopy::Way::in, to, map, 0, row, column, 2, RETURN_ADDRESS), barrier);
}
void copy_box(void* to, const CUtensorMap& map, int matrix, int row, int column,
              MBarrier& barrier) {
  start_in(box_of(BulkCopy::Way::in, to, map, matrix, row, column, 3, RETURN_ADDRESS), barrier);
}
void copy_out(void* to, const void* from, unsigned bytes) {
  start_out(bytes_of(BulkCopy::Way::out, from, to, bytes, RETURN_ADDRESS));
}
void copy_box_out(const CUtensorMap& map, int row, int column, const void* from) {
  start_out(box_of(BulkCopy::Way::out, from, map, 0, row, column, 2, RETURN_ADDRESS));
}

void store_bits_to_block(void* to, std::uint64_t bits, MBarrier& barrier, int block) {
  const std::uintptr_t pc = RETURN_ADDRESS;
  const auto [owner, there] = at(to, block, pc);
  record(there, 3, Event::store, pc, Record::kNeverRead);
  start({.way = BulkCopy::Way::store,
         .shared = address_of(there),
         .pc = pc,
         .bytes = sizeof(bits),
         .value = bits},
        *static_cast<MBarrier*>(at(&barrier, block, pc).address), owner);
}

void read_sources(Lane& lane) {
  for (BulkCopy* copy : lane.copies_out) {
    if (!copy->read &&
        std::memcmp(copy->source.data(), reinterpret_cast<char*>(copy->shared), copy->bytes) != 0)
      refuse(copy->pc, "bulk copy of %u bytes: its source was written before it was read",
             copy->bytes);
    copy->read = true;
  }
}
void write_copies(Lane& lane) {
  read_sources(lane);
  if (lane.copies_out.empty()) return;
  make_room(lane);
  const OutsideLane outside;
  for (BulkCopy* copy : lane.copies_out) {
    copy->transfer(copy->source.data());
    current_block->mark_copy(lane, *copy);
  }
  current_block->note_change();
  lane.copies_out.clear();
}
void wait_until_read() { read_sources(*current_lane); }
void wait_until_written() { write_copies(*current_lane); }

// ---- what is counted and checked, when the lane's log is replayed

namespace {
constexpr unsigned kChunk = 16;
}

void Block::bulk_copy(std::uint64_t pc, const Request& copies) {
  for_each_lane(copies.mask, [&](unsigned l) {
    ++requests_;
    const BulkCopy& copy = *reinterpret_cast<const BulkCopy*>(copies.addresses[l]);
    const bool in = copy.way == BulkCopy::Way::in;
    const Event global = in ? Event::load : Event::store;
    std::uint64_t addresses[32];
    const Request chunk{1u << l, kChunk, addresses};
    addresses[l] = shared_.offset(copy.shared);
    for (unsigned i = 0; launch_->check && i < copy.bytes; i += kChunk, addresses[l] += kChunk)
      check_shared(pc, in ? Event::copy : Event::load, chunk);
    Traffic one{.requests = 1, .lanes = 1};
    std::uintptr_t last = 0;  // sector of the row before, which the next may share
    std::uintptr_t first = 0;
    Buffer* buffer = nullptr;
    copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
      if (from == to) return;
      if (first == 0) buffer = GlobalMemory::get().find(first = row + from);
      for (addresses[l] = row + from; launch_->check && buffer && addresses[l] < row + to;
           addresses[l] += kChunk)
        check_global(
            pc, global,
            {1u << l,
             static_cast<unsigned>(std::min<std::uint64_t>(kChunk, row + to - addresses[l])),
             addresses},
            *buffer);
      if (!launch_->count) return;
      if (buffer) buffer->touch(row + from, to - from, in, !in);
      one.bytes += to - from;
      const std::uintptr_t sector = (row + from) / 32;
      one.transactions += (row + to - 1) / 32 - sector + (sector != last);
      last = (row + to - 1) / 32;
    });
    if (!launch_->count) return;
    one.ideal = std::min(one.transactions, (one.bytes + 31) / 32);
    one.worst = one.transactions;
    Site& site = counts_.site(pc, Space::bulk, in ? Operation::load : Operation::store, kChunk);
    if (is_worst(site, one.worst))
      site.worst[l] = static_cast<std::int64_t>(buffer ? first - buffer->start : 0);
    site.traffic += one;
  });
}

// Copies of a phase are in flight until a wait for it is replayed.
void Block::mbarrier(const Request& phases) {
  for_each_lane(phases.mask, [&](unsigned l) {
    Phase& phase = *reinterpret_cast<Phase*>(phases.addresses[l]);
    if (phases.bytes != 1u << Phase::kWait || std::exchange(phase.landed, true)) return;
    const Visit& visit = visit_;
    if (visit.by &&
        phase.released.clock.knows(visit.by->number_, visit.by->number_of(*visit.lane), visit.time))
      visit_ = {};
    for (const BulkCopy* copy : phase.copies)
      if (copy->way == BulkCopy::Way::in) shared_.land(shared_.offset(copy->shared), copy->bytes);
  });
}

// What a copy reads or writes of global memory, as its lane does at this point.
void Block::mark_copy(Lane& lane, const BulkCopy& copy) {
  if (!launch_->ordered()) return;
  const OutsideLane outside;
  mark_accesses(lane);
  const Event event = copy.way == BulkCopy::Way::in ? Event::load : Event::store;
  copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
    for (std::uintptr_t at = row + from, size; at < row + to && !conflict_; at += size) {
      size = std::bit_floor(std::min<std::uintptr_t>(kChunk, row + to - at));
      const auto log2_size = static_cast<std::uint64_t>(std::countr_zero(size));
      conflict_ =
          launch_->global.weak(order_, lane, number_of(lane),
                               {at | log2_size << 48 | static_cast<std::uint64_t>(event) << 56,
                                copy.pc, Record::kNeverRead});
    }
  });
}

}  // namespace emulator
