// SPDX-License-Identifier: MIT
//
// The meter of ladder_bench_emulated: counts what a launch does, and times nothing.
#include "meter.hpp"

#include <algorithm>
#include <map>

#include "cuda_check.hpp"
#include "emulated/figures.hpp"
#include "emulator/report.hpp"

namespace ladders {
namespace {

class Counter : public Meter {
 public:
  // The same launch counts the same every time, so once is enough.
  Samples sample(const Subject& subject, const Sampling&) override {
    const emulator::Recording recording;
    const auto start = std::chrono::steady_clock::now();
    subject.launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    Samples result;
    result.host_seconds = std::max(seconds_since(start), 1e-9);
    result.counters["verified"] = 1;  // or there would be no measurement
    if (!subject.kernel) return result;
    const emulator::Gpu& gpu = *emulator::options().gpu;
    const emulator::Report report = recording.report();
    if (emulator::counted()) result.counters.merge(counters_of(report));
    result.counters.merge(limits_of(gpu, subject));
    result.details = details_of(report, gpu, subject);
    return result;
  }

  double launch_seconds() override { return 0; }
  double small_kernel_seconds(int) override { return 0; }
  std::string hardware_counters() override { return "none: nothing is measured here"; }
  std::map<std::string, double> count(const Subject&, const Sampling&) override { return {}; }
};

}  // namespace

const bool kEmulated = true;

std::unique_ptr<Meter> make_meter(const Device&) { return std::make_unique<Counter>(); }

std::vector<std::string> counted_names() {
  std::vector<std::string> names = figure_names();
  names.emplace_back("verified");
  return names;
}

void configure(const Options& options) {
  emulator::Options& settings = emulator::options();
  settings.gpu = emulator::find_gpu(options.gpu);
  if (!settings.gpu) {
    std::string names;
    for (const emulator::Gpu& gpu : emulator::gpus())
      names += (names.empty() ? "" : ", ") + std::string(gpu.name);
    settings.gpu = emulator::Options{}.gpu;
    throw UsageError("--gpu=" + options.gpu + ": not one of " + names);
  }
  static const std::map<std::string, emulator::Order> kOrders = {
      {"forward", emulator::Order::forward},
      {"reverse", emulator::Order::reverse},
      {"random", emulator::Order::random}};
  settings.order = kOrders.at(options.order);
  settings.workers = options.workers;
  settings.check = options.check;
}

}  // namespace ladders
