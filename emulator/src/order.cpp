// SPDX-License-Identifier: MIT
#include "block.hpp"

namespace emulator {

// ---- clocks

namespace {

constexpr unsigned kTimeBits = 26, kWhoBits = 11;
constexpr unsigned kMostLevel = 0x3FFF;  // beyond that anything may be ordered

std::uint64_t entry(std::uint64_t block, unsigned who, std::uint32_t time) {
  return (block << kWhoBits | who) << kTimeBits | time;
}

std::uint64_t owner(std::uint64_t entry) { return entry >> kTimeBits; }

Past joined(const Past& a, const Past& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  auto both = std::make_shared<Clock>(*a);
  both->join(*b);
  return *both == *a ? a : *both == *b ? b : both;
}

std::shared_ptr<Clock> copy_of(const Past& past) {
  return past ? std::make_shared<Clock>(*past) : std::make_shared<Clock>();
}

}  // namespace

bool Clock::knows(std::uint64_t block, unsigned thread, std::uint32_t time) const {
  return std::ranges::any_of(std::array{thread, kWarps + thread / 32, kAll}, [&](unsigned who) {
    const std::uint64_t after = entry(block, who, time) + 1;
    const auto last = std::ranges::lower_bound(entries_, after >> kTimeBits, std::greater(), owner);
    return last != entries_.end() && owner(*last) == owner(after) && *last >= after;
  });
}

void Clock::raise(std::uint64_t block, unsigned who, std::uint32_t time) {
  Clock one;
  one.entries_ = {entry(block, who, time)};
  join(one);
}

void Clock::show(std::uint64_t to) {
  Clock shown;
  for (const std::uint64_t each : entries_)
    if (each < entry(kMostBlocks, 0, 0)) shown.entries_.push_back(each + entry(to, 0, 0));
  join(shown);
}

void Clock::join(const Clock& other) {
  std::vector<std::uint64_t> both;
  both.reserve(entries_.size() + other.entries_.size());
  std::ranges::merge(entries_, other.entries_, std::back_inserter(both), std::greater());
  const auto of_one = [](std::uint64_t a, std::uint64_t b) { return owner(a) == owner(b); };
  both.erase(std::unique(both.begin(), both.end(), of_one), both.end());
  entries_ = std::move(both);
}

void Knowledge::join(const Knowledge& other) {
  for (const auto part : {&Knowledge::known, &Knowledge::fenced, &Knowledge::heard,
                          &Knowledge::fenced_in_block, &Knowledge::heard_in_block})
    if (other.*part) this->*part = joined(this->*part, other.*part);
  level = std::max(level, other.level);
}

// ---- the threads of a block

Past BlockOrder::release(const Lane& lane) {
  const auto all = copy_of(base_.known);
  if (lane.knowledge.known) all->join(*lane.knowledge.known);
  if (barrier_ > 0) all->raise(number_, Clock::kAll, barrier_);
  all->raise(number_, current_block->number_of(lane), ++time_);
  return all;
}

// What a thread fenced or heard counts for those too that it meets at a barrier afterwards: the
// model of PTX asks for a fence of each thread's own, but hardware has made all wait for it.
void BlockOrder::fence(Lane& lane, bool narrow) {
  Knowledge& its = lane.knowledge;
  its.known = joined(joined(its.known, its.heard_in_block), base_.heard_in_block);
  its.heard_in_block = nullptr;
  if (!narrow) its.known = joined(joined(its.known, std::exchange(its.heard, {})), base_.heard);
  its.fenced_in_block = release(lane);
  if (!narrow) its.fenced = its.fenced_in_block;
}

void BlockOrder::show(Lane& lane, std::uint64_t to) {
  const auto all = copy_of(release(lane));
  all->show(to);
  lane.knowledge.known = all;
}

void BlockOrder::meet(std::span<Lane> lanes, std::uint32_t members, bool orders_memory) {
  Knowledge all;
  for_each_lane(members, [&](unsigned l) {
    if (orders_memory) all.join(lanes[l].knowledge);
    all.level = std::max(all.level, lanes[l].knowledge.level);
  });
  ++time_;
  if (orders_memory) {
    const auto known = copy_of(all.known);
    const bool whole =
        static_cast<std::size_t>(std::popcount(members)) == lanes.size();  // as most often
    const unsigned first = current_block->number_of(lanes[0]);
    if (whole)
      known->raise(number_, Clock::kWarps + first / 32, time_);
    else
      for_each_lane(members, [&](unsigned l) { known->raise(number_, first + l, time_); });
    all.known = known;
  }
  for_each_lane(members, [&](unsigned l) {
    if (orders_memory)
      lanes[l].knowledge = all;
    else
      lanes[l].knowledge.level = all.level;
    lanes[l].met = time_;
  });
}

void BlockOrder::barrier(std::span<Lane> lanes) {
  for (const Lane& lane : lanes) base_.join(lane.knowledge);
  barrier_ = ++time_;
  for (Lane& lane : lanes) {
    lane.knowledge = {.level = base_.level};
    lane.moment = {.time = time_};
  }
}

void BlockOrder::add_to(Knowledge& all) const {
  if (barrier_ == 0) return;  // nobody checks
  all.join(base_);
  const auto known = copy_of(all.known);
  known->raise(number_, Clock::kAll, barrier_);
  all.known = known;
}

bool BlockOrder::knows(const Lane& lane, std::uint64_t block, unsigned thread,
                       std::uint32_t time) const {
  const auto in = [&](const Past& past) { return past && past->knows(block, thread, time); };
  return (block == number_ && time < barrier_) || in(base_.known) || in(lane.knowledge.known);
}

void make_room(Lane& lane, int records) {
  while (lane.next && lane.end - lane.next < records) yield(lane, State::log_full);
}

void note_moment(Lane& lane) {
  if (!lane.next || !current_block->launch().check) return;
  make_room(lane);  // the replay of a full log drops its moments
  std::uint64_t number;
  {
    const OutsideLane outside;
    number = lane.moments.size();
    lane.moments.push_back({lane.knowledge.known, current_block->order().time()});
  }
  note(Event::moment, number, 0);
}

// What the lane did before is marked, and what it does afterwards is of another moment.
template <class F>
static void synchronize(Lane& lane, F change) {
  if (!current_block->launch().check) return;
  make_room(lane);
  {
    const OutsideLane outside;
    current_block->mark_accesses(lane);
    change();
  }
  note_moment(lane);
}

void release(Lane& lane, Released& into) {
  synchronize(lane, [&] {
    into.clock.join(*current_block->order().release(lane));
    into.level = std::max(into.level, lane.knowledge.level);
  });
}

void acquire(Lane& lane, const Released& from) {
  synchronize(lane, [&] {
    lane.knowledge.known = joined(lane.knowledge.known, std::make_shared<Clock>(from.clock));
    lane.knowledge.level = std::max(lane.knowledge.level, from.level);
  });
}

void fence(Lane& lane) {
  const bool narrow = std::exchange(lane.narrow, false);
  synchronize(lane, [&] { current_block->order().fence(lane, narrow); });
}

static void show(std::uint64_t to) {
  Lane& lane = *current_lane;
  synchronize(lane, [&] { current_block->order().show(lane, to); });
}
void publish_barriers() { show(Clock::kBarriers); }
void show_to_copies() { show(Clock::kShared); }
void show_to_all_copies() {
  show(Clock::kShared);
  show(Clock::kGlobal);
}

// ---- global memory

GlobalOrder::Page* GlobalOrder::page(std::uintptr_t address) {
  const std::uintptr_t number = address / (4 * kWords);
  Cached& cached = cached_[number * 0x9E3779B97F4A7C15 >> 58];
  if (cached.number != number) {
    const auto [at, fresh] = pages_.try_emplace(number);
    if (fresh) at->second.global = in_image(address) || GlobalMemory::get().find(address);
    cached = {number, at->second.global ? &at->second : nullptr};
  }
  return cached.page;
}

// Calls f(page, word, its bytes).
template <class F>
void GlobalOrder::for_each_word(std::uintptr_t address, unsigned bytes, F f) {
  Page* const there = page(address);
  if (!there) return;
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < address + bytes; at += 4) {
    const unsigned first = at < address ? static_cast<unsigned>(address - at) : 0;
    const auto end = static_cast<unsigned>(std::min<std::uintptr_t>(address + bytes - at, 4));
    if (at / 4 % kWords >= address / 4 % kWords)  // one that is misaligned may leave the page
      f(*there, at / 4 % kWords, at, ((1u << end) - 1) & ~((1u << first) - 1));
  }
}

std::optional<GlobalOrder::Conflict> GlobalOrder::touch(const Lane& lane, const Access& access) {
  const BlockOrder& block = current_block->order();
  const Knowledge& its = lane.knowledge;
  const unsigned thread = current_block->number_of(lane);
  const bool stores = access.kind != Kind::load, strong = access.strong;
  const bool copies = access.value == Record::kByCopy;
  const auto in_block = [&](const Mark& m) { return m.block == block.number(); };
  // What was read, or changed by an atomic, before a flag of any strength, is over for who has seen
  // the flag: the store depends on it.
  const auto over = [&](const Mark& m) { return m.level() < its.level || m.level() >= kMostLevel; };
  const auto both_strong = [&](const Mark& m) {
    return strong && m.value & Mark::kStrong &&
           (in_block(m) || !(access.narrow || m.value & Mark::kNarrow));
  };
  // What a lane has read it may have passed on to another by a shuffle.
  const auto passed_on = [&](const Mark& m) {
    return in_block(m) && m.thread / 32 == thread / 32 && m.time < lane.met &&
           m.time < (&lane - thread + m.thread)->met;
  };
  std::optional<Conflict> conflict;
  for_each_word(
      access.address, access.bytes,
      [&](Page& there, std::size_t word, std::uintptr_t at, unsigned part) {
        const auto check = [&](const Marks& marks, const char* after, auto ordered) {
          if (!marks || conflict) return;
          const Mark& mark = marks[word];
          const bool to_be_shown = copies && &marks == &there.stores && mark.value != access.value;
          const bool own = in_block(mark) && mark.thread == thread && !to_be_shown;
          if ((mark.bytes & part) == 0 || own || ordered(mark) ||
              block.knows(lane, mark.block + (to_be_shown ? Clock::kGlobal : 0), mark.thread,
                          mark.time))
            return;
          const bool narrow = strong && mark.value & Mark::kStrong && &marks != &there.stores;
          conflict = {text(strong ? "atomic " : "", stores ? "write" : "read", " after ", after,
                           narrow        ? ", one of them of the scope of a block,"
                           : to_be_shown ? ", which no fence has shown to bulk copies,"
                                         : ""),
                      at, access.pc, mark};
        };
        check(there.stores, "write", [&](const Mark& m) {
          return stores && m.value == access.value && Record::is_digest(access.value);
        });
        check(there.strong, "atomic write",
              [&](const Mark& m) { return both_strong(m) || (!strong && stores && over(m)); });
        if (stores)
          check(there.loads, "read",
                [&](const Mark& m) { return over(m) || both_strong(m) || passed_on(m); });
        Marks& marks = !stores ? there.loads : strong ? there.strong : there.stores;
        if (!marks) marks = std::make_unique<Mark[]>(kWords);
        const unsigned level = std::min(its.level, kMostLevel) * Mark::kLevel +
                               access.narrow * Mark::kNarrow + strong * Mark::kStrong;
        marks[word] = {block.number(), thread,    part,
                       block.time(),   access.pc, stores && !strong ? access.value : level};
      });
  return conflict;
}

std::optional<GlobalOrder::Conflict> GlobalOrder::weak(const Lane& lane, const Record& record) {
  return touch(lane, {.address = record.address(),
                      .bytes = record.bytes(),
                      .pc = record.pc,
                      .kind = record.event() == Event::store ? Kind::store : Kind::load,
                      .value = static_cast<unsigned>(record.value)});
}

std::optional<GlobalOrder::Conflict> GlobalOrder::strong(Lane& lane, const Access& access) {
  BlockOrder& block = current_block->order();
  Knowledge& its = lane.knowledge;
  const auto is = [&](Strength one) {
    return access.strength == one || access.strength == Strength::both;
  };
  const auto for_each = [&](auto f) {
    for_each_word(
        access.address, access.bytes,
        [&](Page& there, std::size_t word, std::uintptr_t at, unsigned) { f(there, word, at); });
  };
  if (access.kind != Kind::store) {
    Past found, in_block;
    for_each([&](Page& there, std::size_t word, std::uintptr_t at) {
      if (const Mark* mark = there.strong ? &there.strong[word] : nullptr; mark && mark->bytes != 0)
        its.level = std::max(its.level, mark->level() + (mark->block != block.number()));
      if (carried_.empty()) return;
      const auto carried = carried_.find(at);
      if (carried == carried_.end()) return;
      found = joined(found, carried->second.to_all);
      if (carried->second.block == block.number())
        in_block = joined(in_block, carried->second.to_block);
    });
    const bool acquires = is(Strength::acquire);
    Past &to = acquires ? its.known : its.heard_in_block, &to_all = acquires ? to : its.heard;
    to = joined(to, in_block);
    if (!access.narrow) to_all = joined(to_all, found);
  }
  const auto conflict = touch(lane, access);
  if (access.kind == Kind::load) return conflict;
  const Past released = is(Strength::release) ? block.release(lane) : nullptr;
  const auto left = [&](Past Knowledge::* fenced) {
    return released ? released : joined(its.*fenced, block.of_all().*fenced);
  };
  const Past to_all = access.narrow ? nullptr : left(&Knowledge::fenced);
  const Past to_block = left(&Knowledge::fenced_in_block);
  if (to_block || !carried_.empty())
    for_each([&](Page&, std::size_t, std::uintptr_t at) {
      Carried& carried = carried_[at];  // a change goes on with what the word carried
      const bool goes_on = access.kind == Kind::change;
      carried.to_all = goes_on ? joined(carried.to_all, to_all) : to_all;
      carried.to_block = goes_on && carried.block == block.number()
                             ? joined(carried.to_block, to_block)
                             : to_block;
      carried.block = block.number();
    });
  return conflict;
}

}  // namespace emulator
