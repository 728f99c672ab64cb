// SPDX-License-Identifier: MIT
//
// The meter of ladder_bench: times on a GPU.
#include <cublas_v2.h>
#include <cuda_profiler_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cub/version.cuh>
#include <deque>
#include <numeric>
#include <thread>

#include "gpu/hardware_counters.hpp"
#include "gpu/nvml.hpp"
#include "measure/meter.hpp"
#include "model/launch.hpp"
#include "program/options.hpp"

namespace ladders {
namespace {

// Every fourth kernel of a stream starts late on an H200, by up to 0.7 us: with a flush per launch,
// always a flush or every other launch. So a sample of a short row is the mean of 16 launches, and
// after each four of them one more kernel lets all take each position equally often.
constexpr int kTurn = 4;
constexpr double kShort = 200e-6, kLong = 10e-3;  // seconds

// The clock is held down below kFull of its highest; whether it is steady is seen by intervals.
constexpr double kFull = 0.97, kInterval = 0.1;  // a fraction, seconds
constexpr std::chrono::milliseconds kIdle{300};  // three readings of Hopper's driver

// One SM's clocks: the ratio of SM cycles to nanoseconds over an interval is its actual frequency.
struct Tick {
  long long cycles;
  unsigned long long nanoseconds;
};

// SM numbers may exceed the SM count where some are disabled; those SMs are left out.
__global__ void read_ticks(Tick* ticks, unsigned count) {
#ifdef __CUDA_ARCH__
  unsigned sm;
  unsigned long long now;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  if (sm < count) ticks[sm] = {clock64(), now};
#endif
}

__global__ void nothing() {}

// As many instructions as in short rows, run by one block of kSummed threads. One instance per
// launch of a sample, since each is some 10 ns faster or slower in one context than in another.
constexpr unsigned kSummed = 1024;
template <int>
__global__ void sum_in_one_block(const uint4* from, unsigned* to) {
  __shared__ unsigned sums[kSummed];
  const unsigned t = threadIdx.x;
  const uint4 v = from[t];
  sums[t] = v.x + v.y + v.z + v.w;
#pragma unroll
  for (unsigned half = kSummed / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (t == 0) *to = sums[0];
}

// In host memory: the number of the flush that may end, and of the last that gave up waiting.
struct Handshake {
  unsigned may_end = 0, gave_up = 0;
};

// Reads twice the L2 capacity, which leaves clean lines and nothing of the problem. The first block
// waits until the host has queued what is timed, but at most 0.2 ms, for launches that block the
// host: their samples may then include host time.
__global__ void read_all(const uint4* data, size_t count, unsigned* sink,
                         [[maybe_unused]] volatile Handshake* handshake,
                         [[maybe_unused]] unsigned flush) {
#ifdef __CUDA_ARCH__
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      unsigned long long start, now;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
      bool waits;
      do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        waits = handshake->may_end != flush;
      } while (waits && now - start < 200'000);
      if (waits) handshake->gave_up = flush;
    }
    __syncthreads();
  }
#endif
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint4 v = data[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x5EED) *sink = sum;  // never: keeps the loads
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Several launches in one graph, which the host replays with one call.
class Graph {
 public:
  Graph(cudaStream_t stream, const Launch& launch, int launches) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph capture");
    try {
      for (int i = 0; i < launches; ++i) launch(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);  // or the stream stays in capture mode
      cudaGraphDestroy(graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "graph capture");
    size_t nodes = 0;  // none where the launch ignores its stream
    check(cudaGraphGetNodes(graph_, nullptr, &nodes), "cudaGraphGetNodes");
    if (nodes == 0) throw std::runtime_error("graph capture: nothing was launched on the stream");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  void replay() { check(cudaGraphLaunch(executable_, nullptr), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// "void ladders::tiled<float, 1>(float*, ...)", as profilers print it.
std::string kernel_name(const void* kernel) {
  const char* symbol = nullptr;
  check(cudaFuncGetName(&symbol, kernel), "cudaFuncGetName");
  char* const readable = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  const std::string name = readable ? readable : symbol;
  std::free(readable);
  return name;
}

// Times launches with events, without the host's launch latency: all between two events is queued
// (cold launches one by one, warm ones as a CUDA graph) while the kernel before flushes the L2 or
// only waits. No more is queued, since launches are slower in a longer queue, and all is on the
// default stream: using a second one slows later launches on both.
class Sampler : public Meter {
 public:
  explicit Sampler(const Device& device)
      : device_(device),
        flush_(zeros<unsigned>(std::max<size_t>(2 * device.l2_bytes, 1 << 20) / sizeof(unsigned))),
        before_(device.sms),
        after_(device.sms) {
    check(cudaStreamCreateWithFlags(&capturing_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaMallocHost(&handshake_, sizeof *handshake_), "cudaMallocHost");
    *handshake_ = {};
  }
  Sampler(const Sampler&) = delete;
  ~Sampler() override {
    cudaStreamDestroy(capturing_);
    cudaFreeHost(handshake_);
  }

  Samples sample(const Subject& subject, const Sampling& sampling) override {
    look_for_persisting_lines();
    if (!sampling.profile) return sample(subject.launch, sampling);
    // Warm. Profilers know the launch by its kernel's name, the reader by its row's.
    subject.launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaProfilerStart(), "cudaProfilerStart");
    subject.launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaProfilerStop(), "cudaProfilerStop");
    std::printf("profiled\t%s\t%s\n", subject.row.c_str(),
                kernel_name(subject.implementation.kernel).c_str());
    std::fflush(stdout);
    return {};
  }

  double launch_seconds() override {
    const auto launch = [grid = static_cast<unsigned>(device_.sms)](cudaStream_t stream) {
      ladders::launch({.grid = grid, .block = 256}, stream, nothing);
    };
    return quantile(sample(launch, {.exactly = 128}).seconds, 0.5);
  }

  double small_kernel_seconds(int samples) override {
    constexpr auto kernels = []<int... i>(std::integer_sequence<int, i...>) {
      return std::array{sum_in_one_block<i>...};
    }(std::make_integer_sequence<int, kTurn * kTurn>{});
    constexpr size_t kTables = 4096;  // 64 MB, since the address matters too
    const auto from = zeros<uint4>(kTables * kSummed);
    const DeviceBuffer<unsigned> to(kTables);
    size_t table = 0, kernel = 0;
    const auto launch = [&](cudaStream_t stream) {
      table = (table + 1597) % kTables;
      kernel = (kernel + 1) % kernels.size();
      ladders::launch({.grid = 1, .block = kSummed}, stream, kernels[kernel],
                      from.data() + table * kSummed, to.data() + table);
    };
    for (size_t i = 0; i < kernels.size(); ++i) launch(nullptr);  // a first launch loads the code
    return quantile(sample(launch, {.exactly = samples}).seconds, 0.5);
  }

  std::map<std::string, std::string> energy_source() override {
    const Nvml* const nvml = this->nvml();
    if (!nvml) return {{"energy_source", "none: " + no_nvml_}};
    std::map<std::string, std::string> told = {{"energy_source", nvml->description()}};
    std::this_thread::sleep_for(kIdle);
    if (const auto watts = reading([&] { return idle_watts_ = nvml->watts(); }))
      told["idle_watts"] = std::to_string(*watts);
    if (const auto watts = reading([&] { return nvml->watts_limit(); }))
      told["watts_limit"] = std::to_string(*watts);
    return told;
  }

  std::map<std::string, double> energy(const Subject& subject) override {
    if (!nvml()) throw NoNvml(no_nvml_);
    constexpr double kLeast = 0.4, kLonger = 1.6, kAgree = 0.03;  // seconds, seconds, a share
    auto found = energy(subject, *nvml(), kLeast);
    const auto agreement = found.find("power_over_energy");
    // If the driver's two sources disagree, power may swing about its limit.
    if (agreement != found.end() && std::abs(agreement->second - 1) > kAgree)
      return energy(subject, *nvml(), kLonger);
    return found;
  }

  std::string hardware_counters() override {
    try {
      if (!counters_) counters_ = ladders::hardware_counters(device_);
      return counters_->description();
    } catch (const NoCounters& reason) {
      return std::string("none: ") + reason.what();
    }
  }

  std::vector<std::map<std::string, double>> count(std::vector<Counted> launches,
                                                   const Sampling& sampling) override {
    if (!counters_ && hardware_counters().starts_with("none"))
      return Meter::count(std::move(launches), sampling);
    look_for_persisting_lines();
    for (Counted& each : launches)
      each.prepare = [this, cold = sampling.cold, prepare = each.prepare, launch = each.launch] {
        prepare();
        if (cold)
          let_end(flushes_ + 1), start_flush(true);
        else
          launch();
      };
    return counters_->count(launches);
  }

 private:
  // Launches are queued ahead and buffers take turns, so no flush is needed. The driver's counter
  // moves in steps: energy and time are taken from one step to another, `least` seconds later.
  std::map<std::string, double> energy(const Subject& subject, const Nvml& nvml, double least) {
    constexpr double kBatch = 10e-3, kLead = 0.25, kMost = 10, kLongLaunch = 0.1;
    const double estimate =
        std::max(1e-9 * time([&] { subject.launch(nullptr); }, false).nanoseconds, 1e-6);
    // Whole turns of the buffers; a graph of more launches takes long to make.
    const int turns = std::clamp(static_cast<int>(kBatch / (estimate * subject.buffers)), 1,
                                 std::max(1, 500 / subject.buffers));
    const int launches = turns * subject.buffers;
    const int replays = std::max(1, static_cast<int>(kBatch / (launches * estimate)));
    const size_t ahead = estimate < kLongLaunch ? 4 : 2;  // batches in the queue
    Graph graph(capturing_, subject.launch, launches);
    std::deque<Event> ends;  // of all batches
    struct Step {
      std::chrono::steady_clock::time_point at;
      double joules = 0;
      size_t batches = 0;  // that had ended by then
    };
    std::optional<Step> first, last;
    const auto seconds = [&] {
      return std::chrono::duration<double>(last->at - first->at).count();
    };
    const auto measured = [&] {
      return last && seconds() >= least && last->batches > first->batches;
    };
    std::vector<double> watts, driver_clocks;
    size_t done = 0;
    const auto start = std::chrono::steady_clock::now();
    double before = nvml.joules();
    while (!measured()) {
      if (seconds_since(start) > kMost + 4 * estimate)
        throw NoNvml("the driver's counter of energy stands still");
      while (ends.size() < done + ahead) {
        for (int i = 0; i < replays; ++i) graph.replay();
        check(cudaEventRecord(ends.emplace_back().get(), nullptr), "cudaEventRecord");
      }
      const double joules = nvml.joules();
      while (done < ends.size() && cudaEventQuery(ends[done].get()) == cudaSuccess) ++done;
      if (joules != before && done > 0 && seconds_since(start) > kLead) {
        if (!first) read_clocks(before_);
        (first ? last : first) = {std::chrono::steady_clock::now(), joules, done};
      }
      before = joules;
      if (!first) continue;
      if (const auto now = reading([&] { return nvml.watts(); })) watts.push_back(*now);
      if (const auto now = reading([&] { return nvml.sm_clock_hz(); }))
        driver_clocks.push_back(*now);
    }
    read_clocks(after_);
    check(cudaDeviceSynchronize(), "launches for the energy counter");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, ends[first->batches - 1].get(),
                               ends[last->batches - 1].get()),
          "cudaEventElapsedTime");
    const double launch =
        1e-3 * milliseconds / (double(last->batches - first->batches) * replays * launches);
    const double power = (last->joules - first->joules) / seconds();
    std::map<std::string, double> counters = {{"watts", power},
                                              {"joules", power * launch},
                                              {"energy_launch_seconds", launch},
                                              {"energy_clock_hz", clock_between()}};
    if (idle_watts_ > 0) counters["idle_share"] = idle_watts_ / power;
    if (!watts.empty())
      counters["power_over_energy"] =
          std::accumulate(watts.begin(), watts.end(), 0.0) / double(watts.size()) / power;
    if (!driver_clocks.empty()) counters["driver_clock_hz"] = quantile(driver_clocks, 0.5);
    if (const auto hz = reading([&] { return nvml.memory_clock_hz(); }))
      counters["memory_clock_hz"] = *hz;
    if (const auto degrees = reading([&] { return nvml.celsius(); }))
      counters["celsius"] = *degrees;
    return counters;
  }

  // A reading of the driver that results can do without.
  static std::optional<double> reading(const std::function<double()>& read) try {
    return read();
  } catch (const NoNvml&) {
    return {};
  }

  Samples sample(const Launch& launch, const Sampling& sampling) {
    const auto start = std::chrono::steady_clock::now();
    Samples result;
    const Action once = [&] { launch(nullptr); };
    // Adds a sample: the mean of `rounds` times `launches`, which one call of `enqueue` queues.
    const auto take = [&](const Action& enqueue, int rounds, int launches) {
      double nanoseconds = 0;
      bool late = false;
      for (int i = 0; i < rounds; ++i) {
        if (i % kTurn == kTurn - 1) ladders::launch({.grid = 1, .block = 32}, nullptr, nothing);
        const Timing timing = time(enqueue, sampling.cold);
        nanoseconds += timing.nanoseconds;
        late |= timing.late;
        result.measuring_seconds += 1e-9 * timing.with_flush;
      }
      result.seconds.push_back(1e-9 * nanoseconds / (rounds * launches));
      result.late += late;
      return result.seconds.back();
    };
    double estimate = take(once, 1, 1);  // includes what only the first launch of a kernel does
    if (estimate < kLong || sampling.warmup_seconds > 0) {
      do estimate = std::min(estimate, take(once, 1, 1));
      while (seconds_since(start) < sampling.warmup_seconds);
      result = {};
    }  // else it is a sample like those that follow
    std::optional<Graph> graph;
    int launches = 1, rounds = 1;
    if (!sampling.cold) {
      launches = std::clamp(static_cast<int>(kShort / std::max(estimate, 1e-6)), 1, 200);
      graph.emplace(capturing_, launch, launches);
    } else if (estimate < kShort) {
      rounds = kTurn * kTurn;
    }
    const Action enqueue = graph ? [&] { graph->replay(); } : once;
    const bool watched = sampling.exactly == 0;
    const Nvml* const nvml = watched ? this->nvml() : nullptr;
    const auto clock_during = [&](const Action& samples) {
      read_clocks(before_);
      samples();
      read_clocks(after_);
      return clock_between();
    };
    const auto sample_all = [&](double wall_seconds) {
      Sampling until = sampling;
      until.wall_seconds = wall_seconds;
      reasons_ = ClockReasons(nvml);
      const auto warm = std::chrono::steady_clock::now();
      const double clock = clock_during([&] {
        do {
          // enough_samples() sorts all samples, so it is asked each time a tenth is added.
          const size_t have = result.seconds.size();
          const size_t goal = sampling.exactly > 0 ? sampling.exactly : have + have / 10 + 1;
          while (result.seconds.size() < goal) take(enqueue, rounds, launches);
        } while (!enough_samples(result.seconds, rounds * launches, until, seconds_since(warm)));
      });
      result.sm_clock_hz = clock;
      reasons_.add_to(result.counters);
      reasons_ = ClockReasons(nullptr);
    };
    sample_all(sampling.wall_seconds);
    // Some machines read clocks above the highest that the driver allows, too high by 3 %.
    const auto highest =
        nvml ? reading([&] { return nvml->highest_sm_clock_hz(); }) : std::optional<double>();
    fastest_clock_hz_ =
        std::max(fastest_clock_hz_, std::min(result.sm_clock_hz, highest.value_or(INFINITY)));
    const bool limited = result.sm_clock_hz < kFull * fastest_clock_hz_;
    if (!watched || !limited || sampling.settle_seconds <= 0) return result;
    // A power limit lowers the clock within half a second, and then moves it to and fro, so these
    // samples do not count. If it alternates between two values, the median of short samples is at
    // one of them, so the others are few and long, and together take about as long as the longest
    // wait.
    double each = kInterval;  // seconds that a short one took, with flushes
    settle(sampling.settle_seconds, [&] {
      return clock_during([&, from = std::chrono::steady_clock::now()] {
        int taken = 0;
        for (; seconds_since(from) < kInterval; ++taken) take(enqueue, rounds, launches);
        each = seconds_since(from) / taken;
      });
    });
    rounds *= std::max(1, static_cast<int>(std::ceil(sampling.settle_seconds / kFewest / each)));
    result = {.measuring_seconds = result.measuring_seconds};
    sample_all(0);
    return result;
  }

  // A part of the L2 may be set aside for lines that persist, which would outlast a flush.
  void look_for_persisting_lines() {
    size_t bytes = 0;
    persisting_ =
        cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess && bytes > 0;
    cudaGetLastError();  // GPUs before Ampere know no such limit
  }

  // Null where there is none; the reason is in no_nvml_.
  const Nvml* nvml() {
    if (!nvml_ && no_nvml_.empty()) try {
        char bus[32] = "";
        check(cudaDeviceGetPCIBusId(bus, sizeof bus, device_.index), "cudaDeviceGetPCIBusId");
        nvml_ = open_nvml(bus);
      } catch (const NoNvml& reason) {
        no_nvml_ = reason.what();
      }
    return nvml_.get();
  }

  // Device time of what is queued, in whole ns: ticks are coarse, and equal sums must tie.
  struct Timing {
    double nanoseconds, with_flush;
    bool late;  // the flush did not wait until all was queued
  };
  Timing time(const Action& enqueue, bool cold) {
    check(cudaEventRecord(flush_start_.get(), nullptr), "cudaEventRecord");
    start_flush(cold);
    check(cudaEventRecord(start_.get(), nullptr), "cudaEventRecord");
    enqueue();
    check(cudaEventRecord(end_.get(), nullptr), "cudaEventRecord");
    let_end(flushes_);
    reasons_.look();  // while the GPU works: an idle one is held down by nothing
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    const auto from = [&](const Event& event) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, event.get(), end_.get()), "cudaEventElapsedTime");
      return std::round(1e6 * milliseconds);
    };
    return {.nanoseconds = from(start_),
            .with_flush = from(flush_start_),
            .late = std::atomic_ref(handshake_->gave_up) == flushes_};
  }

  // Flushes only if `cold`, but waits for let_end() in any case. The first SM of a grid, and so the
  // speed of rows that send data between blocks, depends on the grids before it: flushes differ in
  // their number of blocks.
  void start_flush(bool cold) {
    if (cold && persisting_) check(cudaCtxResetPersistingL2Cache(), "persisting L2 lines");
    const unsigned blocks = 4 * device_.sms + ++flushes_ % 13;
    ladders::launch({.grid = blocks, .block = 512}, nullptr, read_all,
                    reinterpret_cast<const uint4*>(flush_.data()),
                    cold ? flush_.bytes() / sizeof(uint4) : 0, flush_.data(), handshake_, flushes_);
  }
  void let_end(unsigned flush) { std::atomic_ref(handshake_->may_end) = flush; }

  void read_clocks(DeviceBuffer<Tick>& into) {
    check(cudaMemsetAsync(into.data(), 0, into.bytes(), nullptr), "cudaMemsetAsync");
    ladders::launch({.grid = static_cast<unsigned>(device_.sms), .block = 1}, nullptr, read_ticks,
                    into.data(), static_cast<unsigned>(into.size()));
  }

  double clock_between() const {
    const auto before = to_host(before_.data(), before_.size());
    const auto after = to_host(after_.data(), after_.size());
    std::vector<double> hz;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i].nanoseconds != 0 && after[i].nanoseconds > before[i].nanoseconds)
        hz.push_back(1e9 * double(after[i].cycles - before[i].cycles) /
                     double(after[i].nanoseconds - before[i].nanoseconds));
    return hz.empty() ? 0 : quantile(hz, 0.5);
  }

  Device device_;
  cudaStream_t capturing_ = nullptr;  // the default one cannot; nothing runs on it
  Event flush_start_, start_, end_;
  DeviceBuffer<unsigned> flush_;
  unsigned flushes_ = 0;  // so far
  Handshake* handshake_ = nullptr;
  DeviceBuffer<Tick> before_, after_;  // by SM: counters of different SMs do not compare
  double fastest_clock_hz_ = 0;        // of all rows so far
  std::unique_ptr<Nvml> nvml_;
  std::string no_nvml_;  // why there is none
  ClockReasons reasons_{nullptr};
  double idle_watts_ = NAN;
  bool persisting_ = false;  // whether lines of the L2 may persist
  std::unique_ptr<HardwareCounters> counters_;
};

}  // namespace

const bool kEmulated = false;

std::vector<std::pair<const char*, std::string>> origins() {
  const auto cublas = [](libraryPropertyType property) {
    int number = 0;
    if (cublasGetProperty(property, &number) != CUBLAS_STATUS_SUCCESS)
      throw CudaError("cublasGetProperty");
    return number;
  };
  return {
      {"cublas_version", dotted(cublas(MAJOR_VERSION), cublas(MINOR_VERSION), cublas(PATCH_LEVEL))},
      {"cub_version", dotted(CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION)}};
}

void configure(const Options&) {}

std::unique_ptr<Meter> make_meter(const Device& device) {
  return std::make_unique<Sampler>(device);
}

}  // namespace ladders
