// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <vector>

namespace emulator {

/// One cudaMalloc.
struct Buffer {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  using Bits = std::unique_ptr<std::atomic<std::uint64_t>[]>;
  /// A bit a 32-byte sector while launches are counted: of those read, and of those written.
  Bits touched[2];
  /// One bit per byte: set if a copy or a checked kernel wrote it. Others may have written any.
  std::unique_ptr<std::atomic<std::uint64_t>[], decltype(&std::free)> known { nullptr, &std::free };
  std::atomic<bool> all_known = false;
  bool on_host = false;  ///< managed: the host may touch it at any time

  bool holds(std::uintptr_t address, std::size_t size) const {
    return address - start < bytes && size <= bytes - (address - start);
  }
  void touch(std::uintptr_t address, std::size_t size, bool reads, bool writes);
  void note_written(std::uintptr_t address, std::size_t size);
  /// Whether any of the bytes is: structures have gaps.
  bool any_known(std::uintptr_t address, std::size_t size) const;
};

/// The device's memory: buffers on pages of their own, which the system provides when touched.
class GlobalMemory {
 public:
  static GlobalMemory& get();

  /// Null if the modelled GPU or this machine has not that much. Aligned to a page, zero.
  void* allocate(std::size_t bytes, bool on_host = false);
  /// False if `data` is not the start of a buffer.
  bool free(void* data);
  void free_all();
  std::size_t allocated() const { return allocated_; }

  /// Lets launches and copies touch the buffers. The host's own code must not, as on a GPU.
  class Open {
   public:
    Open() { get().set_open(1); }
    Open(const Open&) = delete;
    ~Open() { get().set_open(-1); }
  };
  /// A launch that nobody checked may have written anywhere.
  void forget_what_is_known();

  /// The buffer that holds `address`, or null. Stays valid until it is freed.
  Buffer* find(std::uintptr_t address);

  /// Whether `address` was in one of the buffers that were freed last.
  bool was_freed(std::uintptr_t address) const;

  /// Forgets what has been touched and starts over.
  void start_counting();
  void stop_counting();
  /// Bytes of the distinct sectors touched since then.
  std::size_t bytes_touched(bool written) const;

 private:
  GlobalMemory() = default;
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> buffers_;  // by address
  struct Freed {
    std::uintptr_t start;
    std::size_t bytes;
  };
  std::deque<Freed> freed_;  // still mapped, without access
  int open_ = 0;
  void set_open(int change);
  std::size_t allocated_ = 0;
  bool counting_ = false;
  std::size_t freed_touched_[2]{};  // sectors of buffers that are gone
};

}  // namespace emulator
