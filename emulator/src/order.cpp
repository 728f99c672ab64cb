// SPDX-License-Identifier: MIT
#include "order.hpp"

#include <algorithm>
#include <bit>

#include "block.hpp"
#include "record.hpp"
#include "symbols.hpp"

namespace emulator {

// ---- clocks

namespace {

constexpr unsigned kTimeBits = 26, kWhoBits = 11;
constexpr unsigned kMostLevel = 0xFFFF;  // beyond that anything may be ordered

std::uint64_t entry(std::uint64_t block, unsigned who, std::uint32_t time) {
  return (block << kWhoBits | who) << kTimeBits | time;
}

Past joined(const Past& a, const Past& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  auto both = std::make_shared<Clock>(*a);
  both->join(*b);
  return *both == *a ? a : *both == *b ? b : both;
}

}  // namespace

bool Clock::knows(std::uint64_t block, unsigned thread, std::uint32_t time) const {
  return std::ranges::any_of(std::array{thread, kWarps + thread / 32, kAll}, [&](unsigned who) {
    const std::uint64_t after = entry(block, who, time) + 1;
    const auto found = std::ranges::lower_bound(entries_, after);
    return found != entries_.end() && *found >> kTimeBits == after >> kTimeBits;
  });
}

void Clock::raise(std::uint64_t block, unsigned who, std::uint32_t time) {
  const std::uint64_t raised = entry(block, who, time);
  const auto at = std::ranges::lower_bound(entries_, entry(block, who, 0));
  if (at != entries_.end() && *at >> kTimeBits == raised >> kTimeBits)
    *at = std::max(*at, raised);
  else
    entries_.insert(at, raised);
}

void Clock::join(const Clock& other) {
  std::vector<std::uint64_t> both;
  both.reserve(entries_.size() + other.entries_.size());
  std::ranges::merge(entries_, other.entries_, std::back_inserter(both));
  std::size_t kept = 0;  // of each thread, warp or block the last, which is the latest
  for (std::size_t i = 0; i < both.size(); ++i)
    if (i + 1 == both.size() || both[i] >> kTimeBits != both[i + 1] >> kTimeBits)
      both[kept++] = both[i];
  both.resize(kept);
  entries_ = std::move(both);
}

void Knowledge::join(const Knowledge& other) {
  for (const auto part : {&Knowledge::known, &Knowledge::fenced, &Knowledge::heard})
    if (other.*part) this->*part = joined(this->*part, other.*part);
  level = std::max(level, other.level);
}

// ---- the threads of a block

Past BlockOrder::release(const Lane& lane) {
  auto all = std::make_shared<Clock>();
  if (base_.known) *all = *base_.known;
  if (lane.knowledge.known) all->join(*lane.knowledge.known);
  if (barrier_ > 0) all->raise(number_, Clock::kAll, barrier_);
  all->raise(number_, current_block->number_of(lane), ++time_);
  return all;
}

// What a thread fenced or heard counts for those too that it meets at a barrier afterwards: the
// model of PTX asks for a fence of each thread's own, but hardware has made all wait for it.
void BlockOrder::fence(Lane& lane) {
  Knowledge& its = lane.knowledge;
  its.known = joined(joined(its.known, its.heard), base_.heard);
  its.heard = nullptr;
  its.fenced = release(lane);
}

void BlockOrder::meet(std::span<Lane> lanes, std::uint32_t members, bool orders_memory) {
  Knowledge all;
  for_each_lane(members, [&](unsigned l) {
    if (orders_memory) all.join(lanes[l].knowledge);
    all.level = std::max(all.level, lanes[l].knowledge.level);
  });
  if (orders_memory) {
    auto known = all.known ? std::make_shared<Clock>(*all.known) : std::make_shared<Clock>();
    ++time_;
    const bool whole =
        static_cast<std::size_t>(std::popcount(members)) == lanes.size();  // as most often
    const unsigned first = current_block->number_of(lanes[0]);
    if (whole)
      known->raise(number_, Clock::kWarps + first / 32, time_);
    else
      for_each_lane(members, [&](unsigned l) { known->raise(number_, first + l, time_); });
    all.known = std::move(known);
  }
  for_each_lane(members, [&](unsigned l) {
    if (orders_memory)
      lanes[l].knowledge = all;
    else
      lanes[l].knowledge.level = all.level;
  });
}

void BlockOrder::barrier(std::span<Lane> lanes) {
  for (Lane& lane : lanes) {
    base_.join(lane.knowledge);
    lane.knowledge.known.reset();
    lane.knowledge.fenced.reset();
    lane.knowledge.heard.reset();
    lane.moment.known.reset();
  }
  barrier_ = ++time_;
  for (Lane& lane : lanes) {
    lane.knowledge.level = base_.level;
    lane.moment.time = time_;
  }
}

void BlockOrder::add_to(Knowledge& all) const {
  if (barrier_ == 0) return;  // nobody checks
  all.join(base_);
  auto known = all.known ? std::make_shared<Clock>(*all.known) : std::make_shared<Clock>();
  known->raise(number_, Clock::kAll, barrier_);
  all.known = std::move(known);
}

bool BlockOrder::knows(const Lane& lane, std::uint64_t block, unsigned thread,
                       std::uint32_t time) const {
  const auto in = [&](const Past& past) { return past && past->knows(block, thread, time); };
  return in(base_.known) || in(lane.knowledge.known);
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
  append(lane, {number | static_cast<std::uint64_t>(Event::moment) << 56, RETURN_ADDRESS, 0});
}

void release(Lane& lane, Released& into) {
  if (!current_block->launch().check) return;
  make_room(lane);
  {
    const OutsideLane outside;
    current_block->mark_accesses(lane);
    into.clock.join(*current_block->order().release(lane));
    into.level = std::max(into.level, lane.knowledge.level);
  }
  note_moment(lane);
}

void acquire(Lane& lane, const Released& from) {
  if (!current_block->launch().check) return;
  make_room(lane);
  {
    const OutsideLane outside;
    current_block->mark_accesses(lane);
    lane.knowledge.known = joined(lane.knowledge.known, std::make_shared<Clock>(from.clock));
    lane.knowledge.level = std::max(lane.knowledge.level, from.level);
  }
  note_moment(lane);
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

namespace {

using Mark = GlobalOrder::Mark;
void set(std::unique_ptr<Mark[]>& marks, unsigned words, std::size_t word, const Mark& mark) {
  if (!marks) marks = std::make_unique<Mark[]>(words);
  marks[word] = mark;
}

}  // namespace

std::optional<GlobalOrder::Conflict> GlobalOrder::weak(const BlockOrder& block, const Lane& lane,
                                                       unsigned thread, const Record& record) {
  const bool store = record.event() == Event::store;
  const Knowledge& its = lane.knowledge;
  std::optional<Conflict> conflict;
  for_each_word(
      record.address(), record.bytes(),
      [&](Page& there, std::size_t word, std::uintptr_t at, unsigned bytes) {
        const auto check = [&](const std::unique_ptr<Mark[]>& marks, const char* what,
                               auto ordered) {
          if (!marks || conflict) return;
          const Mark& mark = marks[word];
          if ((mark.bytes & bytes) == 0 || mark.block == block.number() || ordered(mark)) return;
          conflict = Conflict{what, at, record.pc, mark};
        };
        const auto known = [&](const Mark& m) {
          return block.knows(lane, m.block, m.thread, m.time);
        };
        check(there.stores, store ? "write after write" : "read after write", [&](const Mark& m) {
          return (store && m.value == record.value && m.value > Record::kNeverRead) || known(m);
        });
        // What was read, or changed by an atomic, before a flag of any strength, is over for who
        // has seen the flag: the store depends on it.
        check(there.strong, store ? "write after atomic write" : "read after atomic write",
              [&](const Mark& m) {
                return store ? m.value < its.level || m.value >= kMostLevel : known(m);
              });
        if (store)
          check(there.loads, "write after read",
                [&](const Mark& m) { return m.time < its.level || m.time >= kMostLevel; });
        Mark mine{block.number(), thread,
                  bytes,          store ? block.time() : its.level,
                  record.pc,      store ? record.value : 0u};
        set(store ? there.stores : there.loads, kWords, word, mine);
      });
  return conflict;
}

std::optional<GlobalOrder::Conflict> GlobalOrder::strong(BlockOrder& block, Lane& lane,
                                                         unsigned thread, std::uintptr_t address,
                                                         unsigned bytes, Kind kind,
                                                         Strength strength, std::uintptr_t pc) {
  Knowledge& its = lane.knowledge;
  const bool loads = kind != Kind::store, stores = kind != Kind::load;
  if (loads) {
    Past found;
    for_each_word(address, bytes, [&](Page& there, std::size_t word, std::uintptr_t at, unsigned) {
      if (const Mark* mark = there.strong ? &there.strong[word] : nullptr; mark && mark->bytes != 0)
        its.level = std::max<unsigned>(its.level, mark->value + (mark->block != block.number()));
      if (carried_.empty()) return;
      if (const auto carried = carried_.find(at); carried != carried_.end())
        found = joined(found, carried->second);
    });
    Past& to = acquires(strength) ? its.known : its.heard;
    to = joined(to, found);
  }
  Past left;
  const std::uint32_t now = block.time();
  if (stores)
    left = releases(strength) ? block.release(lane) : joined(its.fenced, block.fenced_by_all());
  std::optional<Conflict> conflict;
  for_each_word(
      address, bytes, [&](Page& there, std::size_t word, std::uintptr_t at, unsigned part) {
        const auto touches = [&](const std::unique_ptr<Mark[]>& marks) {
          return marks && (marks[word].bytes & part) != 0 && marks[word].block != block.number() &&
                 !conflict;
        };
        if (touches(there.stores)) {
          const Mark& mark = there.stores[word];
          if (!block.knows(lane, mark.block, mark.thread, mark.time))
            conflict = Conflict{stores ? "atomic write after write" : "atomic read after write", at,
                                pc, mark};
        }
        if (stores && touches(there.loads)) {
          const Mark& mark = there.loads[word];
          if (mark.value == 0 && mark.time >= its.level && mark.time < kMostLevel)
            conflict = Conflict{"atomic write after read", at, pc, mark};
        }
        if (!stores)
          return set(there.loads, kWords, word, {block.number(), thread, part, its.level, pc, 1});
        set(there.strong, kWords, word,
            {block.number(), thread, part, now, pc, std::min(its.level, kMostLevel)});
        // A change goes on with what the word carried.
        if (left || !carried_.empty()) {
          Past& carried = carried_[at];
          carried = kind == Kind::change ? joined(carried, left) : left;
        }
      });
  return conflict;
}

}  // namespace emulator
