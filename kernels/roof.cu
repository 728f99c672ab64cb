// SPDX-License-Identifier: MIT
//
// Roofs: what this GPU can do at most, measured. The other ladders are drawn against these, since
// a datasheet's peak is nobody's to reach and a measured one is. How wide a load is best, how many
// of them in flight, and how many blocks, differs from GPU to GPU and from roof to roof: each is
// the best of a sweep.

#include "catalogue.hpp"
#include "roof_arithmetic.cuh"
#include "roof_atomics.cuh"
#include "roof_memory.cuh"

namespace ladders {

Ladder roof() {
  const auto reads = [](const Case& c, const Device&) { return Work{.bytes_read = bytes(c)}; };
  const auto writes = [](const Case& c, const Device&) { return Work{.bytes_written = bytes(c)}; };
  const auto copies = [](const Case& c, const Device&) {
    return Work{.bytes_read = bytes(c), .bytes_written = bytes(c)};
  };
  return {
      .name = "roof",
      .title = "Measured roofs",
      .quantity = Quantity::bytes,
      .input = "random bits",
      .error_unit = "exact",
      .axes = {{"size"}},
      .measured = {{4096}},
      .small = {{2}},
      .tested = {{2}, {8}},
      .headline = {4096},
      .small_headline = {2},
      .problem = [](const Case& c,
                    const Device& device) { return std::make_unique<Roof>(c, device); },
      .rungs =
          {
              {.name = "memcpy",
               .idea = "cudaMemcpy from device to device, bytes read and written.",
               .implementation = checked(library<Roof>(copy), check_copy),
               .role = Role::ceiling,
               .work = copies},
              {.name = "dram_copy",
               .idea = "A kernel's copy, bytes read and written.",
               .role = Role::ceiling,
               .sweeps = kDramSweeps,
               .choose = [](const Case& c) { return checked(dram_copy_at(c), check_copy); },
               .work = copies},
              {.name = "dram_read",
               .idea = "Loads alone, but for the sum of each warp.",
               .role = Role::ceiling,
               .sweeps = kDramSweeps,
               .choose = [](const Case& c) { return checked(dram_read_at(c), check_read); },
               .work = reads},
              {.name = "dram_write",
               .idea = "Stores alone.",
               .role = Role::ceiling,
               .sweeps = kDramSweeps,
               .choose = [](const Case& c) { return checked(dram_write_at(c), check_write); },
               .work = writes},
              {.name = "l2_read",
               .idea = "A working set of so many MiB, loaded again and again past the L1.",
               .role = Role::ceiling,
               .sweeps = {{.axis = {"mebibytes"},
                           .measured = {8, 16, 24, 32, 40, 48, 56, 96},
                           .tested = {1, 2},
                           .small = {2}},
                          {.axis = {"blocks"}, .measured = {4, 8}, .tested = {4}, .small = {4}}},
               .choose = l2_read_at,
               .work =
                   [](const Case& c, const Device& device) {
                     return Work{.bytes_read = 4. * kL2TileWords * double(c["blocks"]) *
                                               device.sms * l2_repetitions(iterations(c))};
                   }},
              {.name = "shared_memory",
               .idea = "Each warp loads 32 neighbouring vectors again and again: 128 bytes a "
                       "wavefront.",
               .role = Role::ceiling,
               .sweeps =
                   {{.axis = {"bytes"}, .measured = {4, 8, 16}, .tested = {4, 8, 16}, .small = {4}},
                    kBlocksSweep},
               .choose = shared_memory_at,
               .work =
                   [](const Case& c, const Device& device) {
                     return Work{.bytes_read = double(c["bytes"]) * threads(c, device) *
                                               kSharedLoads * iterations(c)};
                   }},
              {.name = "distributed_shared_memory",
               .idea = "Each block loads from the others of its cluster in turn, over the "
                       "SM-to-SM network.",
               .role = Role::ceiling,
               .sweeps =
                   {{.axis = {"cluster"},
                     .measured = {2, 4, 8, 16},
                     .tested = {2, 3, 16},
                     .small = {2, 8}},
                    {.axis = {"bytes"}, .measured = {4, 16}, .tested = {4, 16}, .small = {4}}},
               .compute_capability = 90,
               .choose = distributed_at,
               .work =
                   [](const Case& c, const Device& device) {
                     const auto cluster = static_cast<unsigned>(c["cluster"]);
                     const double rounds = remote_rounds(device.sms, cluster, iterations(c));
                     return Work{.bytes_read = rounds * cluster * kRemoteBlock * kRemoteFlight *
                                               double(c["bytes"])};
                   }},
              {.name = "fma",
               .idea = "Independent chains of FP32 multiply-adds in each thread, no memory.",
               .role = Role::ceiling,
               .sweeps =
                   {{.axis = {"chains"}, .measured = {8, 16}, .tested = {8, 16}, .small = {16}},
                    kBlocksSweep},
               .choose = fma_at,
               .work =
                   [](const Case& c, const Device& device) {
                     return Work{.flops =
                                     2. * double(c["chains"]) * threads(c, device) * iterations(c)};
                   }},
              {.name = "tf32",
               .idea = "TF32 matrix multiply-adds on tensor cores, operands on the SM.",
               .role = Role::ceiling,
               .sweeps = kTensorSweeps,
               .compute_capability = 80,
               .hardware_only = "tensor cores, in PTX",
               .skip = no_wgmma,
               .precision = "tf32",
               .choose = tensor_at<Tf32>,
               .work = tensor_work<Tf32>},
              {.name = "bf16",
               .idea = "BF16 matrix multiply-adds on tensor cores, operands on the SM.",
               .role = Role::ceiling,
               .sweeps = kTensorSweeps,
               .compute_capability = 80,
               .hardware_only = "tensor cores, in PTX",
               .skip = no_wgmma,
               .precision = "bf16",
               .choose = tensor_at<Bf16>,
               .work = tensor_work<Bf16>},
              {.name = "shared_increments_same",
               .idea = "Increments of one word of the block's shared memory.",
               .implementation = shared_atomics_on<true, same>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = shared_atomics_work<true, same>},
              {.name = "shared_atomics_same",
               .idea = "Additions to that word: its lanes queue up.",
               .implementation = shared_atomics_on<false, same>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = shared_atomics_work<false, same>},
              {.name = "shared_atomics_spread",
               .idea = "Additions to neighbouring words of shared memory, no two lanes in a bank.",
               .implementation = shared_atomics_on<false, spread>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = shared_atomics_work<false, spread>},
              {.name = "distributed_atomics_spread",
               .idea = "Increments of neighbouring words in other blocks of the cluster.",
               .role = Role::ceiling,
               .sweeps = kClusterSweep,
               .compute_capability = 90,
               .choose = distributed_atomics_at<spread>,
               .work = distributed_atomics_work},
              {.name = "distributed_atomics_scattered",
               .idea = "Increments of words all over the shared memory of other blocks: about a "
                       "packet a lane.",
               .role = Role::ceiling,
               .sweeps = kClusterSweep,
               .compute_capability = 90,
               .choose = distributed_atomics_at<scattered>,
               .work = distributed_atomics_work},
              {.name = "global_atomics_same",
               .idea = "Additions to one word in global memory.",
               .implementation = global_atomics_on<same>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = global_atomics_work<same>},
              {.name = "global_atomics_spread",
               .idea = "Additions to neighbouring words in global memory.",
               .implementation = global_atomics_on<spread>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = global_atomics_work<spread>},
              {.name = "global_atomics_scattered",
               .idea = "Additions to words of global memory all over 4 MiB of it.",
               .implementation = global_atomics_on<scattered>(),
               .role = Role::ceiling,
               .sweeps = {kBlocksSweep},
               .work = global_atomics_work<scattered>},
          },
  };
}

}  // namespace ladders
