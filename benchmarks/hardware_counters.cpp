// SPDX-License-Identifier: MIT
#include "hardware_counters.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "cuda_check.hpp"

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

// Where no compute capabilities stand, a name is that of 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0 alike.
constexpr Metric kMetrics[] = {
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
    // Not lts__t_bytes, which on an H100 counts the way between the two halves of the L2 too.
    {"l2_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_srcunit_tex_op_write.sum"},
    {"l2_sectors", "lts__t_sectors_srcunit_tex.sum"},
    // The slice with most to do: atomics on one address all go to one.
    {"l2_atomic_cycles", "lts__d_atomic_input_cycles_active.max"},
    {"l2_cycles", "lts__cycles_elapsed.max"},
    // Of what is counted the launch itself is a part, in which nothing runs.
    {"sm_most_cycles", "sm__cycles_active.max"},
    {"sm_all_cycles", "sm__cycles_elapsed.max"},

    {"global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
    {"global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"},
    {"global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    // With the old value returned, and without.
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"},

    // All that passes through the pipe: asynchronous copies and operands of wgmma, which have no
    // requests below, but shuffles and requests of no lane too.
    {"shared_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    // Without those of no lane, which ask for nothing.
    {"shared_load_requests", "smsp__inst_executed_op_shared_ld_pred_on_any.sum"},
    {"shared_load_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
    {"shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    {"shared_store_requests", "smsp__inst_executed_op_shared_st_pred_on_any.sum"},
    {"shared_store_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    {"shared_store_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
    {"shared_atomic_requests", "smsp__inst_executed_op_shared_atom_pred_on_any.sum"},
    {"shared_atomic_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"},
    {"shared_atomic_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum"},

    // Where a warp that cannot issue spends its cycles.
    {"stall_long_scoreboard", "smsp__warps_issue_stalled_long_scoreboard.sum"},
    {"stall_short_scoreboard", "smsp__warps_issue_stalled_short_scoreboard.sum"},
    {"stall_barrier", "smsp__warps_issue_stalled_barrier.sum"},
    {"stall_membar", "smsp__warps_issue_stalled_membar.sum"},
    {"stall_mio_throttle", "smsp__warps_issue_stalled_mio_throttle.sum"},
    {"stall_lg_throttle", "smsp__warps_issue_stalled_lg_throttle.sum"},
    {"stall_math_pipe_throttle", "smsp__warps_issue_stalled_math_pipe_throttle.sum"},
    {"stall_wait", "smsp__warps_issue_stalled_wait.sum"},
    {"stall_not_selected", "smsp__warps_issue_stalled_not_selected.sum"},
    {"stall_drain", "smsp__warps_issue_stalled_drain.sum"},
    {"stall_no_instruction", "smsp__warps_issue_stalled_no_instruction.sum"},
    {"stall_branch_resolving", "smsp__warps_issue_stalled_branch_resolving.sum"},
    {"stall_dispatch_stall", "smsp__warps_issue_stalled_dispatch_stall.sum"},
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

constexpr int kSectorBytes = 32;

// Terms that a row reports as they are.
constexpr const char* kReported[] = {"l1_bytes",
                                     "l1_wavefronts",
                                     "dram_read_bytes",
                                     "dram_write_bytes",
                                     "warp_instructions",
                                     "bulk_copy_bytes",
                                     "distributed_requests",
                                     "distributed_sectors",
                                     "distributed_atomic_sectors",
                                     "shared_wavefronts",
                                     "shared_load_conflicts",
                                     "shared_store_conflicts",
                                     "shared_atomic_conflicts"};

// Pairs of requests and what each of them takes: space, operation, unit.
struct Traffic {
  const char *space_operation, *transactions;
};
constexpr Traffic kTraffic[] = {{"shared_load", "wavefronts"},   {"shared_store", "wavefronts"},
                                {"shared_atomic", "wavefronts"}, {"global_load", "sectors"},
                                {"global_store", "sectors"},     {"global_atomic", "sectors"}};

// Quotients: counter, term over term.
struct Ratio {
  const char *counter, *over, *under;
};
constexpr Ratio kRatios[] = {
    {"issue_utilisation", "issued", "scheduler_cycles"},
    {"active_lanes", "thread_instructions", "warp_instructions"},
    {"predicated_on_lanes", "thread_instructions_on", "warp_instructions"},
    {"distributed_sectors_per_request", "distributed_sectors", "distributed_requests"},
};

// Sums of terms, each times a factor.
struct Sum {
  const char* counter;
  double factor;
  std::vector<const char*> terms;
};
const Sum kSums[] = {
    {"dram_bytes", 1, {"dram_read_bytes", "dram_write_bytes"}},
    {"l2_bytes", kSectorBytes, {"l2_sectors"}},
    {"l2_read_bytes", kSectorBytes, {"l2_read_sectors"}},
    {"l2_write_bytes", kSectorBytes, {"l2_write_sectors"}},
    {"distributed_bytes", kSectorBytes, {"distributed_sectors"}},
    {"fp32_operations", 1, {"ffma", "ffma", "fadd", "fmul"}},
    {"tensor_utilisation", 0.01, {"tensor_percent"}},
};

}  // namespace

std::vector<Metric> metrics(int compute_capability) {
  std::vector<Metric> found;
  std::ranges::copy_if(kMetrics, std::back_inserter(found), [&](const Metric& m) {
    return m.from <= compute_capability && compute_capability <= m.to;
  });
  return found;
}

std::map<std::string, double> row_counters(const std::map<std::string, double>& terms,
                                           const Device& device) {
  std::map<std::string, double> row;
  const auto report = [&](const std::string& counter, double value) {
    if (std::isfinite(value)) row[counter] = value;
  };
  // A term that was not counted makes nothing of what it is a part of.
  const auto term = [&](const std::string& name) {
    const auto found = terms.find(name);
    return found == terms.end() ? NAN : found->second;
  };
  for (const char* name : kReported) report(name, term(name));
  for (const auto& [counter, factor, parts] : kSums) {
    double sum = 0;
    for (const char* part : parts) sum += term(part);
    report(counter, factor * sum);
  }
  for (const auto& [name, transactions] : kTraffic) {
    const std::string requests = std::string(name) + "_requests";
    const std::string counter = std::string(name) + '_' + transactions;
    report(requests, term(requests));
    report(counter, term(counter));
    report(counter + "_per_request", term(counter) / term(requests));
  }
  report("achieved_occupancy",
         term("warp_cycles") / (term("sm_cycles") * device.threads_per_sm / 32));
  report("l2_atomic_utilisation", term("l2_atomic_cycles") / term("l2_cycles") *
                                      term("sm_all_cycles") / term("sm_most_cycles"));
  for (const auto& [counter, over, under] : kRatios) report(counter, term(over) / term(under));
  for (const auto& [name, value] : terms)
    if (name.starts_with("stall_")) report(name, value / term("warp_cycles"));
  return row;
}

std::vector<std::string> row_counter_names() {
  // Whatever terms there are, once all of them are.
  std::map<std::string, double> terms;
  for (const Metric& metric : kMetrics) terms[metric.term] = 1;
  std::vector<std::string> names;
  for (const auto& [name, value] : row_counters(terms, {.threads_per_sm = 32}))
    names.push_back(name);
  return names;
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
      return "the GPU is virtual: its counters are for the host to allow";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "another profiler holds the counters: end it, or run without it";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_DEVICE:
      return "CUPTI does not know how to count on this GPU: try a newer CUDA Toolkit";
    default: {
      const char* text = nullptr;
      cuptiGetResultString(status, &text);
      return std::string("CUPTI says ") + (text ? text : "nothing more");
    }
  }
}

namespace {

void check(CUptiResult status, const char* call) {
  if (status != CUPTI_SUCCESS) throw NoCounters(std::string(call) + ": " + why_not(status));
}

// CUPTI's functions take a struct that begins with its own size and gives back what they found.
#define PARAMETERS(type, ...) \
  type##_Params { .structSize = type##_Params_STRUCT_SIZE, .pPriv = nullptr, __VA_ARGS__ }
#define CALL(function, parameters) check(function(&(parameters)), #function)

// The half of CUPTI that needs no GPU: which metrics a chip has, and in how many passes.
class Host {
 public:
  explicit Host(const std::string& chip) {
    auto initialize =
        PARAMETERS(CUpti_Profiler_Host_Initialize,
                   .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .pChipName = chip.c_str());
    CALL(cuptiProfilerHostInitialize, initialize);
    object_ = initialize.pHostObject;
  }
  Host(const Host&) = delete;
  ~Host() {
    auto end = PARAMETERS(CUpti_Profiler_Host_Deinitialize, .pHostObject = object_);
    cuptiProfilerHostDeinitialize(&end);
  }

  // What CUPTI says of a metric; empty of one that it does not know.
  std::string description(const char* metric) const {
    auto properties = PARAMETERS(CUpti_Profiler_Host_GetMetricProperties, .pHostObject = object_,
                                 .pMetricName = metric);
    const bool known = cuptiProfilerHostGetMetricProperties(&properties) == CUPTI_SUCCESS;
    return known ? properties.pDescription : "";
  }

  // What the GPU must be told to count all of `names`.
  std::vector<uint8_t> configuration(std::vector<const char*>& names) const {
    auto add = PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics, .pHostObject = object_,
                          .ppMetricNames = names.data(), .numMetrics = names.size());
    CALL(cuptiProfilerHostConfigAddMetrics, add);
    auto size = PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize, .pHostObject = object_);
    CALL(cuptiProfilerHostGetConfigImageSize, size);
    std::vector<uint8_t> image(size.configImageSize);
    auto get = PARAMETERS(CUpti_Profiler_Host_GetConfigImage, .pHostObject = object_,
                          .configImageSize = image.size(), .pConfigImage = image.data());
    CALL(cuptiProfilerHostGetConfigImage, get);
    return image;
  }

  std::vector<double> values(const std::vector<uint8_t>& counted,
                             std::vector<const char*>& names) const {
    std::vector<double> result(names.size());
    auto evaluate =
        PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues, .pHostObject = object_,
                   .pCounterDataImage = counted.data(), .counterDataImageSize = counted.size(),
                   .rangeIndex = 0, .ppMetricNames = names.data(), .numMetrics = names.size(),
                   .pMetricValues = result.data());
    CALL(cuptiProfilerHostEvaluateToGpuValues, evaluate);
    return result;
  }

 private:
  CUpti_Profiler_Host_Object* object_;
};

std::string chip_of(const Device& device) {
  auto chip =
      PARAMETERS(CUpti_Device_GetChipName, .deviceIndex = static_cast<size_t>(device.index));
  CALL(cuptiDeviceGetChipName, chip);
  return chip.pChipName;
}

// The driver is asked for by name: a program that is linked to it does not start without one.
CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ladders::check(cudaFree(nullptr), "a CUDA context");  // there is one from here on
  ladders::check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000,
                                                  cudaEnableDefault, &found),
                 "cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (!function || reinterpret_cast<decltype(&cuCtxGetCurrent)>(function)(&context) != CUDA_SUCCESS)
    throw NoCounters("no CUDA context to count in");
  return context;
}

// While it lives, the GPU is in a state to count, which may slow what else it does. To enter that
// state and to leave it again takes longer than to count.
class Range {
 public:
  Range() {
    auto enable = PARAMETERS(CUpti_RangeProfiler_Enable, .ctx = current_context());
    CALL(cuptiRangeProfilerEnable, enable);
    object_ = enable.pRangeProfilerObject;
  }
  Range(const Range&) = delete;
  ~Range() {
    if (counting_) {  // it ends in an exception
      auto pop = PARAMETERS(CUpti_RangeProfiler_PopRange, .pRangeProfilerObject = object_);
      auto stop = PARAMETERS(CUpti_RangeProfiler_Stop, .pRangeProfilerObject = object_);
      cuptiRangeProfilerPopRange(&pop);
      cuptiRangeProfilerStop(&stop);
    }
    auto disable = PARAMETERS(CUpti_RangeProfiler_Disable, .pRangeProfilerObject = object_);
    cuptiRangeProfilerDisable(&disable);
  }

  // The counter data of one range, pass by pass.
  std::vector<uint8_t> count(const std::vector<uint8_t>& configuration,
                             std::vector<const char*>& names, const std::function<void()>& prepare,
                             const std::function<void()>& launch) {
    auto size = PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize, .pRangeProfilerObject = object_,
                           .pMetricNames = names.data(), .numMetrics = names.size(),
                           .maxNumOfRanges = 1, .maxNumRangeTreeNodes = 1);
    CALL(cuptiRangeProfilerGetCounterDataSize, size);
    std::vector<uint8_t> image(size.counterDataSize);
    auto initialize =
        PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize, .pRangeProfilerObject = object_,
                   .counterDataSize = image.size(), .pCounterData = image.data());
    CALL(cuptiRangeProfilerCounterDataImageInitialize, initialize);
    auto config = PARAMETERS(
        CUpti_RangeProfiler_SetConfig, .pRangeProfilerObject = object_,
        .configSize = configuration.size(), .pConfig = configuration.data(),
        .counterDataImageSize = image.size(), .pCounterDataImage = image.data(),
        .range = CUPTI_UserRange, .replayMode = CUPTI_UserReplay, .maxRangesPerPass = 1,
        .numNestingLevels = 1, .minNestingLevel = 1, .passIndex = 0, .targetNestingLevel = 1);
    CALL(cuptiRangeProfilerSetConfig, config);
    auto start = PARAMETERS(CUpti_RangeProfiler_Start, .pRangeProfilerObject = object_);
    auto push = PARAMETERS(CUpti_RangeProfiler_PushRange, .pRangeProfilerObject = object_,
                           .pRangeName = "launch");
    auto pop = PARAMETERS(CUpti_RangeProfiler_PopRange, .pRangeProfilerObject = object_);
    auto stop = PARAMETERS(CUpti_RangeProfiler_Stop, .pRangeProfilerObject = object_);
    do {
      CALL(cuptiRangeProfilerStart, start);
      counting_ = true;
      prepare();
      ladders::check(cudaDeviceSynchronize(), "what precedes a counted launch");
      CALL(cuptiRangeProfilerPushRange, push);
      launch();
      ladders::check(cudaDeviceSynchronize(), "counted launch");
      CALL(cuptiRangeProfilerPopRange, pop);
      CALL(cuptiRangeProfilerStop, stop);
      counting_ = false;
    } while (!stop.isAllPassSubmitted);
    auto decode = PARAMETERS(CUpti_RangeProfiler_DecodeData, .pRangeProfilerObject = object_);
    CALL(cuptiRangeProfilerDecodeData, decode);
    if (decode.numOfRangeDropped > 0) throw NoCounters("CUPTI dropped what it had counted");
    return image;
  }

 private:
  CUpti_RangeProfiler_Object* object_;
  bool counting_ = false;
};

// Metrics that are counted together. A host adds what it is asked for to what it was asked before,
// and so serves one group.
struct Group {
  Group(const std::string& chip, std::vector<Metric> metrics)
      : host(chip), wanted(std::move(metrics)) {
    std::erase_if(wanted, [this](const Metric& m) { return host.description(m.name).empty(); });
    for (const Metric& metric : wanted) names.push_back(metric.name);
    configuration = host.configuration(names);
  }

  Host host;
  std::vector<Metric> wanted;
  std::vector<const char*> names;  // theirs
  std::vector<uint8_t> configuration;
};

// Some metrics are counted by instructions that are added to kernels. These slow them down, 5-fold
// to 450-fold on an H200: a launch that takes longer than this goes without them.
bool is_by_software(const Metric& metric) {
  return std::string(metric.name).find("__sass_") != std::string::npos;
}
constexpr double kLongestBySoftware = 0.1;  // s

}  // namespace

struct HardwareCounters::Session {
  explicit Session(const Device& device)
      : gpu(device),
        all(chip_of(device), metrics(device.compute_capability)),
        by_hardware(chip_of(device), without_software(all.wanted)) {}

  static std::vector<Metric> without_software(std::vector<Metric> metrics) {
    std::erase_if(metrics, is_by_software);
    return metrics;
  }

  Device gpu;
  Group all, by_hardware;
  // Once something is to be counted, until that fails or another group is to be counted: a range
  // that once counted by software would do so in a pass more, whatever its configuration.
  std::optional<Range> range;
  const Group* of_range = nullptr;
};

HardwareCounters::HardwareCounters(const Device& device) {
  auto initialize = PARAMETERS(CUpti_Profiler_Initialize);
  CALL(cuptiProfilerInitialize, initialize);
  session_ = std::make_unique<Session>(device);
  count([] {}, [] {});  // whether it may
}

HardwareCounters::~HardwareCounters() = default;

std::string HardwareCounters::description() const {
  auto passes = PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses,
                           .configImageSize = session_->all.configuration.size(),
                           .pConfigImage = session_->all.configuration.data());
  CALL(cuptiProfilerHostGetNumOfPasses, passes);
  uint32_t version = 0;
  check(cuptiGetVersion(&version), "cuptiGetVersion");
  return "CUPTI " + std::to_string(version / 10000) + '.' + std::to_string(version % 10000 / 100) +
         ", " + std::to_string(passes.numOfPasses) + " passes";
}

std::map<std::string, double> HardwareCounters::count(const std::function<void()>& prepare,
                                                      const std::function<void()>& launch) {
  auto& [gpu, all, by_hardware, range, of_range] = *session_;
  const auto start = std::chrono::steady_clock::now();
  launch();
  check(cudaDeviceSynchronize(), "a launch before those that are counted");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Group& group = seconds.count() > kLongestBySoftware ? by_hardware : all;
  if (of_range != &group) range.reset();
  if (!range) range.emplace();
  of_range = &group;
  std::vector<uint8_t> counted;
  try {
    counted = range->count(group.configuration, group.names, prepare, launch);
  } catch (...) {
    range.reset();
    throw;
  }
  const std::vector<double> values = group.host.values(counted, group.names);
  std::map<std::string, double> terms;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) terms[group.wanted[i].term] += values[i];
  return row_counters(terms, gpu);
}

std::vector<std::string> unknown_metrics(const std::string& chip, int compute_capability) {
  const Host host(chip);
  std::vector<std::string> unknown;
  for (const Metric& metric : metrics(compute_capability)) {
    const std::string description = host.description(metric.name);
    if (description.empty() || description.find("DEPRECATED") != std::string::npos)
      unknown.push_back(metric.name);
  }
  return unknown;
}

#else

namespace {
const char* const kNoCupti =
    "this build has no CUPTI: install cuda-cupti-dev of the CUDA Toolkit, 12.6 or later, and build "
    "again";
}  // namespace

struct HardwareCounters::Session {};
HardwareCounters::HardwareCounters(const Device&) { throw NoCounters(kNoCupti); }
HardwareCounters::~HardwareCounters() = default;
std::string HardwareCounters::description() const { return {}; }
std::map<std::string, double> HardwareCounters::count(const std::function<void()>&,
                                                      const std::function<void()>&) {
  return {};
}
std::vector<std::string> unknown_metrics(const std::string&, int) { throw NoCounters(kNoCupti); }
std::string why_not(int) { throw NoCounters(kNoCupti); }

#endif

}  // namespace ladders
