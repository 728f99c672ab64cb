// SPDX-License-Identifier: MIT
#include "global_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "emulator/report.hpp"
#include "fiber.hpp"
#include "traps.hpp"

namespace emulator {
namespace {

constexpr std::size_t kSector = 32;
constexpr std::size_t kRemembered = 64;  // buffers that were freed last

std::size_t words(const Buffer& buffer) { return (buffer.bytes / kSector + 64) / 64; }

void reset(Buffer& buffer) {
  for (Buffer::Bits& bits : buffer.touched)
    bits = std::make_unique<std::atomic<std::uint64_t>[]>(words(buffer));
}

std::size_t count(const Buffer& buffer, const Buffer::Bits& touched) {
  std::size_t sum = 0;
  if (touched)
    for (std::size_t i = 0; i < words(buffer); ++i) sum += std::popcount(touched[i].load());
  return sum;
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

// False if the system has no more room for ranges of different access.
bool protect(const Buffer& buffer, bool open) {
  return mprotect(reinterpret_cast<void*>(buffer.start), round_up(buffer.bytes, page_bytes()),
                  open || buffer.on_host ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

}  // namespace

void Buffer::touch(std::uintptr_t address, std::size_t size, bool reads, bool writes) {
  for (std::uintptr_t s = (address - start) / kSector; s <= (address + size - 1 - start) / kSector;
       ++s) {
    const std::uint64_t bit = std::uint64_t{1} << s % 64;
    const auto mark = [&](std::atomic<std::uint64_t>& word) {
      if (!(word.load(std::memory_order_relaxed) & bit))
        word.fetch_or(bit, std::memory_order_relaxed);
    };
    if (reads) mark(touched[false][s / 64]);
    if (writes) mark(touched[true][s / 64]);
  }
}

void Buffer::note_written(std::uintptr_t address, std::size_t size) {
  if (all_known) return;
  for (std::size_t at = address - start, end = at + size; at < end;) {
    const std::size_t bits = std::min<std::size_t>(64 - at % 64, end - at);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits) << at % 64;
    if ((known[at / 64].load(std::memory_order_relaxed) & mask) != mask)
      known[at / 64].fetch_or(mask, std::memory_order_relaxed);
    at += bits;
  }
}

bool Buffer::any_known(std::uintptr_t address, std::size_t size) const {
  for (std::size_t at = address - start, end = at + size; !all_known && at < end; ++at)
    if (known[at / 64].load(std::memory_order_relaxed) >> at % 64 & 1) return true;
  return all_known;
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
  auto buffer = std::make_unique<Buffer>();
  buffer->start = reinterpret_cast<std::uintptr_t>(data);
  buffer->bytes = bytes;
  buffer->on_host = on_host;
  if (!protect(*buffer, open_ > 0)) {
    munmap(data, mapped_bytes(bytes));
    return nullptr;
  }
  // Each launch and copy changes the access to every page: huge ones are few.
  madvise(data, bytes, MADV_HUGEPAGE);
  using Bits = std::atomic<std::uint64_t>;  // pages come when they are touched
  buffer->known.reset(static_cast<Bits*>(std::calloc(bytes / 64 + 1, sizeof(Bits))));
  buffer->all_known = on_host || !buffer->known;
  if (counting_) reset(*buffer);
  allocated_ += bytes;
  const auto place =
      std::ranges::upper_bound(buffers_, buffer->start, {}, [](const auto& b) { return b->start; });
  buffers_.insert(place, std::move(buffer));
  return data;
}

void GlobalMemory::set_open(int change) {
  const std::unique_lock lock(mutex_);
  const bool before = open_ > 0;
  open_ += change;
  if (before != (open_ > 0))
    for (const auto& buffer : buffers_) protect(*buffer, open_ > 0);
}

void GlobalMemory::forget_what_is_known() {
  const std::unique_lock lock(mutex_);
  for (const auto& buffer : buffers_) buffer->all_known = true;
}

bool GlobalMemory::free(void* data) {
  const std::unique_lock lock(mutex_);
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const auto found = std::ranges::find(buffers_, start, [](const auto& b) { return b->start; });
  if (found == buffers_.end()) return false;
  for (const bool written : {false, true})
    freed_touched_[written] += count(**found, (*found)->touched[written]);
  // Nothing else gets these addresses for a while.
  const std::size_t mapped = mapped_bytes((*found)->bytes);
  mmap(data, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed_.push_back({start, mapped});
  if (freed_.size() > kRemembered) {
    munmap(reinterpret_cast<void*>(freed_.front().start), freed_.front().bytes);
    freed_.pop_front();
  }
  allocated_ -= (*found)->bytes;
  buffers_.erase(found);
  return true;
}

void GlobalMemory::free_all() {
  while (!buffers_.empty()) free(reinterpret_cast<void*>(buffers_.back()->start));
}

Buffer* GlobalMemory::find(std::uintptr_t address) {
  const std::shared_lock lock(mutex_);
  const auto after =
      std::ranges::upper_bound(buffers_, address, {}, [](const auto& b) { return b->start; });
  if (after == buffers_.begin()) return nullptr;
  Buffer* buffer = std::prev(after)->get();
  return buffer->holds(address, 1) ? buffer : nullptr;
}

bool GlobalMemory::was_freed(std::uintptr_t address) const {
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(
      freed_, [&](const Freed& range) { return address - range.start < range.bytes; });
}

void GlobalMemory::start_counting() {
  const std::unique_lock lock(mutex_);
  counting_ = true;
  freed_touched_[false] = freed_touched_[true] = 0;
  for (const auto& buffer : buffers_) reset(*buffer);
}

void GlobalMemory::stop_counting() {
  const std::unique_lock lock(mutex_);
  counting_ = false;
  for (const auto& buffer : buffers_)
    for (Buffer::Bits& bits : buffer->touched) bits.reset();
}

std::size_t GlobalMemory::bytes_touched(bool written) const {
  const std::shared_lock lock(mutex_);
  std::size_t sum = freed_touched_[written];
  for (const auto& buffer : buffers_) sum += count(*buffer, buffer->touched[written]);
  return sum * kSector;
}

}  // namespace emulator
