// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/report.hpp"
#include "order.hpp"

namespace emulator {

constexpr std::size_t kDynamicBytes = 232448;  // 227 KiB, the most that any block can have

/// Lanes that a warp function made wait for each other. __syncwarp orders all they did in memory,
/// and others what they read, since they pass it on.
struct WarpMeeting {
  std::uint32_t lanes;
  bool orders_memory;
  Moment moment;  ///< what they know from there on
};

/// A block's shared memory: static variables, which are thread-local storage of the host thread
/// that runs the block, and the dynamic part. Offsets count from the start of the static part; the
/// dynamic part follows it.
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;

  /// Makes the calling host thread's variables the static part, for blocks of `kernel` (mangled).
  void attach(const std::string& kernel);
  /// A block starts: everything is unwritten again.
  void start(std::size_t dynamic_bytes);

  char* dynamic() const { return dynamic_; }
  bool holds(std::uintptr_t address) const {
    return address - static_start_ < static_bytes_ || is_dynamic(address);
  }
  std::size_t offset(std::uintptr_t address) const {
    return is_dynamic(address) ? static_span() + (address - dynamic_start())
                               : address - static_start_;
  }
  /// The same place in another block's memory.
  void* in(const SharedMemory& other, void* address) const;

  /// Where the offset lies within its variable, or within the dynamic part.
  std::size_t offset_in_variable(std::size_t offset) const;

  /// What is wrong with touching `bytes` there: beyond the dynamic part, outside of any variable,
  /// or in one of another kernel. Empty if nothing is.
  std::string out_of_bounds(std::size_t offset, unsigned bytes);
  /// "tile" or "dynamic shared memory".
  std::string variable(std::size_t offset) const;

  /// An access by a thread, its own block's or another's of the cluster. Two by different threads,
  /// unless both are loads or atomics or write the same, need a barrier or warp functions between,
  /// or a release by the one and an acquire by the other.
  struct Access {
    unsigned thread;  ///< rank of its block * 1024 + number in the block
    unsigned epoch;   ///< barriers that its block has passed
    unsigned syncs;   ///< the last warp function since then that the thread had a part in; 0: none
    std::span<const WarpMeeting> warp_syncs;  ///< who had a part in its warp's functions
    unsigned request;
    std::uintptr_t pc;
    std::uint16_t value;        ///< of a store, as in its Record; or Record::kByCopy
    std::uint32_t time;         ///< of its block
    std::uint64_t first_block;  ///< of its cluster
    const Clock* known[2];      ///< to its block and to itself
    Operation kind;
    enum class Copy : std::uint8_t { none, issued, arrived } copy = Copy::none;  ///< asynchronous
    bool knows(unsigned other, std::uint32_t then, std::uint64_t shown_to = 0) const {
      for (const Clock* clock : known)
        if (clock && clock->knows(first_block + other / 1024 + shown_to, other % 1024, then))
          return true;
      return false;
    }
  };
  struct Race {
    const char* what;  ///< "write after read"
    unsigned thread;   ///< the other thread
    std::uintptr_t pc;
    bool one_instruction = false;  ///< of which both are lanes
    bool unshown = false;          ///< to bulk copies
  };
  /// Notes an access and returns the race that it is part of.
  std::optional<Race> note(std::size_t offset, unsigned bytes, const Access& access);
  bool written(std::size_t offset, unsigned bytes);
  /// Bulk copies to it are complete.
  void land(std::size_t offset, unsigned bytes);
  /// The block has passed a barrier.
  void next_epoch() { ++epoch_; }
  void next_cluster_epoch() { ++cluster_epoch_; }
  unsigned epoch() const { return epoch_; }

 private:
  // Those accesses of one kind to a byte that may not be over for everyone: by lanes of one warp,
  // and, as one for all, by any other thread. All zero: none.
  struct Last {
    std::uint16_t thread;
    std::uint64_t pc : 48, value : 16;
    std::uint32_t time;
  };
  struct Mark {
    std::uint32_t cluster_epoch, epoch;
    std::uint32_t lanes;
    std::uint32_t syncs;       // of the lane that had a part in the fewest
    std::uint32_t request;     // the last
    std::uint32_t first_time;  // the least of `lanes`: of most of them no other is kept
    Last last, other;          // `other` if there is one
    bool has_other;
  };
  // Whether a bulk copy touches what the mark's thread wrote, and no fence has shown it that.
  bool is_unshown(const Mark& mark, const Access& access) const;
  struct Shadow {
    Mark load, store, atomic;
    std::uint32_t written_in;  // the block in which it was written last
    std::uint32_t copy_in;     // the block in which an asynchronous copy to it is under way
  };
  std::optional<Race> conflict(const Mark& mark, const Access& access, const char* what,
                               bool of_loads) const;
  void add(Mark& mark, const Access& access) const;
  std::uintptr_t dynamic_start() const { return reinterpret_cast<std::uintptr_t>(dynamic_); }
  bool is_dynamic(std::uintptr_t address) const {
    return address - dynamic_start() < kDynamicBytes;
  }
  std::size_t static_span() const { return (static_bytes_ + 1023) / 1024 * 1024; }
  // What is known of a word, which most accesses touch as a whole, until one touches a part of it.
  struct Word {
    Shadow shadow;
    std::uint32_t split_in;  // the block in which it has been taken apart into bytes
  };
  /// Calls f(shadow) for all that lies in the range, until f returns false.
  template <class F>
  void for_each_shadow(std::size_t offset, unsigned bytes, F f);

  std::uintptr_t static_start_ = 0;
  std::size_t static_bytes_ = 0, dynamic_bytes_ = 0;
  char* dynamic_;
  std::string kernel_;
  std::vector<signed char> foreign_;  // by variable: whether it is another kernel's; -1: not known
  // Pages come when they are touched.
  std::unique_ptr<Word[], decltype(&std::free)> words_{nullptr, &std::free};
  std::unique_ptr<Shadow[], decltype(&std::free)> bytes_{nullptr, &std::free};
  std::uint32_t epoch_ = 0, cluster_epoch_ = 0, block_ = 0;
  std::uint32_t first_epoch_ = 0;  // of the block
};

/// Makes a function known as a kernel, with shared variables of its own.
void register_kernel(const std::string& symbol);

/// Bytes of the shared variables that a kernel (mangled) declares itself.
std::size_t static_shared_bytes(const std::string& kernel);

}  // namespace emulator
