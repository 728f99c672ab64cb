// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_map>

#include "emulator/report.hpp"

namespace emulator {

/// The requests that one instruction made to one kind of memory.
struct Site {
  std::uintptr_t pc = 0;
  Space space{};
  Operation operation{};
  int bytes = 0;
  Traffic traffic;
  Addresses worst{};
  // The first block that had a request as bad as that, and the first of its warps.
  std::uint64_t worst_block = 0;
  unsigned worst_warp = 0;
};

/// Figures of a launch, or of the part of it that one host thread ran.
struct Counts {
  std::unordered_map<std::uint64_t, Site> sites;
  std::uint64_t barriers = 0, cluster_barriers = 0, warp_functions = 0;
  std::uint64_t warp_steps = 0, lane_steps = 0;

  Site& site(std::uintptr_t pc, Space space, Operation operation, int bytes) {
    Site& site =
        sites[pc << 8 | static_cast<unsigned>(space) << 4 | static_cast<unsigned>(operation)];
    if (site.pc == 0) {
      site.pc = pc;
      site.space = space;
      site.operation = operation;
      site.bytes = bytes;
      site.worst.fill(-1);
    }
    return site;
  }
  Counts& operator+=(const Counts& other);
};

}  // namespace emulator
