// SPDX-License-Identifier: MIT
#include "gpu/hardware_counters.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "gpu/metrics.hpp"
#include "measure/sampling.hpp"
#include "model/cuda_check.hpp"

#ifdef LADDERS_CUPTI
#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>
#endif

namespace ladders {

#ifdef LADDERS_CUPTI

std::string why_not(int cupti_result) {
  const auto status = static_cast<CUptiResult>(cupti_result);
  switch (status) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "this user may not read GPU counters: run as root, or let everybody read them "
             "(NVreg_RestrictProfilingToAdminUsers=0 for the nvidia kernel module)";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the GPU is virtual: only the administrator of its host can allow reading its "
             "counters";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "another profiler uses the counters: stop it first";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_DEVICE:
      return "CUPTI does not support this GPU: try a newer CUDA Toolkit";
    default:
      const char* text = nullptr;
      cuptiGetResultString(status, &text);
      return std::string("CUPTI says ") + (text ? text : "error " + std::to_string(status));
  }
}

namespace {

// Calls a function of CUPTI, whose only argument is a struct of parameters and results that begins
// with its own size. Throws NoCounters on an error, unless it is to be ignored.
enum OnError { fail, ignore };
template <class P>
P call(OnError on_error, CUptiResult (*function)(P*), const char* name, P parameters) {
  const CUptiResult status = function(&parameters);
  if (on_error == fail && status != CUPTI_SUCCESS)
    throw NoCounters(std::string(name) + ": " + why_not(status));
  return parameters;
}
#define CUPTI(on_error, function, type, ...) \
  call(on_error, function, #function,        \
       type##_Params{.structSize = type##_Params_STRUCT_SIZE, .pPriv = nullptr, __VA_ARGS__})
#define HOST(on_error, name, ...)                                                              \
  CUPTI(on_error, cuptiProfilerHost##name, CUpti_Profiler_Host_##name, .pHostObject = object_, \
        __VA_ARGS__)
#define RANGE(on_error, name, ...)                                      \
  CUPTI(on_error, cuptiRangeProfiler##name, CUpti_RangeProfiler_##name, \
        .pRangeProfilerObject = object_, __VA_ARGS__)

// Metrics of a chip that are counted together: a host object of CUPTI and its config image. This
// needs no GPU.
class MetricSet {
 public:
  explicit MetricSet(const std::string& chip) {
    object_ = CUPTI(fail, cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize,
                    .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .pChipName = chip.c_str())
                  .pHostObject;
  }
  MetricSet(const MetricSet&) = delete;
  ~MetricSet() { HOST(ignore, Deinitialize); }

  // CUPTI's description of a metric, empty if CUPTI does not know the metric.
  std::string description(const Metric& metric) const {
    const auto found = HOST(ignore, GetMetricProperties, .pMetricName = metric.name.c_str());
    return found.pDescription ? found.pDescription : "";
  }

  // Selects those of the metrics that CUPTI knows. May be called once: the host object adds further
  // metrics to the first ones.
  void select(std::vector<Metric> metrics) {
    selected = std::move(metrics);
    std::erase_if(selected, [this](const Metric& m) { return description(m).empty(); });
    for (const Metric& metric : selected) names.push_back(metric.name.c_str());
    HOST(fail, ConfigAddMetrics, .ppMetricNames = names.data(), .numMetrics = names.size());
    config_image.resize(HOST(fail, GetConfigImageSize).configImageSize);
    HOST(fail, GetConfigImage, .configImageSize = config_image.size(),
         .pConfigImage = config_image.data());
  }

  // The values of the selected metrics in one range of a counter data image.
  std::vector<double> values(const std::vector<uint8_t>& image, size_t range) {
    std::vector<double> result(names.size());
    HOST(fail, EvaluateToGpuValues, .pCounterDataImage = image.data(),
         .counterDataImageSize = image.size(), .rangeIndex = range, .ppMetricNames = names.data(),
         .numMetrics = names.size(), .pMetricValues = result.data());
    return result;
  }

  std::vector<Metric> selected;
  std::vector<const char*> names;     // of `selected`
  std::vector<uint8_t> config_image;  // tells the GPU what to count, pass by pass

 private:
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

std::string chip_name(const Device& device) {
  return CUPTI(fail, cuptiDeviceGetChipName, CUpti_Device_GetChipName,
               .deviceIndex = static_cast<size_t>(device.index))
      .pChipName;
}

// Looks cuCtxGetCurrent up at run time: a program that is linked to the driver's library does not
// start without a driver.
CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaFree(nullptr), "create a CUDA context");  // if there is none yet
  check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, cudaEnableDefault,
                                         &found),
        "cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (!function || reinterpret_cast<decltype(&cuCtxGetCurrent)>(function)(&context) != CUDA_SUCCESS)
    throw NoCounters("there is no current CUDA context");
  return context;
}

// Keeps the range profiler of the current context enabled, since enabling and disabling it takes
// longer than counting.
class RangeProfiler {
 public:
  explicit RangeProfiler(MetricSet& set)
      : metrics(set),
        object_(CUPTI(fail, cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable,
                      .ctx = current_context())
                    .pRangeProfilerObject) {}
  RangeProfiler(const RangeProfiler&) = delete;
  ~RangeProfiler() {
    // Only after an exception is a range still open, or a pass still running.
    if (in_range_) RANGE(ignore, PopRange);
    if (counting_) RANGE(ignore, Stop);
    RANGE(ignore, Disable);
  }

  // Counts each launch in a range of its own, and repeats the launches for each pass. Returns the
  // counter data image, and the index in it of each launch's range. The image has room for
  // kMaxRanges even if there are fewer launches, since CUPTI does not accept another size later.
  std::pair<std::vector<uint8_t>, std::vector<size_t>> count(
      const std::vector<const Counted*>& launches) {
    constexpr size_t kMaxRanges = kCountedTogether;
    const size_t ranges = launches.size();
    std::vector<std::string> names;
    for (size_t i = 0; i < ranges; ++i) names.push_back(std::to_string(i));
    const auto size = RANGE(fail, GetCounterDataSize, .pMetricNames = metrics.names.data(),
                            .numMetrics = metrics.names.size(), .maxNumOfRanges = kMaxRanges,
                            .maxNumRangeTreeNodes = kMaxRanges);
    std::vector<uint8_t> image(size.counterDataSize);
    CUPTI(fail, cuptiRangeProfilerCounterDataImageInitialize,
          CUpti_RangeProfiler_CounterDataImage_Initialize, .pRangeProfilerObject = object_,
          .counterDataSize = image.size(), .pCounterData = image.data());
    RANGE(fail, SetConfig, .configSize = metrics.config_image.size(),
          .pConfig = metrics.config_image.data(), .counterDataImageSize = image.size(),
          .pCounterDataImage = image.data(), .range = CUPTI_UserRange,
          .replayMode = CUPTI_UserReplay, .maxRangesPerPass = kMaxRanges, .numNestingLevels = 1,
          .minNestingLevel = 1, .passIndex = 0, .targetNestingLevel = 1);
    for (bool all_passes = false; !all_passes;) {
      RANGE(fail, Start);
      counting_ = true;
      for (size_t i = 0; i < ranges; ++i) {
        launches[i]->prepare();
        check(cudaDeviceSynchronize(), "work before a counted launch");
        RANGE(fail, PushRange, .pRangeName = names[i].c_str());
        in_range_ = true;
        launches[i]->launch();
        check(cudaDeviceSynchronize(), "counted launch");
        RANGE(fail, PopRange);
        in_range_ = false;
      }
      all_passes = RANGE(fail, Stop).isAllPassSubmitted;
      counting_ = false;
    }
    if (RANGE(fail, DecodeData).numOfRangeDropped > 0)
      throw NoCounters("CUPTI dropped ranges that it had counted");
    const size_t found =
        CUPTI(fail, cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo,
              .pCounterDataImage = image.data(), .counterDataImageSize = image.size())
            .numTotalRanges;
    std::vector<size_t> range_of(ranges, found);  // `found` stands for none
    for (size_t range = 0; range < found; ++range) {
      const char* name =
          CUPTI(fail, cuptiRangeProfilerCounterDataGetRangeInfo,
                CUpti_RangeProfiler_CounterData_GetRangeInfo, .pCounterDataImage = image.data(),
                .counterDataImageSize = image.size(), .rangeIndex = range, .rangeDelimiter = "/")
              .rangeName;
      const auto named = std::ranges::find(names, name ? name : "");
      if (named != names.end()) range_of[named - names.begin()] = range;
    }
    if (const auto missing = std::ranges::count(range_of, found); missing > 0)
      throw NoCounters("CUPTI has no counters of " + std::to_string(missing) + " of " +
                       std::to_string(ranges) + " launches (it returned " + std::to_string(found) +
                       " ranges)");
    return {std::move(image), std::move(range_of)};
  }

  MetricSet& metrics;

 private:
  CUpti_RangeProfiler_Object* const object_;
  bool counting_ = false, in_range_ = false;
};

class Cupti : public HardwareCounters {
 public:
  explicit Cupti(const Device& device)
      : device_(device), all_metrics_(chip_name(device)), hardware_metrics_(chip_name(device)) {
    all_metrics_.select(metrics(device.compute_capability));
    // SASS metrics are counted by instructions that CUPTI inserts into kernels, not by hardware.
    std::vector<Metric> metrics = all_metrics_.selected;
    std::erase_if(metrics, [](const Metric& m) { return m.name.find("__sass_") != m.name.npos; });
    hardware_metrics_.select(metrics);
    count({{.prepare = [] {}, .launch = [] {}}});  // throws if this user may not count
  }

  std::string description() const override {
    std::vector<uint8_t> config_image = all_metrics_.config_image;
    const auto passes =
        CUPTI(fail, cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses,
              .configImageSize = config_image.size(), .pConfigImage = config_image.data());
    uint32_t version = 0;
    cuptiGetVersion(&version);
    return "CUPTI " + dotted(version / 10000, version % 10000 / 100) + ", " +
           std::to_string(passes.numOfPasses) + " passes";
  }

  std::vector<std::map<std::string, double>> count(const std::vector<Counted>& launches) override {
    std::vector<std::map<std::string, double>> result(launches.size());
    std::vector<size_t> fast, slow;
    for (size_t i = 0; i < launches.size(); ++i) (is_slow(launches[i]) ? slow : fast).push_back(i);
    count(all_metrics_, fast, launches, result);
    count(hardware_metrics_, slow, launches, result);
    return result;
  }

 private:
  // Slow launches are counted without SASS metrics, since inserted instructions slow them further.
  static bool is_slow(const Counted& launch) {
    launch.prepare();
    check(cudaDeviceSynchronize(), "work before a launch");
    const auto start = std::chrono::steady_clock::now();
    launch.launch();
    check(cudaDeviceSynchronize(), "launch before counting");
    return seconds_since(start) > 0.1;
  }

  void count(MetricSet& metrics, const std::vector<size_t>& chosen,
             const std::vector<Counted>& launches,
             std::vector<std::map<std::string, double>>& result) {
    for (size_t begin = 0; begin < chosen.size(); begin += kCountedTogether) {
      const size_t end = std::min(begin + kCountedTogether, chosen.size());
      std::vector<const Counted*> together;
      for (size_t i = begin; i < end; ++i) together.push_back(&launches[chosen[i]]);
      // Moved back only if counting succeeds.
      std::unique_ptr<RangeProfiler> profiler = std::move(profiler_);
      if (profiler && &profiler->metrics != &metrics) profiler.reset();
      if (!profiler) profiler = std::make_unique<RangeProfiler>(metrics);
      const auto [image, range_of] = profiler->count(together);
      profiler_ = std::move(profiler);
      for (size_t i = begin; i < end; ++i) {
        const std::vector<double> values = metrics.values(image, range_of[i - begin]);
        std::map<std::string, double> terms;
        for (size_t j = 0; j < values.size(); ++j)
          if (std::isfinite(values[j])) terms[metrics.selected[j].term] += values[j];
        result[chosen[i]] = row_counters(terms, device_);
      }
    }
  }

  Device device_;
  MetricSet all_metrics_, hardware_metrics_;  // hardware_metrics_: all but SASS metrics
  // A new one for each change of metrics: after SASS metrics, the same object would need one more
  // pass for any others.
  std::unique_ptr<RangeProfiler> profiler_;
};

}  // namespace

std::unique_ptr<HardwareCounters> hardware_counters(const Device& device) {
  CUPTI(fail, cuptiProfilerInitialize, CUpti_Profiler_Initialize);
  return std::make_unique<Cupti>(device);
}

std::vector<std::string> unknown_metrics(const std::string& chip, int compute_capability) {
  const MetricSet metric_set(chip);
  std::vector<std::string> unknown;
  for (const Metric& metric : metrics(compute_capability)) {
    const std::string text = metric_set.description(metric);
    if (text.empty() || text.find("DEPRECATED") != text.npos) unknown.push_back(metric.name);
  }
  return unknown;
}

#else

constexpr char kNoCupti[] =
    "this build has no CUPTI: install cuda-cupti-dev of the CUDA Toolkit, 12.6 or later, and build "
    "again";
std::unique_ptr<HardwareCounters> hardware_counters(const Device&) { throw NoCounters(kNoCupti); }
std::vector<std::string> unknown_metrics(const std::string&, int) { throw NoCounters(kNoCupti); }
std::string why_not(int) { throw NoCounters(kNoCupti); }

#endif

}  // namespace ladders
