// SPDX-License-Identifier: MIT
//
// Roofs: the most that this GPU can do, measured. Other ladders are compared with these, since no
// kernel reaches the peak of a datasheet. The best width of loads, the best number in flight and
// the best number of blocks differ between GPUs and roofs: each roof is the best of a sweep.

#include "model/ladder.hpp"
#include "roof/01_memory.cuh"
#include "roof/02_arithmetic.cuh"
#ifdef __CUDACC__
#include "roof/03_tensor_cores.cuh"
#endif
#include "roof/04_atomics.cuh"

namespace ladders::roof {
namespace {

template <bool read, bool written>
Work dram_work(const Case& c, const Device&) {
  return {.bytes_read = read * bytes(c), .bytes_written = written * bytes(c)};
}

Rung on_tensor_cores(std::string precision, std::string idea, decltype(Rung::choose) choose,
                     decltype(Rung::work) work) {
  return {.name = precision,
          .idea = std::move(idea),
          .sweeps = {{{"instruction", {"mma", "wgmma"}}, {mma, wgmma}, {mma, wgmma}}},
          .needs = kTensorCores,
          .skip = LADDERS_GPU_ONLY(no_wgmma),
          .precision = precision,
          .choose = std::move(choose),
          .work = std::move(work)};
}

std::vector<Rung> rungs() {
  std::vector<Rung> all = {
      {.name = "memcpy",
       .idea = "cudaMemcpy from device to device, bytes read and written.",
       .implementation = memcpy_of_all(),
       .work = dram_work<true, true>},
      // 01_memory.cuh
      {.name = "dram_copy",
       .idea = "A kernel's copy, bytes read and written.",
       .sweeps = kDramSweeps,
       .choose = dram_copy_at,
       .work = dram_work<true, true>},
      {.name = "dram_read",
       .idea = "Loads only, except for one sum per warp.",
       .sweeps = kDramSweeps,
       .choose = dram_read_at,
       .work = dram_work<true, false>},
      {.name = "dram_write",
       .idea = "Stores only.",
       .sweeps = kDramSweeps,
       .choose = dram_write_at,
       .work = dram_work<false, true>},
      {.name = "l2_read",
       .idea = "A working set is loaded again and again, bypassing the L1.",
       .sweeps = {{{"mebibytes"}, {2, 4, 8, 16, 24, 32, 40, 48, 56, 96}, {1, 2}, {1}}},
       .skip =
           [](const Case& c, const Device&) {
             return c["mebibytes"] <= c["size"] ? "" : "the working set is larger than the input";
           },
       .choose = l2_read_at,
       .work =
           [](const Case& c, const Device&) {
             return Work{.bytes_read = double(c["mebibytes"]) * kMiB * l2_rounds(c)};
           }},
      {.name = "shared_memory",
       .idea = "Each warp loads 32 neighbouring vectors: 128 bytes per wavefront.",
       .sweeps = {{{"bytes"}, {4, 8, 16}, {4, 8, 16}, {4}}, kBlocksSweep},
       .choose = shared_memory_at,
       .work =
           [](const Case& c, const Device& d) {
             return Work{.bytes_read = c["bytes"] * threads(c, d) * kSharedLoads * iterations(c)};
           }},
      {.name = "distributed_shared_memory",
       .idea = "Each block loads from the other blocks of its cluster in turn.",
       .sweeps = {kClusterSweep, {{"bytes"}, {4, 16}, {4, 16}, {4}}},
       .needs = kClusters,
       .choose = distributed_at,
       .work =
           [](const Case& c, const Device& device) {
             return Work{.bytes_read = double(c["bytes"]) * kRemoteFlight * kBlock *
                                       double(c["cluster"]) * cluster_rounds(c, device, 16)};
           }},
      // 02_arithmetic.cuh
      {.name = "fma",
       .idea = "Independent chains of FP32 multiply-adds in each thread, no memory.",
       .sweeps = {{{"chains"}, {8, 16}, {8, 16}, {16}}, kBlocksSweep},
       .choose = fma_at,
       .work =
           [](const Case& c, const Device& device) {
             return Work{.flops = 2. * double(c["chains"]) * threads(c, device) * iterations(c)};
           }},
      // 03_tensor_cores.cuh
      on_tensor_cores("tf32", "TF32 matrix multiply-adds on tensor cores, operands on the SM.",
                      LADDERS_GPU_ONLY(tensor_at<Tf32>), LADDERS_GPU_ONLY(tensor_work<Tf32>)),
      on_tensor_cores("bf16", "BF16 matrix multiply-adds on tensor cores, operands on the SM.",
                      LADDERS_GPU_ONLY(tensor_at<Bf16>), LADDERS_GPU_ONLY(tensor_work<Bf16>)),
      // 04_atomics.cuh
      to_shared("shared_increments_same", "Increments of one word in shared memory.", true, same),
      to_shared("shared_atomics_same", "Additions to one word in shared memory: lanes queue.",
                false, same),
      to_shared("shared_atomics_spread", "Additions to neighbouring words in shared memory.", false,
                spread),
      to_cluster("distributed_atomics_spread",
                 "Increments of neighbouring words in other blocks of the cluster.", spread),
      to_cluster("distributed_atomics_scattered",
                 "Increments of scattered words in other blocks: about a packet per lane.",
                 scattered),
      to_global("global_atomics_same", "Additions to one word in global memory.", same),
      to_global("global_atomics_spread", "Additions to neighbouring words in global memory.",
                spread),
      to_global("global_atomics_scattered",
                "Additions to scattered words in 4 MiB of global memory.", scattered),
  };
  for (Rung& rung : all) rung.role = Role::ceiling;
  return all;
}

}  // namespace

Ladder ladder() {
  return {
      .name = "roof",
      .title = "Measured roofs",
      .input = "random bits",
      .axes = {{.name = "size", .least = 2, .most = 1 << 16}},
      .measured = {{4096}},
      .small = {{2}},
      .tested = {{2}, {8}},
      .headline = {4096},
      .small_headline = {2},
      .problem = problem_of<Roof>,
      .memory = [](const Case& c) { return 2 * bytes(c) + 0x1p27; },  // of small ones the output
      .rungs = rungs(),
  };
}

}  // namespace ladders::roof
