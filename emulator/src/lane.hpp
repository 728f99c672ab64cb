// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/language.hpp"
#include "order.hpp"

namespace emulator {

enum class Event : std::uint8_t {
  load,
  store,
  atomic,
  copy,
  step,
  sync,
  arrival,
  moment,
  bulk,
  mbarrier
};

/// What a lane did: an access, a step into another basic block, its part in a warp function, whose
/// number in the warp is the address then, a wait for asynchronous copies, of which so many
/// arrived, the number of a moment from which it knew more, an arrival at an mbarrier or a wait for
/// it. The address of a copy is its source, of a bulk copy its BulkCopy, of the last two the Phase.
struct Record {
  static constexpr std::uint64_t kQueues = 0x80;  ///< an atomic whose lanes take turns

  std::uint64_t what;        ///< address | (log2 of the size | kQueues) << 48 | event << 56
  std::uint64_t pc : 48;     ///< the return address of the callback: names the access or the block
  std::uint64_t value : 16;  ///< of a store: a digest of what it wrote, or one of these
  static constexpr unsigned kNotYetRead = 0, kNeverRead = 1;

  Event event() const { return static_cast<Event>(what >> 56); }
  std::uint64_t kind() const { return what >> 48 & ~kQueues; }  ///< event and size
  unsigned bytes() const { return 1u << (what >> 48 & 0x7F); }
  bool queues() const { return what >> 48 & kQueues; }
  std::uint64_t address() const { return what & 0xFFFF'FFFF'FFFF; }
};

enum class State : std::uint8_t {
  ready,
  log_full,  ///< ready, as soon as its records have been replayed
  at_block_barrier,
  at_cluster_barrier,
  at_warp_function,
  gave_way,  ///< ready, after the others' turn
  at_mbarrier,
  at_word,  ///< waits until another block has stored it
  stopped,  ///< by a fault of its own
  exited
};

/// From global memory to shared memory.
struct AsyncCopy {
  std::uintptr_t to = 0;
  std::uintptr_t pc = 0;
  std::uint64_t group = 0;              ///< commits of its thread before it
  std::uint8_t bytes = 0, read = 0;     ///< zeros follow those that are read
  alignas(4) unsigned char data[16]{};  ///< what was read
};

/// One CUDA thread: a fiber, and the log of what it did since it was last replayed.
struct Lane {
  void* context = nullptr;
  // The log; both null when nothing is recorded.
  Record* next = nullptr;
  Record* end = nullptr;
  std::uintptr_t stack = 0;  ///< its lowest address
  std::uint64_t step = 0;    ///< the last basic block that was replayed
  unsigned syncs = 0;        ///< the last warp function it had a part in that was replayed
  unsigned answered = 0;     ///< the last one that was answered; 0 once it is in the log
  // Without a log:
  unsigned steps_left = 0;  ///< until others have a turn
  bool stored = false;      ///< whether it has, in this turn
  uint3 index{};
  State state = State::ready;
  bool started = false;
  std::uint8_t number = 0;  ///< in its warp

  // Asynchronous copies in their order, up to the wait for them; where they are recorded, up to the
  // replay of that.
  std::vector<AsyncCopy> copies;
  unsigned arrived = 0;     ///< those of them that have been waited for
  unsigned replayed = 0;    ///< and those whose issue has been replayed
  std::uint64_t group = 0;  ///< of the next one
  void drop_copies(unsigned count) {
    copies.erase(copies.begin(), copies.begin() + count);
    arrived -= count;
    replayed -= std::min(replayed, count);  // none is where nothing is recorded
  }

  std::vector<struct BulkCopy*> copies_out;  ///< to global memory, up to the wait for them
  // What it knows of others' accesses.
  Knowledge knowledge;
  std::vector<Moment> moments;     ///< in its log
  Moment moment;                   ///< the last of them, or before, that was replayed
  const Record* marked = nullptr;  ///< the first of its log that global memory does not have yet
  std::uintptr_t polled = 0;       ///< its last strong access: where, and by which instruction
  unsigned polls = 0;              ///< such accesses, since
  std::uint64_t polled_since = 0;  ///< so many stores of anybody

  // What it waits for.
  const char* file = nullptr;
  int line = 0;
  std::uintptr_t pc = 0;
  Vote vote{};
  WarpFunction function{};
  int predicate = 0;  ///< of the barrier, and its answer
  unsigned mask = 0;
  int argument = 0, width = 32;
  std::uint64_t value = 0;                    ///< given to the warp function, and its answer
  const struct Barrier* waits_for = nullptr;  ///< an mbarrier, at
  std::uintptr_t waits_at = 0;
  unsigned parity = 0;  ///< and which of its phases
  const unsigned* word = nullptr;
  unsigned last = 0;  ///< what it will be

  // Whether it spins: its stack, looked at from time to time, is compared with what
  // it was at one of the looks before.
  std::uint64_t reference = 0, seen_progress = 0;
  unsigned looks = 0, next_reference = 1;
  bool circling = false;

  std::string stopped_by;  ///< a fault in words, or
  int trap = 0;            ///< a signal, at
  std::uintptr_t trap_address = 0;
  std::uintptr_t reads_for = 0;  ///< where the kernel called what traps; 0: it is its own
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

/// The asynchronous copies of the groups before that number arrive. Returns how many.
unsigned arrive(Lane& lane, std::uint64_t group);
/// All of the running lane do.
void land_copies(std::uintptr_t pc);
/// Its bulk copies to global memory are complete.
void write_copies(Lane& lane);

/// Ends the launch with a fault of this lane at `pc`. In a fiber nothing can be thrown.
[[noreturn]] void stop(Lane& lane, std::string_view what, std::uintptr_t pc);

}  // namespace emulator
