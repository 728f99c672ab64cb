// SPDX-License-Identifier: MIT
//
// mbarriers and bulk copies. Where nobody checks, a copy is done when it is issued. In checked
// launches it is done as late as hardware may: one to shared memory when a thread waits for its
// phase, one to global memory when its thread waits for it or exits.
#include "block.hpp"
#include "cuda_pipeline.h"

namespace emulator {
namespace {

constexpr unsigned kChunk = 16;
constexpr int kMostPending = (1 << 20) - 1;  // arrivals, and bytes on their way, of a phase

// Whether its initialisation was shown to the lane in one of these ways: see Clock; 0 is the usual.
bool is_known(const Barrier& state, Block& owner, std::initializer_list<std::uint64_t> ways) {
  return std::ranges::any_of(ways, [&](std::uint64_t way) {
    return current_block->order().knows(*current_lane, owner.order().number() + way, state.thread,
                                        state.time);
  });
}

Barrier& find(const MBarrier& barrier, Block& owner, std::uintptr_t pc) {
  const auto found = owner.bulk().barriers.find(address_of(&barrier));
  if (found == owner.bulk().barriers.end()) stop(pc, "mbarrier: used before it was initialised");
  Barrier& state = found->second;
  if (barrier.state != state.bits()) stop(pc, "mbarrier: something was stored where it lies");
  const bool own = &owner == current_block && state.thread == owner.number_of(*current_lane);
  if (state.phase && !own && !is_known(state, owner, {0, Clock::kInShared, Clock::kBarriers}))
    stop(pc, "mbarrier: nothing orders its initialisation before its use");
  return state;
}

// Ends the phase if nothing is missing.
void settle(MBarrier& barrier, Barrier& state, Block& owner) {
  const OutsideLane outside;
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
    stop(pc, "mbarrier: block ", rank,
         " of the cluster may not have started, has exited, or is none");
  return {*owner, current_block->map_shared(const_cast<void*>(own), rank)};
}

void arrive(MBarrier& own, int block, int bytes, std::uintptr_t pc) {
  const auto [owner, there] = at(&own, block, pc);
  auto& barrier = *static_cast<MBarrier*>(there);
  Barrier& state = find(barrier, owner, pc);
  if (state.pending == 0)
    stop(pc, "mbarrier: more arrivals than the ", state.expected, " of a phase",
         state.under_way > 0 ? ", whose copies nobody has waited for" : "");
  if (bytes < 0 || state.bytes + bytes > kMostPending)
    stop(pc, "mbarrier: ", bytes < 0 ? bytes : state.bytes + bytes,
         " bytes expected in a phase, at most ", kMostPending, " can be");
  Phase* phase = state.phase;
  state.bytes += bytes;
  --state.pending;
  settle(barrier, state, owner);
  if (phase) release(*current_lane, phase->released);
}

// Brings the bytes of a phase, all of which are expected.
void land(MBarrier& barrier, Barrier& state) {
  const OutsideLane outside;
  for (const BulkCopy* copy : state.phase->copies)
    copy->transfer(reinterpret_cast<char*>(copy->shared));
  state.bytes = state.under_way = 0;
  settle(barrier, state, *current_block);
}

// The lane's copy touches memory at this point, as far as races are looked for.
void mark_global(Lane& lane, const BulkCopy& copy) {
  const bool in = copy.way == BulkCopy::Way::in;
  copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
    current_block->mark_copy(lane, {.address = row + from,
                                    .bytes = to - from,
                                    .pc = copy.pc,
                                    .operation = in ? Operation::load : Operation::store,
                                    .bulk = true,
                                    .value = Record::kByCopy});
  });
}
void mark_shared(Lane& lane, const BulkCopy& copy, Operation operation, unsigned value = 0) {
  current_block->mark_copy(lane, {.address = copy.shared,
                                  .bytes = copy.bytes,
                                  .pc = copy.pc,
                                  .operation = operation,
                                  .bulk = true,
                                  .value = value});
}

// A copy of the running lane, with memory of `owner`.
BulkCopy& keep(BulkCopy&& copy, Block& owner) {
  copy.lane = current_lane;
  copy.block = current_block;
  const OutsideLane outside;
  return owner.bulk().copies.emplace_back(std::move(copy));
}

// A copy to shared memory, or a store to another block's.
void start(BulkCopy&& given, MBarrier& barrier, Block& owner) {
  make_room(*current_lane);
  Barrier& state = find(barrier, owner, given.pc);
  Lane& lane = *current_lane;
  Phase* const phase = state.phase;
  BulkCopy& copy = keep(std::move(given), owner);
  {
    const OutsideLane outside;
    if (phase) {
      phase->copies.push_back(&copy);
      state.under_way += static_cast<int>(copy.bytes);
      current_block->note_change();
    } else {
      copy.transfer(reinterpret_cast<char*>(copy.shared));
      state.bytes -= static_cast<int>(copy.bytes);
      settle(barrier, state, owner);
    }
  }
  if (lane.next && copy.way == BulkCopy::Way::in) {
    note(Event::bulk, address_of(&copy), copy.pc);
    mark_global(lane, copy);
    if (phase) mark_shared(lane, copy, Operation::store, Record::kInFlight);
  }
  if (phase) release(lane, phase->released);
}

[[noreturn]] void wrong(const BulkCopy& copy, const auto&... why) {
  stop(copy.pc, "bulk copy of ", copy.bytes, " bytes: ", why...);
}

// What is wrong with a copy, whoever looks. The rows inside of the tensor must be of one buffer.
void check(const BulkCopy& copy, const MBarrier* barrier) {
  const bool in = copy.way == BulkCopy::Way::in, box = copy.map.dimensions > 1;
  const char *shared = in ? "its destination" : "its source",
             *global = in ? "its source" : "its destination";
  if (copy.bytes == 0 || copy.bytes % 16 != 0) wrong(copy, "only multiples of 16 can be copied");
  if (!current_block->is_shared(copy.shared) ||
      !current_block->is_shared(copy.shared + copy.bytes - 1))
    wrong(copy, shared, " is not the block's shared memory");
  if (copy.shared % (copy.map.swizzle ? 8 * copy.map.swizzle : box ? 128 : 16) != 0)
    wrong(copy, shared, " is misaligned");
  if (barrier && !current_block->is_shared(address_of(barrier)))
    wrong(copy, "its mbarrier is not the block's");
  if (address_of(copy.map.data) % 16 != 0) wrong(copy, global, " is misaligned");
  std::uintptr_t first = 0, end = 0;
  copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
    if (from == to) return;
    if (first == 0) first = row + from;
    end = row + to;
  });
  const Buffer* buffer = first ? GlobalMemory::get().find(first) : nullptr;
  if (first == 0 || (!buffer && in_image(first))) return;
  if (!buffer) wrong(copy, global, " is not global memory");
  if (!buffer->holds(first, end - first))
    wrong(copy, "out-of-bounds global ", in ? "load" : "store", ": byte ", end - 1 - buffer->start,
          " of a buffer of ", buffer->bytes);
}

CUtensorMap bytes_at(const void* global, unsigned bytes) {
  return {.data = const_cast<void*>(global),
          .sizes = {bytes, 1, 1},
          .box = {bytes, 1, 1},
          .element_bytes = 1,
          .dimensions = 1};
}
BulkCopy box_of(BulkCopy::Way way, const void* shared, const CUtensorMap& map, unsigned dimensions,
                std::array<std::int64_t, 3> at, std::uintptr_t pc) {
  if (map.dimensions != dimensions)
    stop(pc, "bulk copy of a box of ", dimensions, " dimensions: its map has ", map.dimensions);
  return {.way = way,
          .shared = address_of(shared),
          .pc = pc,
          .bytes = map.box[0] * map.box[1] * map.box[2] * map.element_bytes,
          .map = map,
          .at = at};
}

void start_in(BulkCopy&& copy, MBarrier& barrier) {
  check(copy, &barrier);
  const Barrier& state = find(barrier, *current_block, copy.pc);
  if (state.phase && !is_known(state, *current_block, {Clock::kBarriers, Clock::kShared}))
    wrong(copy, "no fence has shown it that its mbarrier is initialised (fence_mbarrier_init())");
  start(std::move(copy), barrier, *current_block);
}

void start_out(BulkCopy&& given) {
  check(given, nullptr);
  Lane& lane = *current_lane;
  BulkCopy& copy = keep(std::move(given), *current_block);
  char* from = reinterpret_cast<char*>(copy.shared);
  {
    const OutsideLane outside;
    if (current_block->launch().check) {
      copy.source.assign(from, from + copy.bytes);
      lane.copies_out.push_back(&copy);
    } else {
      copy.transfer(from);
    }
    current_block->note_change();
  }
  if (lane.next) note(Event::bulk, address_of(&copy), copy.pc);
  mark_shared(lane, copy, Operation::load);
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
      // Modulo 2^64, in which negative numbers are beyond all sizes.
      const auto row = static_cast<std::uint64_t>(at[1] + y),
                 matrix = static_cast<std::uint64_t>(at[2] + z);
      const bool there = row < map.sizes[1] && matrix < map.sizes[2] && from < to;
      const std::uintptr_t start = address_of(map.data) + matrix * map.strides[1] +
                                   row * map.strides[0] +
                                   static_cast<std::uint64_t>(at[0] * element);
      f(place, start, there ? from : 0, there ? to : 0);
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

void mbarrier_init(MBarrier& barrier, int arrivals) {
  const std::uintptr_t pc = RETURN_ADDRESS, where = address_of(&barrier);
  if (!current_block->is_shared(where) || where % sizeof(barrier) != 0)
    stop(pc, "mbarrier: misaligned, or not in the block's shared memory");
  if (arrivals < 1 || arrivals > kMostPending)
    stop(pc, "mbarrier: ", arrivals, " arrivals, 1 to ", kMostPending, " can be");
  BulkState& all = current_block->bulk();
  const unsigned thread = current_block->number_of(*current_lane);
  bool fresh = false;
  {
    const OutsideLane outside;
    Barrier state{.expected = static_cast<unsigned>(arrivals),
                  .pending = static_cast<unsigned>(arrivals),
                  .thread = thread,
                  .time = current_block->order().time()};
    if (current_block->launch().check) state.phase = &all.phases.emplace_back();
    fresh = all.barriers.emplace(where, state).second;
    barrier.state = state.bits();
    current_block->note_change();
  }
  if (!fresh) stop(pc, "mbarrier: initialised while it is in use");
}

void arrive(MBarrier& barrier) { arrive(barrier, kOwn, 0, RETURN_ADDRESS); }
void arrive_expect_tx(MBarrier& barrier, int bytes) {
  arrive(barrier, kOwn, bytes, RETURN_ADDRESS);
}
void arrive_remote(MBarrier& barrier, int block) { arrive(barrier, block, 0, RETURN_ADDRESS); }
void cp_async_arrive_noinc(MBarrier& barrier) {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  arrive(barrier, kOwn, 0, RETURN_ADDRESS);
}

void wait(MBarrier& barrier, unsigned parity) {
  const std::uintptr_t pc = RETURN_ADDRESS;
  Lane& lane = *current_lane;
  for (;;) {
    Barrier& state = find(barrier, *current_block, pc);
    const bool over = state.is_over(parity);
    Phase* const phase = over ? state.last : state.phase;
    if (over || state.ends()) {
      if (state.bytes < state.under_way && !over)
        stop(pc, "mbarrier: copies bring ", state.under_way - state.bytes,
             " bytes more than its phase expects");
      if (!over) land(barrier, state);
      if (!phase) return;
      current_block->mark_accesses(lane);
      current_block->land(*phase);
      return acquire(lane, phase->released);
    }
    lane.pc = pc;
    lane.waits_for = &state;
    lane.waits_at = address_of(&barrier);
    lane.parity = parity;
    yield(lane, State::at_mbarrier);
  }
}

using Way = BulkCopy::Way;
void bulk_load(void* to, const void* from, unsigned bytes, MBarrier& barrier) {
  start_in(box_of(Way::in, to, bytes_at(from, bytes), 1, {}, RETURN_ADDRESS), barrier);
}
void tma_load(void* to, const CUtensorMap& map, int row, int column, MBarrier& barrier) {
  start_in(box_of(Way::in, to, map, 2, {column, row}, RETURN_ADDRESS), barrier);
}
void tma_load(void* to, const CUtensorMap& map, int matrix, int row, int column,
              MBarrier& barrier) {
  start_in(box_of(Way::in, to, map, 3, {column, row, matrix}, RETURN_ADDRESS), barrier);
}
void bulk_store(void* to, const void* from, unsigned bytes) {
  start_out(box_of(Way::out, from, bytes_at(to, bytes), 1, {}, RETURN_ADDRESS));
}
void tma_store(const CUtensorMap& map, int row, int column, const void* from) {
  start_out(box_of(Way::out, from, map, 2, {column, row}, RETURN_ADDRESS));
}

void st_async_b64(void* to, std::uint64_t bits, MBarrier& barrier, int block) {
  const std::uintptr_t pc = RETURN_ADDRESS;
  const auto [owner, there] = at(to, block, pc);
  record(there, 3 | Record::kAway, Event::store, pc, Record::kNeverRead);
  start({.way = Way::store,
         .shared = address_of(there),
         .pc = pc,
         .bytes = sizeof(bits),
         .value = bits},
        *static_cast<MBarrier*>(at(&barrier, block, pc).address), owner);
}

void read_sources(Lane& lane) {
  for (BulkCopy* copy : lane.copies_out) {
    if (std::exchange(copy->read, true)) continue;
    if (std::memcmp(copy->source.data(), reinterpret_cast<char*>(copy->shared), copy->bytes) != 0)
      wrong(*copy, "its source was written before it was read");
    mark_shared(lane, *copy, Operation::load);  // it may have been read as late as this
  }
}
void write_copies(Lane& lane) {
  read_sources(lane);
  if (lane.copies_out.empty()) return;
  make_room(lane);
  const OutsideLane outside;
  for (BulkCopy* copy : lane.copies_out) {
    copy->transfer(copy->source.data());
    mark_global(lane, *copy);
  }
  current_block->note_change();
  lane.copies_out.clear();
}
// The block's memory must not go before it is read, and no other thread can wait for that.
void end_copies(Lane& lane) {
  for (const BulkCopy* copy : lane.copies_out)
    if (!copy->read) wrong(*copy, "its thread exits before it is read (bulk_wait_group_read())");
  write_copies(lane);
}
void bulk_wait_group_read() { read_sources(*current_lane); }
void bulk_wait_group() { write_copies(*current_lane); }

// ---- what is counted and checked, when the lane's log is replayed

void Block::bulk_copy(Lane& lane, BulkCopy& copy) {
  const bool in = copy.way == BulkCopy::Way::in;
  for (unsigned i = 0; launch_->check && i < copy.bytes; i += kChunk)
    check_shared({copy.pc, in ? Event::store : Event::load, lane, copy.shared + i, kChunk}, *this);
  Traffic one{.requests = 1, .lanes = 1};
  std::uintptr_t first = 0, last = 0;  // byte; sector of the row before, which the next may share
  Buffer* buffer = nullptr;
  copy.for_each_row([&](unsigned, std::uintptr_t row, unsigned from, unsigned to) {
    if (from == to) return;
    if (first == 0) buffer = GlobalMemory::get().find(first = row + from);
    for (unsigned i = from; launch_->check && buffer && i < to; i += kChunk)
      check_global(
          {copy.pc, in ? Event::load : Event::store, lane, row + i, std::min(kChunk, to - i)},
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
  Site& site = counts_.site(copy.pc, Space::bulk, in ? Operation::load : Operation::store, kChunk);
  if (site.replace_if_worse(one.worst, number_, current_warp_))
    site.worst[lane.number] = static_cast<std::int64_t>(buffer ? first - buffer->start : 0);
  site.traffic += one;
}

void Block::land(Phase& phase) {
  if (std::exchange(phase.landed, true)) return;
  const Visit& visit = visit_;
  if (visit.by &&
      phase.released.clock.knows(visit.by->number_, visit.by->number_of(*visit.lane), visit.time))
    visit_ = {};
  for (const BulkCopy* copy : phase.copies)
    if (copy->way == BulkCopy::Way::in) land(copy->shared, copy->bytes, true);
}

}  // namespace emulator
