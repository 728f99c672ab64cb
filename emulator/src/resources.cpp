// SPDX-License-Identifier: MIT
#include "emulator/gpu.hpp"

namespace emulator {
namespace {

struct Row {
  std::string_view symbol;
  int compute_capability;
  KernelResources resources;
};

// kRows and kOrigin, by cmake/kernel_resources.cmake: rows of kernels that were compiled here, then
// those of the committed table. The first one found counts.
#include "kernel_resources.inc"

}  // namespace

std::optional<KernelResources> resources(std::string_view symbol, int compute_capability) {
  const Row* best = nullptr;
  for (const Row& row : kRows) {
    // Code runs on later minor versions of the major version that it was compiled for.
    const bool runs = row.compute_capability <= compute_capability &&
                      row.compute_capability / 10 == compute_capability / 10;
    if (runs && row.symbol == symbol &&
        (best == nullptr || best->compute_capability < row.compute_capability))
      best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return best->resources;
}

std::string_view resources_origin() { return kOrigin; }

}  // namespace emulator
