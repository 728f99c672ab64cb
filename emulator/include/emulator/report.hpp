// SPDX-License-Identifier: MIT
//
// What the emulator is told and what it reports. A program that uses only CUDA's own names needs
// none of this.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gpu.hpp"

namespace emulator {

/// The order in which threads, warps and the blocks of a cluster are run where CUDA leaves it
/// open. Random is a different order for each block, and the same in every run.
enum class Order { forward, reverse, random };

/// Which block of a grid goes on where several could, if `check` is on. The turn may change before
/// each atomic, flag and volatile access of global memory. Except in order, loads of flags may also
/// return stale values.
struct Schedule {
  enum class Kind {
    in_order,    ///< a block runs until it waits for others
    random,      ///< the turn changes at random
    priorities,  ///< the block of highest priority runs; priorities are random, and a few times the
                 ///< highest becomes the lowest (PCT: Burckhardt et al., 2010)
    prescribed   ///< by `choices`, see repeat()
  };
  Kind kind = Kind::in_order;
  unsigned seed = 0;
  std::vector<unsigned> choices;
};

/// Settings of the process, for the launches to come.
struct Options {
  const Gpu* gpu = find_gpu("h200");  ///< what the runtime API describes, never null
  Order order = Order::forward;
  /// Host threads that run blocks (clusters). 0: one per core; where blocks take turns, up to 32.
  int workers = 0;
  bool check = false;  ///< look for races, reads of what nobody wrote, accesses out of bounds, ...
  Schedule schedule;
};
Options& options();

/// Calls `run`, which launches and says whether all was well, with one schedule after the other:
/// all in which at most `preemptions` times the turn is taken from a block that could go on, or a
/// load is stale, but at most `limit` of them. Ends at the first with which something was wrong.
struct Exploration {
  unsigned schedules = 0;  ///< that were run
  bool complete = false;   ///< whether these are all
  bool found = false;      ///< something wrong, with the schedule of these choices
  std::vector<unsigned> choices;
};
Exploration explore(unsigned limit, const std::function<bool()>& run, unsigned preemptions = 2);
/// Runs it with that schedule: a number for each point at which several could go on, 0 for the
/// block that had the turn, if it could, or else the first; and for each load that may be stale, 1
/// if it is. After the last of them in order.
bool repeat(const std::vector<unsigned>& choices, const std::function<bool()>& run);

/// Whether this program's kernels were compiled so that accesses are seen (the target
/// cuda_emulator_counted). Otherwise kernels run and are right or wrong, figures are all zero and
/// `check` finds barrier and warp faults only.
bool counted();

/// Lets the program go on after a fault, which no GPU would, with its buffers as they are.
void clear_fault();

/// What was wrong with the last launch that failed: fault, kernel, source line, block and thread;
/// empty if none has. The launch returns cudaErrorLaunchFailure, and cudaGetErrorString of that is
/// this text.
std::string last_fault();

enum class Space : std::uint8_t {
  global,
  shared,
  distributed,  ///< another block's shared memory
  constant,     ///< __constant__ and constexpr data
  bulk          ///< global memory, by bulk copies to and from shared memory: each is one request
};
enum class Operation : std::uint8_t { load, store, atomic };
std::string_view name(Space);
std::string_view name(Operation);

/// The sum of the requests of one kind. A request is one access instruction of one warp.
struct Traffic {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;  ///< that took part, over all requests
  std::uint64_t bytes = 0;  ///< that the lanes asked for
  /// What the requests took: wavefronts of shared memory, 32-byte sectors of global memory and of
  /// other blocks' shared memory and of bulk copies, 1 a request of constants.
  std::uint64_t transactions = 0;
  std::uint64_t ideal = 0;  ///< the fewest transactions that as many bytes could have taken
  std::uint64_t worst = 0;  ///< transactions of the worst request
  /// Atomics: the most lanes on one address, summed over requests; they take turns.
  std::uint64_t serialised = 0;

  Traffic& operator+=(const Traffic& other);
};

/// Where the lanes of a request pointed, as bytes from the start of the shared variable (or of the
/// dynamic part), of the buffer or of the program's image; -1 for a lane that took no part.
using Addresses = std::array<std::int64_t, 32>;

/// The requests of one kind that one instruction or source line made.
struct Requests {
  Space space{};
  Operation operation{};
  int bytes = 0;  ///< a lane
  Traffic traffic;
  Addresses worst{};  ///< the first request that took the most transactions
};
struct Line : Requests {
  std::string kernel;  ///< demangled
  std::string file;    ///< without directories; empty if there is no debug information
  int line = 0;
};

/// What blocks and warps did that is no access.
struct Steps {
  std::uint64_t barriers = 0;          ///< __syncthreads, each counted once a block
  std::uint64_t cluster_barriers = 0;  ///< likewise
  std::uint64_t warp_operations = 0;   ///< shuffles, votes, __syncwarp: once a warp
  std::uint64_t warp_steps = 0;        ///< basic blocks that warps went through
  std::uint64_t lane_steps = 0;        ///< lanes that were active in them

  Steps& operator+=(const Steps& other);
};

/// The figures of one or more launches. They do not depend on the number of workers, unless the
/// kernel itself depends on which block comes first.
struct Report : Steps {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::vector<Line> lines;               ///< by kernel, file, line
  std::uint64_t compulsory_read = 0;     ///< bytes of the distinct global sectors read
  std::uint64_t compulsory_written = 0;  ///< or written: the least that DRAM must move

  Traffic total(Space, Operation) const;
  /// Lanes active on average, 32 without divergence; 0 if nothing was counted.
  double active_lanes() const;
};

/// Totals, then a line for each source line that touched memory.
std::ostream& operator<<(std::ostream&, const Report&);

/// Counts the launches that are made while it lives (one at a time in a process).
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Report report() const;
};

}  // namespace emulator
