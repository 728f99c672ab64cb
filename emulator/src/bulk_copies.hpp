// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "emulator/bulk_copies.hpp"
#include "order.hpp"

namespace emulator {

/// A bulk copy, of bytes as of a tensor with one row, or a store to another block of the cluster.
struct BulkCopy {
  enum class Way : std::uint8_t { in, out, store } way;
  std::uintptr_t shared, pc;
  unsigned bytes;  ///< in shared memory
  CUtensorMap map{};
  std::array<std::int64_t, 3> at{};  ///< where in the tensor the box begins, as its sizes
  std::uint64_t value = 0;           ///< that is stored
  std::vector<char> source;  ///< of a copy out that is checked: what it was when that was issued
  bool read = false;
  const struct Lane* lane = nullptr;  ///< that issued it
  const class Block* block = nullptr;

  /// Calls f(place in the box, global address, from, to) for each row of the box, of which the
  /// bytes from `from` to `to` lie inside of the tensor.
  template <class F>
  void for_each_row(F f) const;
  /// Moves the bytes between global memory and `box`, the shared memory or what it was.
  void transfer(char* box) const;
};

/// From one end of arrivals to the next, in checked launches.
struct Phase {
  std::vector<BulkCopy*> copies;  ///< that arrive in it
  bool landed = false;            ///< whether somebody has waited for it
  Released released;              ///< what those know that wait for it
};

/// The state of an mbarrier. Its shared memory holds it as bits.
struct Barrier {
  unsigned expected = 0, pending = 0;  ///< arrivals
  int bytes = 0;                       ///< that are expected and have not arrived
  int under_way = 0;                   ///< bytes of copies that are issued, where they arrive late
  std::uint64_t number = 0;            ///< of its phase
  Phase *phase = nullptr, *last = nullptr;
  unsigned thread = 0;     ///< that initialised it
  std::uint32_t time = 0;  ///< then, of its block

  std::uint64_t bits() const {
    return 1 + (number % 2 << 1) + (std::uint64_t{expected} << 2) + (std::uint64_t{pending} << 22) +
           (static_cast<std::uint64_t>(bytes) << 42);
  }
  bool is_over(unsigned parity) const { return number % 2 != parity; }
  /// Whether nothing is missing, but what a wait brings.
  bool ends() const { return pending == 0 && bytes <= under_way; }
};

/// What a block has of all this, by addresses that stay.
struct BulkState {
  std::unordered_map<std::uintptr_t, Barrier> barriers;
  std::deque<Phase> phases;
  std::deque<BulkCopy> copies;
};

}  // namespace emulator
