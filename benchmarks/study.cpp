// SPDX-License-Identifier: MIT
#include "study.hpp"

#include <algorithm>
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
  // How far from what is looked for will do, for each that has been tried.
  constexpr double kAlike = 1e-4;
  constexpr int kLeast = 12, kMost = 64;
  const double wanted = sampling.launch_seconds;
  std::vector<double> seen;
  for (int tried = 1;; ++tried) {
    auto study = std::make_unique<Study>(Device::open(index), sampling);
    if (kEmulated || sampling.profile) return study;
    seen.push_back(study->launch_seconds_ = study->meter_->launch_seconds());
    // A quick one, but not the quickest, which other processes would look for in vain.
    const bool as_wanted = wanted > 0 && tried <= kMost / 2;  // then it is not to be had
    const double goal = as_wanted ? wanted : quantile(seen, 0.25);
    if ((as_wanted || tried >= kLeast) && std::abs(seen.back() - goal) <= kAlike * tried * goal)
      return study;
    if (tried == kMost) return study;
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

Problem& Study::problem(const Row& row) {
  const std::string name = row.ladder->name + "/" + row.shape.name();
  const auto found = std::find_if(problems_.begin(), problems_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != problems_.end()) {
    problems_.splice(problems_.begin(), problems_, found);
    return *problems_.front().second;
  }
  // A full device is no reason to fail while there are older problems to let go.
  for (;;) try {
      size_t free = 0, total = 0;
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      while (!problems_.empty() && free < total / 2) {
        problems_.pop_back();
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      }
      problems_.emplace_front(name, filled(row));
      return *problems_.front().second;
    } catch (const CudaError&) {
      if (problems_.empty()) throw;
      problems_.clear();
    }
}

std::unique_ptr<Problem> Study::filled(const Row& row) {
  const AddTime timed(spent_.filling);
  auto problem = row.ladder->problem(row.shape, device_);
  check(cudaDeviceSynchronize(), "inputs");
  return problem;
}

Launch Study::launcher(const Row& row, const Implementation& implementation,
                       const LaunchPlan& plan) {
  Problem& data = problem(row);
  return [&data, implementation, plan, zero = row.rung->zero_output](cudaStream_t stream) {
    const Problem::Memory output = data.output();
    if (zero && output.bytes > 0)
      check(cudaMemsetAsync(output.data, 0, output.bytes, stream), "cudaMemsetAsync");
    implementation.launch(plan, data, stream);
  };
}

namespace {

// The plan, allowed and found to fit; empty for library calls and host code.
std::optional<std::pair<LaunchPlan, Occupancy>> plan_of(const Implementation& implementation,
                                                        const Row& row, const Device& device) {
  if (!implementation.kernel) return std::nullopt;
  const LaunchPlan plan = implementation.plan(row.point, device, implementation.kernel);
  return std::pair(plan, occupancy(implementation.kernel, plan, device));
}

}  // namespace

Verdict Study::verify(const Row& row) {
  const Implementation implementation = row.rung->at(row.point);
  const auto planned = plan_of(implementation, row, device_);
  Problem& data = problem(row);
  const auto launch = launcher(row, implementation, planned ? planned->first : LaunchPlan{});
  const AddTime timed(spent_.verifying);
  Verdict worst;
  for (int input = 0; input < (implementation.check ? 1 : data.inputs()); ++input) {
    data.poison();
    data.prepare(input);
    if (implementation.fill) implementation.fill(data);
    launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    const Verdict verdict = judge(row, implementation);
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
Verdict Study::judge(const Row& row, const Implementation& implementation) {
  const Verdict verdict =
      implementation.check ? implementation.check(problem(row)) : problem(row).compare();
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

Subject Study::subject(const Row& row, const Implementation& implementation) {
  Subject result = {.row = row.name(), .kernel = implementation.kernel};
  if (const auto planned = plan_of(implementation, row, device_))
    std::tie(result.plan, result.occupancy) = *planned;
  result.launch = launcher(row, implementation, result.plan.value_or(LaunchPlan{}));
  return result;
}

Measurement Study::measure(const Row& row) {
  const Implementation implementation = row.rung->at(row.point);
  const Subject subject = this->subject(row, implementation);
  Measurement result = {.plan = subject.plan, .occupancy = subject.occupancy};
  const std::string& name = subject.row;
  const bool known = verdicts_.contains(name);
  if (!known) verdicts_[name] = verify(row);
  result.verdict = verdicts_[name];
  Problem& data = problem(row);
  data.poison();
  if (known) data.prepare(data.inputs() - 1);  // as verify() has
  if (implementation.fill) implementation.fill(data);
  result.samples = implementation.on_host && !kEmulated
                       ? sample_host([&] { subject.launch(nullptr); }, sampling_)
                       : meter_->sample(subject, sampling_);
  spent_.measuring += result.samples.measuring_seconds;
  if (implementation.adds) {
    verify(row);
  } else {
    const AddTime timed(spent_.verifying);
    judge(row, implementation);
  }
  if (row.rung->role == Role::ceiling) ceilings_.try_emplace(name, result);
  return result;
}

std::map<std::string, double> Study::count(const Row& row) {
  const Implementation implementation = row.rung->at(row.point);
  const Subject subject = this->subject(row, implementation);
  Problem& data = problem(row);
  const AddTime timed(spent_.counting);
  data.poison();
  data.prepare(data.inputs() - 1);
  if (implementation.fill) implementation.fill(data);
  subject.launch(nullptr);  // what only a first launch does is not counted
  auto counters = meter_->count(subject, sampling_);
  if (!counters.empty() && !implementation.adds) judge(row, implementation);
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
