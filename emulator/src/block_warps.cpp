// SPDX-License-Identifier: MIT
//
// Warps of a block: lanes run one after the other until all wait, are replayed as one, and get what
// their warp functions answer.
#include "block.hpp"

namespace emulator {
namespace {

// A warp whose lanes keep filling their logs makes way for the others after so many fillings.
constexpr int kPatience = 64;
constexpr int kAnswers = 1 << 14;  // likewise one that asks and asks in warp functions
// Basic blocks that a lane without a log goes through until it makes way for the others.
constexpr unsigned kStepsAtOnce = 1 << 16;

void fiber_main() {
  current_block->enter_thread(*current_lane);
  __builtin_unreachable();
}

}  // namespace

std::span<Lane> Block::warp(unsigned w) {
  return std::span(lanes_).subspan(w * 32, std::min<std::size_t>(32, lanes_.size() - w * 32));
}

// Runs each warp once. True if any of them got on.
bool Block::run_warps() {
  bool got_on = false;
  try {
    for (const unsigned w : warp_order_) got_on |= run_warp(w);
  } catch (const Fault&) {
    if (!unwritten_ || conflict_) throw;  // else it may come of what was read
  }
  if (unwritten_) throw unwritten();
  return got_on;
}

// Runs the lanes of a warp until each of them waits or has exited, or they have been at it for
// long. True if any of them got on.
bool Block::run_warp(unsigned w) {
  const std::span<Lane> lanes = warp(w);
  current_warp_ = w;
  if (warps_[w].is_aside) {
    if (std::ranges::none_of(lanes,
                             [&](const Lane& lane) { return lane.runs() || waits_no_more(lane); }))
      return false;
    swap_aside(w);
  } else if (launch_->recorded()) {
    for (Lane& lane : lanes) {
      lane.marked = lane.next = replay_->log(lane.number);
      lane.end = lane.next + WarpReplay::kLogRecords;
    }
  }
  bool got_on = false;
  for (int filled = 0, answered = 0;;) {
    got_on |= resume_ready(lanes);
    const bool recorded = launch_->recorded();
    const bool full =
        std::ranges::any_of(lanes, [](const Lane& lane) { return lane.state == State::log_full; });
    const bool tired = !recorded || filled >= kPatience || (full && circling(lanes));
    if (recorded) replay_->replay(lanes, tired);
    if (resolve_warp_functions(w)) {
      if (++answered < kAnswers) continue;
      for (Lane& lane : lanes)
        if (lane.state == State::ready) look(lane);  // an answer empties its log
    } else if (full && !tired) {
      ++filled;
      continue;
    }
    if (!recorded || tired) return got_on;
    // The logs are the next warp's. What lanes did that are ahead of others, which wait for other
    // warps, is replayed with these.
    const bool later = std::ranges::any_of(lanes, &Lane::waits_for_other_warps);
    replay_->replay(lanes, !later);
    if (later) swap_aside(w);
    return got_on;
  }
}

void Block::swap_aside(unsigned w) {
  warps_[w].is_aside = !warps_[w].is_aside;
  std::swap(warps_[w].replay, replay_);
  if (!replay_) replay_ = std::make_unique<WarpReplay>(*this);
}

bool Block::waits_no_more(const Lane& lane) const {
  if (lane.state == State::at_mbarrier)
    return lane.waits_for->is_over(lane.parity) || lane.waits_for->ends();
  return lane.state == State::at_word &&
         (polls_once_ || polls_itself_ ||
          __atomic_load_n(lane.word, __ATOMIC_ACQUIRE) == lane.last);
}

// True if there was a lane that could run.
bool Block::resume_ready(std::span<Lane> lanes) {
  unsigned all[32];
  const std::span order(all, lanes.size());
  put_in_order(order, launch_->order, random_);
  bool ran = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Lane& lane = lanes[order[i]];
    const bool full = lane.next != nullptr && lane.next == lane.end;
    if (lane.state == State::log_full && full) continue;  // held up in the replay
    if (!lane.runs() && !waits_no_more(lane)) continue;
    if (!lane.started) {
      lane.started = true;
      char* stack = stacks_.take();
      lane.stack = address_of(stack);
      lane.context = stacks_.start(stack, fiber_main);
    }
    lane.steps_left = kStepsAtOnce;
    lane.state = State::ready;
    current_lane = &lane;
    thread_index = lane.index;
    // The next stack has left the caches since its turn.
    if (i + 1 < order.size()) __builtin_prefetch(lanes[order[i + 1]].context);
    switch_context(&scheduler_, lane.context);
    if (lane.state == State::stopped || conflict_) throw fault_of_stopped(lane);
    if (lane.state == State::log_full) look(lane);
    changed_ |= std::exchange(lane.stored, false);
    if (lane.state == State::exited) stacks_.give_back(reinterpret_cast<char*>(lane.stack));
    if (address_of(lane.context) < lane.stack) throw too_much_local(lane, lane.step);
    ran = true;
  }
  return ran;
}

// Answers warp functions for which all lanes have come. True if there was one.
bool Block::resolve_warp_functions(unsigned w) {
  const std::span<Lane> lanes = warp(w);
  // Lanes that have exited, or never were, have no part in what a mask names.
  std::uint32_t present = 0, waiting = 0, running = 0;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    if (lanes[l].state != State::exited) present |= 1u << l;
    if (lanes[l].state == State::at_warp_function) waiting |= 1u << l;
    if (lanes[l].runs()) running |= 1u << l;
  }
  bool answered = false;
  while (waiting != 0) {
    const Lane& first = lanes[std::countr_zero(waiting)];
    std::uint32_t members = first.call.mask & present;
    if (first.call.function == WarpFunction::active_mask) {
      // Whoever waits at the same call is active together, once nobody can come any more.
      members = lanes_where(waiting, [&](unsigned l) { return lanes[l].pc == first.pc; });
      waiting &= ~members;
      if (running != 0) continue;
    } else {
      if (!(members >> first.number & 1))
        throw fault(first, first.pc, "warp function: the calling lane is not in its own mask");
      const std::uint32_t missing = lanes_where(members, [&](unsigned l) {
        return lanes[l].state != State::at_warp_function || lanes[l].call.mask != first.call.mask ||
               lanes[l].call.function != first.call.function;
      });
      waiting &= missing == 0 ? ~members : ~(1u << first.number);
      if (missing != 0) continue;
    }
    answer(lanes, members);
    answered = true;
    ++counts_.steps.warp_operations;
    // The active mask waits for nobody.
    if (first.call.function != WarpFunction::active_mask && launch_->check)
      order_.meet(lanes, members, first.call.function == WarpFunction::sync);
  }
  return answered;
}

void Block::answer(std::span<Lane> lanes, std::uint32_t members) {
  const auto fold = [&](auto join) {
    std::uint64_t all = lanes[std::countr_zero(members)].value;
    for_each_lane(members & (members - 1), [&](unsigned l) { all = join(all, lanes[l].value); });
    return all;
  };
  const auto nonzero = [&] {
    return lanes_where(members, [&](auto l) { return lanes[l].value != 0; });
  };
  const auto result_of = [&](const Lane& lane) -> std::uint64_t {
    const auto [function, mask, argument, width] = lane.call;
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
      throw fault(lane, lane.pc, "shuffle of a width of ", width, ", not 1, 2, 4 ... 32");
    const int me = lane.number, first = me / width * width;
    // CUDA leaves open what comes from a lane that has exited or is not in the mask: here bits that
    // are no number and no index, so that a result that depends on them is seen to be wrong.
    const auto take_from = [&](int source) {
      return members >> source & 1 ? lanes[source].value : ~std::uint64_t{0};
    };
    // Distances are unsigned; beyond a warp they are all the same.
    const int distance = static_cast<int>(std::min(static_cast<unsigned>(argument), 32u));
    const int up = me - distance, down = me + distance, other = me ^ (argument & 31);
    const auto is_same = [&](unsigned l) { return lanes[l].value == lane.value; };
    // clang-format off: a table
    switch (function) {
      case WarpFunction::sync: return 0;
      case WarpFunction::active_mask: return members;
      case WarpFunction::shuffle: return take_from(first + (argument & (width - 1)));
      case WarpFunction::shuffle_up: return take_from(up < first ? me : up);
      case WarpFunction::shuffle_down: return take_from(down >= first + width ? me : down);
      case WarpFunction::shuffle_xor: return take_from(other >= first + width ? me : other);
      case WarpFunction::ballot: return nonzero();
      case WarpFunction::all: return nonzero() == members;
      case WarpFunction::any: return nonzero() != 0;
      case WarpFunction::match_any: return lanes_where(members, is_same);
      case WarpFunction::add: return fold(std::plus());
      case WarpFunction::minimum: return fold(std::ranges::min);
      case WarpFunction::maximum: return fold(std::ranges::max);
      case WarpFunction::bit_and: return fold(std::bit_and());
      case WarpFunction::bit_or: return fold(std::bit_or());
      case WarpFunction::bit_xor: return fold(std::bit_xor());
    }
    // clang-format on
    return 0;
  };
  const auto first = static_cast<unsigned>(std::countr_zero(members));
  const WarpFunction function = lanes[first].call.function;
  const bool own = function == WarpFunction::match_any ||  // else all lanes get the same
                   (function >= WarpFunction::shuffle && function <= WarpFunction::shuffle_xor);
  std::uint64_t results[32];
  for_each_lane(members, [&](unsigned l) {
    results[l] = own || l == first ? result_of(lanes[l]) : results[first];
  });
  for_each_lane(members, [&](unsigned l) {
    lanes[l].value = results[l];
    lanes[l].state = State::ready;
  });
}

}  // namespace emulator
