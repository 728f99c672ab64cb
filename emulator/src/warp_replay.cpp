// SPDX-License-Identifier: MIT
#include <tuple>

#include "block.hpp"

namespace emulator {

// What a lane has recorded and nobody has replayed yet.
struct LaneLog {
  const Record* next;
  const Record* end;
  bool more;            // the lane has not come to a wait: it will go on recording
  bool waits;           // once other warps let it; lanes of its own may wait for it
  std::uint64_t* step;  // the last basic block that was replayed
};

// The lanes that have records left; none if these do not go on from the same basic block.
static std::uint32_t in_one_block(std::span<const LaneLog> logs) {
  std::uint32_t lanes = 0;
  for (std::size_t l = 0; l < logs.size(); ++l) {
    if (logs[l].next == logs[l].end) continue;
    if (lanes != 0 && *logs[l].step != *logs[std::countr_zero(lanes)].step) return 0;
    lanes |= 1u << l;
  }
  return lanes;
}

// How many of the next records of these lanes are of the same code; of several lanes at most up to
// the first step into `last`, since what follows would be compared again.
static std::size_t alike(std::span<const LaneLog> logs, std::uint32_t lanes, std::uint64_t last) {
  const LaneLog& first = logs[std::countr_zero(lanes)];
  auto count = static_cast<std::size_t>(first.end - first.next);
  for_each_lane(lanes & (lanes - 1), [&](unsigned l) {
    const Record *mine = first.next, *other = logs[l].next;
    count = std::min(count, static_cast<std::size_t>(logs[l].end - other));
    std::size_t n = 0;
    while (n < count && other[n].pc == mine[n].pc && other[n].kind() == mine[n].kind())
      if (mine[n++].pc == last) break;
    count = n;
  });
  return count;
}

// The basic blocks that the lanes went through since the warp's last barrier or are about to, and
// where paths meet again. It keeps its memory from warp to warp.
class FlowGraph {
 public:
  void clear() {
    blocks_.clear();
    node(0);
  }

  void add(std::span<const LaneLog> logs) {
    const std::uint32_t lanes = in_one_block(logs);
    const std::size_t same = lanes == 0 ? 0 : alike(logs, lanes, 0);
    int after = kNone;  // what is the same
    bool is_first = true;
    for (const LaneLog& log : logs) {
      std::span records(log.next, log.end);
      int from = *log.step ? node(*log.step) : kNone;
      if (same > 0 && !records.empty()) {
        if (std::exchange(is_first, false)) after = follow(from, records.first(same));
        from = after;
        records = records.subspan(same);
      }
      from = follow(from, records);
      if (from == kNone) continue;
      if (!log.more) go(from, 0);
      if (log.waits && next_[from].empty() && !std::exchange(waits_[from], true)) solved_ = false;
    }
  }

  /// The block that every path from `block` comes to first; 0 if that is the end.
  std::uint64_t post_dominator(std::uint64_t block) {
    const auto found = std::ranges::find(blocks_, block);
    if (found == blocks_.end()) return 0;
    if (!solved_) {
      link_to_end();
      dominators_.assign(blocks_.size(), kNone);
      solved_ = true;
    }
    const auto n = static_cast<int>(found - blocks_.begin());
    if (dominators_[n] == kNone) dominators_[n] = first_on_all_ways(n);
    return blocks_[dominators_[n]];
  }

 private:
  static constexpr int kEnd = 0, kNone = -1;

  int node(std::uint64_t block) {
    const auto found = std::ranges::find(blocks_, block);
    const auto n = static_cast<std::size_t>(found - blocks_.begin());
    if (found == blocks_.end()) {
      blocks_.push_back(block);
      if (next_.size() <= n) next_.resize(n + 1);
      next_[n].clear();
      waits_.resize(n + 1);
      waits_[n] = solved_ = false;
    }
    return static_cast<int>(n);
  }
  int follow(int from, std::span<const Record> records) {
    for (const Record& r : records)
      if (r.event() == Event::step) from = from == kNone ? node(r.pc) : go(from, r.pc);
    return from;
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
    linked_ = next_;
    // Nobody knows yet where a lane goes from where it waits for other warps: blocks from which all
    // ways lead there tell nothing.
    const int count = static_cast<int>(blocks_.size());
    std::vector<char> unknown(blocks_.size()), ends(blocks_.size());
    for (int n = 1; n < count; ++n) unknown[n] = waits_[n] && next_[n].empty();
    spread(unknown, true);
    ends[kEnd] = true;
    for (;;) {
      spread(ends, false);
      // What leads to the fewest blocks leads to nothing but its own loop.
      std::size_t fewest = blocks_.size() + 1;
      int header = kNone;
      for (int n = 1; n < count; ++n) {
        const std::size_t reach = ends[n] || unknown[n] ? fewest : reachable(n);
        if (reach >= fewest) continue;
        fewest = reach;
        header = n;
      }
      if (header == kNone) break;
      reachable(header);
      int last = kNone, going_back = 0;
      for (int n = 1; n < count; ++n)
        if (before_[n] != kNone && std::ranges::count(next_[n], header)) {
          last = n;
          ++going_back;
        }
      linked_[going_back == 1 ? last : header].push_back(kEnd);
    }
  }

  // Marks the blocks of which all, or some, ways lead to marked ones.
  void spread(std::vector<char>& marked, bool all) const {
    const auto is_marked = [&](int n) { return marked[n]; };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t n = blocks_.size(); --n > 0;)
        if (const auto& to = linked_[n]; !marked[n] && !to.empty())
          if (all ? std::ranges::all_of(to, is_marked) : std::ranges::any_of(to, is_marked))
            marked[n] = changed = true;
    }
  }

  // How many blocks can be reached without one of them. `before_` holds the ways there.
  std::size_t reachable(int from, int without = kNone) {
    before_.assign(blocks_.size(), kNone);
    before_[from] = from;
    if (without != kNone) before_[without] = without;
    order_.assign(1, from);
    for (std::size_t at = 0; at < order_.size(); ++at)
      for (const int to : linked_[order_[at]])
        if (before_[to] == kNone) {
          before_[to] = order_[at];
          order_.push_back(to);
        }
    return order_.size();
  }

  // The first block of a way to the end without which there is no way; the end if there is none.
  // If all ways lead to where lanes wait, they end there.
  int first_on_all_ways(int from) {
    reachable(from);
    std::vector<int> waits, way;
    if (before_[kEnd] == kNone) {
      std::ranges::copy_if(order_, std::back_inserter(waits),
                           [&](int n) { return linked_[n].empty(); });
      for (const int n : waits) linked_[n] = {kEnd};
      before_[kEnd] = waits.front();
    }
    for (int n = kEnd; n != from; n = before_[n]) way.push_back(n);
    for (; way.size() > 1; way.pop_back()) {
      reachable(from, way.back());
      if (before_[kEnd] == kNone) break;
    }
    for (const int n : waits) linked_[n].clear();
    return way.back();
  }

  std::vector<std::uint64_t> blocks_;             // by node; the end is 0
  std::vector<std::vector<int>> next_, linked_;   // as lanes went; and to the end
  std::vector<char> waits_;                       // whether lanes have waited for other warps there
  std::vector<int> dominators_, before_, order_;  // what is known of a solved graph
  bool solved_ = false;
};

WarpReplay::WarpReplay(Block& block)
    : block_(block),
      logs_(static_cast<Record*>(std::calloc(1 + 32 * kLogStride, sizeof(Record))), &std::free),
      graph_(std::make_unique<FlowGraph>()) {
  if (!logs_) throw std::bad_alloc();
}
WarpReplay::~WarpReplay() = default;

void WarpReplay::replay(std::span<Lane> lanes, bool all) {
  LaneLog each[32];
  const std::span logs(each, lanes.size());
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    Lane& lane = lanes[l];
    const bool waits = lane.waits_for_other_warps();
    const bool more =
        waits || lane.state == State::log_full || lane.state == State::at_warp_function;
    logs[l] = {log(l), lane.next, more, waits, &lane.step};
  }
  bool in_graph = false;  // what the logs hold
  if (paths_.empty()) {
    graph_->clear();
    const std::uint32_t everyone = logs.size() == 32 ? ~0u : (1u << logs.size()) - 1;
    const std::uint32_t together = in_one_block(logs);
    const std::uint64_t step = together == 0 ? 0 : *logs[std::countr_zero(together)].step;
    paths_.push_back({everyone, 0, 0, step});
  }
  // To be remembered when lanes part later, or because they have.
  if (paths_.size() > 1 || std::ranges::any_of(logs, &LaneLog::more)) {
    graph_->add(logs);
    in_graph = true;
    // What was unknown when they parted may be known now.
    for (Path& path : paths_)
      if (path.branch != 0) path.joins = graph_->post_dominator(path.branch);
  }
  while (!paths_.empty()) {
    Path& path = paths_.back();
    const std::uint32_t active =
        lanes_where(path.lanes, [&](unsigned l) { return logs[l].next != logs[l].end; });
    if (!all && lanes_where(path.lanes & ~active, [&](unsigned l) { return logs[l].more; })) break;
    if (active == 0) {
      paths_.pop_back();
    } else if (const std::size_t count = alike(logs, active, path.joins)) {
      go_together(path, logs, active, count);
    } else {
      if (!in_graph) graph_->add(logs);
      in_graph = true;
      diverge(logs, active, graph_->post_dominator(path.step));
    }
  }
  for (std::size_t l = 0; l < lanes.size(); ++l)
    lanes[l].marked = lanes[l].next = std::copy(logs[l].next, logs[l].end, log(l));
}

// The active lanes do the same things up to where the path joins the one below, at most `count`.
void WarpReplay::go_together(Path& path, std::span<LaneLog> logs, std::uint32_t active,
                             std::size_t count) {
  const Record* const first = logs[std::countr_zero(active)].next;
  std::uint64_t step = 0;
  bool joined = false;
  std::size_t at = 0;
  for (; at < count; ++at) {
    const Record& record = first[at];
    if (record.event() == Event::step) {
      joined = record.pc == path.joins;
      if (joined) break;  // the path below takes it from here
      step = path.step = record.pc;
      block_.replayed(record.pc, Event::step, {active, 1, nullptr});
      continue;
    }
    std::uint64_t what = 0, addresses[32];
    std::uint16_t values[32];
    for_each_lane(active, [&](unsigned l) {
      const Record& r = logs[l].next[at];
      what |= r.what;
      addresses[l] = r.address();
      values[l] = r.value;
      if (step) *logs[l].step = step;
    });
    const bool queues = Record{what, 0, 0}.queues();  // of any lane
    block_.replayed(record.pc, record.event(), {active, record.bytes(), addresses, queues, values});
  }
  for_each_lane(active, [&](unsigned l) {
    logs[l].next += at;
    if (step) *logs[l].step = step;
  });
  if (joined) paths_.pop_back();
}

// Splits the last path by where its lanes go next. Those that are at its own end already wait
// there; those that are at the join wait for the others to come.
void WarpReplay::diverge(std::span<LaneLog> logs, std::uint32_t active, std::uint64_t join) {
  const Path parent = paths_.back();
  std::vector<Path> parts;
  std::uint32_t staying = 0;
  while (active != 0) {
    const Record& first = *logs[std::countr_zero(active)].next;
    const std::uint32_t lanes = lanes_where(active, [&](unsigned l) {
      return logs[l].next->pc == first.pc && logs[l].next->kind() == first.kind();
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
    const auto more = lanes_where(part.lanes, [&](unsigned l) { return logs[l].more; });
    const auto waits = lanes_where(part.lanes, [&](unsigned l) { return logs[l].waits; });
    return std::tuple(more == 0, waits == 0, logs[std::countr_zero(part.lanes)].next->pc);
  };
  std::ranges::sort(parts, std::greater{}, rank);
  paths_.insert(paths_.end(), parts.begin(), parts.end());
}

}  // namespace emulator
