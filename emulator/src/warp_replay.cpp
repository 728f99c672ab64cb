// SPDX-License-Identifier: MIT
#include "warp_replay.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace emulator {
// The basic blocks that the lanes went through since the warp's last barrier or are about to, and
// where paths meet again. It keeps its memory from warp to warp.
class FlowGraph {
 public:
  void clear() {
    blocks_.assign(1, 0);
    index_.assign(kLeastIndex, 0);
    edges_.clear();
    solved_ = false;
  }

  void add(std::span<const Log> logs) {
    for (const Log& log : logs) {
      int from = *log.step ? node(*log.step) : kNone;
      for (const Record* r = log.next; r != log.end; ++r) {
        if (r->event() != Event::step) continue;
        const int to = node(r->pc);
        if (from != kNone) edge(from, to);
        from = to;
      }
      if (from != kNone && !log.more) edge(from, kEnd);
    }
    std::ranges::sort(edges_);
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    solved_ = false;
  }

  /// The block that every path from `block` comes to first; 0 if that is the end.
  std::uint64_t post_dominator(std::uint64_t block) {
    if (!solved_) {
      link_to_end();
      solve();
      solved_ = true;
    }
    for (std::size_t at = hash(block);; ++at) {
      const int n = index_[at % index_.size()];
      if (n == 0) return 0;
      if (blocks_[n] == block) return dominator_[n] < 0 ? 0 : blocks_[dominator_[n]];
    }
  }

 private:
  static constexpr int kEnd = 0, kNone = -1;
  static constexpr std::size_t kLeastIndex = 64;
  struct Edge {
    int from, to;
    auto operator<=>(const Edge&) const = default;
  };

  static std::size_t hash(std::uint64_t block) { return block * 0x9E3779B97F4A7C15u >> 40; }

  int node(std::uint64_t block) {
    std::size_t at = hash(block) % index_.size();
    for (; index_[at] != 0; at = (at + 1) % index_.size())
      if (blocks_[index_[at]] == block) return index_[at];
    blocks_.push_back(block);
    const int fresh = static_cast<int>(blocks_.size()) - 1;
    index_[at] = fresh;
    if (2 * blocks_.size() > index_.size()) {
      index_.assign(2 * index_.size(), 0);
      for (std::size_t n = 1; n < blocks_.size(); ++n) {
        at = hash(blocks_[n]) % index_.size();
        while (index_[at] != 0) at = (at + 1) % index_.size();
        index_[at] = static_cast<int>(n);
      }
    }
    return fresh;
  }
  // Loops take the same edge again and again.
  void edge(int from, int to) {
    const Edge e{from, to};
    for (std::size_t back = 1; back <= std::min<std::size_t>(edges_.size(), 8); ++back)
      if (edges_[edges_.size() - back] == e) return;
    edges_.push_back(e);
  }

  // Lanes that are still at it may be in a loop that nobody has been seen to leave. It is left
  // where it goes back to its header (the first of its blocks that a lane came to), or, where
  // several blocks go back, from the header.
  void link_to_end() {
    linked_ = edges_;
    const std::size_t count = blocks_.size();
    for (;;) {
      std::vector<char>& ends = flags_;
      ends.assign(count, 0);
      ends[kEnd] = 1;
      for (bool changed = true; changed;) {
        changed = false;
        for (const Edge& e : linked_)
          if (ends[e.to] && !ends[e.from]) {
            ends[e.from] = 1;
            changed = true;
          }
      }
      // What leads to the fewest blocks leads to nothing but its own loop.
      std::size_t fewest = count + 1;
      int header = kNone;
      for (std::size_t n = 1; n < count; ++n) {
        if (ends[n]) continue;
        const std::size_t reach = reachable(static_cast<int>(n));
        if (reach >= fewest) continue;
        fewest = reach;
        header = static_cast<int>(n);
      }
      if (header == kNone) break;
      reachable(header);
      int last = kNone, going_back = 0;
      for (const Edge& e : edges_)
        if (e.to == header && seen_[e.from]) {
          last = e.from;
          ++going_back;
        }
      linked_.push_back({going_back == 1 ? last : header, kEnd});
    }
    std::ranges::sort(linked_);
  }

  std::size_t reachable(int from) {
    seen_.assign(blocks_.size(), 0);
    order_.assign(1, from);
    seen_[from] = 1;
    for (std::size_t at = 0; at < order_.size(); ++at)
      for (const Edge& e : linked_)
        if (e.from == order_[at] && !seen_[e.to]) {
          seen_[e.to] = 1;
          order_.push_back(e.to);
        }
    return order_.size();
  }

  // Immediate dominators of the reversed graph, after Cooper, Harvey and Kennedy, "A Simple, Fast
  // Dominance Algorithm" (2001).
  void solve() {
    const int count = static_cast<int>(blocks_.size());
    std::vector<std::vector<int>>& before = before_;
    if (before.size() < blocks_.size()) before.resize(blocks_.size());
    for (int n = 0; n < count; ++n) before[n].clear();
    for (const Edge& e : linked_) before[e.to].push_back(e.from);

    constexpr int kUnseen = -1, kOpen = -2;
    order_.clear();
    rank_.assign(blocks_.size(), kUnseen);
    open_.assign(1, {kEnd, 0});
    rank_[kEnd] = kOpen;
    while (!open_.empty()) {
      auto& [n, child] = open_.back();
      if (child < before[n].size()) {
        const int to = before[n][child++];
        if (rank_[to] != kUnseen) continue;
        rank_[to] = kOpen;
        open_.emplace_back(to, 0);
      } else {
        rank_[n] = static_cast<int>(order_.size());
        order_.push_back(n);
        open_.pop_back();
      }
    }
    first_edge_.assign(blocks_.size() + 1, 0);
    for (const Edge& e : linked_) ++first_edge_[e.from + 1];
    for (int n = 0; n < count; ++n) first_edge_[n + 1] += first_edge_[n];
    dominator_.assign(blocks_.size(), kNone);
    dominator_[kEnd] = kEnd;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
        if (*n == kEnd) continue;
        int meet = kNone;
        for (int e = first_edge_[*n]; e < first_edge_[*n + 1]; ++e) {
          int other = linked_[e].to;
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

  std::vector<std::uint64_t> blocks_;  // by node
  std::vector<int> index_;             // hash table of nodes
  std::vector<Edge> edges_;            // as lanes took them
  std::vector<Edge> linked_;           // and to the end
  bool solved_ = false;
  std::vector<char> flags_, seen_;
  std::vector<std::vector<int>> before_;
  std::vector<int> order_, rank_, first_edge_, dominator_;
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
      for_each_lane(active, [&](unsigned l) { *logs[l].step = pc; });
    }
    for_each_lane(active, [&](unsigned l) { ++logs[l].next; });
    if (record.event() == Event::step)
      listener_.step(active);
    else if (record.event() == Event::sync)
      listener_.sync({active, 0, addresses});
    else if (record.event() == Event::copy)
      listener_.copy(pc, {active, record.bytes(), addresses});
    else if (record.event() == Event::arrival)
      listener_.arrival({active, 0, addresses});
    else
      listener_.access(pc, record.event(),
                       {active, record.bytes(), addresses, record.queues(), values});
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
  // before all others those whose lanes are still at it: where they will meet the others is known
  // only when they have come there.
  const auto rank = [&](const Path& part) {
    bool more = false;
    for_each_lane(part.lanes, [&](unsigned l) { more |= logs[l].more; });
    return std::pair(!more, logs[std::countr_zero(part.lanes)].next->pc);
  };
  std::ranges::sort(parts, std::greater{}, rank);
  paths_.insert(paths_.end(), parts.begin(), parts.end());
}

}  // namespace emulator
