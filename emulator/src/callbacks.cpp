// SPDX-License-Identifier: MIT
//
// What compiled kernels call. The compiler's thread-sanitizer instrumentation calls a function
// before each access to memory, its coverage instrumentation one in each basic block; sanitizers
// bring a runtime for these, and this is another.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

template <class T, class F>
T exchange(T* address, F change) {
  T old, changed;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do changed = change(old);
  while (!__atomic_compare_exchange(address, &old, &changed, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
  if (std::memcmp(&old, &changed, sizeof(T)) != 0) current_block->note_change();
  return old;
}

}  // namespace
}  // namespace emulator

#define ATOMIC_OF(NAME, T, SIZE, CHANGED)                              \
  T NAME(T* address, T value) {                                        \
    using namespace emulator;                                          \
    record(address, SIZE, Event::atomic, RETURN_ADDRESS);              \
    return exchange(address, [value](T old) -> T { return CHANGED; }); \
  }
#define ATOMIC(NAME, T, CHANGED) ATOMIC_OF(NAME, T, kTurns<T>, CHANGED)
#define ATOMIC_ADD(NAME, T) ATOMIC_OF(NAME, T, addition(value), old + value)
#define SWAP(T)                                                                    \
  T atomicCAS(T* address, T compare, T value) {                                    \
    using namespace emulator;                                                      \
    record(address, kTurns<T>, Event::atomic, RETURN_ADDRESS);                     \
    return exchange(address, [=](T old) { return old == compare ? value : old; }); \
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

#define ACCESS(BYTES, LOG2)                                                            \
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
