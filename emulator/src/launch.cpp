// SPDX-License-Identifier: MIT
//
// Launches: blocks over host threads, and what is counted of them.
#include <pthread.h>

#include <barrier>
#include <map>
#include <new>
#include <system_error>
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

// Blocks keep their stacks, logs and shadow memory from launch to launch.
std::mutex pool_mutex;
constinit std::vector<std::unique_ptr<Block>> pool;
std::unique_ptr<Block> take_block() {
  const std::lock_guard lock(pool_mutex);
  if (pool.empty()) return std::make_unique<Block>();
  auto block = std::move(pool.back());
  pool.pop_back();
  return block;
}

// A host thread needs room for the shared variables of every kernel in the program, which glibc
// takes from its stack. std::jthread takes no size, so that of all threads made from here on is
// enlarged.
void enlarge_stacks() {
  [[maybe_unused]] static const bool once = [] {
    pthread_attr_t attributes;
    std::size_t bytes = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_setstacksize(&attributes, bytes + thread_storage().size());
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    return true;
  }();
}

std::jthread host_thread(auto work) {
  enlarge_stacks();
  return std::jthread([work] {
    alignas(16) std::byte stack[64 * 1024];
    handle_lane_traps(stack);
    work();
  });
}

// Does `work`; whatever goes wrong in it ends the launch. True if nothing did.
template <class F>
bool attempt(Launch& launch, F work) {
  try {
    work();
    return true;
  } catch (Fault& fault) {
    if (!fault.text.empty()) launch.fail(std::move(fault));
  } catch (const std::bad_alloc&) {
    launch.fail({});
  } catch (const std::system_error&) {
    launch.fail({"this machine has no thread left for the launch"});
  }
  return false;
}

// As many host threads as a cluster has blocks, which run cluster after cluster. Without clusters
// each block is one.
class Runner {
 public:
  Runner(Launch& launch, unsigned number)
      : launch_(launch),
        number_(number),
        cluster_(launch.cluster),
        meeting_(launch.cluster, Next{this}) {
    const bool complete = attempt(launch, [&] {
      threads_.reserve(launch.cluster);  // one that is lost on the way would wait for the others
      for (unsigned rank = 0; rank < launch.cluster; ++rank)
        threads_.push_back(host_thread([this, rank] { run(rank); }));
    });
    if (launch.turns && complete) launch.turns->add(number);
    if (complete) return;
    complete_ = false;
    for (auto missing = threads_.size(); missing < launch.cluster; ++missing)
      meeting_.arrive_and_drop();  // or the others would wait for ever
  }

 private:
  // When all have come from the last cluster.
  struct Next {
    Runner* runner;
    void operator()() noexcept { runner->draw(); }
  };
  void draw() {
    Turns* const turns = launch_.turns && complete_ ? &*launch_.turns : nullptr;
    if (turns && !std::exchange(began_, true)) turns->begin(number_);
    first_ = launch_.failed ? launch_.blocks() : launch_.next.fetch_add(launch_.cluster);
    if (first_ < launch_.blocks() &&
        !attempt(launch_, [&] { cluster_.start(launch_.order, first_); }))
      first_ = launch_.blocks();
    const bool over = first_ >= launch_.blocks();
    if (over) --launch_.running;
    if (!turns) return;
    if (over)
      turns->end(number_);
    else
      turns->took(number_, first_);
  }
  void run(unsigned rank) {
    std::unique_ptr<Block> block;
    bool whole = attempt(launch_, [&] {
      block = take_block();
      block->enter(launch_, cluster_, rank, number_);
    });
    for (;;) {
      meeting_.arrive_and_wait();
      if (first_ >= launch_.blocks()) break;
      const bool ran = attempt(launch_, [&] {
        cluster_.wait_for_turn(rank);
        block->run(first_ + rank);
        cluster_.exit(rank);
      });
      if (!ran) cluster_.abort();
      whole &= ran;
    }
    current_block = nullptr;
    if (!whole) return;  // the lanes that were left in the middle of something go with the block
    attempt(launch_, [&] {
      const std::scoped_lock lock(launch_.mutex, pool_mutex);
      launch_.counts += block->counts();
      pool.push_back(std::move(block));
    });
  }

  Launch& launch_;
  const unsigned number_;
  Cluster cluster_;
  bool complete_ = true, began_ = false;
  std::uint64_t first_ = 0;
  std::barrier<Next> meeting_;
  std::vector<std::jthread> threads_;
};

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  for (const auto& [key, theirs] : other.sites) {
    const auto [at, fresh] = sites.emplace(key, theirs);
    if (fresh) continue;
    Site& mine = at->second;
    if (mine.is_exceeded(theirs.traffic.worst, theirs.worst_block, theirs.worst_warp)) {
      mine.worst = theirs.worst;
      mine.worst_block = theirs.worst_block;
      mine.worst_warp = theirs.worst_warp;
    }
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

namespace {

cudaError_t run_grid(const cudaLaunchConfig_t& config, const BoundKernel& bound) {
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
    std::vector<std::unique_ptr<Runner>> runners;
    attempt(launch, [&] {
      runners.reserve(workers);
      const auto make = [&](unsigned i) {
        attempt(launch, [&] { runners.push_back(std::make_unique<Runner>(launch, i)); });
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
}

}  // namespace

cudaError_t run(const cudaLaunchConfig_t& config, const BoundKernel& kernel) {
  fault_text().reserve(kNoMemory.size());  // for when it is needed
  try {
    return run_grid(config, kernel);
  } catch (const std::bad_alloc&) {
    fault_text() = kNoMemory;
    return remember(cudaErrorLaunchFailure);
  }
}

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
