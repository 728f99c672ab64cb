// SPDX-License-Identifier: MIT
//
// What compiled kernels call. The compiler's thread-sanitizer instrumentation calls a function
// before each access to memory, its coverage instrumentation one in each basic block; sanitizers
// bring a runtime for these, and this is another.
#include <cstdio>
#include <type_traits>

#include "block.hpp"
#include "cooperative_groups.h"

namespace emulator {
static bool instrumented = false;
bool note_instrumentation() { return instrumented = true; }
bool counted() { return instrumented; }

void append_later(Lane& lane, Record record) {
  if (lane.next == lane.end) yield(lane, State::log_full);
  note_value(lane.next[-1]);
  *lane.next++ = record;
}

unsigned grid_arrivals = 0, grid_release = 0;

unsigned lane_index() { return current_lane->number; }
void* dynamic_shared() { return current_block->dynamic_shared(); }
bool is_cooperative() { return current_block->launch().cooperative; }
void check_grid_sync() {
  if (!is_cooperative())
    stop(RETURN_ADDRESS,
         "grid.sync(): the launch is not cooperative, so blocks may not run at once");
  if (current_block->has_lost_threads())
    stop(RETURN_ADDRESS, "grid.sync(): a thread of the block has exited, but all must take part");
}
unsigned cluster_rank() { return current_block->rank(); }
unsigned cluster_size() { return current_block->cluster_size(); }
void* map_shared(void* address, unsigned rank) {
  if (void* there = current_block->map_shared(address, rank)) return there;
  stop(RETURN_ADDRESS, "map_shared_rank: there is no block ", rank, " in a cluster of ",
       cluster_size());
}

// The running lane waits there, called from `pc`; returns what it is answered.
static std::uint64_t wait_at(State state, auto value, std::uintptr_t pc) {
  Lane& lane = *current_lane;
  lane.pc = pc;
  lane.value = static_cast<std::uint64_t>(value);
  yield(lane, state);
  return lane.value;
}
int block_barrier(Vote vote, int predicate) {
  current_lane->vote = vote;
  return static_cast<int>(wait_at(State::at_block_barrier, predicate, RETURN_ADDRESS));
}
void cluster_barrier(Orders what) { wait_at(State::at_cluster_barrier, what, RETURN_ADDRESS); }
std::uint64_t warp_function(WarpFunction function, unsigned mask, std::uint64_t value, int argument,
                            int width) {
  current_lane->call = {function, mask, argument, width};
  return wait_at(State::at_warp_function, value, RETURN_ADDRESS);
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

// An access that orders others: `perform` does it, while nobody may come between, and returns what
// it was. `event` and `size` are as for record(); `access` holds what else there is to say.
void strong(const volatile void* word, unsigned bytes, Event event, unsigned size,
            std::uintptr_t pc, auto perform, Races::Access access) {
  Lane& lane = *current_lane;
  access.address = address_of(word);
  access.bytes = bytes;
  access.pc = pc;
  access.strong = true;
  current_block->before_strong(lane, access.address, pc);
  record(word, size, event, pc);
  const OutsideLane outside;
  access.operation = perform();
  access.narrow = std::exchange(lane.narrow, false);
  current_block->strong(lane, access);
}

template <class T, class F>
T exchange(T* address, unsigned size, std::uintptr_t pc, bool compares, F change,
           Strength strength = Strength::relaxed) {
  T old, changed;
  const auto perform = [&] {
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do changed = change(old);
    while (!__atomic_compare_exchange(address, &old, &changed, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    const bool stored = std::memcmp(&old, &changed, sizeof(T)) != 0;
    if (stored) current_block->note_change();
    return stored || !compares ? Operation::atomic : Operation::load;
  };
  strong(address, sizeof(T), Event::atomic, size, pc, perform,
         {.compares = compares, .strength = strength, .replaced = &old});
  return old;
}

// The access itself comes next.
void volatile_access(void* data, unsigned log2_bytes, Event event, std::uintptr_t pc) {
  if (!current_lane) return;
  const auto perform = [&] {
    if (event == Event::load) return Operation::load;
    current_block->note_change();
    return Operation::store;
  };
  strong(data, 1u << log2_bytes, event, log2_bytes | Record::kVolatile, pc, perform,
         {.is_volatile = true, .replaced = data});
}

template <class T>
void copy_as(void* to, const void* from) {
  __atomic_store_n(static_cast<T*>(to),
                   __atomic_load_n(static_cast<const T*>(from), __ATOMIC_ACQUIRE),
                   __ATOMIC_RELEASE);
}
// Copies a word of 4, 8 or 16 bytes as a whole.
void copy_word(void* to, const void* from, unsigned bytes) {
  static std::mutex words_of_16;
  if (bytes == 4) return copy_as<unsigned>(to, from);
  if (bytes == 8) return copy_as<std::uint64_t>(to, from);
  const std::lock_guard lock(words_of_16);
  for (int i = 0; i < 2; ++i)
    static_cast<volatile std::uint64_t*>(to)[i] = static_cast<const std::uint64_t*>(from)[i];
}
// Half of a word of 16 bytes is counted, shorter words are not.
unsigned log2_counted(unsigned bytes) { return bytes == 4 ? 2 : 3; }

}  // namespace

void strong_load(const void* word, void* value, unsigned bytes, Strength strength) {
  const auto perform = [&] {
    copy_word(value, word, bytes);
    return Operation::load;
  };
  strong(word, bytes, bytes == 16 ? Event::load : Event::flag, log2_counted(bytes), RETURN_ADDRESS,
         perform, {.strength = strength, .read = value});
}
void strong_store(void* word, const void* value, unsigned bytes, Strength strength) {
  std::uint64_t old[2];
  const auto perform = [&] {
    std::memcpy(old, word, bytes);
    if (std::memcmp(word, value, bytes) != 0) current_block->note_change();
    copy_word(word, value, bytes);
    return Operation::store;
  };
  strong(word, bytes, bytes == 16 ? Event::store : Event::flag_store, log2_counted(bytes),
         RETURN_ADDRESS, perform, {.strength = strength, .replaced = old});
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

using namespace emulator;

void __threadfence() {
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  if (current_lane) fence(*current_lane);
}
void emulator::narrow_scope() {
  if (current_lane) current_lane->narrow = true;
}

#define ATOMIC_OF(NAME, T, SIZE, CHANGED)                     \
  T NAME(T* address, T value) {                               \
    return exchange(address, SIZE, RETURN_ADDRESS, false,     \
                    [value](T old) -> T { return CHANGED; }); \
  }
#define ATOMIC(NAME, T, CHANGED) ATOMIC_OF(NAME, T, kTurns<T>, CHANGED)
#define ATOMIC_ADD(NAME, T) ATOMIC_OF(NAME, T, addition(value), old + value)
#define SWAP(T)                                                           \
  T atomicCAS(T* address, T compare, T value) {                           \
    return exchange(address, kTurns<T>, RETURN_ADDRESS, true,             \
                    [=](T old) { return old == compare ? value : old; }); \
  }
EMULATOR_ATOMICS(ATOMIC_ADD, ATOMIC, SWAP)

void __trap() { stop(RETURN_ADDRESS, "kernel called __trap"); }
void __brkpt() { stop(RETURN_ADDRESS, "kernel called __brkpt"); }
// What assert calls, in place of the C library's.
extern "C" void __assert_fail(const char* what, const char* file, unsigned line,
                              const char*) noexcept {
  if (current_lane) stop(RETURN_ADDRESS, "assertion failed: ", what);
  std::fprintf(stderr, "%s:%u: assertion failed: %s\n", file, line, what);
  std::abort();
}

extern "C" {

// ---- the thread sanitizer's interface

void __tsan_init() {}
void __tsan_vptr_update(void** p, void*) { record(p, 3, Event::store, RETURN_ADDRESS); }
void __tsan_vptr_read(void** p) { record(p, 3, Event::load, RETURN_ADDRESS); }

#define ACCESS_OF(NAME, BYTES, FUNCTION, SIZE)                                                 \
  void __tsan_##NAME##read##BYTES(void* p) { FUNCTION(p, SIZE, Event::load, RETURN_ADDRESS); } \
  void __tsan_##NAME##write##BYTES(void* p) { FUNCTION(p, SIZE, Event::store, RETURN_ADDRESS); }
// The device reads and writes words that are not aligned in parts.
#define ACCESS(BYTES, LOG2)                          \
  ACCESS_OF(, BYTES, record, LOG2)                   \
  ACCESS_OF(volatile_, BYTES, volatile_access, LOG2) \
  ACCESS_OF(unaligned_, BYTES, record_range, BYTES)  \
  ACCESS_OF(unaligned_volatile_, BYTES, record_range, BYTES)
ACCESS(1, 0)
ACCESS(2, 1)
ACCESS(4, 2)
ACCESS(8, 3)
ACCESS(16, 4)

void __tsan_read_range(void* p, size_t n) { record_range(p, n, Event::load, RETURN_ADDRESS); }
void __tsan_write_range(void* p, size_t n) { record_range(p, n, Event::store, RETURN_ADDRESS); }

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

#define UNDEFINED(NAME, PARAMETERS, WHAT)         \
  void NAME PARAMETERS {                          \
    if (current_lane) stop(RETURN_ADDRESS, WHAT); \
  }
UNDEFINED(__ubsan_handle_shift_out_of_bounds, (void*, void*, void*),
          "shift count is negative, or not less than the width of the type: undefined in C++")
UNDEFINED(__ubsan_handle_float_cast_overflow, (void*, void*),
          "the floating-point value does not fit the integer type: undefined in C++, and "
          "__float2int_rz and its kin saturate")

// ---- the coverage interface

void __sanitizer_cov_trace_pc() {
  Lane* lane = current_lane;
  if (!lane) return;
  if (lane->next) return note(Event::step, 0, RETURN_ADDRESS);
  if (__builtin_expect(--lane->steps_left != 0, 1)) return;
  lane->step = RETURN_ADDRESS;
  yield(*lane, State::log_full);
}
}
