// SPDX-License-Identifier: MIT
#include "shared_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>

#include "lane.hpp"
#include "requests.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

// Dynamic shared memory is given out with the alignment that kernels may ask for at most.
constexpr std::size_t kAlignment = 1024;

std::mutex mutex;
std::set<std::string>& kernels() {  // prefixes of the mangled names of their variables
  static std::set<std::string> known;
  return known;
}

// A variable of function _Zf is _ZZfE and its own name.
std::string variable_prefix(const std::string& function) { return "_Z" + function.substr(1) + "E"; }

const Variable* find(std::size_t offset) {
  const Variable* variable = last_before(Symbols::get().shared(), offset);
  return variable && offset < variable->offset + variable->bytes ? variable : nullptr;
}

bool belongs_to_another(const Variable& variable, const std::string& kernel) {
  if (variable.symbol.starts_with(variable_prefix(kernel))) return false;
  const std::lock_guard lock(mutex);
  return std::ranges::any_of(
      kernels(), [&](const std::string& prefix) { return variable.symbol.starts_with(prefix); });
}

}  // namespace

void register_kernel(const std::string& symbol) {
  const std::lock_guard lock(mutex);
  if (!symbol.empty()) kernels().insert(variable_prefix(symbol));
}

std::size_t static_shared_bytes(const std::string& kernel) {
  if (kernel.empty()) return 0;
  std::size_t sum = 0;
  for (const Variable& variable : Symbols::get().shared())
    if (variable.symbol.starts_with(variable_prefix(kernel))) sum += variable.bytes;
  return sum;
}

SharedMemory::SharedMemory()
    : dynamic_(static_cast<char*>(std::aligned_alloc(
          kAlignment, (kDynamicBytes + kAlignment - 1) / kAlignment * kAlignment))) {
  if (!dynamic_) throw std::bad_alloc();
}

SharedMemory::~SharedMemory() { std::free(dynamic_); }

void SharedMemory::attach(const std::string& kernel) {
  kernel_ = kernel;
  foreign_.assign(Symbols::get().shared().size(), -1);
  const std::span<char> storage = thread_storage();
  static_start_ = address_of(storage.data());
  static_bytes_ = storage.size();
}

void SharedMemory::start(std::size_t dynamic_bytes) {
  dynamic_bytes_ = dynamic_bytes;
  first_epoch_ = ++epoch_;
  ++cluster_epoch_;
  ++block_;
}

void* SharedMemory::in(const SharedMemory& other, void* address) const {
  const auto a = address_of(address);
  if (is_dynamic(a)) return other.dynamic_ + (a - dynamic_start());
  return reinterpret_cast<void*>(a - static_start_ + other.static_start_);
}

std::size_t SharedMemory::offset_in_variable(std::size_t offset) const {
  if (offset >= static_span()) return offset - static_span();
  const Variable* variable = find(offset);
  return variable ? offset - variable->offset : offset;
}

std::string SharedMemory::out_of_bounds(std::size_t offset, unsigned bytes) {
  if (offset >= static_span()) {
    if (offset - static_span() + bytes <= dynamic_bytes_) return "";
    return "at byte " + std::to_string(offset - static_span()) + " of " +
           std::to_string(dynamic_bytes_) + " bytes of dynamic shared memory";
  }
  const auto variables = Symbols::get().shared();
  if (variables.empty()) return "";  // a stripped program
  const Variable* variable = find(offset);
  if (!variable) return "beyond any variable";
  if (offset + bytes > variable->offset + variable->bytes)
    return "at the end of " + variable->name();
  // A variable of a device function is anyone's; that of another kernel lies next to one's own by
  // chance.
  signed char& foreign = foreign_[static_cast<std::size_t>(variable - variables.data())];
  if (foreign < 0) foreign = !kernel_.empty() && belongs_to_another(*variable, kernel_);
  return foreign ? "beyond the kernel's own variables" : "";
}

std::string SharedMemory::variable(std::size_t offset) const {
  if (offset >= static_span()) return "dynamic shared memory";
  const Variable* variable = find(offset);
  return variable ? variable->name() : "shared memory";
}

template <class F>
void SharedMemory::for_each_shadow(std::size_t offset, unsigned bytes, F f) {
  if (!words_) {
    const std::size_t size = static_span() + kDynamicBytes;
    words_.reset(static_cast<Word*>(std::calloc(size / 4, sizeof(Word))));
    bytes_.reset(static_cast<Shadow*>(std::calloc(size, sizeof(Shadow))));
    if (!words_ || !bytes_) throw std::bad_alloc();
  }
  for (const std::size_t end = offset + bytes; offset < end;) {
    Word& word = words_[offset / 4];
    const bool split = word.split_in == block_;
    if (!split && offset % 4 == 0 && end - offset >= 4) {
      if (!f(word.shadow)) return;
      offset += 4;
      continue;
    }
    if (!split) {
      std::fill_n(&bytes_[offset / 4 * 4], 4, word.shadow);
      word.split_in = block_;
    }
    if (!f(bytes_[offset++])) return;
  }
}

namespace {

// Those lanes whose past up to their warp function `since` the thread of `access` can rely on:
// itself, and whoever met it, or somebody who met it later, in a warp function. For loads a shuffle
// is enough: it passes on what was read.
std::uint32_t known_to(const SharedMemory::Access& access, unsigned since, bool of_loads) {
  std::uint32_t known = 1u << access.thread % 32;
  for (unsigned i = access.syncs; i > since; --i) {
    const WarpMeeting& met = access.warp_syncs[i - 1];
    if ((met.orders_memory || of_loads) && met.lanes & known) known |= met.lanes;
  }
  return known;
}

}  // namespace

std::optional<SharedMemory::Race> SharedMemory::conflict(const Mark& mark, const Access& access,
                                                         const char* what, bool of_loads) const {
  if (mark.cluster_epoch != cluster_epoch_) return {};
  const auto block_of = [](unsigned thread) { return thread / 1024; };
  // Two stores of one value are none, whichever comes first.
  const auto same_value = [&](const Last& m) {
    return access.kind == Operation::store && Record::is_digest(access.value) &&
           m.value == access.value;
  };
  const auto in_order = [&](const Last& m) {
    return same_value(m) || access.knows(m.thread, m.time);
  };
  const Last &last = mark.last, &other = mark.other;
  const std::optional<Race> with_last(Race{what, last.thread, last.pc}), none;
  if (block_of(last.thread) != block_of(access.thread)) return in_order(last) ? none : with_last;
  // What a lane has read it may have passed on to another by a shuffle.
  const bool passed_on =
      other.thread == access.thread || (of_loads && other.thread / 32 == access.thread / 32);
  if (mark.has_other && !passed_on &&
      (mark.epoch == access.epoch || block_of(other.thread) != block_of(last.thread)) &&
      !in_order(other))
    return Race{what, other.thread, other.pc};
  if (mark.epoch != access.epoch) return {};
  if (last.thread / 32 != access.thread / 32) return in_order(last) ? none : with_last;
  if (same_value(last)) return {};
  const std::uint32_t others = mark.lanes & ~(1u << access.thread % 32);
  std::uint32_t unknown = others ? others & ~known_to(access, mark.syncs, of_loads) : 0;
  for_each_lane(unknown, [&](unsigned l) {
    const bool is_last = l == last.thread % 32u;
    if (access.knows(last.thread / 32u * 32 + l, is_last ? last.time : mark.first_time))
      unknown &= ~(1u << l);
  });
  if (unknown == 0) return {};
  if ((unknown >> last.thread % 32 & 1) != 0) return with_last;
  // The last was in order, and may have been this thread itself; one before it was not.
  return Race{what, last.thread / 32u * 32 + static_cast<unsigned>(std::countr_zero(unknown)),
              last.pc};
}

bool SharedMemory::is_unshown(const Mark& mark, const Access& access) const {
  const Last& last = mark.last;
  return access.value == Record::kByCopy && mark.epoch >= first_epoch_ &&
         last.value != Record::kByCopy && last.thread / 1024 == access.thread / 1024 &&
         !access.knows(last.thread, last.time, Clock::kShared);
}

void SharedMemory::add(Mark& mark, const Access& access) const {
  const std::uint32_t lane = 1u << access.thread % 32;
  const bool same_block = mark.last.thread / 1024 == access.thread / 1024;
  const bool other_is_ours = mark.other.thread / 1024 == access.thread / 1024;
  if (mark.cluster_epoch != cluster_epoch_) {
    mark.lanes = mark.has_other = 0;
  } else if (same_block && mark.epoch != access.epoch) {
    mark.lanes = 0;
    mark.has_other &= !other_is_ours;
  } else if (mark.last.thread / 32 == access.thread / 32) {
    const bool of_loads = access.kind == Operation::load;
    mark.lanes &= mark.lanes == lane ? 0 : ~known_to(access, mark.syncs, of_loads);
  } else {
    mark.lanes = 0;
    // One of another block stays: it is over for nobody before the next cluster barrier.
    if (!same_block || !mark.has_other || other_is_ours) mark.other = mark.last;
    mark.has_other = true;
  }
  mark.syncs = mark.lanes ? std::min(mark.syncs, access.syncs) : access.syncs;
  mark.first_time = mark.lanes ? std::min(mark.first_time, access.time) : access.time;
  mark.lanes |= lane;
  mark.cluster_epoch = cluster_epoch_;
  mark.epoch = access.epoch;
  mark.request = access.request;
  mark.last = {static_cast<std::uint16_t>(access.thread), access.pc, access.value, access.time};
}

std::optional<SharedMemory::Race> SharedMemory::note(std::size_t offset, unsigned bytes,
                                                     const Access& access) {
  const bool load = access.kind == Operation::load, atomic = access.kind == Operation::atomic;
  std::optional<Race> race;
  for_each_shadow(offset, bytes, [&](Shadow& s) {
    const bool one_store = s.store.request == access.request && s.store.epoch == access.epoch &&
                           s.store.last.thread / 32 == access.thread / 32;
    // Nobody knows what is there, the thread that copies included.
    if (s.copy_in == block_ && access.copy != Access::Copy::arrived && !one_store)
      race = Race{load ? "read before the wait for an asynchronous copy"
                       : "write before the wait for an asynchronous copy",
                  s.store.last.thread, s.store.last.pc};
    const char* after_write = load ? "read after write" : "write after write";
    if (one_store && s.store.last.value != access.value)
      race = Race{"write of another value by the same instruction", s.store.last.thread,
                  s.store.last.pc, true};
    if (!race && !one_store) race = conflict(s.store, access, after_write, false);
    if (!race && !atomic) race = conflict(s.atomic, access, after_write, false);
    if (!race && !load) race = conflict(s.load, access, "write after read", true);
    for (const Mark* mark : {&s.store, &s.atomic})
      if (!race && is_unshown(*mark, access))
        race = Race{load ? "a bulk copy reads what no fence has shown it, the write"
                         : "a bulk copy overwrites what no fence has shown it, the write",
                    mark->last.thread, mark->last.pc, false, true};
    add(load ? s.load : atomic ? s.atomic : s.store, access);
    if (!load) s.written_in = block_;
    if (access.copy != Access::Copy::none)
      s.copy_in = access.copy == Access::Copy::issued ? block_ : 0;
    return !race;
  });
  return race;
}

void SharedMemory::land(std::size_t offset, unsigned bytes) {
  for_each_shadow(offset, bytes, [](Shadow& s) { return s.copy_in = 0, true; });
}

bool SharedMemory::written(std::size_t offset, unsigned bytes) {
  bool all = true;
  for_each_shadow(offset, bytes, [&](const Shadow& s) { return all = s.written_in == block_; });
  return all;
}

}  // namespace emulator
