// SPDX-License-Identifier: MIT
#include "block.hpp"

namespace emulator {

// ---- clocks

namespace {

constexpr unsigned kTimeBits = 26, kWhoBits = 11;
constexpr unsigned kMostLevel = 0x1FFF;  // beyond that anything may be ordered

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
  const auto show_those = [&](std::uint64_t from) {
    Clock shown;
    for (const std::uint64_t each : entries_)
      if (each - entry(from, 0, 0) < entry(kMostBlocks, 0, 0))
        shown.entries_.push_back(each - entry(from, 0, 0) + entry(to, 0, 0));
    join(shown);
  };
  show_those(0);
  if (to == kShared || to == kBarriers) show_those(kInShared);
}

void Clock::keep_shown(std::uint64_t from) {
  std::erase_if(entries_, [&](std::uint64_t each) { return each < entry(from, 0, 0); });
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

static std::uint64_t thread_of(const Lane& lane) {
  return current_block->order().number() * Clock::kWarps + current_block->number_of(lane);
}
// It reads nothing that is older than what is there now.
static void is_told(Lane& lane) { lane.told = current_block->launch().races.changes(); }

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
    if (orders_memory) lanes[l].knowledge = all;
    lanes[l].knowledge.level = all.level;
    lanes[l].met = time_;
    is_told(lanes[l]);
  });
}

void BlockOrder::barrier(std::span<Lane> lanes) {
  for (const Lane& lane : lanes) base_.join(lane.knowledge);
  barrier_ = ++time_;
  for (Lane& lane : lanes) {
    lane.knowledge = {.level = base_.level};
    is_told(lane);
  }
}

Knowledge BlockOrder::released(std::span<Lane> lanes, Orders what) {
  if (what == Orders::all) barrier(lanes);
  Knowledge all = base_;
  for (const Lane& lane : lanes) all.join(lane.knowledge);
  const auto known = copy_of(all.known);
  known->raise(number_, Clock::kAll, what == Orders::all ? barrier_ : ++time_);
  if (what == Orders::all) {
    all.known = known;
    return all;
  }
  known->show(Clock::kInShared);
  known->keep_shown(what == Orders::shared_memory ? Clock::kShared : Clock::kBarriers);
  // A fence before the barrier makes it a release.
  if (all.fenced) known->join(*all.fenced);
  base_.known = joined(base_.known, all.fenced_in_block);
  // Who stores after the barrier depends on what was loaded before.
  return {.known = known, .level = all.level + (what == Orders::shared_memory)};
}

bool BlockOrder::knows(const Lane& lane, std::uint64_t block, unsigned thread,
                       std::uint32_t time) const {
  const auto in = [&](const Past& past) { return past && past->knows(block, thread, time); };
  return (block == number_ && time < barrier_) || in(base_.known) || in(lane.knowledge.known);
}

void make_room(Lane& lane) {
  while (lane.next && lane.next == lane.end) yield(lane, State::log_full);
}

// What the lane did before is marked.
template <class F>
static void synchronize(Lane& lane, F change) {
  if (!current_block->launch().check) return;
  const OutsideLane outside;
  current_block->mark_accesses(lane);
  change();
  is_told(lane);
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
void fence_mbarrier_init() { show(Clock::kBarriers); }
void fence_proxy_async_shared() { show(Clock::kShared); }
void fence_proxy_async() {
  show(Clock::kShared);
  show(Clock::kGlobal);
}

// ---- memory

Races::Page& Races::page(std::uintptr_t address) {
  const auto [at, fresh] = pages_.try_emplace(address / (4 * kWords));
  if (fresh) at->second.global = in_image(address) || GlobalMemory::get().find(address);
  return at->second;
}

std::span<const Races::Word> Races::words(std::uintptr_t address, unsigned bytes) {
  Page& there = page(address);
  std::size_t count = 0;
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < address + bytes; at += 4) {
    const unsigned first = at < address ? static_cast<unsigned>(address - at) : 0;
    const auto end = static_cast<unsigned>(std::min<std::uintptr_t>(address + bytes - at, 4));
    if (at / 4 % kWords >= address / 4 % kWords)  // one that is misaligned may leave the page
      words_[count++] = {&there, at / 4 % kWords, at, ((1u << end) - 1) & ~((1u << first) - 1)};
  }
  return {words_, count};
}

std::optional<Races::Conflict> Races::check(const Lane& lane, const Access& access) {
  const BlockOrder& block = current_block->order();
  const Knowledge& its = lane.knowledge;
  const bool stores = access.operation != Operation::load, strong = access.strong;
  const unsigned level = std::min(its.level, kMostLevel) * Mark::kLevel +
                         access.is_volatile * Mark::kVolatile + access.narrow * Mark::kNarrow +
                         strong * Mark::kStrong;
  const Mark own{block.number(), current_block->number_of(lane),          0, block.time(),
                 access.pc,      stores && !strong ? access.value : level};
  // In shared memory, marks of blocks that were there before mean nothing.
  const auto counts = [&](const Mark& m) {
    return !access.shared || current_block->is_in_cluster(m.block);
  };
  // What was read, or changed by an atomic, before a flag of any strength, is over for another
  // block that has seen the flag: the store depends on it.
  const auto over = [&](const Mark& m) {
    return m.block != own.block && !access.shared &&
           (m.level() < its.level || m.level() >= kMostLevel);
  };
  const auto both_strong = [&](const Mark& m, bool is_store) {
    if (!strong || !(m.value & Mark::kStrong)) return false;
    if (m.block != own.block) return !(access.narrow || m.value & Mark::kNarrow);
    const bool volatiles = access.is_volatile && m.value & Mark::kVolatile;
    return !volatiles || !own.is_of_warp(m) || (stores && is_store);
  };
  // What a lane has read it may have passed on to another by a shuffle.
  const auto passed_on = [&](const Mark& m) {
    return own.is_of_warp(m) && m.time < lane.met && m.time < (&lane - own.thread + m.thread)->met;
  };
  const auto same_value = [&](const Mark& m) {
    return stores && m.value == own.value && Record::is_digest(access.value);
  };
  std::optional<Conflict> conflict;
  const auto compare = [&](const Mark& m, Marks Page::* kind, std::uintptr_t at, bool ordered) {
    const bool stored = kind == &Page::stores;
    const bool in_flight = stored && m.value == Record::kInFlight;
    const bool to_be_shown =
        access.bulk && kind != &Page::loads && !(stored && m.value == Record::kByCopy);
    if (!in_flight && (ordered || (own.is_of(m) && !to_be_shown))) return;
    const std::uint64_t shown_to = !to_be_shown    ? 0
                                   : access.shared ? Clock::kShared
                                                   : Clock::kGlobal;
    const auto is_over = [&](std::uint64_t to) {
      return block.knows(lane, m.block + to, m.thread, m.time);
    };
    const bool in_shared =
        access.shared && !to_be_shown && (kind == &Page::loads || m.block == access.owner);
    if (!in_flight && (is_over(shown_to) || (in_shared && is_over(Clock::kInShared)))) return;
    const char* after = stored                  ? " after write"
                        : kind == &Page::strong ? " after atomic write"
                                                : " after read";
    const bool narrow = strong && !stored && (access.narrow || m.value & Mark::kNarrow);
    conflict = {in_flight
                    ? text(stores ? "write" : "read", " before the wait for an asynchronous copy")
                : to_be_shown ? text("a bulk copy ", stores ? "overwrites" : "reads",
                                     " what no fence has shown it, the write")
                              : text(strong ? "atomic " : "", stores ? "write" : "read", after,
                                     narrow ? ", one of them of the scope of a block," : ""),
                access, at, m, in_flight || to_be_shown};
  };
  for (const Word& word : words(access.address, access.bytes)) {
    const auto each = [&](Marks Page::* kind, auto ordered) {
      if (!(word.page->*kind)) return;
      const Last& last = (word.page->*kind)[word.number];
      for (const Mark* m : {&last.mark, &last.of_warp, &last.of_block, &last.of_grid})
        if ((m->bytes & word.bytes) != 0 && !conflict && counts(*m))
          compare(*m, kind, word.address, ordered(*m));
    };
    each(&Page::stores, same_value);
    each(&Page::strong,
         [&](const Mark& m) { return both_strong(m, true) || (!strong && stores && over(m)); });
    if (stores)
      each(&Page::loads,
           [&](const Mark& m) { return over(m) || both_strong(m, false) || passed_on(m); });
    Marks& marks = !stores ? word.page->loads : strong ? word.page->strong : word.page->stores;
    if (!marks) marks = std::make_unique<Last[]>(kWords);
    add(marks[word.number], own, word.bytes);
  }
  return conflict;
}

void Races::add(Last& last, const Mark& own, unsigned part) {
  Mark& mark = last.mark;
  unsigned bytes = part;
  if (!own.is_of(mark))
    (own.is_of_warp(mark)      ? last.of_warp
     : own.block == mark.block ? last.of_block
                               : last.of_grid) = mark;
  else if (mark.time == own.time && mark.value == own.value)
    bytes |= mark.bytes;  // parts of a word, one after the other
  mark = own;
  mark.bytes = bytes;
}

void Races::land(std::uintptr_t address, unsigned bytes, bool bulk) {
  for (const Word& word : words(address, bytes)) {
    if (!word.page->stores) continue;
    Mark& mark = word.page->stores[word.number].mark;
    if (mark.value != Record::kInFlight) continue;
    mark.value = bulk ? Record::kByCopy : Record::kNeverRead;
    if (!bulk) mark.time = current_block->order().time();
  }
}

void Races::acquire(Lane& lane, const Access& access) {
  const BlockOrder& block = current_block->order();
  Knowledge& its = lane.knowledge;
  Past found, in_block;
  for (const Word& word : words(access.address, access.bytes)) {
    if (const Marks& strong = word.page->strong; strong && strong[word.number].mark.bytes != 0) {
      const Mark& mark = strong[word.number].mark;
      its.level = std::max(its.level, mark.level() + (mark.block != block.number()));
    }
    const auto carried = carried_.find(word.address);
    if (carried == carried_.end()) continue;
    const auto& [to_all, to_block, from] = carried->second;
    if (access.shared && !current_block->is_in_cluster(from)) continue;
    found = joined(found, to_all);
    if (from == block.number()) in_block = joined(in_block, to_block);
  }
  const bool acquires = access.strength == Strength::acquire || access.strength == Strength::both;
  Past &to = acquires ? its.known : its.heard_in_block, &to_all = acquires ? to : its.heard;
  to = joined(to, in_block);
  if (!access.narrow) to_all = joined(to_all, found);
}

void Races::release(Lane& lane, const Access& access) {
  BlockOrder& block = current_block->order();
  const bool releases = access.strength == Strength::release || access.strength == Strength::both;
  const Past released = releases ? block.release(lane) : nullptr;
  const auto left = [&](Past Knowledge::* fenced) {
    return released ? released : joined(lane.knowledge.*fenced, block.of_all().*fenced);
  };
  const Past to_all = access.narrow ? nullptr : left(&Knowledge::fenced);
  const Past to_block = left(&Knowledge::fenced_in_block);
  if (!to_block && carried_.empty()) return;
  for (const Word& word : words(access.address, access.bytes)) {
    Carried& carried = carried_[word.address];
    // A change goes on with what the word carried.
    const bool goes_on = access.operation == Operation::atomic &&
                         (!access.shared || current_block->is_in_cluster(carried.block));
    carried.to_all = goes_on ? joined(carried.to_all, to_all) : to_all;
    carried.to_block =
        goes_on && carried.block == block.number() ? joined(carried.to_block, to_block) : to_block;
    carried.block = block.number();
  }
}

bool Races::lags(Lane& lane, const Access& access) {
  const auto found = before_.find(access.address);
  if (found == before_.end()) return false;
  Before& before = found->second;
  const BlockOrder& block = current_block->order();
  const auto is_over = [&](const auto& seen) {
    const auto [thread, time] = seen;
    return thread == thread_of(lane) ||
           block.knows(lane, thread / Clock::kWarps, thread % Clock::kWarps, time);
  };
  if (before.bytes != access.bytes || before.change <= lane.told ||
      std::ranges::any_of(before.seen, is_over) || !current_block->turns().lags())
    return false;
  std::memcpy(access.read, before.value, access.bytes);
  lane.polled = 0, lane.polls = 0;  // the next one may read something else
  before.carried.resize(access.bytes / 4);
  const auto exchange = [&] {
    for (std::size_t i = 0; i < before.carried.size(); ++i)
      std::swap(carried_[access.address + 4 * i], before.carried[i]);
  };
  exchange();
  acquire(lane, access);
  exchange();
  return true;
}

void Races::see(const Lane& lane, const Access& access) {
  const auto [address, bytes] = std::pair(access.address, access.bytes);
  const bool loads = access.operation == Operation::load;
  // A volatile store comes next, others are there.
  const bool changes =
      !loads && access.strong && bytes >= 4 &&
      (access.is_volatile ||
       std::memcmp(access.replaced, reinterpret_cast<const void*>(address), bytes) != 0);
  // A store over part of a word, or beyond it, ends the word's older value, which would undo it.
  if (!before_.empty() && (access.strong || !loads))
    for (std::uintptr_t at = (address & ~std::uintptr_t{3}) - 12; at < address + bytes; at += 4) {
      const auto found = before_.find(at);
      if (found == before_.end() || at + found->second.bytes <= address) continue;
      const bool same = at == address && found->second.bytes == bytes && access.strong;
      if (loads || (same && !changes))
        found->second.seen.try_emplace(thread_of(lane), current_block->order().time());
      else if (!same)
        before_.erase(found);
    }
  if (!changes) return;
  Before& before = before_[address] = {.bytes = bytes, .change = ++changes_};
  std::memcpy(before.value, access.replaced, bytes);
  before.seen[thread_of(lane)] = current_block->order().time();
  if (carried_.empty()) return;
  for (std::uintptr_t at = address; at < address + bytes; at += 4) {
    const auto carried = carried_.find(at);
    before.carried.push_back(carried == carried_.end() ? Carried{} : carried->second);
  }
}

std::optional<Races::Conflict> Races::note(Lane& lane, const Access& access) {
  const bool explored = !access.shared && current_block->launch().turns->explores();
  const bool lagged = explored && access.read && lags(lane, access);
  if (access.strong && access.operation != Operation::store && !lagged) acquire(lane, access);
  const auto conflict = check(lane, access);
  if (explored && !lagged) see(lane, access);
  if (access.strong && access.operation != Operation::load) release(lane, access);
  return conflict;
}

}  // namespace emulator
