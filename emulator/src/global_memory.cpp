// SPDX-License-Identifier: MIT
#include "global_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include "emulator/report.hpp"
#include "fiber.hpp"
#include "lane.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

constexpr std::size_t kSector = 32;
constexpr std::size_t kRemembered = 64;   // buffers that were freed last
constexpr std::size_t kFilled = 1 << 28;  // of a buffer at most: this machine has less memory

void reset(Buffer& buffer) {
  for (Bits& bits : buffer.touched)
    if (!(bits = Bits(buffer.bytes / kSector + 1))) throw std::bad_alloc();
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A page without access follows each buffer, so that even uncounted kernels cannot run far out.
// Linux places a mapping of whole huge pages at the start of one, so that it can have them.
constexpr std::size_t kHugePage = 2 << 20;
std::size_t mapped_bytes(std::size_t bytes) {
  return round_up(bytes + page_bytes(), bytes < kHugePage ? page_bytes() : kHugePage);
}

// With a protection key a thread gets access to all buffers by one instruction, and threads that it
// starts inherit the access. Where processors have no keys, each buffer's pages change.
int protection_key() {
  static const int key = [] {
    const int free = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return free > 0 && pkey_set(free, PKEY_DISABLE_ACCESS) == 0 ? free : -1;
  }();
  return key;
}
bool has_keys() { return protection_key() > 0; }

// False if the system has no more room for ranges of different access.
bool protect(const Buffer& buffer, bool open) {
  const bool with_key = has_keys() && !buffer.on_host;
  void* const start = reinterpret_cast<void*>(buffer.start);
  const std::size_t bytes = round_up(buffer.bytes, page_bytes());
  if (with_key) return pkey_mprotect(start, bytes, PROT_READ | PROT_WRITE, protection_key()) == 0;
  return mprotect(start, bytes, open || buffer.on_host ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

}  // namespace

Bits::Bits(std::size_t count) : size_(count / 64 + 1) {
  words_.reset(static_cast<std::atomic<std::uint64_t>*>(std::calloc(size_, sizeof(words_[0]))));
}

void Bits::set(std::size_t first, std::size_t count) {
  for (std::size_t at = first, end = first + count; at < end; at = at / 64 * 64 + 64) {
    const std::size_t bits = std::min<std::size_t>(64 - at % 64, end - at);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits) << at % 64;
    std::atomic<std::uint64_t>& word = words_[at / 64];
    if ((word.load(std::memory_order_relaxed) & mask) != mask)
      word.fetch_or(mask, std::memory_order_relaxed);
  }
}

bool Bits::any(std::size_t first, std::size_t count) const {
  for (std::size_t at = first; at < first + count; ++at)
    if (words_[at / 64].load(std::memory_order_relaxed) >> at % 64 & 1) return true;
  return false;
}

std::size_t Bits::count() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += std::popcount(words_[i].load());
  return sum;
}

std::string Buffer::place(std::uintptr_t address) const {
  return "byte " + std::to_string(address - start) + " of a buffer of " + std::to_string(bytes);
}

void Buffer::touch(std::uintptr_t address, std::size_t size, bool reads, bool writes) {
  const std::size_t first = (address - start) / kSector;
  const std::size_t count = (address + size - 1 - start) / kSector + 1 - first;
  if (reads) touched[false].set(first, count);
  if (writes) touched[true].set(first, count);
}

GlobalMemory& GlobalMemory::get() {
  static auto* memory = new GlobalMemory;  // never destroyed: buffers of statics outlive it else
  return *memory;
}

void* GlobalMemory::allocate(std::size_t bytes, bool on_host) {
  handle_traps();
  const std::unique_lock lock(mutex_);
  if (bytes > options().gpu->memory_bytes - allocated_) return nullptr;
  char* data = static_cast<char*>(mmap(nullptr, mapped_bytes(bytes), PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (data == MAP_FAILED) return nullptr;
  // Without keys each launch and copy changes the access to every page: huge ones are few.
  madvise(data, bytes, MADV_HUGEPAGE);
  if (mprotect(data, bytes, PROT_READ | PROT_WRITE) == 0)
    std::memset(data, kUnwritten, std::min(bytes, kFilled));
  const std::uintptr_t start = address_of(data);
  Buffer& buffer = buffers_[start];
  buffer.start = start;
  buffer.bytes = bytes;
  buffer.on_host = on_host;
  if (!protect(buffer, open_ > 0)) {
    buffers_.erase(start);
    munmap(data, mapped_bytes(bytes));
    return nullptr;
  }
  buffer.known = Bits(bytes);
  buffer.all_known = on_host || !buffer.known;
  if (counting_) reset(buffer);
  allocated_ += bytes;
  return data;
}

void GlobalMemory::set_open(int change) {
  if (has_keys()) {
    static thread_local int opened = 0;  // by launches and copies: their workers only inherit it
    opened += change;
    pkey_set(protection_key(), opened > 0 ? 0 : PKEY_DISABLE_ACCESS);
    return;
  }
  const std::unique_lock lock(mutex_);
  const bool before = open_ > 0;
  open_ += change;
  if (before != (open_ > 0))
    for (const auto& [start, buffer] : buffers_) protect(buffer, open_ > 0);
}

void GlobalMemory::forget_what_is_known() {
  const std::unique_lock lock(mutex_);
  for (auto& [start, buffer] : buffers_) buffer.all_known = true;
}

bool GlobalMemory::free(void* data) {
  const std::unique_lock lock(mutex_);
  const auto found = buffers_.find(address_of(data));
  if (found == buffers_.end()) return false;
  const Buffer& buffer = found->second;
  for (const bool written : {false, true})
    freed_touched_[written] += buffer.touched[written].count();
  // Nothing else gets these addresses for a while.
  const std::size_t mapped = mapped_bytes(buffer.bytes);
  mmap(data, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed_.emplace_back(static_cast<char*>(data), mapped);
  if (freed_.size() > kRemembered) {
    munmap(freed_.front().data(), freed_.front().size());
    freed_.pop_front();
  }
  allocated_ -= buffer.bytes;
  buffers_.erase(found);
  return true;
}

void GlobalMemory::free_all() {
  while (!buffers_.empty()) free(reinterpret_cast<void*>(buffers_.begin()->first));
}

Buffer* GlobalMemory::find(std::uintptr_t address) {
  const std::shared_lock lock(mutex_);
  Buffer* const buffer = last_before(buffers_, address);
  return buffer && buffer->holds(address, 1) ? buffer : nullptr;
}

bool GlobalMemory::was_freed(std::uintptr_t address) const {
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(freed_, [&](std::span<const char> range) {
    return address - address_of(range.data()) < range.size();
  });
}

void GlobalMemory::start_counting() {
  const std::unique_lock lock(mutex_);
  counting_ = true;
  freed_touched_[false] = freed_touched_[true] = 0;
  for (auto& [start, buffer] : buffers_) reset(buffer);
}

void GlobalMemory::stop_counting() {
  const std::unique_lock lock(mutex_);
  counting_ = false;
  for (auto& [start, buffer] : buffers_)
    for (Bits& bits : buffer.touched) bits = {};
}

std::size_t GlobalMemory::bytes_touched(bool written) const {
  const std::shared_lock lock(mutex_);
  std::size_t sum = freed_touched_[written];
  for (const auto& [start, buffer] : buffers_) sum += buffer.touched[written].count();
  return sum * kSector;
}

}  // namespace emulator
