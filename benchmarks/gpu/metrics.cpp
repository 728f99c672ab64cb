// SPDX-License-Identifier: MIT
#include "gpu/metrics.hpp"

#include <cmath>

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

}  // namespace ladders
