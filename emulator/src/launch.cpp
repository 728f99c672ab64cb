// SPDX-License-Identifier: MIT
//
// Launches, and what is counted of them.
#include <map>
#include <new>
#include <thread>

#include "block.hpp"

namespace emulator {
namespace {

struct Counted {
  std::map<std::string, Counts> by_kernel;  // mangled names
  Report sums;                              // of what is no kernel's alone
  bool on = false;
};
Counted& counted_launches() {
  static Counted counted;
  return counted;
}

// Blocks that run at the same time where orders are checked, at most.
constexpr unsigned kResident = 32;

constexpr std::string_view kNoMemory = "this machine has no memory left for the launch";

std::string& fault_text() {
  static std::string text;
  return text;
}

}  // namespace

cudaError_t run(const cudaLaunchConfig_t& config, const BoundKernel& bound) try {
  fault_text().reserve(kNoMemory.size());  // for when it is needed
  if (const cudaError_t error = remember(cudaSuccess); error != cudaSuccess) return error;
  const Options& settings = options();
  const GlobalMemory::Open open;
  Launch launch{.grid = config.gridDim,
                .block = config.blockDim,
                .dynamic_bytes = config.dynamicSmemBytes,
                .cluster = std::max(1u, cluster_of(config).x),
                .kernel = Symbols::get().function(bound.kernel),
                .bound = bound,
                .order = settings.order,
                .cooperative = is_cooperative(config),
                .count = counted() && counted_launches().on,
                .check = counted() && settings.check};
  register_kernel(launch.kernel);
  if (bound.arch > 10 * settings.gpu->compute_capability)
    return remember(cudaErrorNoKernelImageForDevice);
  if (const cudaError_t error = check_launch(config, bound.kernel); error != cudaSuccess)
    return remember(error);
  std::erase_if(launch.bound.pointers, [](const volatile void* pointer) {
    const auto address = address_of(pointer);
    return !in_image(address) || is_managed(address) || is_device_address(address);
  });

  const std::uint64_t groups = launch.blocks() / launch.cluster;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  grid_arrivals = grid_release = 0;
  const bool ordered = launch.check && launch.blocks() < Clock::kMostBlocks;
  const auto workers = static_cast<unsigned>(
      std::min<std::uint64_t>(launch.cooperative     ? groups
                              : settings.workers > 0 ? static_cast<unsigned>(settings.workers)
                              : ordered              ? std::max(1u, kResident / launch.cluster)
                                                     : cores,
                              groups));
  launch.running = static_cast<int>(workers);
  {
    // Whatever happens, the threads that are there end before the launch does.
    std::vector<std::unique_ptr<Cluster>> runners;
    launch.attempt([&] {
      runners.reserve(workers);
      const auto make = [&](unsigned i) {
        launch.attempt([&] { runners.push_back(std::make_unique<Cluster>(launch, i)); });
      };
      if (ordered || (launch.cooperative && launch.blocks() > 1))
        launch.turns.emplace(settings.schedule, workers, groups, make).run();
      else
        for (unsigned i = 0; i < workers; ++i) make(i);
    });
  }
  for (void* data : launch.freed)
    if (!GlobalMemory::get().free(data))
      launch.fail({"kernel " + kernel_name(launch.kernel) + " frees what no kernel allocated"});
  if (launch.check && !launch.failed)
    for (Launch::Unwritten& read : launch.unwritten) {
      const Buffer* buffer = GlobalMemory::get().find(read.address);
      if (buffer && !buffer->any_known(read.address, read.bytes))
        launch.fail(std::move(read.fault));
    }
  else
    GlobalMemory::get().forget_what_is_known();
  if (launch.failed) {
    stick();
    fault_text() = launch.fault.empty() ? kNoMemory : launch.fault;
    return remember(cudaErrorLaunchFailure);
  }
  if (launch.count) {
    Counted& counted = counted_launches();
    ++counted.sums.launches;
    counted.sums.blocks += launch.blocks();
    counted.sums.threads += launch.blocks() * launch.threads();
    counted.by_kernel[launch.kernel] += launch.counts;
  }
  return cudaSuccess;
} catch (const std::bad_alloc&) {
  fault_text() = kNoMemory;
  return remember(cudaErrorLaunchFailure);
}

Counts& Counts::operator+=(const Counts& other) {
  for (const auto& [key, theirs] : other.sites) {
    const auto [at, fresh] = sites.emplace(key, theirs);
    if (fresh) continue;
    Site& mine = at->second;
    if (mine.replace_if_worse(theirs.traffic.worst, theirs.worst_block, theirs.worst_warp))
      mine.worst = theirs.worst;
    mine.traffic += theirs.traffic;
  }
  steps += other.steps;
  return *this;
}

Options& options() {
  static Options settings;
  return settings;
}

std::string last_fault() { return fault_text(); }

// ---- what has been counted

Recording::Recording() {
  counted_launches() = {};
  counted_launches().on = true;
  GlobalMemory::get().start_counting();
}

Recording::~Recording() {
  counted_launches().on = false;
  GlobalMemory::get().stop_counting();
}

Report Recording::report() const {
  const Counted& counted = counted_launches();
  Report report = counted.sums;
  report.compulsory_read = GlobalMemory::get().bytes_touched(false);
  report.compulsory_written = GlobalMemory::get().bytes_touched(true);
  for (const auto& [kernel, counts] : counted.by_kernel) {
    report += counts.steps;
    const std::string name = kernel_name(kernel);
    const std::map sites(counts.sites.begin(), counts.sites.end());  // by address
    // Instructions of one line, such as the copies of an unrolled loop, are one entry.
    std::map<std::tuple<std::string, int, Space, Operation, int>, Line> lines;
    for (const auto& [key, site] : sites) {
      const auto [file, number] = source_line(site.pc);
      const auto [at, fresh] = lines.try_emplace(
          {file, number, site.space, site.operation, site.bytes}, Line{site, name, file, number});
      Line& line = at->second;
      if (fresh) continue;
      if (site.traffic.worst > line.traffic.worst) line.worst = site.worst;
      line.traffic += site.traffic;
    }
    for (auto& [key, line] : lines) report.lines.push_back(std::move(line));
  }
  return report;
}

}  // namespace emulator
