// SPDX-License-Identifier: MIT
#include "emulator/gpu.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

namespace emulator {
namespace {

constexpr int kWarp = 32;
constexpr int kThreadsPerBlock = 1024;
constexpr int kPartitions = 4;      // of an SM, each with a quarter of the registers
constexpr int kRegisterUnit = 256;  // registers are given to warps in units of so many

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

// What follows from the compute capability is from the CUDA Programming Guide, "Compute
// Capabilities", tables of technical specifications; the opt-in limit of a block is what an SM has
// less what the driver reserves. `card` brings what differs between cards.
constexpr Gpu of(Gpu card, int compute_capability, int threads_per_sm, int blocks_per_sm,
                 std::size_t shared_bytes_per_sm, int blocks_per_cluster = 0) {
  card.compute_capability = compute_capability;
  card.threads_per_sm = threads_per_sm;
  card.blocks_per_sm = blocks_per_sm;
  card.registers_per_sm = 65536;
  card.shared_bytes_per_sm = shared_bytes_per_sm;
  card.reserved_shared_bytes_per_block = compute_capability < 80 ? 0 : KiB;
  card.shared_bytes_per_block = shared_bytes_per_sm - card.reserved_shared_bytes_per_block;
  card.blocks_per_cluster = blocks_per_cluster;
  return card;
}
constexpr Gpu turing(Gpu card) { return of(card, 75, 1024, 16, 64 * KiB); }
constexpr Gpu ampere(Gpu card) { return of(card, 80, 2048, 32, 164 * KiB); }
constexpr Gpu ampere_8_6(Gpu card) { return of(card, 86, 1536, 16, 100 * KiB); }
constexpr Gpu ada(Gpu card) { return of(card, 89, 1536, 24, 100 * KiB); }
constexpr Gpu hopper(Gpu card) { return of(card, 90, 2048, 32, 228 * KiB, 16); }
constexpr Gpu blackwell(Gpu card) { return of(card, 100, 2048, 32, 228 * KiB, 16); }
// The portable cluster size: whether larger ones can be allowed has not been tried.
constexpr Gpu blackwell_12_0(Gpu card) { return of(card, 120, 1536, 24, 100 * KiB, 8); }

// Products are named as the driver names them. SMs, L2, memory and boost clock are from NVIDIA's
// whitepapers and datasheets; where the driver says something else, from the driver (marked *).
// Drivers keep a few percent of the memory to themselves.
constexpr Gpu kGpus[] = {
    // Name, product, SMs, L2, memory, boost clock.
    // Turing whitepaper (TU104) and T4 datasheet.
    turing({"t4", "Tesla T4", 40, 4 * MiB, 16 * GiB, 1590e6}),
    // A100 whitepaper.
    ampere({"a100", "NVIDIA A100-SXM4-80GB", 108, 40 * MiB, 80 * GiB, 1410e6}),
    // A10 datasheet, GA102 whitepaper.
    ampere_8_6({"a10", "NVIDIA A10", 72, 6 * MiB, 24 * GiB, 1695e6}),
    // GA102 whitepaper.
    ampere_8_6({"rtx3090", "NVIDIA GeForce RTX 3090", 82, 6 * MiB, 24 * GiB, 1695e6}),
    // L4 datasheet, Ada whitepaper (AD104).
    ada({"l4", "NVIDIA L4", 58, 48 * MiB, 24 * GiB, 2040e6}),
    // L40S datasheet, Ada whitepaper (AD102).
    ada({"l40s", "NVIDIA L40S", 142, 96 * MiB, 48 * GiB, 2520e6}),
    // Ada whitepaper.
    ada({"rtx4090", "NVIDIA GeForce RTX 4090", 128, 72 * MiB, 24 * GiB, 2520e6}),
    // H100 whitepaper (SXM5); clock*.
    hopper({"h100", "NVIDIA H100 80GB HBM3", 132, 50 * MiB, 80 * GiB, 1980e6}),
    // All of it*.
    hopper({"h200", "NVIDIA H200", 132, 60 * MiB, 150109880320, 1980e6}),
    // SMs*, L2*, memory*; Blackwell datasheet (HGX B200).
    blackwell({"b200", "NVIDIA B200", 148, 126 * MiB + 512 * KiB, 178 * GiB, 1965e6}),
    // RTX Blackwell whitepaper (GB202).
    blackwell_12_0({"rtx5090", "NVIDIA GeForce RTX 5090", 170, 96 * MiB, 32 * GiB, 2407e6}),
};

// kTable: the committed table as text (see CMakeLists.txt).
#include "kernel_resources.inc"

// Resources of kernels by architecture, as cmake/kernel_resources.cmake writes them.
struct Table {
  std::string origin;
  std::map<std::pair<std::string, int>, KernelResources> rows;

  explicit Table(std::istream&& csv) {
    for (std::string line; std::getline(csv, line);) {
      if (line.starts_with("# ")) origin = line.substr(2);
      if (!line.starts_with("_Z")) continue;
      const std::size_t comma = line.find(',');
      if (comma == std::string::npos) continue;
      int architecture = 0;
      KernelResources needs;
      auto& [registers, shared, local, spilled] = needs;
      if (std::sscanf(line.c_str() + comma, ",%d,%d,%zu,%zu,%zu", &architecture, &registers,
                      &shared, &local, &spilled) == 5)
        rows[{line.substr(0, comma), architecture}] = needs;
    }
  }

  // Whether it has kernels of GPUs of this generation.
  bool covers(int compute_capability) const {
    return std::ranges::any_of(
        rows, [=](const auto& row) { return row.first.second / 10 == compute_capability / 10; });
  }
};

// That of this build tree, if nvcc made it for such GPUs, or the committed one. Read at run time,
// so that building an emulated program takes no nvcc.
const Table& table_for(int compute_capability) {
  static const Table built{std::ifstream(KERNEL_RESOURCES_CSV)},
      committed{std::istringstream(kTable)};
  return built.covers(compute_capability) ? built : committed;
}

template <class T>
constexpr T round_up(T value, T unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu* find_gpu(std::string_view name) {
  const Gpu* gpu = std::ranges::find(kGpus, name, &Gpu::name);
  return gpu == std::end(kGpus) ? nullptr : gpu;
}

// Code runs on later minor versions of the major version that it was compiled for.
std::optional<KernelResources> resources(std::string_view symbol, int compute_capability) {
  const auto& rows = table_for(compute_capability).rows;
  const auto after = rows.upper_bound({std::string(symbol), compute_capability});
  if (after == rows.begin()) return std::nullopt;
  const auto& [key, needs] = *std::prev(after);
  if (key.first != symbol || key.second / 10 != compute_capability / 10) return std::nullopt;
  return needs;
}

std::string_view resources_origin(int compute_capability) {
  return table_for(compute_capability).origin;
}

int OccupancyLimits::blocks_per_sm() const { return std::min({blocks, warps, registers, shared}); }

std::string_view OccupancyLimits::limiter() const {
  const int least = blocks_per_sm();
  return blocks == least      ? "blocks"
         : warps == least     ? "warps"
         : registers == least ? "registers"
                              : "shared memory";
}

OccupancyLimits occupancy_limits(const Gpu& gpu, int threads, int registers,
                                 std::size_t shared_bytes) {
  const int warps = std::max(1, (threads + kWarp - 1) / kWarp);
  OccupancyLimits limits{
      .blocks = gpu.blocks_per_sm, .warps = 0, .registers = INT_MAX, .shared = INT_MAX};
  if (warps * kWarp <= kThreadsPerBlock) limits.warps = gpu.threads_per_sm / kWarp / warps;
  if (registers > 0)
    limits.registers = gpu.registers_per_sm / kPartitions /
                       round_up(registers * kWarp, kRegisterUnit) * kPartitions / warps;
  const std::size_t unit = gpu.compute_capability < 80 ? 256 : 128;
  const std::size_t taken = round_up(shared_bytes + gpu.reserved_shared_bytes_per_block, unit);
  if (shared_bytes > gpu.shared_bytes_per_block)
    limits.shared = 0;
  else if (taken > 0)
    limits.shared = static_cast<int>(gpu.shared_bytes_per_sm / taken);
  return limits;
}

// A cluster lies within a GPC, and GPCs are not of one size: on each die other SMs are fused off.
// NVIDIA does not say which, so this is the plainest layout that gives every answer of
// cudaOccupancyMaxActiveClusters on an H200. 124 SMs are in GPCs of these sizes; the other eight
// can only be had in pairs (a TPC), and no cluster lies on a GPC that has fewer SMs than it blocks.
constexpr int kHopperGpcs[] = {18, 18, 16, 16, 16, 16, 16, 8};

int resident_clusters(const Gpu& gpu, int blocks_per_sm, int cluster) {
  if (cluster < 1 || cluster > std::max(1, gpu.blocks_per_cluster)) return 0;
  // Elsewhere nothing was measured; this is the most there can be.
  const bool measured = gpu.compute_capability == 90 && gpu.sms == 132;
  if (cluster <= 2 || !measured) return gpu.sms * blocks_per_sm / cluster;
  int clusters = 0;
  for (const int sms : kHopperGpcs)
    if (sms >= cluster) clusters += sms * blocks_per_sm / cluster;
  return clusters;
}

}  // namespace emulator
