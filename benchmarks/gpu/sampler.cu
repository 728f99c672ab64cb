// SPDX-License-Identifier: MIT
//
// The Meter of ladder_bench: times launches on a GPU.
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
#include <thread>

#include "gpu/cuda_handles.hpp"
#include "gpu/energy.hpp"
#include "gpu/hardware_counters.hpp"
#include "gpu/nvml.hpp"
#include "gpu/sm_clock.hpp"
#include "measure/meter.hpp"
#include "model/launch.hpp"
#include "program/options.hpp"

namespace ladders {
namespace {

// On an H200 every fourth kernel of a stream starts up to 0.7 us late. If flushes and launches
// alternate, either only flushes are late, or every other launch is. So a sample of a short row is
// the mean of 16 launches, and one empty kernel is added for every four of them: then each sample
// has the same number of late launches.
constexpr int kLatePeriod = 4;
constexpr double kShortLaunch = 200e-6, kLongLaunch = 10e-3;  // seconds

// A clock below this fraction of the highest so far may be held down by a limit.
constexpr double kFullClock = 0.97;
constexpr double kClockInterval = 0.1;  // seconds; successive means show when the clock is steady
constexpr double kSwing = 1;            // seconds: the period of a clock under a power limit
// While settling, the driver may at first name the reason of the row before: so few looks count
// not.
constexpr double kStale = 0.2;
constexpr std::chrono::milliseconds kIdleTime{300};  // three updates of power by Hopper's driver

__global__ void empty_kernel() {}

// Sums kSumThreads vectors in one block, with about as many instructions as short rows have. Each
// launch of a sample is another instance of the template, since an instance can be 10 ns faster or
// slower in one CUDA context than in another.
constexpr unsigned kSumThreads = 1024;
template <int>
__global__ void sum_in_one_block(const uint4* from, unsigned* to) {
  __shared__ unsigned sums[kSumThreads];
  const unsigned t = threadIdx.x;
  const uint4 v = from[t];
  sums[t] = v.x + v.y + v.z + v.w;
#pragma unroll
  for (unsigned half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (t == 0) *to = sums[0];
}

// In host memory, for host and GPU. Flushes are numbered.
struct Handshake {
  unsigned released = 0;   // the last flush that the host has released
  unsigned timed_out = 0;  // the last flush that ended without being released
};

// Flushes the L2 by reading `count` vectors. What it reads stays clean, so nothing is written back
// while a launch is timed. The first block waits until the host has queued what is timed, but for
// at most 0.2 ms, since some launches block the host. The time of these may include host time.
__global__ void flush_l2(const uint4* data, size_t count, unsigned* sink,
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
        waits = handshake->released != flush;
      } while (waits && now - start < 200'000);
      if (waits) handshake->timed_out = flush;
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
  if (sum == 0x5EED) *sink = sum;  // or the compiler would remove the loads
}

// A kernel's name as profilers print it: "void ladders::tiled<float, 1>(float*, ...)".
std::string kernel_name(const void* kernel) {
  const char* symbol = nullptr;
  check(cudaFuncGetName(&symbol, kernel), "cudaFuncGetName");
  char* const readable = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  const std::string name = readable ? readable : symbol;
  std::free(readable);
  return name;
}

// Times launches between two CUDA events, without the host's launch latency: the kernel before them
// flushes the L2 or only waits, until the events and all between them are queued. Cold launches are
// queued one by one, warm ones as a CUDA graph. The next sample is queued when this one has ended,
// since a long queue slows launches. All work is on the default stream, since work on a second
// stream slows later launches on both.
class Sampler : public Meter {
 public:
  explicit Sampler(const Device& device)
      : device_(device),
        flush_data_(
            zeros<unsigned>(std::max<size_t>(2 * device.l2_bytes, 1 << 20) / sizeof(unsigned))),
        sm_clock_(device) {
    check(cudaStreamCreateWithFlags(&capture_stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaMallocHost(&handshake_, sizeof *handshake_), "cudaMallocHost");
    *handshake_ = {};
  }
  Sampler(const Sampler&) = delete;
  ~Sampler() override {
    cudaStreamDestroy(capture_stream_);
    cudaFreeHost(handshake_);
  }

  Samples sample(const Subject& subject, const Sampling& sampling) override {
    check_persisting_l2();
    if (!sampling.profile) return sample(subject.launch, sampling);
    subject.launch(nullptr);  // not profiled: the first launch loads the kernel
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaProfilerStart(), "cudaProfilerStart");
    subject.launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaProfilerStop(), "cudaProfilerStop");
    // Profilers know the launch only by its kernel.
    std::printf("profiled\t%s\t%s\n", subject.row.c_str(),
                kernel_name(subject.implementation.kernel).c_str());
    std::fflush(stdout);
    return {};
  }

  double launch_seconds() override {
    const auto launch = [grid = static_cast<unsigned>(device_.sms)](cudaStream_t stream) {
      ladders::launch({.grid = grid, .block = 256}, stream, empty_kernel);
    };
    return quantile(sample(launch, {.exactly = 128}).seconds, 0.5);
  }

  double small_kernel_seconds(int samples) override {
    constexpr auto kernels = []<int... i>(std::integer_sequence<int, i...>) {
      return std::array{sum_in_one_block<i>...};
    }(std::make_integer_sequence<int, kLatePeriod * kLatePeriod>{});
    constexpr size_t kInputs = 4096;  // 64 MB in all, since the time depends on the address too
    const auto from = zeros<uint4>(kInputs * kSumThreads);
    const DeviceBuffer<unsigned> to(kInputs);
    size_t input = 0, kernel = 0;
    const auto launch = [&](cudaStream_t stream) {
      input = (input + 1597) % kInputs;
      kernel = (kernel + 1) % kernels.size();
      ladders::launch({.grid = 1, .block = kSumThreads}, stream, kernels[kernel],
                      from.data() + input * kSumThreads, to.data() + input);
    };
    for (size_t i = 0; i < kernels.size(); ++i) launch(nullptr);  // the first launch loads it
    return quantile(sample(launch, {.exactly = samples}).seconds, 0.5);
  }

  std::map<std::string, std::string> energy_source() override {
    const Nvml* const nvml = this->nvml();
    if (!nvml) return {{"energy_source", "none: " + no_nvml_}};
    std::map<std::string, std::string> context = {{"energy_source", nvml->description()}};
    std::this_thread::sleep_for(kIdleTime);
    if (const auto watts = try_read([&] { return idle_watts_ = nvml->watts(); }))
      context["idle_watts"] = std::to_string(*watts);
    if (const auto watts = try_read([&] { return nvml->watts_limit(); }))
      context["watts_limit"] = std::to_string(*watts);
    return context;
  }

  std::map<std::string, double> energy(const Subject& subject) override {
    if (!nvml()) throw NoNvml(no_nvml_);
    const auto launch_seconds = [&] {
      return 1e-9 * time([&] { subject.launch(nullptr); }, false).nanoseconds;
    };
    auto counters = measure_energy(subject, launch_seconds, *nvml(), sm_clock_, capture_stream_);
    if (idle_watts_ > 0) counters["idle_share"] = idle_watts_ / counters["watts"];
    return counters;
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
    check_persisting_l2();
    for (Counted& each : launches)
      each.prepare = [this, cold = sampling.cold, prepare = each.prepare, launch = each.launch] {
        prepare();
        if (cold)
          release_flush(flushes_ + 1), start_flush(true);
        else
          launch();
      };
    return counters_->count(launches);
  }

 private:
  Samples sample(const Launch& launch, const Sampling& sampling) {
    const auto start = std::chrono::steady_clock::now();
    Samples result;
    const Action once = [&] { launch(nullptr); };
    // Adds a sample: the mean over `rounds` calls of `enqueue`, each of which enqueues `launches`.
    const auto take_sample = [&](const Action& enqueue, int rounds, int launches) {
      double nanoseconds = 0;
      bool timed_out = false;
      for (int i = 0; i < rounds; ++i) {
        if (i % kLatePeriod == kLatePeriod - 1)
          ladders::launch({.grid = 1, .block = 32}, nullptr, empty_kernel);
        const Timing timing = time(enqueue, sampling.cold);
        nanoseconds += timing.nanoseconds;
        timed_out |= timing.timed_out;
        result.measuring_seconds += 1e-9 * timing.nanoseconds_with_flush;
      }
      result.seconds.push_back(1e-9 * nanoseconds / (rounds * launches));
      result.late += timed_out;
      return result.seconds.back();
    };
    double estimate = take_sample(once, 1, 1);
    if (estimate < kLongLaunch || sampling.warmup_seconds > 0) {
      // These samples are discarded: the first launch of a kernel also loads it.
      do estimate = std::min(estimate, take_sample(once, 1, 1));
      while (seconds_since(start) < sampling.warmup_seconds);
      result = {};
    }
    std::optional<Graph> graph;
    int launches = 1, rounds = 1;
    if (!sampling.cold) {
      launches = std::clamp(static_cast<int>(kShortLaunch / std::max(estimate, 1e-6)), 1, 200);
      graph.emplace(capture_stream_, launch, launches);
    } else if (estimate < kShortLaunch) {
      rounds = kLatePeriod * kLatePeriod;
    }
    const Action enqueue = graph ? [&] { graph->replay(); } : once;
    const bool checks_clock = sampling.exactly == 0;
    const Nvml* const nvml = checks_clock ? this->nvml() : nullptr;
    const auto clock_during = [&](const Action& samples) {
      sm_clock_.start();
      samples();
      sm_clock_.stop();
      return sm_clock_.hz();
    };
    const auto take_samples = [&](const auto& enough) {
      reasons_ = ClockReasons(nvml);
      const auto begin = std::chrono::steady_clock::now();
      const double clock = clock_during([&] {
        do {
          // enough() may sort all samples, so it is called only after a tenth was added.
          const size_t have = result.seconds.size();
          const size_t goal = sampling.exactly > 0 ? sampling.exactly : have + have / 10 + 1;
          while (result.seconds.size() < goal) take_sample(enqueue, rounds, launches);
        } while (!enough(result.seconds, seconds_since(begin)));
      });
      result.sm_clock_hz = clock;
      reasons_.add_to(result.counters);
      reasons_ = ClockReasons(nullptr);
    };
    const auto is_enough = [&](const std::vector<double>& seconds, double wall) {
      return enough_samples(seconds, rounds * launches, sampling, wall);
    };
    take_samples(is_enough);
    // On some machines the measured clock is up to 3 % above the driver's maximum.
    const auto maximum =
        nvml ? try_read([&] { return nvml->highest_sm_clock_hz(); }) : std::optional<double>();
    highest_clock_hz_ =
        std::max(highest_clock_hz_, std::min(result.sm_clock_hz, maximum.value_or(INFINITY)));
    const bool is_held_down = result.sm_clock_hz < kFullClock * highest_clock_hz_;
    if (!checks_clock || !is_held_down || sampling.settle_seconds <= 0) return result;
    // A power limit lowers the clock within half a second and then lets it swing. So these samples
    // are discarded, and new ones are taken when the clock no longer falls. By then the driver has
    // its reasons. If it names none, the clock does not swing, and short samples will do.
    double sample_seconds = kClockInterval;  // wall time of a short sample
    reasons_ = ClockReasons(nvml);
    settle(kSwing, sampling.settle_seconds, [&] {
      return clock_during([&, from = std::chrono::steady_clock::now()] {
        int taken = 0;
        for (; seconds_since(from) < kClockInterval; ++taken)
          take_sample(enqueue, rounds, launches);
        sample_seconds = seconds_since(from) / taken;
      });
    });
    const bool swings = reasons_.share().value_or(1) > kStale;
    result = {.measuring_seconds = result.measuring_seconds, .settled = swings};
    if (swings) {
      rounds *= std::max(1, static_cast<int>(std::ceil(mean_seconds(sampling) / sample_seconds)));
      take_samples([&](const std::vector<double>& means, double wall) {
        return enough_means(means, sampling, wall);
      });
    } else {
      take_samples(is_enough);
    }
    return result;
  }

  // Lines in a part of the L2 that is set aside for persisting accesses would survive a flush.
  void check_persisting_l2() {
    size_t bytes = 0;
    has_persisting_l2_ =
        cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess && bytes > 0;
    cudaGetLastError();  // GPUs before Ampere have no such limit
  }

  // Null if NVML cannot be used; no_nvml_ says why.
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

  // Device time, in whole nanoseconds: quantile() needs times of equal ticks to be equal.
  struct Timing {
    double nanoseconds, nanoseconds_with_flush;
    bool timed_out;  // the flush did not wait until all was queued
  };
  Timing time(const Action& enqueue, bool cold) {
    check(cudaEventRecord(flush_start_.get(), nullptr), "cudaEventRecord");
    start_flush(cold);
    check(cudaEventRecord(start_.get(), nullptr), "cudaEventRecord");
    enqueue();
    check(cudaEventRecord(end_.get(), nullptr), "cudaEventRecord");
    release_flush(flushes_);
    reasons_.look();  // while the GPU works: the driver gives other reasons for an idle GPU
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    const auto since = [&](const Event& event) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, event.get(), end_.get()), "cudaEventElapsedTime");
      return std::round(1e6 * milliseconds);
    };
    return {.nanoseconds = since(start_),
            .nanoseconds_with_flush = since(flush_start_),
            .timed_out = std::atomic_ref(handshake_->timed_out) == flushes_};
  }

  // Enqueues a kernel that waits for release_flush() and, if `cold`, flushes the L2. The SM on
  // which a grid begins depends on the grids before it, and so does the speed of rows that send
  // data between blocks. So successive flushes have different numbers of blocks.
  void start_flush(bool cold) {
    if (cold && has_persisting_l2_) check(cudaCtxResetPersistingL2Cache(), "persisting L2 lines");
    const unsigned blocks = 4 * device_.sms + ++flushes_ % 13;
    ladders::launch({.grid = blocks, .block = 512}, nullptr, flush_l2,
                    reinterpret_cast<const uint4*>(flush_data_.data()),
                    cold ? flush_data_.bytes() / sizeof(uint4) : 0, flush_data_.data(), handshake_,
                    flushes_);
  }
  void release_flush(unsigned flush) { std::atomic_ref(handshake_->released) = flush; }

  Device device_;
  cudaStream_t capture_stream_ = nullptr;  // only for capturing graphs: nothing runs on it
  Event flush_start_, start_, end_;
  DeviceBuffer<unsigned> flush_data_;  // twice the capacity of the L2
  unsigned flushes_ = 0;               // the number of the last flush
  Handshake* handshake_ = nullptr;
  SmClock sm_clock_;
  double highest_clock_hz_ = 0;  // of all rows so far
  std::unique_ptr<Nvml> nvml_;
  std::string no_nvml_;  // why NVML cannot be used
  ClockReasons reasons_{nullptr};
  double idle_watts_ = NAN;
  bool has_persisting_l2_ = false;
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
