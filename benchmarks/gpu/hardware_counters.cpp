// SPDX-License-Identifier: MIT
#include "gpu/hardware_counters.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>

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

// Without compute capabilities, a name is valid on 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0.
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
    // lts__t_bytes would include traffic between the two L2 partitions of an H100.
    {"l2_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_srcunit_tex_op_write.sum"},
    {"l2_sectors", "lts__t_sectors_srcunit_tex.sum"},
    // The busiest slice: atomics on one address all go to one.
    {"l2_atomic_cycles", "lts__d_atomic_input_cycles_active.max"},
    {"l2_cycles", "lts__cycles_elapsed.max"},
    // The counted range includes the launch itself, in which no SM is active.
    {"sm_most_cycles", "sm__cycles_active.max"},
    {"sm_all_cycles", "sm__cycles_elapsed.max"},

    {"global_load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
    {"global_load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"global_store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"},
    {"global_store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    // atom returns the old value, red does not.
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"},
    {"global_atomic_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"},

    // Everything in the pipe: also asynchronous copies and operands of wgmma, which have no
    // requests below, shuffles, and requests without active lanes.
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

    // Warp cycles by stall reason.
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
  // What depends on a term that was not counted is NaN, and not reported.
  const auto term = [&](const std::string& name) {
    const auto found = terms.find(name);
    return found == terms.end() ? NAN : found->second;
  };
  for (const char* name :
       {"l1_bytes", "l1_wavefronts", "dram_read_bytes", "dram_write_bytes", "warp_instructions",
        "bulk_copy_bytes", "distributed_requests", "distributed_sectors",
        "distributed_atomic_sectors", "shared_wavefronts", "shared_load_conflicts",
        "shared_store_conflicts", "shared_atomic_conflicts"})
    report(name, term(name));
  for (const std::string access : {"shared_load", "shared_store", "shared_atomic", "global_load",
                                   "global_store", "global_atomic"}) {
    const std::string requests = access + "_requests";
    const std::string transactions = access + (access[0] == 's' ? "_wavefronts" : "_sectors");
    report(requests, term(requests));
    report(transactions, term(transactions));
    report(transactions + "_per_request", term(transactions) / term(requests));
  }
  report("distributed_sectors_per_request",
         term("distributed_sectors") / term("distributed_requests"));
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

std::vector<std::string> row_counter_names() {
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

// CUPTI's functions take a struct that begins with its own size and receives the results. These
// return it; `call` checks the status, `attempt` does not.
template <class P>
P call(CUptiResult (*function)(P*), const char* name, P parameters) {
  const CUptiResult status = function(&parameters);
  if (status != CUPTI_SUCCESS) throw NoCounters(std::string(name) + ": " + why_not(status));
  return parameters;
}
template <class P>
P attempt(CUptiResult (*function)(P*), const char*, P parameters) {
  function(&parameters);
  return parameters;
}
#define CUPTI(how, function, type, ...) \
  how(function, #function,              \
      type##_Params{.structSize = type##_Params_STRUCT_SIZE, .pPriv = nullptr, __VA_ARGS__})
#define HOST(how, name, ...)                                                              \
  CUPTI(how, cuptiProfilerHost##name, CUpti_Profiler_Host_##name, .pHostObject = object_, \
        __VA_ARGS__)
#define RANGE(how, name, ...)                                      \
  CUPTI(how, cuptiRangeProfiler##name, CUpti_RangeProfiler_##name, \
        .pRangeProfilerObject = object_, __VA_ARGS__)

// Metrics of a chip that are counted together: the half of CUPTI that needs no GPU. A host object
// accumulates the metrics requested of it, so each serves one group.
class Group {
 public:
  explicit Group(const std::string& chip) {
    object_ = CUPTI(call, cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize,
                    .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .pChipName = chip.c_str())
                  .pHostObject;
  }
  Group(const Group&) = delete;
  ~Group() { HOST(attempt, Deinitialize); }

  // CUPTI's description of a metric; empty if it does not know it.
  std::string description(const char* metric) const {
    const auto found = HOST(attempt, GetMetricProperties, .pMetricName = metric);
    return found.pDescription ? found.pDescription : "";
  }

  // Selects those of the metrics that CUPTI knows.
  void select(std::vector<Metric> metrics) {
    wanted = std::move(metrics);
    std::erase_if(wanted, [this](const Metric& m) { return description(m.name).empty(); });
    for (const Metric& metric : wanted) names.push_back(metric.name);
    HOST(call, ConfigAddMetrics, .ppMetricNames = names.data(), .numMetrics = names.size());
    configuration.resize(HOST(call, GetConfigImageSize).configImageSize);
    HOST(call, GetConfigImage, .configImageSize = configuration.size(),
         .pConfigImage = configuration.data());
  }

  std::vector<double> values(const std::vector<uint8_t>& counted) {
    std::vector<double> result(names.size());
    HOST(call, EvaluateToGpuValues, .pCounterDataImage = counted.data(),
         .counterDataImageSize = counted.size(), .rangeIndex = 0, .ppMetricNames = names.data(),
         .numMetrics = names.size(), .pMetricValues = result.data());
    return result;
  }

  std::vector<Metric> wanted;
  std::vector<const char*> names;      // of `wanted`
  std::vector<uint8_t> configuration;  // tells the GPU to count them

 private:
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

std::string chip_of(const Device& device) {
  return CUPTI(call, cuptiDeviceGetChipName, CUpti_Device_GetChipName,
               .deviceIndex = static_cast<size_t>(device.index))
      .pChipName;
}

// Looks the driver's function up by name: a program linked to the driver does not start without it.
CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaFree(nullptr), "a CUDA context");  // creates one, if need be
  check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, cudaEnableDefault,
                                         &found),
        "cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (!function || reinterpret_cast<decltype(&cuCtxGetCurrent)>(function)(&context) != CUDA_SUCCESS)
    throw NoCounters("no CUDA context to count in");
  return context;
}

// Keeps the GPU in its counting state, which may slow other work. Entering and leaving that state
// takes longer than counting.
class Range {
 public:
  Range() {
    object_ =
        CUPTI(call, cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable, .ctx = current_context())
            .pRangeProfilerObject;
  }
  Range(const Range&) = delete;
  ~Range() {
    if (counting_) {  // it ends in an exception
      RANGE(attempt, PopRange);
      RANGE(attempt, Stop);
    }
    RANGE(attempt, Disable);
  }

  // The counter data of one range, pass by pass.
  std::vector<uint8_t> count(Group& group, const std::function<void()>& prepare,
                             const std::function<void()>& launch) {
    const auto size =
        RANGE(call, GetCounterDataSize, .pMetricNames = group.names.data(),
              .numMetrics = group.names.size(), .maxNumOfRanges = 1, .maxNumRangeTreeNodes = 1);
    std::vector<uint8_t> image(size.counterDataSize);
    CUPTI(call, cuptiRangeProfilerCounterDataImageInitialize,
          CUpti_RangeProfiler_CounterDataImage_Initialize, .pRangeProfilerObject = object_,
          .counterDataSize = image.size(), .pCounterData = image.data());
    RANGE(call, SetConfig, .configSize = group.configuration.size(),
          .pConfig = group.configuration.data(), .counterDataImageSize = image.size(),
          .pCounterDataImage = image.data(), .range = CUPTI_UserRange,
          .replayMode = CUPTI_UserReplay, .maxRangesPerPass = 1, .numNestingLevels = 1,
          .minNestingLevel = 1, .passIndex = 0, .targetNestingLevel = 1);
    bool all_passes = false;
    while (!all_passes) {
      RANGE(call, Start);
      counting_ = true;
      prepare();
      check(cudaDeviceSynchronize(), "what precedes a counted launch");
      RANGE(call, PushRange, .pRangeName = "launch");
      launch();
      check(cudaDeviceSynchronize(), "counted launch");
      RANGE(call, PopRange);
      all_passes = RANGE(call, Stop).isAllPassSubmitted;
      counting_ = false;
    }
    if (RANGE(call, DecodeData).numOfRangeDropped > 0)
      throw NoCounters("CUPTI dropped what it had counted");
    return image;
  }

 private:
  CUpti_RangeProfiler_Object* object_ = nullptr;
  bool counting_ = false;
};

}  // namespace

struct HardwareCounters::Session {
  explicit Session(const Device& device)
      : gpu(device), all(chip_of(device)), by_hardware(chip_of(device)) {
    all.select(metrics(device.compute_capability));
    // The others are counted by instructions inserted into kernels.
    std::vector<Metric> metrics = all.wanted;
    std::erase_if(metrics, [](const Metric& m) { return std::strstr(m.name, "__sass_"); });
    by_hardware.select(metrics);
  }

  Device gpu;
  Group all, by_hardware;
  // Kept until counting fails or the group changes: after counting by software, a range would take
  // one more pass for any configuration.
  std::optional<Range> range;
  const Group* of_range = nullptr;
};

HardwareCounters::HardwareCounters(const Device& device) {
  CUPTI(call, cuptiProfilerInitialize, CUpti_Profiler_Initialize);
  session_ = std::make_unique<Session>(device);
  count([] {}, [] {});  // whether it is allowed
}

HardwareCounters::~HardwareCounters() = default;

std::string HardwareCounters::description() const {
  std::vector<uint8_t>& configuration = session_->all.configuration;
  const auto passes =
      CUPTI(call, cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses,
            .configImageSize = configuration.size(), .pConfigImage = configuration.data());
  uint32_t version = 0;
  cuptiGetVersion(&version);
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
  Group& group = seconds.count() > 0.1 ? by_hardware : all;  // inserted instructions are slow
  if (of_range != &group) range.reset();
  if (!range) range.emplace();
  of_range = &group;
  std::vector<uint8_t> counted;
  try {
    counted = range->count(group, prepare, launch);
  } catch (...) {
    range.reset();
    throw;
  }
  const std::vector<double> values = group.values(counted);
  std::map<std::string, double> terms;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) terms[group.wanted[i].term] += values[i];
  return row_counters(terms, gpu);
}

std::vector<std::string> unknown_metrics(const std::string& chip, int compute_capability) {
  const Group group(chip);
  std::vector<std::string> unknown;
  for (const Metric& metric : metrics(compute_capability)) {
    const std::string description = group.description(metric.name);
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
