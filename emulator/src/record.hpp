// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "lane.hpp"

#define RETURN_ADDRESS reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

namespace emulator {

/// Notes an access of the running lane, if it is recorded.
inline __attribute__((always_inline)) void record(const volatile void* data, unsigned log2_bytes,
                                                  Event event, std::uintptr_t pc) {
  Lane* lane = current_lane;
  if (!lane) return;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address - lane->stack < kStackBytes) return;  // a local variable
  if (!lane->next) {
    lane->stored |= event == Event::store;
    return;
  }
  if (__builtin_expect(lane->next == lane->end, 0)) yield(*lane, State::log_full);
  *lane->next++ = {
      address | std::uint64_t{log2_bytes} << 48 | static_cast<std::uint64_t>(event) << 56, pc};
}

/// Copies of aggregates: the device copies them word by word.
inline void record_range(const void* data, unsigned long bytes, Event event, std::uintptr_t pc) {
  if (!current_lane) return;  // the host copies more
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const unsigned log2_step = (address | bytes) & 3 ? 0 : 2;
  for (unsigned long i = 0; i < bytes; i += 1ul << log2_step)
    record(reinterpret_cast<const char*>(address + i), log2_step, event, pc);
}

}  // namespace emulator
