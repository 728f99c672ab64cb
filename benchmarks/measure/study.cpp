// SPDX-License-Identifier: MIT
#include "measure/study.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "model/launch.hpp"

namespace ladders {
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

// Launches rotate over `problems`.
Launch launcher(const Row& row, const Subject& subject, std::vector<Problem*> problems) {
  return
      [problems, launch = subject.implementation.launch, plan = subject.plan.value_or(LaunchPlan{}),
       zero = row.rung->zero_output, next = size_t{0}](cudaStream_t stream) mutable {
        Problem& problem = *problems[next++ % problems.size()];
        const Problem::Memory output = problem.output();
        if (zero && output.bytes > 0)
          check(cudaMemsetAsync(output.data, 0, output.bytes, stream), "cudaMemsetAsync");
        launch(plan, problem, stream);
      };
}

// Poisons the output, prepares the input if one is given, and fills an in-place rung's output.
void prepare(Problem& problem, const Implementation& implementation, std::optional<int> input) {
  problem.poison();
  if (input) problem.prepare(*input);
  if (implementation.fill) implementation.fill(problem);
}

Verdict judge(const Row& row, const Implementation& implementation, Problem& problem) {
  const Verdict verdict = implementation.check ? implementation.check(problem) : problem.compare();
  if (!verdict.wrong.empty()) throw WrongResult("wrong result: " + verdict.wrong);
  const double limit = std::max(row.rung->error_limit, row.ladder->error_limit);
  for (const double error : {verdict.relative_error, verdict.worst_error})
    if (!(error <= limit)) {
      std::ostringstream message;
      message << "wrong result: relative error " << error << ", limit " << limit;
      throw WrongResult(message.str());
    }
  return verdict;
}

}  // namespace

Study::Study(const Device& device, const Sampling& sampling)
    : device_(device), sampling_(sampling), meter_(make_meter(device)) {}

std::unique_ptr<Study> Study::open(int index, const Sampling& sampling) {
  std::vector<double> seen;
  for (;;) {
    auto study = std::make_unique<Study>(Device::open(index), sampling);
    if (kEmulated || sampling.profile) return study;
    const auto suits = [&](int samples) {
      seen.back() = study->small_kernel_seconds_ = study->meter_->small_kernel_seconds(samples);
      return context_is_fast_enough(seen, sampling.small_kernel_seconds);
    };
    seen.push_back(0);
    // Of many contexts, a short look passes some by luck.
    if ((suits(128) && suits(512)) || seen.size() == 64) return study;
    study.reset();
    check(cudaDeviceReset(), "cudaDeviceReset");
  }
}

Study::Kept& Study::kept(const Row& row, size_t problems) {
  const std::string name = row.ladder->name + "/" + row.shape.name();
  auto found = std::ranges::find(kept_, name, &Kept::name);
  if (found == kept_.end()) found = kept_.insert(found, {.name = name});
  kept_.splice(kept_.begin(), kept_, found);
  Kept& kept = kept_.front();
  const auto free_memory = [] {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  };
  // A full device is no failure while older problems can be released.
  while (kept.problems.size() < problems && !kept.is_all) try {
      while (kept_.size() > 1 && free_memory() < device_.memory_bytes / 2) kept_.pop_back();
      const size_t free = free_memory();
      const AddTime timed(spent_.filling);
      kept.problems.push_back(row.ladder->problem(row.shape, device_));
      check(cudaDeviceSynchronize(), "inputs");
      kept.bytes = std::max(kept.bytes, free - std::min(free, free_memory()));
    } catch (const CudaError&) {
      if (kept_.size() > 1)
        kept_.resize(1);
      else if (kept.problems.empty())
        throw;
      else {  // fewer suffice: half of them, since kernels may need room of their own
        kept.problems.resize(std::max<size_t>(std::bit_floor(kept.problems.size()) / 2, 1));
        kept.is_all = true;
      }
    }
  return kept;
}

std::vector<Problem*> Study::problems_to_time(const Row& row) {
  constexpr size_t kMost = 16, kBytes = size_t{4} << 30;
  const size_t bytes = std::max<size_t>(kept(row, 1).bytes, 1);
  const bool one = kEmulated || !sampling_.cold || sampling_.profile;
  const size_t room = std::min<size_t>(kBytes, device_.memory_bytes / 8);
  // A power of two: the sixteen launches of a sample use all problems equally often.
  const size_t problems = one ? 1 : std::bit_floor(std::clamp<size_t>(room / bytes, 1, kMost));
  std::vector<Problem*> result;
  for (const auto& problem : kept(row, problems).problems) result.push_back(problem.get());
  return result;
}

Subject Study::subject(const Row& row) const {
  Subject result = {.row = row.name(), .implementation = row.rung->at(row.point, device_)};
  const Implementation& implementation = result.implementation;
  if (row.rung->role == Role::choice && !find_rung(*row.ladder, implementation.chosen))
    throw std::logic_error(result.row + " chooses '" + implementation.chosen +
                           "', which is no rung");
  if (implementation.kernel) {
    result.plan = implementation.plan(row.point, device_, implementation.kernel);
    result.occupancy = occupancy(implementation.kernel, *result.plan, device_);
  }
  return result;
}

Verdict Study::verify(const Row& row, const Subject& subject, Problem& data, int launches) {
  const Implementation& implementation = subject.implementation;
  const Launch launch = launcher(row, subject, {&data});
  const AddTime timed(spent_.verifying);
  Verdict worst;
  if (launches == kEach) launches = std::max(data.inputs(), 2);
  for (int i = 0; i < launches; ++i) {
    prepare(data, implementation, i % data.inputs());
    launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    worst.join(judge(row, implementation, data));
  }
  return worst;
}

Measurement Study::measure(const Row& row) {
  Subject subject = this->subject(row);
  const Implementation& implementation = subject.implementation;
  ceiling(row, implementation);  // measures other rows, so before problems are chosen
  const std::vector<Problem*> problems = problems_to_time(row);
  subject.launch = launcher(row, subject, problems);
  Measurement result = {
      .plan = subject.plan, .occupancy = subject.occupancy, .chosen = implementation.chosen};
  const bool known = verdicts_.contains(subject.row);
  int inputs = problems.front()->inputs();
  // On the emulator the launch on the last input is the one that is counted; it is verified below.
  // The first row of a kernel runs on all other inputs before, at least once: that finds kernels
  // that leave something wrong for the next launch. Later rows run on the first input only, whose
  // sums are exact or add to C.
  const void* kernel = implementation.kernel;
  if (kEmulated)
    inputs = verified_kernels_.contains(kernel) ? std::min(1, inputs - 1) : std::max(1, inputs - 1);
  if (!known) verdicts_[subject.row] = verify(row, subject, *problems.front(), inputs);
  if (kernel) verified_kernels_.insert(kernel);
  prepare_all(problems, subject, !known && !kEmulated);
  result.samples = implementation.on_host && !kEmulated
                       ? sample_host([&] { subject.launch(nullptr); }, sampling_)
                       : meter_->sample(subject, sampling_);
  spent_.measuring += result.samples.measuring_seconds;
  const Verdict last = judge_all(row, problems, subject);
  if (kEmulated) verdicts_[subject.row].join(last);
  result.verdict = verdicts_[subject.row];
  if (row.rung->role == Role::ceiling) ceilings_.try_emplace(subject.row, result);
  result.ceiling = ceiling(row, implementation);
  return result;
}

// The first has its input already, where it was verified just before.
void Study::prepare_all(const std::vector<Problem*>& problems, const Subject& subject,
                        bool has_input) {
  for (Problem* problem : problems)
    prepare(*problem, subject.implementation,
            has_input && problem == problems.front() ? std::nullopt
                                                     : std::optional(problem->inputs() - 1));
  if (problems.size() > 1)  // the first launch on each problem is not timed
    for (size_t i = 0; i < problems.size(); ++i) subject.launch(nullptr);
}

Verdict Study::judge_all(const Row& row, const std::vector<Problem*>& problems,
                         const Subject& subject) {
  Verdict worst;
  for (Problem* problem : problems) {
    if (subject.implementation.not_idempotent && !kEmulated) {  // several launches have added
      worst.join(verify(row, subject, *problem));
      continue;
    }
    const AddTime timed(spent_.verifying);
    worst.join(judge(row, subject.implementation, *problem));
  }
  return worst;
}

std::map<std::string, double> Study::energy(const Row& row) {
  Subject subject = this->subject(row);
  if (subject.implementation.on_host) return {};
  const std::vector<Problem*> problems = problems_to_time(row);
  subject.launch = launcher(row, subject, problems);
  subject.buffers = int(problems.size());
  prepare_all(problems, subject, false);
  auto counters = [&] {
    const AddTime timed(spent_.energy);
    return meter_->energy(subject);
  }();
  judge_all(row, problems, subject);
  return counters;
}

std::vector<std::map<std::string, double>> Study::count(const std::vector<Row>& rows) {
  std::vector<std::map<std::string, double>> result(rows.size());
  under_way_ = rows.empty() ? "" : rows.front().name();
  std::vector<Subject> subjects;
  for (const Row& row : rows) subjects.push_back(subject(row));
  std::vector<size_t> on_device;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!subjects[i].implementation.on_host) on_device.push_back(i);
  if (on_device.empty()) return result;
  Problem& data = problem(rows.front());
  const AddTime timed(spent_.counting);
  const auto make_ready = [&](const Subject& subject, std::optional<int> input) {
    under_way_ = subject.row;
    // Another row may have allowed the same kernel less.
    if (const void* kernel = subject.implementation.kernel) allow(kernel, *subject.plan);
    prepare(data, subject.implementation, input);
  };
  std::vector<Counted> launches;
  for (const size_t i : on_device) {
    Subject& subject = subjects[i];
    subject.launch = launcher(rows[i], subject, {&data});
    make_ready(subject, data.inputs() - 1);
    subject.launch(nullptr);  // the first launch is not counted
    check(cudaDeviceSynchronize(), "kernel");
    launches.push_back({.prepare = [&] { make_ready(subject, std::nullopt); },
                        .launch = [&] { subject.launch(nullptr); }});
  }
  auto counted = meter_->count(launches, sampling_);
  for (size_t j = 0; j < on_device.size(); ++j) {
    const size_t i = on_device[j];
    result[i] = std::move(counted[j]);
    if (subjects[i].implementation.not_idempotent) continue;
    launches[j].prepare(), launches[j].launch();  // others have overwritten what it left
    check(cudaDeviceSynchronize(), "kernel");
    judge(rows[i], subjects[i].implementation, data);
  }
  return result;
}

double Study::speed(const Row& row, const Measurement& measurement, Quantity quantity) const {
  const Work done = work(row, device_);
  return (quantity == Quantity::flops ? done.flops : done.bytes()) /
         measurement.samples.launch_seconds();
}

// Small cases have the roofs of all others, except a ceiling at the row's own case.
std::vector<Row> Study::rows_of(const Ceiling& ceiling, const Row& row) const {
  std::vector<Row> found;
  for (const Ladder& each : catalogue()) {
    const bool own = each.name == row.ladder->name;
    const Ladder& ladder = own ? *row.ladder : each;  // which may have other shapes
    if (!ceiling.rung.starts_with(ladder.name + "/")) continue;
    for (const Shapes shapes : {Shapes::measured, Shapes::small})
      for (const Row& candidate : rows(ladder, shapes))
        if (ladder.name + "/" + candidate.rung->name == ceiling.rung &&
            (own ? candidate.shape.name() == row.shape.name() : shapes == Shapes::measured) &&
            skip_reason(candidate, device_).empty())
          found.push_back(candidate);
  }
  return found;
}

std::optional<double> Study::ceiling(const Row& row, const Implementation& implementation) {
  if (!sampling_.ceilings || kEmulated || sampling_.profile) return {};
  const Rung* chosen = find_rung(*row.ladder, implementation.chosen);
  const Work done = work(row, device_);
  double lowest = INFINITY;
  for (const Ceiling& ceiling : ceilings_of(*row.ladder, chosen ? *chosen : *row.rung)) {
    const bool flops = (row.ladder->quantity == Quantity::flops) != ceiling.other_quantity;
    double best = NAN;  // of its sweep
    for (const Row& candidate : rows_of(ceiling, row)) {
      const std::string name = candidate.name();
      if (name != row.name() && !ceilings_.contains(name)) try {
          measure(candidate);
        } catch (const std::exception& error) {  // other rows only lose their percentage
          std::fprintf(stderr, "%s, a ceiling, cannot be measured: %s\n", name.c_str(),
                       error.what());
          ceilings_[name] = std::nullopt;
        }
      if (const auto found = ceilings_.find(name); found != ceilings_.end() && found->second)
        best = std::fmax(
            best, speed(candidate, *found->second, flops ? Quantity::flops : Quantity::bytes));
    }
    if (ceiling.other_quantity)
      best *= flops ? done.bytes() / done.flops : done.flops / done.bytes();
    lowest = std::isnan(best) ? best : std::min(lowest, best / ceiling.products);
  }
  return std::isfinite(lowest) ? std::optional(lowest) : std::nullopt;
}

}  // namespace ladders
