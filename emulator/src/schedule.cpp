// SPDX-License-Identifier: MIT
#include "schedule.hpp"

#include <algorithm>
#include <utility>

namespace emulator {
namespace {

using Kind = Schedule::Kind;

// What was chosen since explore() began a run, over all launches.
struct Decision {
  unsigned options, chosen;
  bool preempts;  // any other than the first: the block could have gone on
};
constinit std::vector<Decision> decisions;

// At first often, then so that a kernel of many atomics gets on.
constexpr std::uint64_t kOften = 2000;
constexpr unsigned kOneIn = 3, kOneInLater = 100;
constexpr unsigned kChanges = 3, kPointsOfABlock = 8;

}  // namespace

Turns::Turns(const Schedule& schedule, unsigned runners, std::uint64_t groups,
             std::function<void(unsigned)> make)
    : schedule_(schedule),
      groups_(groups),
      make_(std::move(make)),
      runners_(runners),
      random_(schedule.seed) {
  for (unsigned i = 0; i < kChanges; ++i) changes_.insert(random_() % (kPointsOfABlock * groups));
}

// False if it could not be made.
bool Turns::give(unsigned runner) {
  if (runner == made_) {
    runners_[made_++].priority = random_() | std::uint64_t{1} << 32;
    make_(runner);
  }
  const bool there = runners_[runner].there;
  if (there) runners_[runner].go.release();  // from here on all is the other's to touch
  return there;
}

std::vector<unsigned> Turns::others(unsigned runner, bool even_if_they_wait) const {
  std::vector<unsigned> result;
  for (unsigned i = 0; i < made_; ++i) {
    const Runner& r = runners_[i];
    if (i != runner && r.there && (r.waits_since != stores_ || even_if_they_wait))
      result.push_back(i);
  }
  std::ranges::sort(result, {}, [&](unsigned i) { return runners_[i].first_block; });
  if (has_more()) result.push_back(made_);
  return result;
}

unsigned Turns::choose(const std::vector<unsigned>& options, bool first_could_go_on) {
  const auto count = static_cast<unsigned>(options.size());
  const auto priority = [&](unsigned i) { return runners_[i].priority; };
  if (schedule_.kind == Kind::random) return options[random_() % count];
  if (schedule_.kind == Kind::priorities) return *std::ranges::max_element(options, {}, priority);
  if (schedule_.kind == Kind::prescribed && count > 1)
    return options[prescribed(count, first_could_go_on)];
  return options.front();
}

unsigned Turns::prescribed(unsigned count, bool preempts) {
  const std::size_t number = decisions.size();
  const unsigned chosen = number < schedule_.choices.size() ? schedule_.choices[number] : 0;
  decisions.push_back({count, std::min(chosen, count - 1), preempts});
  return decisions.back().chosen;
}

bool Turns::lags() {
  if (schedule_.kind == Kind::prescribed) return prescribed(2, true) == 1;
  return random_() % kOneIn == 0;
}

void Turns::took(unsigned runner, std::uint64_t first_block) {
  ++stores_;  // the blocks before have ended
  ++taken_;
  runners_[runner].first_block = first_block;
  if (schedule_.kind == Kind::priorities)
    runners_[runner].priority = random_() | std::uint64_t{1} << 32;
  point(runner);
}

void Turns::point(unsigned runner) {
  const std::uint64_t number = points_++;
  if (schedule_.kind == Kind::in_order) return;
  if (schedule_.kind == Kind::random && random_() % (number < kOften ? kOneIn : kOneInLater) != 0)
    return;
  if (schedule_.kind == Kind::priorities) {
    if (!changes_.contains(number) && number >= kOften) return;
    if (changes_.contains(number)) runners_[runner].priority = --lowest_;
  }
  std::vector<unsigned> options = others(runner, false);
  options.insert(options.begin(), runner);
  pass(runner, choose(options, true));
}

bool Turns::wait(unsigned runner) {
  runners_[runner].waits_since = stores_;
  const std::vector<unsigned> options = others(runner, false);
  if (options.empty()) return false;
  pass(runner, choose(options, false));
  return true;
}

void Turns::yield(unsigned runner) {
  if (wait(runner)) return;
  const std::vector<unsigned> options = others(runner, true);
  if (options.empty()) return;
  const auto next = std::ranges::upper_bound(options, runners_[runner].first_block, {},
                                             [&](unsigned i) { return runners_[i].first_block; });
  pass(runner, next == options.end() ? options.front() : *next);
}

void Turns::end(unsigned runner) {
  runners_[runner].there = false;
  closed_ = true;
  ++stores_;
  const std::vector<unsigned> options = others(runner, true);
  if (options.empty())
    done_.release();
  else
    give(choose(options, false));
}

bool repeat(const std::vector<unsigned>& choices, const std::function<bool()>& run) {
  const Schedule saved =
      std::exchange(options().schedule, {.kind = Kind::prescribed, .choices = choices});
  decisions.clear();
  const bool well = run();
  options().schedule = saved;
  return well;
}

Exploration explore(unsigned limit, const std::function<bool()>& run, unsigned preemptions) {
  Exploration result;
  const auto taken = [] {
    std::vector<unsigned> choices;
    for (const Decision& d : decisions) choices.push_back(d.chosen);
    return choices;
  };
  const auto used = [] {
    return std::ranges::count_if(decisions,
                                 [](const Decision& d) { return d.preempts && d.chosen > 0; });
  };
  // Few preemptions first: most faults need one or two (Musuvathi and Qadeer, 2007).
  for (unsigned most = 0; most <= preemptions; ++most) {
    decisions.clear();
    do {
      if (result.schedules == limit) return result;
      ++result.schedules;
      if (!repeat(taken(), run)) {
        result.found = true;
        result.choices = taken();
        return result;
      }
      // The last decision that can still be taken otherwise.
      while (!decisions.empty() &&
             (++decisions.back().chosen >= decisions.back().options || used() > most))
        decisions.pop_back();
    } while (!decisions.empty());
  }
  result.complete = true;
  return result;
}

}  // namespace emulator
