// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "bulk_copies.hpp"
#include "cluster.hpp"
#include "emulator/report.hpp"
#include "emulator/runtime_api.hpp"
#include "fiber.hpp"
#include "global_memory.hpp"
#include "lane.hpp"
#include "order.hpp"
#include "schedule.hpp"
#include "shared_memory.hpp"
#include "symbols.hpp"
#include "warp_replay.hpp"

namespace emulator {

/// What the blocks of a launch have in common.
struct Launch {
  dim3 grid, block;
  std::size_t dynamic_bytes;
  unsigned cluster;
  std::string kernel;  ///< mangled
  BoundKernel bound;
  Order order;
  bool cooperative, count, check;

  std::uint64_t blocks() const { return std::uint64_t{grid.x} * grid.y * grid.z; }
  unsigned threads() const { return block.x * block.y * block.z; }
  bool recorded() const { return count || check; }

  std::atomic<std::uint64_t> next{0};  ///< the first block that nobody has taken
  std::atomic<bool> failed{false};
  std::atomic<int> running{0};  ///< blocks (or clusters)
  /// Goes up whenever a thread changes memory, arrives or exits: what others wait for.
  std::atomic<std::uint64_t> progress{1};
  std::mutex mutex;
  /// Reads of global memory that nothing had written. Another thread may have done so meanwhile and
  /// not be replayed yet, so they are looked at again when all have exited.
  struct Unwritten {
    Fault fault;
    std::uintptr_t address;
    unsigned bytes;
    std::uint64_t thread;
  };
  std::vector<Unwritten> unwritten;
  std::atomic<bool> any_unwritten{false};
  std::vector<void*> freed;          ///< by kernels, but what they did there may still be on record
  std::uint64_t circling_since = 0;  ///< progress when the last block began to spin
  int circling = 0;                  ///< blocks that have since
  std::string fault;                 ///< the first; empty if memory ran out
  Counts counts;
  std::optional<Turns> turns;  ///< of checked blocks, and of those that are resident at once
  Races races;                 ///< touched by who has the turn
  bool ordered() const { return check && turns; }

  void fail(Fault what);
  /// Does `work`; whatever goes wrong in it ends the launch. True if nothing did.
  template <class F>
  bool attempt(F work) {
    try {
      work();
      return true;
    } catch (Fault& fault) {
      if (!fault.text.empty()) fail(std::move(fault));
    } catch (const std::bad_alloc&) {
      fail({});
    } catch (const std::system_error&) {
      fail({"this machine has no thread left for the launch"});
    }
    return false;
  }
};

/// The numbers from 0 on, in that order.
inline void put_in_order(std::span<unsigned> numbers, Order order, std::mt19937& random) {
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (order == Order::reverse) std::ranges::reverse(numbers);
  if (order == Order::random) std::ranges::shuffle(numbers, random);
}

/// Of the block or thread of that number.
inline uint3 index_in(dim3 shape, std::uint64_t number) {
  return {static_cast<unsigned>(number % shape.x),
          static_cast<unsigned>(number / shape.x % shape.y),
          static_cast<unsigned>(number / shape.x / shape.y)};
}

// ---- what the runtime API knows of launches

/// Blocks of a cluster in this launch, one without clusters.
uint3 cluster_of(const cudaLaunchConfig_t& config);

/// Whether all blocks of the launch are resident at once.
bool is_cooperative(const cudaLaunchConfig_t& config);

/// Whether the modelled GPU would take the launch.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel);

/// Whether it lies in a variable whose address cudaGetSymbolAddress gave, or just behind.
bool is_device_address(std::uintptr_t address);

/// From now on calls return the fault.
void stick();

inline Operation operation(Event event) {
  return event == Event::load || event == Event::flag ? Operation::load
         : event == Event::atomic                     ? Operation::atomic
                                                      : Operation::store;
}
/// Every access is as wide as its type wants it aligned.
inline bool is_misaligned(std::uintptr_t address, unsigned bytes) {
  return (address & (bytes - 1)) != 0;
}

/// Runs blocks on the calling host thread, one after the other.
class Block {
 public:
  /// Takes part in a launch as the block of that number in `cluster`, of which it may be the only
  /// one.
  void enter(Launch& launch, Cluster& cluster, unsigned rank, unsigned runner);
  /// Runs the block with that number in the grid. Throws Fault.
  void run(std::uint64_t number);
  Counts& counts() { return counts_; }

  // For the calls that kernels make.
  const Launch& launch() const { return *launch_; }
  Turns& turns() { return *launch_->turns; }
  unsigned rank() const { return rank_; }
  unsigned cluster_size() const { return launch_->cluster; }
  void* dynamic_shared() const { return shared_.dynamic(); }
  void* map_shared(void* address, unsigned rank);
  void cluster_met(const Knowledge& all);
  void enter_thread(Lane& lane);  ///< what a fiber runs
  void leave(Lane& lane, State state);
  bool has_lost_threads() const { return live_ < launch_->threads(); }
  bool is_shared(std::uintptr_t address) const { return shared_.holds(address); }
  bool is_argument(std::uintptr_t address) const {
    return address - address_of(launch_->bound.data) < launch_->bound.bytes;
  }
  static bool is_built_in(std::uintptr_t address);
  void note_change() {
    changed_ = true;
    if (launch_->turns) launch_->turns->note_store();
  }
  BlockOrder& order() { return order_; }
  const Knowledge& released() const { return released_; }
  unsigned number_of(const Lane& lane) const {
    return static_cast<unsigned>(&lane - lanes_.data());
  }
  /// Whether the block of that number is of the same cluster.
  bool is_in_cluster(std::uint64_t block) const {
    return block - (number_ - rank_) < cluster_size();
  }
  /// Looks for races of what the lane has recorded, but not of the last so many. If the access that
  /// comes next compares, the last load of the same bytes races with no atomic.
  void mark_accesses(Lane& lane, unsigned but_last = 0, const Races::Access* next = nullptr);
  /// Likewise where the log is full. If it ends with a load, what comes next may yet compare that.
  void mark_full_log(Lane& lane);
  /// Stops the running lane where a store to shared memory is out of bounds.
  void check_bounds(std::uintptr_t to, unsigned bytes, std::uintptr_t pc);
  /// Looks for races of what an asynchronous or bulk copy of the lane touches, however much it is.
  void mark_copy(Lane& lane, Races::Access access);
  /// An asynchronous copy to shared memory is over.
  void land(std::uintptr_t to, unsigned bytes, bool bulk);
  /// A thread has waited for the phase: the copies that arrive in it are over.
  void land(Phase& phase);
  void before_strong(Lane& lane, std::uintptr_t address, std::uintptr_t pc);
  void strong(Lane& lane, const Races::Access& access);
  /// Whether threads poll words that nobody seems to store.
  bool polls_itself() const { return polls_itself_; }
  void free_at_end(void* data);
  BulkState& bulk() { return bulk_; }
  /// What lanes of the current warp did together.
  void replayed(std::uint64_t pc, Event event, const Request& request);
  /// The block of that rank in the cluster, null unless it surely runs.
  Block* neighbour(unsigned rank);

 private:
  /// A memory. Without any of these what the runtime gives a thread: arguments, built-in variables.
  struct Place {
    Block* owner = nullptr;    // of shared memory
    Buffer* buffer = nullptr;  // of global memory
    bool image = false;        // the program's own variables
  };
  /// What one lane does in one instruction.
  struct Touch {
    std::uintptr_t pc;
    Event event;
    const Lane& lane;
    std::uintptr_t address;
    unsigned bytes;
  };

  // warps
  std::span<Lane> warp(unsigned w);
  bool run_warps();
  bool run_warp(unsigned w);
  bool waits_no_more(const Lane& lane) const;
  bool resume_ready(std::span<Lane> lanes);
  void swap_aside(unsigned w);
  bool resolve_warp_functions(unsigned w);
  void answer(std::span<Lane> lanes, std::uint32_t members);

  // barriers
  bool release_block_barrier();
  bool release_cluster_barrier();

  // spins
  void look(Lane& lane);
  bool circling(std::span<const Lane> lanes) const;
  void check_progress();
  bool wait_for_others();

  // accesses
  void access(std::uint64_t pc, Event event, const Request& request);
  void bulk_copy(Lane& lane, BulkCopy& copy);
  Place place(const Touch& touch);
  bool is_at(const Place& place, std::uintptr_t address, unsigned bytes) const;
  void check_variable(const Touch& touch);
  void check_global(const Touch& touch, Buffer& buffer);
  void check_shared(const Touch& touch, Block& owner) const;
  void mark(Lane& lane, Record& record, bool strong);
  void note(Lane& lane, Races::Access access);
  Block* owner_of(std::uintptr_t address) const;
  void count(std::uint64_t pc, Space space, Operation operation, const Request& request,
             Buffer* buffer = nullptr);

  // faults, in words
  std::string where(const Lane& lane) const;  // "block (0, 0, 0) thread (5, 0, 0)"
  Fault fault(const Lane& lane, std::uintptr_t pc, const auto&... what) const {
    return {text(what..., "; kernel ", kernel_name(launch_->kernel), " at ", source_line(pc).text(),
                 ", ", where(lane))};
  }
  Fault fault(const Touch& touch, const auto&... what) const {
    return fault(touch.lane, touch.pc, what...);
  }
  Fault too_much_local(const Lane& lane, std::uintptr_t pc) const;
  Fault fault_of_stopped(Lane& lane);
  Fault misaligned(const Touch& touch) const;
  Fault conflict(const Lane& lane) const;
  Fault unwritten() const;
  std::string who_waits() const;

  Launch* launch_ = nullptr;
  Cluster* cluster_ = nullptr;
  unsigned rank_ = 0, runner_ = 0;
  bool polls_once_ = false;    // what threads wait for may not come before they go on
  bool polls_itself_ = false;  // it does not come: until it is seen that they spin
  unsigned in_vain_ = 0;       // looks at words that others are to store
  std::uint64_t number_ = 0;
  uint3 index_{};

  void* scheduler_ = nullptr;  // the context that resumed the running lane
  std::vector<Lane> lanes_;
  unsigned live_ = 0;
  FiberStacks stacks_;
  std::vector<unsigned> warp_order_;
  unsigned current_warp_ = 0;
  bool changed_ = false;              // memory, since the last pass over the warps
  std::uint64_t circling_since_ = 0;  // as told to the launch
  std::mt19937 random_;

  BlockOrder order_;
  Knowledge released_;  // at the last cluster barrier
  std::optional<Races::Conflict> conflict_;
  SharedMemory shared_;
  BulkState bulk_;
  Buffer* last_buffer_ = nullptr;
  const Variable* last_variable_ = nullptr;
  // The first read of shared memory that nobody had written. Others may write it before their next
  // barrier: then it is a race, which names the store too, and is the fault that is reported.
  struct Unwritten {
    const Lane* lane;
    Races::Access access;
    Block* owner;
  };
  std::optional<Unwritten> unwritten_;
  // The last access that another block of the cluster made to this one since their last barrier.
  struct Visit {
    const Block* by = nullptr;
    const Lane* lane = nullptr;
    std::uintptr_t pc = 0;
    std::uint32_t time = 0;
  };
  Visit visit_;

  std::unique_ptr<WarpReplay> replay_;  // of the current warp, once there is something to record
  struct Warp {
    // What is left to replay once those of its lanes go on that wait for other warps.
    bool is_aside = false;
    std::unique_ptr<WarpReplay> replay;
  };
  std::vector<Warp> warps_;
  Counts counts_;
};

/// The block that this host thread is running, null outside kernels.
extern constinit thread_local Block* current_block;

}  // namespace emulator
