// SPDX-License-Identifier: MIT
//
// What a warp's request takes of the hardware. Rules from the CUDA C++ Programming Guide and from
// counters of an H200 (docs/emulator-validation.md has the comparison). And the sums of it.
#pragma once

#include <bit>
#include <cstdint>
#include <tuple>
#include <unordered_map>

#include "emulator/report.hpp"

namespace emulator {

/// One access instruction of one warp: the lanes in `mask`, `bytes` each, at their addresses.
struct Request {
  std::uint32_t mask;
  unsigned bytes;                         ///< 1, 2, 4, 8 or 16
  const std::uint64_t* addresses;         ///< by lane
  bool queues = false;                    ///< an atomic on shared memory that is no increment
  const std::uint16_t* values = nullptr;  ///< by lane: the bytes that a copy reads
};

/// Calls f(lane) for each lane in `mask`.
void for_each_lane(std::uint32_t mask, auto f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}
/// The lanes in `mask` for which f(lane) is true.
std::uint32_t lanes_where(std::uint32_t mask, auto f) {
  std::uint32_t found = 0;
  for_each_lane(mask, [&](unsigned l) { found |= std::uint32_t{f(l)} << l; });
  return found;
}

/// What the request takes of the hardware.
Traffic traffic_of(const Request& request, Space space, Operation operation);

struct Site : Requests {
  std::uintptr_t pc = 0;
  // The first block that had a request as bad as that, and the first of its warps.
  std::uint64_t worst_block = 0;
  unsigned worst_warp = 0;

  /// If this request is worse than the worst so far, records its block and warp, clears `worst`,
  /// and returns true. The caller then fills `worst` and adds the traffic.
  bool replace_if_worse(std::uint64_t transactions, std::uint64_t block, unsigned warp) {
    if (std::tuple(transactions, worst_block, worst_warp) <= std::tuple(traffic.worst, block, warp))
      return false;
    worst.fill(-1);
    worst_block = block;
    worst_warp = warp;
    return true;
  }
};

/// Figures of a launch, or of the part of it that one host thread ran.
struct Counts {
  std::unordered_map<std::uint64_t, Site> sites;
  Steps steps;

  Site& site(std::uintptr_t pc, Space space, Operation operation, int bytes) {
    Site& site =
        sites[pc << 8 | static_cast<unsigned>(space) << 4 | static_cast<unsigned>(operation)];
    if (site.pc == 0) {
      site = {{space, operation, bytes}, pc};
      site.worst.fill(-1);
    }
    return site;
  }
  Counts& operator+=(const Counts& other);
};

}  // namespace emulator
