// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>

namespace emulator {

/// Bits that several threads may set, all zero at first; their pages come when they are touched.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t count);
  explicit operator bool() const { return words_ != nullptr; }  ///< false if there was no memory
  void set(std::size_t first, std::size_t count);
  bool any(std::size_t first, std::size_t count) const;
  std::size_t count() const;

 private:
  std::unique_ptr<std::atomic<std::uint64_t>[], decltype(&std::free)> words_ {
    nullptr, &std::free
  };
  std::size_t size_ = 0;
};

/// What memory holds until it is written: no number and no index, as CUDA leaves it open.
constexpr unsigned char kUnwritten = 0xFF;

/// One cudaMalloc.
struct Buffer {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  Bits touched[2];  ///< 32-byte sectors that were read and written, while launches are counted
  Bits known;       ///< bytes that a copy or a checked kernel wrote; others may have written any
  std::atomic<bool> all_known = false;
  bool on_host = false;  ///< managed: the host may touch it at any time

  bool holds(std::uintptr_t address, std::size_t size) const {
    return address - start < bytes && size <= bytes - (address - start);
  }
  /// "byte 16 of a buffer of 64"
  std::string place(std::uintptr_t address) const;
  void touch(std::uintptr_t address, std::size_t size, bool reads, bool writes);
  void note_written(std::uintptr_t address, std::size_t size) {
    if (!all_known) known.set(address - start, size);
  }
  /// Whether any of the bytes is: structures have gaps.
  bool any_known(std::uintptr_t address, std::size_t size) const {
    return all_known || known.any(address - start, size);
  }
};

/// The device's memory: buffers on pages of their own, which the system provides when touched.
class GlobalMemory {
 public:
  static GlobalMemory& get();

  /// Null if the modelled GPU or this machine has not that much. Aligned to a page.
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
  std::map<std::uintptr_t, Buffer> buffers_;  // by address
  std::deque<std::span<char>> freed_;         // still mapped, without access
  int open_ = 0;
  void set_open(int change);
  std::size_t allocated_ = 0;
  bool counting_ = false;
  std::size_t freed_touched_[2]{};  // sectors of buffers that are gone
};

}  // namespace emulator
