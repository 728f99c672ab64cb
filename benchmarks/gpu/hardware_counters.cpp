// SPDX-License-Identifier: MIT
#include "gpu/hardware_counters.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

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
namespace {

// {term, CUPTI metric, first compute capability, last compute capability}. Without these two, the
// metric exists on 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0.
const Metric kMetrics[] = {
    {"sm_cycles", "sm__cycles_active.sum"},
    {"warp_cycles", "sm__warps_active.sum"},
    {"scheduler_cycles", "smsp__cycles_active.sum"},
    {"issued", "smsp__inst_issued.sum"},
    {"warp_instructions", "smsp__inst_executed.sum"},
    {"thread_instructions", "smsp__thread_inst_executed.sum"},
    {"thread_instructions_on", "smsp__thread_inst_executed_pred_on.sum"},
    {"ffma", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"},
    {"fadd", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"},
    {"fmul", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"},
    {"tensor_percent", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 0, 88},
    {"tensor_percent", "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active", 89, 89},
    {"tensor_percent", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 90},

    {"l1_bytes", "l1tex__t_bytes.sum"},
    {"l1_wavefronts", "l1tex__t_output_wavefronts.sum"},
    // Not lts__t_bytes, which includes traffic between the two L2 partitions of an H100.
    {"l2_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_srcunit_tex_op_write.sum"},
    {"l2_sectors", "lts__t_sectors_srcunit_tex.sum"},
    // Of the busiest L2 slice: all atomics on one address go to the same slice.
    {"l2_atomic_cycles", "lts__d_atomic_input_cycles_active.max"},
    {"l2_cycles", "lts__cycles_elapsed.max"},
    // A range includes the launch itself, during which no SM is active. These two tell how long.
    {"sm_most_cycles", "sm__cycles_active.max"},
    {"sm_all_cycles", "sm__cycles_elapsed.max"},

    {"global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
    {"global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"},
    {"global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    // PTX: atom returns the old value, red does not.
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"},

    // This one also counts asynchronous copies, operands of wgmma, shuffles, and requests without
    // active lanes.
    {"shared_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    {"shared_load_requests", "smsp__inst_executed_op_shared_ld_pred_on_any.sum"},
    {"shared_load_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
    {"shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    {"shared_store_requests", "smsp__inst_executed_op_shared_st_pred_on_any.sum"},
    {"shared_store_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    {"shared_store_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
    {"shared_atomic_requests", "smsp__inst_executed_op_shared_atom_pred_on_any.sum"},
    {"shared_atomic_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"},
    {"shared_atomic_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum"},

    {"stall_imc_miss", "smsp__warps_issue_stalled_imc_miss.sum", 0, 99},
    {"stall_gmma", "smsp__warps_issue_stalled_gmma.sum", 90, 90},

    {"dram_read_bytes", "dram__bytes_read.sum", 0, 119},
    {"dram_read_bytes", "dram__bytes_op_read.sum", 120},
    {"dram_write_bytes", "dram__bytes_write.sum", 0, 119},
    {"dram_write_bytes", "dram__bytes_op_write.sum", 120},

    {"distributed_requests", "l1tex__t_requests_pipe_lsu_mem_dshared.sum", 90},
    {"distributed_sectors", "l1tex__t_sectors_pipe_lsu_mem_dshared.sum", 90},
    {"distributed_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_dshared_op_atom.sum", 90},
    {"bulk_copy_bytes", "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum", 90},
};

// Why warps stall: the reasons that exist on every architecture. kMetrics has the others.
constexpr const char* kStallReasons[] = {
    "long_scoreboard", "short_scoreboard",   "barrier",       "membar",       "mio_throttle",
    "lg_throttle",     "math_pipe_throttle", "wait",          "not_selected", "drain",
    "no_instruction",  "branch_resolving",   "dispatch_stall"};

}  // namespace

std::vector<Metric> metrics(int compute_capability) {
  std::vector<Metric> found;
  for (const Metric& m : kMetrics)
    if (m.from <= compute_capability && compute_capability <= m.to) found.push_back(m);
  for (const std::string reason : kStallReasons)
    found.push_back({"stall_" + reason, "smsp__warps_issue_stalled_" + reason + ".sum"});
  return found;
}

std::map<std::string, double> row_counters(const std::map<std::string, double>& terms,
                                           const Device& device) {
  std::map<std::string, double> row;
  const auto report = [&](const std::string& counter, double value) {
    if (std::isfinite(value)) row[counter] = value;
  };
  // A term that was not counted is NaN. So is all that depends on it, which is then not reported.
  const auto term = [&](const std::string& name) {
    const auto found = terms.find(name);
    return found == terms.end() ? NAN : found->second;
  };
  for (const char* name :
       {"l1_bytes", "l1_wavefronts", "dram_read_bytes", "dram_write_bytes", "warp_instructions",
        "bulk_copy_bytes", "distributed_atomic_sectors", "shared_wavefronts",
        "shared_load_conflicts", "shared_store_conflicts", "shared_atomic_conflicts"})
    report(name, term(name));
  for (const std::string access : {"shared_load", "shared_store", "shared_atomic", "global_load",
                                   "global_store", "global_atomic", "distributed"}) {
    const std::string requests = access + "_requests";
    const std::string transactions = access + (access[0] == 's' ? "_wavefronts" : "_sectors");
    report(requests, term(requests));
    report(transactions, term(transactions));
    report(transactions + "_per_request", term(transactions) / term(requests));
  }
  constexpr int kSectorBytes = 32;
  report("dram_bytes", term("dram_read_bytes") + term("dram_write_bytes"));
  report("l2_bytes", kSectorBytes * term("l2_sectors"));
  report("l2_read_bytes", kSectorBytes * term("l2_read_sectors"));
  report("l2_write_bytes", kSectorBytes * term("l2_write_sectors"));
  report("distributed_bytes", kSectorBytes * term("distributed_sectors"));
  report("fp32_operations", 2 * term("ffma") + term("fadd") + term("fmul"));
  report("tensor_utilisation", 0.01 * term("tensor_percent"));
  report("issue_utilisation", term("issued") / term("scheduler_cycles"));
  report("active_lanes", term("thread_instructions") / term("warp_instructions"));
  report("predicated_on_lanes", term("thread_instructions_on") / term("warp_instructions"));
  report("achieved_occupancy",
         term("warp_cycles") / (term("sm_cycles") * device.threads_per_sm / 32));
  report("l2_atomic_utilisation", term("l2_atomic_cycles") / term("l2_cycles") *
                                      term("sm_all_cycles") / term("sm_most_cycles"));
  for (const auto& [name, value] : terms)
    if (name.starts_with("stall_")) report(name, value / term("warp_cycles"));
  return row;
}

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
