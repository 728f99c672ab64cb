// SPDX-License-Identifier: MIT
//
// Asynchronous copies, as far as the lane goes that issues them and waits. What is counted and
// checked of them is in block_accesses.cpp.
#include <algorithm>
#include <cstdio>

#include "block.hpp"
#include "cuda_pipeline.h"
#include "record.hpp"

namespace emulator {
namespace {

// What is wrong with a copy, whoever looks; null if nothing is.
const char* refusal(const Lane& lane, std::uintptr_t to, std::uintptr_t from, std::size_t bytes,
                    std::size_t zfill) {
  if (bytes != 4 && bytes != 8 && bytes != 16) return "only 4, 8 and 16 can be copied";
  if (zfill > bytes) return "zfill is more than that";
  if (!current_block->is_shared(to)) return "its destination is not the block's shared memory";
  if (to % bytes != 0) return "its destination is misaligned";
  if (zfill == bytes) return nullptr;  // the source may be anything
  if (current_block->is_shared(from) || from - lane.stack < kStackBytes)
    return "its source is not global memory";
  return from % bytes != 0 ? "its source is misaligned" : nullptr;
}

void note(Lane& lane, Event event, std::uint64_t rest, std::uintptr_t pc) {
  append(lane, {rest | static_cast<std::uint64_t>(event) << 56, pc, 0});
}

}  // namespace

unsigned arrive(Lane& lane, std::uint64_t group) {
  const unsigned before = lane.arrived;
  while (lane.arrived < lane.copies.size() && lane.copies[lane.arrived].group < group) {
    const AsyncCopy& copy = lane.copies[lane.arrived++];
    // Volatile, or it would be a call of memcpy, which is the kernel's.
    auto* to = reinterpret_cast<volatile std::uint32_t*>(copy.to);
    for (unsigned i = 0; i < copy.bytes / 4u; ++i)
      to[i] = reinterpret_cast<const std::uint32_t*>(copy.data)[i];
    lane.stored = true;
  }
  return lane.arrived - before;
}

// Those before this number.
static void land_groups(Lane& lane, std::uint64_t groups, std::uintptr_t pc) {
  const unsigned arrived = arrive(lane, groups);
  if (lane.next)  // the replay needs the copies, and drops them then
    note(lane, Event::arrival, arrived, pc);
  else
    lane.drop_copies(arrived);
}

void land_copies(std::uintptr_t pc) { land_groups(*current_lane, ++current_lane->group, pc); }

}  // namespace emulator

using namespace emulator;

void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t zfill) {
  Lane& lane = *current_lane;
  const std::uintptr_t pc = RETURN_ADDRESS;
  AsyncCopy copy{.to = reinterpret_cast<std::uintptr_t>(to), .pc = pc, .group = lane.group};
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  if (const char* why = refusal(lane, copy.to, source, bytes, zfill)) {
    char what[200];
    std::snprintf(what, sizeof(what), "asynchronous copy of %zu bytes: %s", bytes, why);
    stop(lane, what, pc);
  }
  copy.bytes = static_cast<std::uint8_t>(bytes);
  copy.read = static_cast<std::uint8_t>(bytes - zfill);
  if (lane.next) {
    const std::uint64_t log2_bytes = bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
    note(lane, Event::copy, (copy.read > 0 ? source : 0) | log2_bytes << 48, pc);
  }
  lane.reads_for = pc;  // if the source traps
  for (unsigned i = 0; i < copy.read; ++i)
    copy.data[i] = static_cast<const volatile unsigned char*>(from)[i];
  lane.reads_for = 0;
  const OutsideLane outside;
  lane.copies.push_back(copy);
}

void __pipeline_commit() { ++current_lane->group; }

void __pipeline_wait_prior(std::size_t groups) {
  Lane& lane = *current_lane;
  groups = std::min<std::size_t>(groups, 8);  // as the toolkit does
  land_groups(lane, lane.group > groups ? lane.group - groups : 0, RETURN_ADDRESS);
}
