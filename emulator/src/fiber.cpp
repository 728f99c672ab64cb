// SPDX-License-Identifier: MIT
#include "fiber.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <new>

#include "global_memory.hpp"
#include "lane.hpp"
#include "symbols.hpp"

#if defined(__aarch64__)
asm(R"(
.macro saved instruction
  \instruction x19, x20, [sp, #0]
  \instruction x21, x22, [sp, #16]
  \instruction x23, x24, [sp, #32]
  \instruction x25, x26, [sp, #48]
  \instruction x27, x28, [sp, #64]
  \instruction x29, x30, [sp, #80]
  \instruction d8, d9, [sp, #96]
  \instruction d10, d11, [sp, #112]
  \instruction d12, d13, [sp, #128]
  \instruction d14, d15, [sp, #144]
.endm
.text
.globl emulator_switch
.type emulator_switch,%function
.p2align 4
emulator_switch:
  sub sp, sp, #160
  saved stp
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  saved ldp
  add sp, sp, #160
  ret
.size emulator_switch, .-emulator_switch
)");
#elif !defined(__x86_64__)
#error "switch_context is written for x86-64 and aarch64"
#endif

namespace emulator {
namespace {

constexpr std::size_t kBytes = kMaxThreads * kStackBytes;
// Guards split a mapping each, of which a process has 65530.
constexpr int kGuards = 16 * 1024;
std::atomic<int> guards{0};

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[64];

[[noreturn]] void leave_lane() {
  yield(*current_lane, State::stopped);
  __builtin_unreachable();
}

// Where the code goes on and where its stack ends; and the bytes that a call leaves on that.
#if defined(__x86_64__)
greg_t& instruction(mcontext_t& machine) { return machine.gregs[REG_RIP]; }
greg_t& stack_end(mcontext_t& machine) { return machine.gregs[REG_RSP]; }
constexpr std::uintptr_t kOfCall = 8;
// movaps and its kin, which trap without an address if theirs is misaligned, or is none at all.
bool moves_aligned(const unsigned char* code) {
  while (*code == 0x66 || *code >> 4 == 4) ++code;  // prefixes
  const unsigned char move = code[*code == 0x0F ? 1 : *code == 0xC5 ? 2 : 3];
  return (*code == 0x0F || *code >> 1 == 0x62) && ((move | 1) == 0x29 || (move | 0x10) == 0x7F);
}
#else
bool moves_aligned(const unsigned char*) { return true; }
auto& instruction(mcontext_t& machine) { return machine.pc; }
auto& stack_end(mcontext_t& machine) { return machine.sp; }
constexpr std::uintptr_t kOfCall = 0;
#endif

// Makes the interrupted lane go on in leave_lane. It never comes back, so its stack is free.
void on_trap(int signal, siginfo_t* info, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const std::uintptr_t after = static_cast<std::uintptr_t>(instruction(machine)) + 1;
  const std::uintptr_t touched = address_of(info->si_addr);
  Lane* lane = current_lane;
  if (!lane) {  // not a kernel's: the instruction traps again, with whoever was there before
    if (const Buffer* buffer = signal == SIGSEGV ? GlobalMemory::get().find(touched) : nullptr)
      std::cerr << "host code touches device memory: " << buffer->place(touched) << ", at "
                << source_line(after).text() << "; copy it with cudaMemcpy" << std::endl;
    sigaction(signal, &previous[signal], nullptr);
    return;
  }
  const auto* const code = reinterpret_cast<const unsigned char*>(after - 1);
  lane->trap = info->si_code == SI_KERNEL && moves_aligned(code) ? SIGBUS : signal;
  lane->pc = lane->reads_for ? lane->reads_for : after;
  lane->trap_address = touched;
  const std::uintptr_t top = (lane->stack + kStackBytes - 64) & ~std::uintptr_t{15};
  instruction(machine) = reinterpret_cast<std::uintptr_t>(leave_lane);
  stack_end(machine) = top - kOfCall;
}

}  // namespace

FiberStacks::FiberStacks()
    : memory_(static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      guarded_(kMaxThreads) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
}

FiberStacks::~FiberStacks() {
  munmap(memory_, kBytes);
  guards -= static_cast<int>(std::ranges::count(guarded_, true));
}

void FiberStacks::reset(unsigned threads) {
  free_.clear();
  for (unsigned i = threads; i-- > 0;) free_.push_back(memory_ + i * kStackBytes);
}

char* FiberStacks::take() {
  char* stack = free_.back();
  free_.pop_back();
  if (!guarded_[number(stack)] && guards < kGuards &&
      mprotect(stack, page_bytes(), PROT_NONE) == 0) {
    guarded_[number(stack)] = true;
    ++guards;
  }
  return stack;
}

// Stacks start at different distances from a page, or all would share a few cache sets.
void* FiberStacks::start(char* stack, void (*entry)()) const {
  auto* top = reinterpret_cast<void**>(stack + kStackBytes - 192 * (number(stack) % 128 + 1));
#if defined(__x86_64__)
  *--top = nullptr;  // where entry's return address would lie: 8 bytes off 16, as after a call
  *--top = reinterpret_cast<void*>(entry);
#else
  top -= 20;
  std::fill_n(top, 20, nullptr);
  top[11] = reinterpret_cast<void*>(entry);  // x30, where ret goes
#endif
  return top;
}

bool FiberStacks::hold(std::uintptr_t address) const {
  return address - address_of(memory_) < kBytes;
}

std::size_t FiberStacks::number(const char* stack) const {
  return static_cast<std::size_t>(stack - memory_) / kStackBytes;
}

// ---- traps

void handle_traps() {
  [[maybe_unused]] static const bool installed = [] {
    struct sigaction action{};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (const int signal : kSignals) sigaction(signal, &action, &previous[signal]);
    return true;
  }();
}

void handle_lane_traps(std::span<std::byte> stack) {
  handle_traps();
  const stack_t there{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&there, nullptr);
}

}  // namespace emulator
