// SPDX-License-Identifier: MIT
//
// Which accesses happen before which: vector clocks, by which races are found as FastTrack does
// (Flanagan and Freund, 2009). Each block has a time, which goes on at every release and barrier.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/language.hpp"
#include "emulator/report.hpp"

namespace emulator {

struct Lane;
struct Record;

/// The accesses that are over for who has it: those of a thread, a warp or a block before a time.
class Clock {
 public:
  static constexpr unsigned kWarps = 1024, kAll = kWarps + 32;  ///< after the threads
  static constexpr std::uint64_t kMostBlocks = 1 << 24;
  /// Added to the number of a block: what a fence has shown to bulk copies, and what is over for
  /// accesses to shared memory alone.
  static constexpr std::uint64_t kGlobal = kMostBlocks, kShared = 2 * kGlobal,
                                 kInShared = kShared + kGlobal, kBarriers = 2 * kShared;

  /// Adds all that is known as shown.
  void show(std::uint64_t to);
  /// Only what was shown so, or to those that have greater numbers.
  void keep_shown(std::uint64_t from);
  bool knows(std::uint64_t block, unsigned thread, std::uint32_t time) const;
  void raise(std::uint64_t block, unsigned who, std::uint32_t time);
  void join(const Clock& other);
  bool operator==(const Clock&) const = default;

 private:
  std::vector<std::uint64_t> entries_;  // block, who and time, the greatest first
};
using Past = std::shared_ptr<const Clock>;  ///< null: nothing

struct Knowledge {
  Past known;
  Past fenced;                           ///< what relaxed stores release: all up to the last fence
  Past heard;                            ///< what relaxed loads found: the next fence acquires it
  Past fenced_in_block, heard_in_block;  ///< likewise with a fence of the block's scope at least
  unsigned level = 0;  ///< Lamport's clock: what is ordered in any way is of a lower level
  void join(const Knowledge& other);
};

/// How a strong access of a thread orders its others.
enum class Strength : std::uint8_t;

/// The time of a block, and what all of its threads know.
class BlockOrder {
 public:
  void start(std::uint64_t number) {
    *this = {};
    number_ = number;
  }
  std::uint64_t number() const { return number_; }
  std::uint32_t time() const { return time_; }
  /// All that happened before, to be acquired by others.
  Past release(const Lane& lane);
  void fence(Lane& lane, bool narrow);
  /// Shows the bulk copies that follow what happened before.
  void show(Lane& lane, std::uint64_t to);
  /// __syncwarp of these lanes; other warp functions order only what depends on their answers.
  void meet(std::span<Lane> lanes, std::uint32_t members, bool orders_memory);
  void barrier(std::span<Lane> lanes);
  /// At a cluster barrier: what a block releases; and all of it, which each acquires.
  Knowledge released(std::span<Lane> lanes, Orders what);
  void acquire(const Knowledge& all) { base_.join(all); }
  /// Whether what a thread did at that time is over for `lane`.
  bool knows(const Lane& lane, std::uint64_t block, unsigned thread, std::uint32_t time) const;
  const Knowledge& of_all() const { return base_; }

 private:
  std::uint64_t number_ = 0;
  std::uint32_t time_ = 0, barrier_ = 0;  // now, and at the last barrier
  Knowledge base_;
};

/// A record fits the log afterwards: in between the lane does not make way for others.
void make_room(Lane& lane);

/// What is passed on by an object that threads synchronize by: `release` adds all that happens
/// before this point of the running lane, and `acquire` lets it know what is in `from`.
struct Released {
  Clock clock;
  unsigned level = 0;
};
void release(Lane& lane, Released& into);
void acquire(Lane& lane, const Released& from);
/// __threadfence of the running lane, or __threadfence_block.
void fence(Lane& lane);

/// Shared and global memory while blocks run one at a time: who was last at each word.
class Races {
 public:
  struct Mark {
    std::uint64_t block : 24 = 0, thread : 10 = 0, bytes : 4 = 0, time : 26 = 0;
    std::uint64_t pc : 48 = 0;
    std::uint64_t value : 16 = 0;  // of a plain store as in its Record, else its level, and these
    static constexpr unsigned kStrong = 1, kNarrow = 2, kVolatile = 4, kLevel = 8;
    unsigned level() const { return static_cast<unsigned>(value) / kLevel; }
    bool is_of(const Mark& other) const { return block == other.block && thread == other.thread; }
    bool is_of_warp(const Mark& other) const {
      return block == other.block && thread / 32 == other.thread / 32;
    }
  };
  struct Access {
    std::uintptr_t address = 0;
    unsigned bytes = 0;
    std::uintptr_t pc = 0;
    Operation operation = Operation::load;
    bool shared = false;                  ///< memory of this block or of one of its cluster
    std::uint64_t owner = 0;              ///< the block whose memory that is
    bool bulk = false;                    ///< by a bulk copy
    bool strong = false, narrow = false;  ///< of the scope of a block
    bool is_volatile = false;             ///< orders nothing between lanes of a warp
    bool compares = false;                ///< what is there, as atomicCAS does
    Strength strength{};
    unsigned value = 0;              ///< of a plain store, as in its Record
    void* read = nullptr;            ///< what a strong load read: may become an older value
    const void* replaced = nullptr;  ///< what a strong store or atomic does away with
  };
  /// Two accesses of different threads that nothing orders, or a missing fence or wait for a copy.
  struct Conflict {
    std::string what;
    Access access;
    std::uintptr_t word;  ///< its address
    Mark other;
    bool of_copy = false;
  };
  /// An access which is about to happen. What a strong one reads or leaves is acquired or released.
  std::optional<Conflict> note(Lane& lane, const Access& access);
  /// What the lane's asynchronous copies bring to shared memory is there.
  void land(std::uintptr_t address, unsigned bytes, bool bulk);
  bool is_global(std::uintptr_t address) { return page(address).global; }
  std::uint64_t changes() const { return changes_; }

 private:
  static constexpr unsigned kWords = 1024;  // of a page
  // The last one, and before it those of another thread of the warp, of another warp of the block,
  // and of another block.
  struct Last {
    Mark mark, of_warp, of_block, of_grid;
  };
  static void add(Last& last, const Mark& own, unsigned part);
  using Marks = std::unique_ptr<Last[]>;  // by word, once there is one
  struct Page {
    bool global = false;
    Marks loads, stores, strong;
  };
  std::optional<Conflict> check(const Lane& lane, const Access& access);
  void acquire(Lane& lane, const Access& access);
  void release(Lane& lane, const Access& access);
  Page& page(std::uintptr_t address);
  struct Word {
    Page* page;
    std::size_t number;
    std::uintptr_t address;
    unsigned bytes;  // which of them, as bits
  };
  // What an access touches; until the next call.
  std::span<const Word> words(std::uintptr_t address, unsigned bytes);
  Word words_[5];

  std::unordered_map<std::uintptr_t, Page> pages_;
  // What was released to all, and to the block that stored it last.
  struct Carried {
    Past to_all, to_block;
    std::uint64_t block = 0;
  };
  std::unordered_map<std::uintptr_t, Carried> carried_;  // by what was stored there, by word

  // Stale values, where orders are explored: the value before a word's last strong store or atomic,
  // which a load may still return if neither its thread nor any that happens before has seen a
  // newer.
  struct Before {
    std::uint64_t value[2] = {};
    unsigned bytes = 0;
    std::vector<Carried> carried;                 // empty: nothing
    std::uint64_t change = 0;                     // the number of that store
    std::map<std::uint64_t, std::uint32_t> seen;  // when threads first stored or read a newer one
  };
  bool lags(Lane& lane, const Access& access);
  void see(const Lane& lane, const Access& access);
  std::unordered_map<std::uintptr_t, Before> before_;  // by address
  std::uint64_t changes_ = 0;                          // strong stores and atomics
};

}  // namespace emulator
