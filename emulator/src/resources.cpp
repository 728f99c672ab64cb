// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "emulator/gpu.hpp"

namespace emulator {
namespace {

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

}  // namespace

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

}  // namespace emulator
