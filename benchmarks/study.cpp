// SPDX-License-Identifier: MIT
#include "study.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "launch.hpp"
#include "statistics.hpp"

namespace ladders {

Study::Study(const Device& device, const Sampling& sampling)
    : device_(device), sampling_(sampling), meter_(make_meter(device)) {}

std::unique_ptr<Study> Study::open(int index, const Sampling& sampling) {
  constexpr int kGlance = 128, kLook = 512;
  std::vector<double> seen;
  for (;;) {
    auto study = std::make_unique<Study>(Device::open(index), sampling);
    if (kEmulated || sampling.profile) return study;
    const auto look = [&](int samples) {
      study->small_kernel_seconds_ = study->meter_->small_kernel_seconds(samples);
      return study->small_kernel_seconds_;
    };
    seen.push_back(look(kGlance));
    if (will_do(seen, sampling.small_kernel_seconds)) {
      seen.back() = look(kLook);  // at a glance one of many does by chance
      if (will_do(seen, sampling.small_kernel_seconds)) return study;
    }
    if (seen.size() == 64) return study;
    study.reset();
    check(cudaDeviceReset(), "cudaDeviceReset");
  }
}

namespace {

// Adds the time until the end of its scope.
class AddTime {
 public:
  explicit AddTime(double& total) : total_(total) {}
  AddTime(const AddTime&) = delete;
  ~AddTime() { total_ += seconds_since(start_); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Study::Kept& Study::kept(const Row& row, size_t problems) {
  const std::string name = row.ladder->name + "/" + row.shape.name();
  const auto found = std::ranges::find(kept_, name, &Kept::name);
  if (found == kept_.end())
    kept_.push_front({.name = name});
  else
    kept_.splice(kept_.begin(), kept_, found);
  Kept& kept = kept_.front();
  // A full device is no reason to fail while there are older problems to let go.
  while (kept.problems.size() < problems) try {
      size_t free = 0, total = 0, left = 0;
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      while (kept_.size() > 1 && free < total / 2) {
        kept_.pop_back();
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      }
      kept.problems.push_back(filled(row));
      check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
      kept.bytes = std::max(kept.bytes, free - std::min(free, left));
    } catch (const CudaError&) {
      if (kept_.size() > 1)
        kept_.resize(1);
      else if (kept.problems.empty())
        throw;
      else
        break;  // fewer will do
    }
  return kept;
}

Study::Problems Study::problems_to_time(const Row& row) {
  constexpr size_t kMost = 16, kBytes = 256 << 20;
  const size_t bytes = std::max<size_t>(kept(row, 1).bytes, 1);
  const bool one = kEmulated || !sampling_.cold || sampling_.profile;
  // Powers of two: all of them are equally often among the sixteen launches of a sample.
  const size_t problems = one ? 1 : std::bit_floor(std::clamp<size_t>(kBytes / bytes, 1, kMost));
  Problems result;
  for (const auto& problem : kept(row, problems).problems) result.push_back(problem.get());
  return result;
}

std::unique_ptr<Problem> Study::filled(const Row& row) {
  const AddTime timed(spent_.filling);
  auto problem = row.ladder->problem(row.shape, device_);
  check(cudaDeviceSynchronize(), "inputs");
  return problem;
}

Launch Study::launcher(const Row& row, const Implementation& implementation, const LaunchPlan& plan,
                       const Problems& problems) {
  return [problems, implementation, plan, zero = row.rung->zero_output,
          next = size_t{0}](cudaStream_t stream) mutable {
    Problem& problem = *problems[next++ % problems.size()];
    const Problem::Memory output = problem.output();
    if (zero && output.bytes > 0)
      check(cudaMemsetAsync(output.data, 0, output.bytes, stream), "cudaMemsetAsync");
    implementation.launch(plan, problem, stream);
  };
}

namespace {

// Poisoned, and with the input that is timed, which is there already if it is `prepared`.
void make_ready(Problem& problem, const Implementation& implementation, bool prepared = false) {
  problem.poison();
  if (!prepared) problem.prepare(problem.inputs() - 1);
  if (implementation.fill) implementation.fill(problem);
}

// The plan, allowed and found to fit; empty for library calls and host code.
std::optional<std::pair<LaunchPlan, Occupancy>> plan_of(const Implementation& implementation,
                                                        const Row& row, const Device& device) {
  if (!implementation.kernel) return std::nullopt;
  const LaunchPlan plan = implementation.plan(row.point, device, implementation.kernel);
  return std::pair(plan, occupancy(implementation.kernel, plan, device));
}

}  // namespace

Verdict Study::verify(const Row& row, Problem& data) {
  const Implementation implementation = row.rung->at(row.point);
  const auto planned = plan_of(implementation, row, device_);
  const auto launch =
      launcher(row, implementation, planned ? planned->first : LaunchPlan{}, {&data});
  const AddTime timed(spent_.verifying);
  Verdict worst;
  for (int input = 0; input < (implementation.check ? 1 : data.inputs()); ++input) {
    data.poison();
    data.prepare(input);
    if (implementation.fill) implementation.fill(data);
    launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    const Verdict verdict = judge(row, implementation, data);
    worst.relative_error = std::max(worst.relative_error, verdict.relative_error);
    worst.worst_error = std::max(worst.worst_error, verdict.worst_error);
    worst.library_relative_error =
        std::max(worst.library_relative_error, verdict.library_relative_error);
    worst.library_worst_error = std::max(worst.library_worst_error, verdict.library_worst_error);
    worst.error_over_library = std::max(worst.error_over_library, verdict.error_over_library);
  }
  return worst;
}

// Of the output as it is.
Verdict Study::judge(const Row& row, const Implementation& implementation, Problem& problem) {
  const Verdict verdict = implementation.check ? implementation.check(problem) : problem.compare();
  const double limit = std::max(row.rung->error_limit, row.ladder->error_limit);
  if (!verdict.wrong.empty()) throw std::runtime_error("wrong result: " + verdict.wrong);
  for (const double error : {verdict.relative_error, verdict.worst_error})
    if (!(error <= limit)) {
      std::ostringstream message;
      message << "wrong result: relative error " << error << ", limit " << limit;
      throw std::runtime_error(message.str());
    }
  return verdict;
}

Subject Study::subject(const Row& row, const Implementation& implementation,
                       const Problems& problems) {
  Subject result = {.row = row.name(), .kernel = implementation.kernel};
  if (const auto planned = plan_of(implementation, row, device_))
    std::tie(result.plan, result.occupancy) = *planned;
  result.launch = launcher(row, implementation, result.plan.value_or(LaunchPlan{}), problems);
  return result;
}

Measurement Study::measure(const Row& row) {
  const Implementation implementation = row.rung->at(row.point);
  const Problems problems = problems_to_time(row);
  const Subject subject = this->subject(row, implementation, problems);
  Measurement result = {.plan = subject.plan, .occupancy = subject.occupancy};
  const std::string& name = subject.row;
  const bool known = verdicts_.contains(name);
  if (!known) verdicts_[name] = verify(row);
  result.verdict = verdicts_[name];
  for (Problem* problem : problems)
    make_ready(*problem, implementation, !known && problem == problems.front());
  if (problems.size() > 1)  // what only a first launch on a problem does is not timed
    for (size_t i = 0; i < problems.size(); ++i) subject.launch(nullptr);
  result.samples = implementation.on_host && !kEmulated
                       ? sample_host([&] { subject.launch(nullptr); }, sampling_)
                       : meter_->sample(subject, sampling_);
  spent_.measuring += result.samples.measuring_seconds;
  for (Problem* problem : problems) {
    if (implementation.adds) {
      verify(row, *problem);
      continue;
    }
    const AddTime timed(spent_.verifying);
    judge(row, implementation, *problem);
  }
  if (row.rung->role == Role::ceiling) ceilings_.try_emplace(name, result);
  return result;
}

std::map<std::string, double> Study::count(const Row& row) {
  const Implementation implementation = row.rung->at(row.point);
  Problem& data = problem(row);
  const Subject subject = this->subject(row, implementation, {&data});
  const AddTime timed(spent_.counting);
  make_ready(data, implementation);
  subject.launch(nullptr);  // what only a first launch does is not counted
  auto counters = meter_->count(subject, sampling_);
  if (!counters.empty() && !implementation.adds) judge(row, implementation, data);
  return counters;
}

double Study::speed(const Row& row, const Measurement& measurement, Quantity quantity) const {
  const Work done = work(row, device_);
  return (quantity == Quantity::flops ? done.flops : done.bytes()) /
         quantile(measurement.samples.seconds, 0.5);
}

std::optional<double> Study::ceiling(const Row& row) {
  const Ladder& ladder = *row.ladder;
  const Rung& rung = *row.rung;
  if (!sampling_.ceilings || !rung.precision.empty()) return std::nullopt;
  if (!rung.ceiling.empty()) {
    const auto best = best_at(rung.ceiling, row, ladder.quantity);
    return best ? std::optional(*best / rung.products) : std::nullopt;
  }
  const auto best = best_at(ladder.ceiling, row, ladder.quantity);
  if (!best || ladder.other_ceiling.empty()) return best;
  const Work done = work(row, device_);
  const bool flops = ladder.quantity == Quantity::flops;
  const auto other = best_at(ladder.other_ceiling, row, flops ? Quantity::bytes : Quantity::flops);
  if (!other) return std::nullopt;
  return std::min(*best, *other * (flops ? done.flops / done.bytes() : done.bytes() / done.flops));
}

// Of the rows of the ceiling "ladder/rung", at the row's case where it is of the same ladder.
std::optional<double> Study::best_at(const std::string& path, const Row& row, Quantity quantity) {
  if (path.empty()) return std::nullopt;
  const size_t slash = path.find('/');
  double best = 0;  // of its sweep
  for (const Ladder& ladder : catalogue()) {
    if (ladder.name != path.substr(0, slash)) continue;
    // A small row has the same roofs as any other; only a ceiling at its own case is small too.
    std::vector<Row> candidates = rows(ladder, Shapes::measured);
    if (&ladder == row.ladder)
      for (const Row& small : rows(ladder, Shapes::small)) candidates.push_back(small);
    for (const Row& candidate : candidates) {
      const bool same_case = &ladder != row.ladder || candidate.shape.name() == row.shape.name();
      if (candidate.rung->name != path.substr(slash + 1) || !same_case) continue;
      if (!skip_reason(candidate, device_).empty()) continue;
      const std::string name = candidate.name();
      if (!ceilings_.contains(name)) try {
          measure(candidate);
        } catch (const std::exception& error) {
          // The rows under it are as right as they were; they only lose their percentage.
          std::fprintf(stderr, "%s, a ceiling, cannot be measured: %s\n", name.c_str(),
                       error.what());
          ceilings_[name] = std::nullopt;
        }
      if (ceilings_[name]) best = std::max(best, speed(candidate, *ceilings_[name], quantity));
    }
  }
  return best > 0 ? std::optional(best) : std::nullopt;
}

}  // namespace ladders
