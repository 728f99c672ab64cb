// SPDX-License-Identifier: MIT
#include "warp_replay.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace emulator {
// The basic blocks that the lanes went through since the warp's last barrier or are about to, and
// where paths meet again. It keeps its memory from warp to warp.
class FlowGraph {
 public:
  void clear() {
    blocks_.assign(1, 0);
    waiting_.clear();
    solved_ = false;
  }

  void add(std::span<const Log> logs) {
    for (const Log& log : logs) {
      int from = *log.step ? node(*log.step) : kNone;
      for (const Record* r = log.next; r != log.end; ++r)
        if (r->event() == Event::step) from = from == kNone ? node(r->pc) : go(from, r->pc);
      if (from != kNone && !log.more) go(from, 0);
      if (from == kNone || !log.waits || !next_[from].empty()) continue;
      if (std::ranges::find(waiting_, from) != waiting_.end()) continue;
      waiting_.push_back(from);
      solved_ = false;
    }
  }

  /// The block that every path from `block` comes to first; 0 if that is the end.
  std::uint64_t post_dominator(std::uint64_t block) {
    if (!solved_) {
      link_to_end();
      solve();
      solved_ = true;
    }
    const auto found = std::ranges::find(blocks_, block);
    if (found == blocks_.end()) return 0;
    const int dominator = dominator_[found - blocks_.begin()];
    return dominator == kNone ? 0 : blocks_[dominator];
  }

 private:
  static constexpr int kEnd = 0, kNone = -1;
  using Edges = std::vector<std::vector<int>>;  // by node; may have more than there are nodes

  int node(std::uint64_t block) {
    const auto found = std::ranges::find(blocks_, block);
    const auto n = static_cast<std::size_t>(found - blocks_.begin());
    if (found == blocks_.end()) {
      blocks_.push_back(block);
      if (next_.size() <= n) next_.resize(n + 1);
      next_[n].clear();
      solved_ = false;
    }
    return static_cast<int>(n);
  }
  // Most edges are known already: loops repeat them, and lanes take the same ones.
  int go(int from, std::uint64_t block) {
    for (const int to : next_[from])
      if (blocks_[to] == block) return to;
    const int to = node(block);
    next_[from].push_back(to);
    solved_ = false;
    return to;
  }

  // Lanes that are still at it may be in a loop that nobody has been seen to leave. It is left
  // where it goes back to its header (the first of its blocks that a lane came to), or, where
  // several blocks go back, from the header.
  void link_to_end() {
    const int count = static_cast<int>(blocks_.size());
    if (linked_.size() < blocks_.size()) linked_.resize(blocks_.size());
    linked_[kEnd].clear();
    for (int n = 1; n < count; ++n) linked_[n] = next_[n];
    // Nobody knows yet where a lane goes from where it waits for other warps: blocks from which all
    // ways lead there tell nothing.
    std::vector<char> unknown(waiting_.empty() ? 0 : blocks_.size());
    for (const int n : waiting_) unknown[n] = next_[n].empty();
    for (bool changed = !waiting_.empty(); changed;) {
      changed = false;
      for (int n = 1; n < count; ++n)
        if (!unknown[n] && !next_[n].empty() &&
            std::ranges::all_of(next_[n], [&](int to) { return unknown[to]; }))
          unknown[n] = changed = true;
    }
    for (;;) {
      std::vector<char>& ends = flags_;
      ends.assign(blocks_.size(), 0);
      ends[kEnd] = 1;
      for (bool changed = true; changed;) {
        changed = false;
        for (int n = count; --n > 0;)
          if (!ends[n] && std::ranges::any_of(linked_[n], [&](int to) { return ends[to]; }))
            ends[n] = changed = true;
      }
      // What leads to the fewest blocks leads to nothing but its own loop.
      std::size_t fewest = blocks_.size() + 1;
      int header = kNone;
      for (int n = 1; n < count; ++n) {
        if (ends[n] || (!unknown.empty() && unknown[n])) continue;
        const std::size_t reach = reachable(n);
        if (reach >= fewest) continue;
        fewest = reach;
        header = n;
      }
      if (header == kNone) break;
      reachable(header);
      int last = kNone, going_back = 0;
      for (int n = 1; n < count; ++n)
        if (seen_[n] && std::ranges::count(next_[n], header)) {
          last = n;
          ++going_back;
        }
      linked_[going_back == 1 ? last : header].push_back(kEnd);
    }
  }

  std::size_t reachable(int from) {
    seen_.assign(blocks_.size(), 0);
    order_.assign(1, from);
    seen_[from] = 1;
    for (std::size_t at = 0; at < order_.size(); ++at)
      for (const int to : linked_[order_[at]])
        if (!seen_[to]) {
          seen_[to] = 1;
          order_.push_back(to);
        }
    return order_.size();
  }

  // Immediate dominators of the reversed graph, after Cooper, Harvey and Kennedy, "A Simple, Fast
  // Dominance Algorithm" (2001).
  void solve() {
    const int count = static_cast<int>(blocks_.size());
    if (before_.size() < blocks_.size()) before_.resize(blocks_.size());
    for (int n = 0; n < count; ++n) before_[n].clear();
    for (int n = 0; n < count; ++n)
      for (const int to : linked_[n]) before_[to].push_back(n);

    constexpr int kUnseen = -1, kOpen = -2;
    order_.clear();
    rank_.assign(blocks_.size(), kUnseen);
    open_.assign(1, {kEnd, 0});
    rank_[kEnd] = kOpen;
    while (!open_.empty()) {
      auto& [n, child] = open_.back();
      if (child < before_[n].size()) {
        const int to = before_[n][child++];
        if (rank_[to] != kUnseen) continue;
        rank_[to] = kOpen;
        open_.emplace_back(to, 0);
      } else {
        rank_[n] = static_cast<int>(order_.size());
        order_.push_back(n);
        open_.pop_back();
      }
    }
    dominator_.assign(blocks_.size(), kNone);
    dominator_[kEnd] = kEnd;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
        if (*n == kEnd) continue;
        int meet = kNone;
        for (int other : linked_[*n]) {
          if (dominator_[other] == kNone) continue;
          if (meet == kNone) meet = other;
          while (meet != other) {
            while (rank_[meet] < rank_[other]) meet = dominator_[meet];
            while (rank_[other] < rank_[meet]) other = dominator_[other];
          }
        }
        if (meet != kNone && dominator_[*n] != meet) {
          dominator_[*n] = meet;
          changed = true;
        }
      }
    }
  }

  std::vector<std::uint64_t> blocks_;  // by node; the end is 0
  std::vector<int> waiting_;           // nodes in which lanes have waited for other warps
  Edges next_;                         // as lanes went
  Edges linked_, before_;              // and to the end; the same backwards
  bool solved_ = false;
  std::vector<char> flags_, seen_;
  std::vector<int> order_, rank_, dominator_;
  std::vector<std::pair<int, std::size_t>> open_;
};

WarpReplay::WarpReplay(WarpListener& listener)
    : listener_(listener), graph_(std::make_unique<FlowGraph>()) {}
WarpReplay::~WarpReplay() = default;

void WarpReplay::replay(std::span<Log> logs, bool all) {
  bool in_graph = false;  // what the logs hold
  if (paths_.empty()) {
    graph_->clear();
    const std::uint32_t everyone = logs.size() == 32 ? ~0u : (1u << logs.size()) - 1;
    std::uint64_t common = 0;
    bool same = true;
    for (const Log& log : logs) {
      if (log.next == log.end) continue;
      if (common == 0) common = *log.step;
      same &= *log.step == common;
    }
    paths_.push_back({everyone, 0, 0, same ? common : 0});
  }
  // To be remembered when lanes part later, or because they have.
  if (paths_.size() > 1 || std::ranges::any_of(logs, &Log::more)) {
    graph_->add(logs);
    in_graph = true;
    // What was unknown when they parted may be known now.
    for (Path& path : paths_)
      if (path.branch != 0) path.joins = graph_->post_dominator(path.branch);
  }
  while (!paths_.empty()) {
    Path& path = paths_.back();
    std::uint32_t active = 0;
    std::uint64_t pc = 0, what = 0, addresses[32];
    std::uint16_t values[32];
    bool together = true, starved = false;
    for_each_lane(path.lanes, [&](unsigned l) {
      const Log& log = logs[l];
      if (log.next == log.end) {
        starved |= log.more && !all;
        return;
      }
      if (active == 0) {
        pc = log.next->pc;
        what = log.next->what;
      }
      together &= log.next->pc == pc && log.next->kind() == Record{what, pc, 0}.kind();
      active |= 1u << l;
      what |= log.next->what & Record::kQueues << 48;  // of any lane
      addresses[l] = log.next->address();
      values[l] = log.next->value;
    });
    if (starved) return;
    if (active == 0) {
      paths_.pop_back();
      continue;
    }
    if (!together) {
      if (!in_graph) graph_->add(logs);
      in_graph = true;
      diverge(logs, active, graph_->post_dominator(path.step));
      continue;
    }
    const Record record{what, pc, 0};
    if (record.event() == Event::step) {
      if (pc == path.joins) {  // the path below takes it from here
        paths_.pop_back();
        continue;
      }
      path.step = pc;
    }
    const bool step = record.event() == Event::step;
    for_each_lane(active, [&](unsigned l) {
      ++logs[l].next;
      if (step) *logs[l].step = pc;
    });
    if (step)
      listener_.step(active);
    else if (record.event() < Event::copy)
      listener_.access(pc, record.event(),
                       {active, record.bytes(), addresses, record.queues(), values});
    else if (record.event() == Event::sync)
      listener_.sync({active, 0, addresses});
    else if (record.event() == Event::copy)
      listener_.copy(pc, {active, record.bytes(), addresses});
    else if (record.event() == Event::arrival)
      listener_.arrival({active, 0, addresses});
    else if (record.event() == Event::moment)
      listener_.moment({active, 0, addresses});
    else if (record.event() == Event::bulk)
      listener_.bulk_copy(pc, {active, 0, addresses});
    else
      listener_.mbarrier({active, record.bytes(), addresses});
  }
}

// Splits the topmost path by where its lanes go next. Those that are at its own end already wait
// there; those that are at the join wait for the others to come.
void WarpReplay::diverge(std::span<Log> logs, std::uint32_t active, std::uint64_t join) {
  const Path parent = paths_.back();
  std::vector<Path> parts;
  std::uint32_t staying = 0;
  while (active != 0) {
    const Record& first = *logs[std::countr_zero(active)].next;
    std::uint32_t lanes = 0;
    for_each_lane(active, [&](unsigned l) {
      const Record& r = *logs[l].next;
      if (r.pc == first.pc && r.kind() == first.kind()) lanes |= 1u << l;
    });
    active &= ~lanes;
    const bool step = first.event() == Event::step;
    if (step && first.pc == parent.joins) continue;
    staying |= lanes;
    if (!(step && first.pc == join)) parts.push_back({lanes, parent.step, join, parent.step});
  }
  paths_.back().lanes = staying;
  // The path with the lowest address runs first, which makes no difference to the figures; but
  // before all others those whose lanes are still at it, and of these any that waits for other
  // warps: where they will meet the others is known only when they have come there.
  const auto rank = [&](const Path& part) {
    bool more = false, waits = false;
    for_each_lane(part.lanes, [&](unsigned l) {
      more |= logs[l].more;
      waits |= logs[l].waits;
    });
    return std::tuple(!more, !waits, logs[std::countr_zero(part.lanes)].next->pc);
  };
  std::ranges::sort(parts, std::greater{}, rank);
  paths_.insert(paths_.end(), parts.begin(), parts.end());
}

}  // namespace emulator
