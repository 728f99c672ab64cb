// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/language.hpp"
#include "order.hpp"

#define RETURN_ADDRESS reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

namespace emulator {

inline std::uintptr_t address_of(const volatile void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}
/// The parts, one after the other.
std::string text(const auto&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

enum class Event : std::uint8_t {
  load,
  store,
  atomic,
  flag,        ///< a load of a flag, which is not counted
  flag_store,  ///< a store or a change of one
  copy,  ///< an asynchronous one is issued; the address is its source, the value what it reads
  step,  ///< into another basic block
  bulk   ///< a BulkCopy
};

/// What a lane did.
struct Record {
  static constexpr std::uint64_t kQueues = 0x80;    ///< an atomic whose lanes take turns
  static constexpr std::uint64_t kAway = 0x80;      ///< a store as to another block's memory
  static constexpr std::uint64_t kVolatile = 0x40;  ///< an access

  std::uint64_t what;        ///< address | (log2 of the size | one of these) << 48 | event << 56
  std::uint64_t pc : 48;     ///< the return address of the callback: names the access or the block
  std::uint64_t value : 16;  ///< of a store: a digest of what it wrote, or one of these
  static constexpr unsigned kNotYetRead = 0, kNeverRead = 1;
  static constexpr unsigned kByCopy = 4;    ///< by a bulk copy
  static constexpr unsigned kInFlight = 5;  ///< by an asynchronous copy that is not over
  static bool is_digest(unsigned value) { return (value & 2) != 0; }

  static Record of(Event event, std::uint64_t address, unsigned log2_bytes, std::uintptr_t pc,
                   unsigned value = kNotYetRead) {
    return {address | std::uint64_t{log2_bytes} << 48 | static_cast<std::uint64_t>(event) << 56, pc,
            value};
  }

  Event event() const { return static_cast<Event>(what >> 56); }
  std::uint64_t kind() const { return what >> 48 & ~kQueues; }  ///< event and size
  unsigned bytes() const { return 1u << (what >> 48 & 0x3F); }
  bool is_volatile() const { return what >> 48 & kVolatile; }
  bool queues() const { return what >> 48 & kQueues; }
  std::uint64_t address() const { return what & 0xFFFF'FFFF'FFFF; }
};

enum class State : std::uint8_t {
  ready,
  log_full,  ///< ready, as soon as its records have been replayed
  at_block_barrier,
  at_cluster_barrier,
  at_warp_function,
  at_mbarrier,
  at_word,  ///< waits until another block has stored it
  stopped,  ///< by a fault of its own
  exited
};

/// From global memory to shared memory.
struct AsyncCopy {
  std::uintptr_t to = 0;
  std::uint64_t group = 0;  ///< commits of its thread before it
  std::uint8_t bytes = 0;
  alignas(4) unsigned char data[16]{};  ///< what was read, and zeros
};

/// What of a thread starts anew with each block. Most threads use the first two cache lines alone.
struct alignas(64) LaneState {
  void* context = nullptr;
  // The log; both null when nothing is recorded.
  Record* next = nullptr;
  Record* end = nullptr;
  std::uintptr_t stack = 0;  ///< its lowest address
  std::uint64_t step = 0;    ///< the last basic block that was replayed
  uint3 index{};
  // Without a log:
  unsigned steps_left = 0;  ///< until others have a turn
  bool stored = false;      ///< whether it has, in this turn
  State state = State::ready;
  bool started = false;
  std::uint8_t number = 0;  ///< in its warp

  // What it waits for.
  std::uint64_t value = 0;  ///< given to the barrier or warp function, and its answer
  Vote vote{};
  struct {
    WarpFunction function;
    unsigned mask;
    int argument, width;
  } call{};
  std::uintptr_t pc = 0;
  const Record* marked = nullptr;  ///< the first of its log that has not been checked for races
  const struct Barrier* waits_for = nullptr;  ///< an mbarrier, at
  std::uintptr_t waits_at = 0;
  unsigned parity = 0;  ///< and which of its phases
  unsigned last = 0;    ///< what the word will be
  const unsigned* word = nullptr;

  std::uint64_t group = 0;         ///< of its next asynchronous copy
  std::uint32_t met = 0;           ///< when it last had a part in a warp function
  unsigned polls = 0;              ///< strong accesses since
  std::uintptr_t polled = 0;       ///< its last one: where, and by which instruction
  std::uint64_t polled_since = 0;  ///< so many stores of anybody
  std::uint64_t told = 0;          ///< Races::changes() at its last fence, barrier or warp function
  bool narrow = false;             ///< whether its next access is of the scope of its block

  // Whether it spins: its stack, looked at from time to time, is compared with what
  // it was at one of the looks before.
  struct {
    std::uint64_t reference = 0, seen_progress = 0;
    unsigned looks = 0, next_reference = 1;
    bool circling = false;
  } spin;

  int trap = 0;  ///< a signal, at
  std::uintptr_t trap_address = 0;
  std::uintptr_t reads_for = 0;  ///< where the kernel called what traps; 0: it is its own
};

/// One CUDA thread: a fiber, and the log of what it did since it was last replayed.
struct Lane : LaneState {
  std::vector<AsyncCopy> copies;  ///< asynchronous ones in their order, up to the wait for them
  std::vector<struct BulkCopy*> copies_out;  ///< to global memory, up to the wait for them
  Knowledge knowledge;                       ///< of others' accesses
  std::string stopped_by;                    ///< a fault in words
  Record held{};  ///< a load at the end of a full log that has not been checked for races

  bool runs() const { return state == State::ready || state == State::log_full; }
  bool waits_for_other_warps() const {
    return state == State::at_mbarrier || state == State::at_word;
  }
  /// As the thread of that number and index in its block.
  void start(unsigned thread, uint3 place) {
    static_cast<LaneState&>(*this) = {};
    number = thread % 32;
    index = place;
    copies.clear();
    copies_out.clear();
    knowledge = {};
    held = {};
  }
};

constexpr unsigned kMaxThreads = 1024;  ///< of a block
constexpr std::size_t kStackBytes = 128 * 1024;

/// The lane that this host thread is running, null outside kernels.
extern constinit thread_local Lane* current_lane;
/// While it lives, what is allocated and accessed is the runtime's own doing, not the lane's.
class OutsideLane {
 public:
  OutsideLane() : lane_(std::exchange(current_lane, nullptr)) {}
  OutsideLane(const OutsideLane&) = delete;
  ~OutsideLane() { current_lane = lane_; }

 private:
  Lane* lane_;
};
/// threadIdx of that lane.
extern constinit thread_local uint3 thread_index asm("threadIdx");

/// Gives control back to the block's scheduler.
void yield(Lane& lane, State state);

/// The asynchronous copies of the groups before that number arrive.
void arrive(Lane& lane, std::uint64_t group);
/// The lane exits: its bulk copies to global memory are complete.
void end_copies(Lane& lane);

/// Ends the launch with a fault of the running lane at `pc`, in the words of these parts.
template <class... T>
[[noreturn]] void stop(std::uintptr_t pc, const T&... parts) {
  Lane& lane = *current_lane;
  {
    const OutsideLane outside;
    lane.stopped_by = text(parts...);
  }
  lane.pc = pc;
  yield(lane, State::stopped);
  __builtin_unreachable();
}

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
  record.value = (mixed >> 48) | 2;  // none of the special ones
}

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
  const std::uintptr_t address = address_of(data);
  if (address - lane->stack < kStackBytes) return;  // a local variable
  if (!lane->next) {
    lane->stored |= event == Event::store;
    return;
  }
  append(*lane, Record::of(event, address, log2_bytes, pc, value));
}

/// Copies of aggregates: the device copies them word by word. They are on record before they are
/// done, so that nobody can tell what they wrote.
inline void record_range(const void* data, unsigned long bytes, Event event, std::uintptr_t pc) {
  if (!current_lane) return;  // the host copies more
  const std::uintptr_t address = address_of(data);
  const unsigned log2_step = (address | bytes) & 3 ? 0 : 2;
  for (unsigned long i = 0; i < bytes; i += 1ul << log2_step)
    record(reinterpret_cast<const char*>(address + i), log2_step, event, pc, Record::kNeverRead);
}

/// Notes what the running lane does that is no access.
inline void note(Event event, std::uintptr_t about, std::uintptr_t pc) {
  append(*current_lane, Record::of(event, about, 0, pc));
}

}  // namespace emulator
