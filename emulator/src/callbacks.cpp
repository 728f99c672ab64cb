// SPDX-License-Identifier: MIT
//
// What compiled kernels call. The compiler's thread-sanitizer instrumentation calls a function
// before each access to memory, its coverage instrumentation one in each basic block; sanitizers
// bring a runtime for these, and this is another.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "block.hpp"
#include "cooperative_groups.h"
#include "emulator/language.hpp"
#include "lane.hpp"
#include "record.hpp"

namespace emulator {
namespace {
bool instrumented = false;
}
bool note_instrumentation() { return instrumented = true; }
bool counted() { return instrumented; }

void append_later(Lane& lane, Record record) {
  if (lane.next == lane.end) yield(lane, State::log_full);
  note_value(lane.next[-1]);
  *lane.next++ = record;
}

unsigned lane_index() { return current_lane->number; }
void* dynamic_shared() { return current_block->dynamic_shared(); }
unsigned cluster_rank() { return current_block->rank(); }
unsigned cluster_size() { return current_block->cluster_size(); }
void* map_shared(void* address, unsigned rank) {
  if (void* there = current_block->map_shared(address, rank)) return there;
  char what[100];
  std::snprintf(what, sizeof(what), "map_shared_rank: there is no block %u in a cluster of %u",
                rank, cluster_size());
  stop(*current_lane, what, RETURN_ADDRESS);
}

int block_barrier(Vote vote, int predicate, const char* file, int line) {
  Lane& lane = *current_lane;
  lane.vote = vote;
  lane.predicate = predicate;
  lane.file = file;
  lane.line = line;
  yield(lane, State::at_block_barrier);
  return lane.predicate;
}

void cluster_barrier(const char* file, int line) {
  Lane& lane = *current_lane;
  lane.file = file;
  lane.line = line;
  yield(lane, State::at_cluster_barrier);
}

std::uint64_t warp_function(WarpFunction function, unsigned mask, std::uint64_t value, int argument,
                            int width) {
  Lane& lane = *current_lane;
  lane.pc = RETURN_ADDRESS;
  lane.function = function;
  lane.mask = mask;
  lane.value = value;
  lane.argument = argument;
  lane.width = width;
  yield(lane, State::at_warp_function);
  return lane.value;
}

namespace {

template <class T>
constexpr unsigned kLog2 = std::countr_zero(sizeof(T));

// Additions of 1 have an instruction of their own in shared memory, which counts lanes first.
template <class T>
constexpr unsigned kTurns = kLog2<T> | static_cast<unsigned>(Record::kQueues);
template <class T>
unsigned addition(T value) {
  return std::is_integral_v<T> && sizeof(T) == 4 && value == T{1} ? kLog2<T> : kTurns<T>;
}

using Kind = GlobalOrder::Kind;
std::uintptr_t address_of(const volatile void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

template <class T, class F>
T exchange(T* address, unsigned size, std::uintptr_t pc, bool compares, F change,
           Strength strength = Strength::relaxed) {
  current_block->before_strong(*current_lane, address_of(address), pc);
  record(address, size, Event::atomic, pc);
  T old, changed;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do changed = change(old);
  while (!__atomic_compare_exchange(address, &old, &changed, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
  const bool stored = std::memcmp(&old, &changed, sizeof(T)) != 0;
  if (stored) current_block->note_change();
  current_block->strong(*current_lane, address_of(address), sizeof(T),
                        stored || !compares ? Kind::change : Kind::load, strength, pc, true);
  if (strength != Strength::relaxed) note_moment(*current_lane);
  return old;
}

void volatile_access(void* data, unsigned log2_bytes, Event event, std::uintptr_t pc) {
  if (!current_lane) return;
  current_block->before_strong(*current_lane, address_of(data), pc);
  record(data, log2_bytes, event, pc);
  if (event == Event::store) current_block->note_change();
  current_block->strong(*current_lane, address_of(data), 1u << log2_bytes,
                        event == Event::store ? Kind::store : Kind::load, Strength::relaxed, pc,
                        true);
}

int host_order(Strength strength) {
  return strength == Strength::relaxed   ? __ATOMIC_RELAXED
         : strength == Strength::acquire ? __ATOMIC_ACQUIRE
         : strength == Strength::release ? __ATOMIC_RELEASE
                                         : __ATOMIC_ACQ_REL;
}
std::mutex words_of_16;

// `access` is what the flag function does, which nobody may come between.
template <class F>
void strong(const void* word, unsigned bytes, Kind kind, Strength strength, std::uintptr_t pc,
            F access) {
  Lane& lane = *current_lane;
  current_block->before_strong(lane, address_of(word), pc);
  if (bytes == 16) record(word, 3, kind == Kind::load ? Event::load : Event::store, pc);
  current_block->strong(lane, address_of(word), bytes, kind, strength, pc, bytes == 16);
  {
    const OutsideLane outside;
    unsigned char before[16];
    std::memcpy(before, word, bytes);
    access(host_order(strength));
    if (kind != Kind::load && std::memcmp(before, word, bytes) != 0) current_block->note_change();
  }
  if (strength != Strength::relaxed) note_moment(lane);
}
void copy_16(void* to, const void* from) {
  const std::lock_guard lock(words_of_16);
  for (int i = 0; i < 2; ++i)
    static_cast<volatile std::uint64_t*>(to)[i] = static_cast<const std::uint64_t*>(from)[i];
}

}  // namespace

void strong_load(const void* word, void* value, unsigned bytes, Strength strength) {
  strong(word, bytes, Kind::load, strength, RETURN_ADDRESS, [&](int order) {
    if (bytes == 4)
      __atomic_load(static_cast<const unsigned*>(word), static_cast<unsigned*>(value), order);
    else if (bytes == 8)
      __atomic_load(static_cast<const std::uint64_t*>(word), static_cast<std::uint64_t*>(value),
                    order);
    else
      copy_16(value, word);
  });
}
void strong_store(void* word, const void* value, unsigned bytes, Strength strength) {
  strong(word, bytes, Kind::store, strength, RETURN_ADDRESS, [&](int order) {
    if (bytes == 4)
      __atomic_store_n(static_cast<unsigned*>(word), *static_cast<const unsigned*>(value), order);
    else if (bytes == 8)
      __atomic_store_n(static_cast<std::uint64_t*>(word), *static_cast<const std::uint64_t*>(value),
                       order);
    else
      copy_16(word, value);
  });
}
unsigned strong_add(unsigned* word, unsigned value, Strength strength) {
  return exchange(
      word, kTurns<unsigned>, RETURN_ADDRESS, false, [value](unsigned old) { return old + value; },
      strength);
}

void wait_uncounted(const void* flag, unsigned last) {
  const Launch& launch = current_block->launch();
  const bool explores = launch.ordered() && launch.turns->explores() && !launch.count;
  if (explores || current_block->polls_itself()) return;  // polls are run as written
  const auto* word = static_cast<const unsigned*>(flag);
  if (__atomic_load_n(word, __ATOMIC_RELAXED) == last) return;
  Lane& lane = *current_lane;
  lane.pc = RETURN_ADDRESS;
  lane.word = word;
  lane.last = last;
  yield(lane, State::at_word);
}
}  // namespace emulator

void __threadfence() {
  using namespace emulator;
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  if (!current_lane || !current_block->launch().check) return;
  Lane& lane = *current_lane;
  make_room(lane);
  {
    const OutsideLane outside;
    current_block->mark_accesses(lane);
    current_block->order().fence(lane);
  }
  note_moment(lane);
}

#define ATOMIC_OF(NAME, T, SIZE, CHANGED)                     \
  T NAME(T* address, T value) {                               \
    using namespace emulator;                                 \
    return exchange(address, SIZE, RETURN_ADDRESS, false,     \
                    [value](T old) -> T { return CHANGED; }); \
  }
#define ATOMIC(NAME, T, CHANGED) ATOMIC_OF(NAME, T, kTurns<T>, CHANGED)
#define ATOMIC_ADD(NAME, T) ATOMIC_OF(NAME, T, addition(value), old + value)
#define SWAP(T)                                                           \
  T atomicCAS(T* address, T compare, T value) {                           \
    using namespace emulator;                                             \
    return exchange(address, kTurns<T>, RETURN_ADDRESS, true,             \
                    [=](T old) { return old == compare ? value : old; }); \
  }
EMULATOR_ATOMICS(ATOMIC_ADD, ATOMIC, SWAP)

void __trap() { emulator::stop(*emulator::current_lane, "kernel called __trap", RETURN_ADDRESS); }
void __brkpt() { emulator::stop(*emulator::current_lane, "kernel called __brkpt", RETURN_ADDRESS); }
// What assert calls, in place of the C library's.
extern "C" void __assert_fail(const char* what, const char* file, unsigned line,
                              const char*) noexcept {
  char text[1000];
  std::snprintf(text, sizeof(text), "assertion failed: %s", what);
  if (emulator::current_lane) emulator::stop(*emulator::current_lane, text, RETURN_ADDRESS);
  std::fprintf(stderr, "%s:%u: %s\n", file, line, text);
  std::abort();
}

// ---- the thread sanitizer's interface

using emulator::Event;
using emulator::record;
using emulator::record_range;

extern "C" {
void __tsan_init() {}
void __tsan_vptr_update(void** p, void*) { record(p, 3, Event::store, RETURN_ADDRESS); }
void __tsan_vptr_read(void** p) { record(p, 3, Event::load, RETURN_ADDRESS); }

using emulator::volatile_access;
#define ACCESS(BYTES, LOG2)                                                            \
  void __tsan_volatile_read##BYTES(void* p) {                                          \
    volatile_access(p, LOG2, Event::load, RETURN_ADDRESS);                             \
  }                                                                                    \
  void __tsan_volatile_write##BYTES(void* p) {                                         \
    volatile_access(p, LOG2, Event::store, RETURN_ADDRESS);                            \
  }                                                                                    \
  void __tsan_unaligned_volatile_read##BYTES(void* p) {                                \
    record_range(p, BYTES, Event::load, RETURN_ADDRESS);                               \
  }                                                                                    \
  void __tsan_unaligned_volatile_write##BYTES(void* p) {                               \
    record_range(p, BYTES, Event::store, RETURN_ADDRESS);                              \
  }                                                                                    \
  void __tsan_read##BYTES(void* p) { record(p, LOG2, Event::load, RETURN_ADDRESS); }   \
  void __tsan_write##BYTES(void* p) { record(p, LOG2, Event::store, RETURN_ADDRESS); } \
  /* The device reads and writes such words in parts. */                               \
  void __tsan_unaligned_read##BYTES(void* p) {                                         \
    record_range(p, BYTES, Event::load, RETURN_ADDRESS);                               \
  }                                                                                    \
  void __tsan_unaligned_write##BYTES(void* p) {                                        \
    record_range(p, BYTES, Event::store, RETURN_ADDRESS);                              \
  }
ACCESS(1, 0)
ACCESS(2, 1)
ACCESS(4, 2)
ACCESS(8, 3)
ACCESS(16, 4)

void __tsan_read_range(void* p, unsigned long n) {
  record_range(p, n, Event::load, RETURN_ADDRESS);
}
void __tsan_write_range(void* p, unsigned long n) {
  record_range(p, n, Event::store, RETURN_ADDRESS);
}

// Host code of the same source files may use atomics; kernels use CUDA's.
// clang-format off: a table
constexpr int kOrder = __ATOMIC_SEQ_CST;
#define HOST_CHANGE(BITS, T, NAME, SUFFIX) T __tsan_atomic##BITS##_##NAME(volatile T* p, T v, int) \
  { return __atomic_##NAME##SUFFIX(p, v, kOrder); }
#define HOST_SWAP(BITS, T, NAME)                                                                   \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* p, T* expected, T v, int, int)     \
  { return __atomic_compare_exchange_n(p, expected, v, false, kOrder, kOrder); }
#define HOST_ATOMICS(BITS, T)                                                                      \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) { return __atomic_load_n(p, kOrder); }    \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) { __atomic_store_n(p, v, kOrder); }    \
  HOST_CHANGE(BITS, T, fetch_add, ) HOST_CHANGE(BITS, T, fetch_sub, )                              \
  HOST_CHANGE(BITS, T, fetch_and, ) HOST_CHANGE(BITS, T, fetch_or, )                               \
  HOST_CHANGE(BITS, T, fetch_xor, ) HOST_CHANGE(BITS, T, exchange, _n)                             \
  HOST_SWAP(BITS, T, strong) HOST_SWAP(BITS, T, weak)                                              \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* p, T expected, T v, int, int) {         \
    return __atomic_compare_exchange_n(p, &expected, v, false, kOrder, kOrder), expected;          \
  }
// clang-format on
HOST_ATOMICS(8, unsigned char)
HOST_ATOMICS(16, unsigned short)
HOST_ATOMICS(32, unsigned)
HOST_ATOMICS(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

// ---- the undefined-behaviour sanitizer's interface: what the device computes, and this host may
// not

#define UNDEFINED(NAME, PARAMETERS, WHAT)                                                      \
  void NAME PARAMETERS {                                                                       \
    if (emulator::current_lane) emulator::stop(*emulator::current_lane, WHAT, RETURN_ADDRESS); \
  }
UNDEFINED(__ubsan_handle_shift_out_of_bounds, (void*, void*, void*),
          "shift count is negative, or not less than the width of the type: undefined in C++")
UNDEFINED(__ubsan_handle_float_cast_overflow, (void*, void*),
          "the floating-point value does not fit the integer type: undefined in C++, and "
          "__float2int_rz and its kin saturate")

// ---- the coverage interface

void __sanitizer_cov_trace_pc() {
  emulator::Lane* lane = emulator::current_lane;
  if (!lane) return;
  if (!lane->next) {
    if (__builtin_expect(--lane->steps_left != 0, 1)) return;
    lane->step = RETURN_ADDRESS;
    return yield(*lane, emulator::State::log_full);
  }
  append(*lane, {static_cast<std::uint64_t>(Event::step) << 56, RETURN_ADDRESS, 0});
}
}
