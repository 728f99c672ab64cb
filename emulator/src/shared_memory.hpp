// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/report.hpp"

namespace emulator {

constexpr std::size_t kDynamicBytes = 232448;  // 227 KiB, the most that any block can have

/// A block's shared memory: static variables, which are thread-local storage of the host thread
/// that runs the block, and the dynamic part. Offsets count from the start of the static part; the
/// dynamic part follows it.
class SharedMemory {
 public:
  SharedMemory();

  /// Makes the calling host thread's variables the static part, for blocks of `kernel` (mangled).
  void attach(const std::string& kernel);
  /// A block starts: everything is unwritten again.
  void start(std::size_t dynamic_bytes);

  char* dynamic() const { return dynamic_.get(); }
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
  std::string out_of_bounds(std::uintptr_t address, unsigned bytes);
  /// "tile" or "dynamic shared memory".
  std::string variable(std::uintptr_t address) const;
  /// "tile (byte 128)".
  std::string place(std::uintptr_t address) const {
    return variable(address) + " (byte " + std::to_string(offset_in_variable(offset(address))) +
           ")";
  }

  /// Whether the block has written all of that.
  bool written(std::uintptr_t address, unsigned bytes) const {
    const std::uint32_t* const first = &written_[offset(address)];
    return std::count(first, first + bytes, block_) == bytes;
  }
  void note_written(std::uintptr_t address, unsigned bytes) {
    std::fill_n(&written_[offset(address)], bytes, block_);
  }

 private:
  std::uintptr_t dynamic_start() const { return reinterpret_cast<std::uintptr_t>(dynamic()); }
  bool is_dynamic(std::uintptr_t address) const {
    return address - dynamic_start() < kDynamicBytes;
  }
  std::size_t static_span() const { return (static_bytes_ + 1023) / 1024 * 1024; }
  std::uintptr_t static_start_ = 0;
  std::size_t static_bytes_ = 0, dynamic_bytes_ = 0;
  std::unique_ptr<char, decltype(&std::free)> dynamic_;
  std::string kernel_;
  std::vector<std::span<char>> own_;                          // its variables
  std::unordered_map<const struct Variable*, bool> foreign_;  // whether it is another kernel's
  // By byte, the block in which it was written last. Pages come when they are touched.
  std::unique_ptr<std::uint32_t[], decltype(&std::free)> written_{nullptr, &std::free};
  std::uint32_t block_ = 0;
};

/// Makes a function known as a kernel, with shared variables of its own.
void register_kernel(const std::string& symbol);

/// Bytes of the shared variables that a kernel (mangled) declares itself.
std::size_t static_shared_bytes(const std::string& kernel);

}  // namespace emulator
