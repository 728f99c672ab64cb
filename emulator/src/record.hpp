// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "lane.hpp"

#define RETURN_ADDRESS reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

namespace emulator {

/// Whether it is a store whose value has not been read yet.
inline bool has_value_to_note(const Record& record) {
  return record.event() == Event::store && record.value == Record::kNotYetRead;
}
/// Reads what a store wrote, once the lane has come further.
inline void note_value(Record& record) {
  if (!has_value_to_note(record)) return;
  std::uint64_t words[2]{};
  const auto* from = reinterpret_cast<const volatile unsigned char*>(record.address());
  auto* to = reinterpret_cast<unsigned char*>(words);
  for (unsigned i = 0; i < record.bytes(); ++i) to[i] = from[i];
  const std::uint64_t mixed = (words[0] ^ words[1] * 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93;
  record.value = (mixed >> 48) | 2;  // neither of the special ones
}

inline bool acquires(Strength s) { return s == Strength::acquire || s == Strength::both; }
inline bool releases(Strength s) { return s == Strength::release || s == Strength::both; }

/// Writes to the log of the running lane. What needs registers that a call must save is a function
/// of its own, so that the usual case saves none.
void append_later(Lane& lane, Record record);
inline __attribute__((always_inline)) void append(Lane& lane, const Record& record) {
  if (lane.next == lane.end || has_value_to_note(lane.next[-1])) return append_later(lane, record);
  std::memcpy(static_cast<void*>(lane.next++), &record, sizeof(record));  // whole, not by fields
}

/// Notes an access of the running lane, if it is recorded.
inline __attribute__((always_inline)) void record(const volatile void* data, unsigned log2_bytes,
                                                  Event event, std::uintptr_t pc,
                                                  unsigned value = Record::kNotYetRead) {
  Lane* lane = current_lane;
  if (!lane) return;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address - lane->stack < kStackBytes) return;  // a local variable
  if (!lane->next) {
    lane->stored |= event == Event::store;
    return;
  }
  append(*lane,
         {address | std::uint64_t{log2_bytes} << 48 | static_cast<std::uint64_t>(event) << 56, pc,
          value});
}

/// Copies of aggregates: the device copies them word by word. They are on record before they are
/// done, so that nobody can tell what they wrote.
inline void record_range(const void* data, unsigned long bytes, Event event, std::uintptr_t pc) {
  if (!current_lane) return;  // the host copies more
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const unsigned log2_step = (address | bytes) & 3 ? 0 : 2;
  for (unsigned long i = 0; i < bytes; i += 1ul << log2_step)
    record(reinterpret_cast<const char*>(address + i), log2_step, event, pc, Record::kNeverRead);
}

}  // namespace emulator
