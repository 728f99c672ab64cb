// SPDX-License-Identifier: MIT
//
// The GPUs that can be modelled, what kernels need on them, and the occupancy that follows. Pure
// functions without CUDA's names, so that the real runtime's answers can be held against them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace emulator {

/// The limits of a GPU. Sources stand beside the table in gpu.cpp.
struct Gpu {
  std::string_view name;     ///< as --gpu takes it: "h200"
  std::string_view product;  ///< "NVIDIA H200"
  int sms = 0;
  std::size_t l2_bytes = 0, memory_bytes = 0;
  double sm_clock_hz = 0;      ///< boost
  int compute_capability = 0;  ///< 90 for 9.0
  int threads_per_sm = 0, blocks_per_sm = 0, registers_per_sm = 0;
  std::size_t shared_bytes_per_sm = 0;
  std::size_t shared_bytes_per_block = 0;           ///< the opt-in limit
  std::size_t reserved_shared_bytes_per_block = 0;  ///< that the driver takes of each block
  int blocks_per_cluster = 0;  ///< at most, with the non-portable sizes; 0: has no clusters
};

std::span<const Gpu> gpus();
/// Null if there is none of that name.
const Gpu* find_gpu(std::string_view name);

/// What the device compiler made of a kernel.
struct KernelResources {
  int registers = 0;                    ///< a thread
  std::size_t static_shared_bytes = 0;  ///< declared by the kernel: without what is reserved
  std::size_t local_bytes = 0;          ///< a thread: stack frame, with spills
  std::size_t spilled_bytes = 0;        ///< a thread: spill stores
};

/// Resources of the kernel with this mangled name, as ptxas reported them. Empty for kernels that
/// it has not seen.
std::optional<KernelResources> resources(std::string_view symbol, int compute_capability);
/// Which compiler reported them, and of which commit's kernels: "nvcc 13.0.88, commit 1a2b3c".
std::string_view resources_origin(int compute_capability);

/// How many blocks per SM can hold, limit by limit: 0 by the limit that one block exceeds, INT_MAX
/// by what a block needs none of.
struct OccupancyLimits {
  int blocks = 0;     ///< by the number of blocks
  int warps = 0;      ///< by the number of warps
  int registers = 0;  ///< by the registers
  int shared = 0;     ///< by the shared memory

  int blocks_per_sm() const;         ///< the least of them
  std::string_view limiter() const;  ///< its name: "blocks", "warps", "registers", "shared memory"
};

/// For blocks of `threads` threads with `registers` each (0: not known, no limit) and
/// `shared_bytes` of shared memory, static and dynamic.
OccupancyLimits occupancy_limits(const Gpu& gpu, int threads, int registers,
                                 std::size_t shared_bytes);

/// How many clusters of `cluster` blocks the GPU holds at once, `blocks_per_sm` on each SM.
/// Modelled on an H200; for GPUs with clusters that are not of its generation, the most there can
/// be.
int resident_clusters(const Gpu& gpu, int blocks_per_sm, int cluster);

}  // namespace emulator
