// SPDX-License-Identifier: MIT
//
// Asynchronous copies, as far as the lane goes that issues them and waits. What is counted and
// checked of them is in block_accesses.cpp.
#include "block.hpp"
#include "cuda_pipeline.h"

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

}  // namespace

void arrive(Lane& lane, std::uint64_t group) {
  const auto over = std::ranges::partition_point(
      lane.copies, [&](const AsyncCopy& copy) { return copy.group < group; });
  if (over != lane.copies.begin()) current_block->mark_accesses(lane);
  for (auto copy = lane.copies.begin(); copy != over; ++copy) {
    // Volatile, or it would be a call of memcpy, which is the kernel's.
    auto* to = reinterpret_cast<volatile std::uint32_t*>(copy->to);
    for (unsigned i = 0; i < copy->bytes / 4u; ++i)
      to[i] = reinterpret_cast<const std::uint32_t*>(copy->data)[i];
    lane.stored = true;
    current_block->land(copy->to, copy->bytes, false);
  }
  const OutsideLane outside;
  lane.copies.erase(lane.copies.begin(), over);
}

}  // namespace emulator

using namespace emulator;

void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes, std::size_t zfill) {
  Lane& lane = *current_lane;
  const std::uintptr_t pc = RETURN_ADDRESS, source = address_of(from);
  AsyncCopy copy{.to = address_of(to), .group = lane.group};
  if (const char* why = refusal(lane, copy.to, source, bytes, zfill))
    stop(pc, "asynchronous copy of ", bytes, " bytes: ", why);
  copy.bytes = static_cast<std::uint8_t>(bytes);
  const auto read = static_cast<unsigned>(bytes - zfill);
  if (lane.next)
    append(lane, Record::of(Event::copy, read > 0 ? source : 0,
                            static_cast<unsigned>(std::countr_zero(bytes)), pc, read));
  if (current_block->launch().check) current_block->check_bounds(copy.to, copy.bytes, pc);
  current_block->mark_copy(lane, {.address = copy.to,
                                  .bytes = copy.bytes,
                                  .pc = pc,
                                  .operation = Operation::store,
                                  .value = Record::kInFlight});
  lane.reads_for = pc;  // if the source traps
  for (unsigned i = 0; i < read; ++i)
    copy.data[i] = static_cast<const volatile unsigned char*>(from)[i];
  lane.reads_for = 0;
  const OutsideLane outside;
  lane.copies.push_back(copy);
}

void __pipeline_commit() { ++current_lane->group; }

void __pipeline_wait_prior(std::size_t groups) {
  Lane& lane = *current_lane;
  groups = std::min<std::size_t>(groups, 8);  // as the toolkit does
  arrive(lane, lane.group > groups ? lane.group - groups : 0);
}
