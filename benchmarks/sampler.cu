// SPDX-License-Identifier: MIT
//
// The meter of ladder_bench: times on a GPU.
#include <cuda_profiler_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hardware_counters.hpp"
#include "launch.hpp"
#include "meter.hpp"
#include "statistics.hpp"

namespace ladders {
namespace {

// Each fourth kernel that is launched on a stream is late on an H200: by some 0.1 us, and by up to
// 0.7 if it has many bytes of arguments or comes right after another. Where flushes and launches
// take turns, that is always a flush or every other launch, from row to row and process to process.
// So a sample of a short row is the mean of sixteen launches. Four of them, with their flushes, and
// one kernel more are 4 m + 1 kernels, whatever a launch is made of, so each four begin one place
// further on, and in the end each kernel has been in each place equally often.
constexpr int kTurn = 4;
constexpr double kShort = 200e-6, kLong = 10e-3;  // seconds

// One SM's clocks at one moment. clock64 counts SM cycles, globaltimer nanoseconds: their ratio
// over an interval is the clock that the SM really ran at.
struct Tick {
  long long cycles;
  unsigned long long nanoseconds;
};

// An SM's number can be larger than their count where some are switched off; those are left out.
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

// Like a row of few elements, with as many instructions: by one block of kSummed threads. As many
// of them as a sample has launches: beside what all kernels of a context have in common, each is
// some 10 ns faster or slower in one than in another, probably by where its code lies.
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

// Reading twice the capacity leaves only clean lines of this buffer: nothing of the problem, and
// nothing that must be written back while a launch is timed. The first block begins when the host
// says so, by writing what is awaited, or after 0.2 ms: who cannot say it, as where launches block
// the host, loses no more.
__global__ void read_all(const uint4* data, size_t count, unsigned* sink,
                         [[maybe_unused]] const volatile unsigned* said,
                         [[maybe_unused]] unsigned awaited) {
#ifdef __CUDA_ARCH__
  if (blockIdx.x == 0) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (threadIdx.x == 0 && *said != awaited && now - start < 200'000);
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

// Several launches in one graph: replaying it costs the host one call.
class Graph {
 public:
  Graph(cudaStream_t stream, const Launch& launch, int launches) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph capture");
    try {
      for (int i = 0; i < launches; ++i) launch(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);  // the stream is of no use while it captures
      cudaGraphDestroy(graph_);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "graph capture");
    size_t nodes = 0;  // what passes by the stream that it is given runs once, and is not replayed
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
  int status = 0;
  char* const readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  const std::string name = status == 0 ? readable : symbol;
  std::free(readable);
  return name;
}

// Times launches with events, without the launch latency of the host: what is between two events
// is queued whole, cold launches as they are, warm ones as a CUDA graph, before the device is
// through with the kernel in front, which flushes the L2 or only waits. No more than that is queued
// at a time: with sixteen launches queued at once, all but the last five took up to 0.7 us longer,
// of 6, on an H200, probably since the device reads commands from the host's memory some twenty
// ahead. All on the default stream, like everything else that the program does: once a second one
// has been used, launches on either are 0.05 to 0.2 us slower, each process by another amount.
class Sampler : public Meter {
 public:
  explicit Sampler(const Device& device);
  ~Sampler() override;
  Sampler(const Sampler&) = delete;

  Samples sample(const Subject& subject, const Sampling& sampling) override {
    if (!sampling.profile) return sample(subject.launch, sampling);
    profile(subject);
    return {};
  }
  std::string hardware_counters() override;
  std::map<std::string, double> count(const Subject& subject, const Sampling& sampling) override;
  double launch_seconds() override;
  double small_kernel_seconds(int samples) override;

 private:
  Samples sample(const Launch& launch, const Sampling& sampling);
  void profile(const Subject& subject);
  // Flushes only if `cold`, but does not end before let_end() in any case.
  void start_flush(bool cold);
  void let_end(unsigned flush) { std::atomic_ref(*said_) = flush; }
  void read_clocks(DeviceBuffer<Tick>& into);
  double clock_between() const;
  // What the device takes for what `enqueue` queues, in whole ns: sums of ticks, of which there are
  // few, tie as they should. Adds to `measuring`, in seconds.
  double nanoseconds_of(const std::function<void()>& enqueue, bool cold, double& measuring);

  Device device_;
  cudaStream_t capturing_ = nullptr;  // as the default one cannot; nothing runs on it
  cudaEvent_t flush_start_ = nullptr, start_ = nullptr, end_ = nullptr;
  DeviceBuffer<unsigned> flush_;
  unsigned flushes_ = 0;  // so far
  // Which of them may end: in the host's memory, where the device reads it.
  unsigned* said_ = nullptr;
  DeviceBuffer<Tick> before_, after_;  // by SM: counters of different SMs do not compare
  double fastest_clock_hz_ = 0;        // of all rows so far
  std::unique_ptr<HardwareCounters> counters_;
};

Sampler::Sampler(const Device& device)
    : device_(device),
      flush_(std::max<size_t>(2 * device.l2_bytes, 1 << 20) / sizeof(unsigned)),
      before_(device.sms),
      after_(device.sms) {
  check(cudaStreamCreateWithFlags(&capturing_, cudaStreamNonBlocking), "cudaStreamCreate");
  for (cudaEvent_t* event : {&flush_start_, &start_, &end_})
    check(cudaEventCreate(event), "cudaEventCreate");
  check(cudaMemset(flush_.data(), 0, flush_.bytes()), "cudaMemset");
  check(cudaMallocHost(&said_, sizeof *said_), "cudaMallocHost");
  *said_ = 0;
}

Sampler::~Sampler() {
  for (cudaEvent_t event : {flush_start_, start_, end_}) cudaEventDestroy(event);
  cudaStreamDestroy(capturing_);
  cudaFreeHost(said_);
}

void Sampler::start_flush(bool cold) {
  // Which SM a grid begins with depends on the grids before it: where always the same ones
  // alternate, so does a row that sends data from block to block, 3 % faster or slower for as long
  // as it is sampled. So no two flushes in turn have as many blocks.
  const unsigned blocks = 4 * device_.sms + ++flushes_ % 13;
  ladders::launch({.grid = blocks, .block = 512}, nullptr, read_all,
                  reinterpret_cast<const uint4*>(flush_.data()),
                  cold ? flush_.bytes() / sizeof(uint4) : 0, flush_.data(), said_, flushes_);
}

void Sampler::read_clocks(DeviceBuffer<Tick>& into) {
  check(cudaMemsetAsync(into.data(), 0, into.bytes(), nullptr), "cudaMemsetAsync");
  ladders::launch({.grid = static_cast<unsigned>(device_.sms), .block = 1}, nullptr, read_ticks,
                  into.data(), static_cast<unsigned>(into.size()));
}

double Sampler::clock_between() const {
  std::vector<Tick> before(before_.size()), after(after_.size());
  check(cudaMemcpy(before.data(), before_.data(), before_.bytes(), cudaMemcpyDeviceToHost),
        "clock");
  check(cudaMemcpy(after.data(), after_.data(), after_.bytes(), cudaMemcpyDeviceToHost), "clock");
  std::vector<double> hz;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].nanoseconds == 0 || after[i].nanoseconds <= before[i].nanoseconds) continue;
    hz.push_back(1e9 * double(after[i].cycles - before[i].cycles) /
                 double(after[i].nanoseconds - before[i].nanoseconds));
  }
  return hz.empty() ? 0 : quantile(hz, 0.5);
}

double Sampler::nanoseconds_of(const std::function<void()>& enqueue, bool cold, double& measuring) {
  check(cudaEventRecord(flush_start_, nullptr), "cudaEventRecord");
  start_flush(cold);
  check(cudaEventRecord(start_, nullptr), "cudaEventRecord");
  enqueue();
  check(cudaEventRecord(end_, nullptr), "cudaEventRecord");
  let_end(flushes_);
  check(cudaEventSynchronize(end_), "cudaEventSynchronize");
  const auto from = [&](cudaEvent_t event) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event, end_), "cudaEventElapsedTime");
    return std::round(1e6 * milliseconds);
  };
  measuring += 1e-9 * from(flush_start_);
  return from(start_);
}

Samples Sampler::sample(const Launch& launch, const Sampling& sampling) {
  const auto start = std::chrono::steady_clock::now();
  Samples result;
  const std::function<void()> once = [&] { launch(nullptr); };
  const auto one = [&] {
    return 1e-9 * nanoseconds_of(once, sampling.cold, result.measuring_seconds);
  };
  double estimate = one();  // with what only the first launch of a kernel does
  if (estimate >= kLong && sampling.warmup_seconds == 0) {
    result.seconds = {estimate};  // a sample like those that follow
  } else {
    do estimate = std::min(estimate, one());
    while (seconds_since(start) < sampling.warmup_seconds);
    result = {};
  }
  const auto warm = std::chrono::steady_clock::now();

  std::optional<Graph> graph;
  int launches = 1, rounds = 1;
  if (!sampling.cold) {
    launches = std::clamp(static_cast<int>(kShort / std::max(estimate, 1e-6)), 1, 200);
    graph.emplace(capturing_, launch, launches);
  } else if (estimate < kShort) {
    rounds = kTurn * kTurn;
  }
  const std::function<void()> enqueue = graph ? [&] { graph->replay(); } : once;
  const auto take = [&] {
    double nanoseconds = 0;
    for (int i = 0; i < rounds; ++i) {
      if (i % kTurn == kTurn - 1) ladders::launch({.grid = 1, .block = 32}, nullptr, nothing);
      nanoseconds += nanoseconds_of(enqueue, sampling.cold, result.measuring_seconds);
    }
    result.seconds.push_back(1e-9 * nanoseconds / (rounds * launches));
  };

  // A power limit acts after some 30 ms and has settled after some 100: until then the clock is
  // higher, or as low as the row before has left it. So a row below the clock that others have had
  // is sampled for half a second, if it may be.
  const auto limited = [&] {
    read_clocks(after_);
    result.sm_clock_hz = clock_between();
    fastest_clock_hz_ = std::max(fastest_clock_hz_, result.sm_clock_hz);
    return sampling.exactly == 0 && seconds_since(warm) < std::min(sampling.wall_seconds, 0.5) &&
           result.sm_clock_hz < 0.97 * fastest_clock_hz_;
  };
  read_clocks(before_);
  do {
    // The question whether it is enough sorts all samples, so it is put each time a tenth is added.
    const size_t have = result.seconds.size();
    const size_t goal = sampling.exactly > 0 ? sampling.exactly : have + have / 10 + 1;
    while (result.seconds.size() < goal) take();
  } while (!enough(result.seconds, rounds * launches, sampling, seconds_since(warm)) || limited());
  return result;
}

double Sampler::launch_seconds() {
  const auto launch = [this](cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(device_.sms);
    ladders::launch({.grid = grid, .block = 256}, stream, nothing);
  };
  return quantile(sample(launch, {.exactly = 128}).seconds, 0.5);
}

double Sampler::small_kernel_seconds(int samples) {
  constexpr auto kernels = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array{sum_in_one_block<i>...};
  }(std::make_integer_sequence<int, kTurn * kTurn>{});
  constexpr size_t kTables = 4096;  // 64 MB: where it reads counts too
  DeviceBuffer<uint4> from(kTables * kSummed);
  DeviceBuffer<unsigned> to(kTables);
  check(cudaMemset(from.data(), 0, from.bytes()), "cudaMemset");
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

// Warm. Profilers know the launch by its kernel's name, the reader by its row's.
void Sampler::profile(const Subject& subject) {
  subject.launch(nullptr);
  check(cudaDeviceSynchronize(), "kernel");
  check(cudaProfilerStart(), "cudaProfilerStart");
  subject.launch(nullptr);
  check(cudaDeviceSynchronize(), "kernel");
  check(cudaProfilerStop(), "cudaProfilerStop");
  std::printf("profiled\t%s\t%s\n", subject.row.c_str(), kernel_name(subject.kernel).c_str());
  std::fflush(stdout);
}

std::string Sampler::hardware_counters() {
  try {
    if (!counters_) counters_ = std::make_unique<HardwareCounters>(device_);
    return counters_->description();
  } catch (const NoCounters& reason) {
    return std::string("none: ") + reason.what();
  }
}

// The state of the caches is that of the samples. A row without counters is better than none.
std::map<std::string, double> Sampler::count(const Subject& subject, const Sampling& sampling) {
  if (!counters_ && hardware_counters().starts_with("none")) return {};
  try {
    const std::function<void()> launch = [&] { subject.launch(nullptr); };
    const auto flush = [this] { let_end(flushes_ + 1), start_flush(true); };
    return counters_->count(sampling.cold ? std::function<void()>(flush) : launch, launch);
  } catch (const NoCounters& reason) {
    std::fprintf(stderr, "%s: no counters: %s\n", subject.row.c_str(), reason.what());
    return {};
  }
}

}  // namespace

const bool kEmulated = false;

std::vector<std::string> counted_names() { return row_counter_names(); }

void configure(const Options&) {}  // the GPU is what it is

std::unique_ptr<Meter> make_meter(const Device& device) {
  return std::make_unique<Sampler>(device);
}

}  // namespace ladders
