// SPDX-License-Identifier: MIT
#include "fiber.hpp"

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <iostream>

#include "global_memory.hpp"
#include "lane.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[64];

[[noreturn]] void leave_lane() {
  yield(*current_lane, State::stopped);
  __builtin_unreachable();
}

std::uintptr_t instruction(void* context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
  return static_cast<ucontext_t*>(context)->uc_mcontext.pc;
#endif
}

// Makes the interrupted lane go on in leave_lane. It never comes back, so its stack is free.
void on_trap(int signal, siginfo_t* info, void* context) {
  Lane* lane = current_lane;
  if (!lane) {  // not a kernel's: the instruction traps again, with whoever was there before
    const auto touched = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (const Buffer* buffer = signal == SIGSEGV ? GlobalMemory::get().find(touched) : nullptr)
      std::cerr << "host code touches device memory: " << buffer->place(touched) << ", at "
                << source_line(instruction(context) + 1).text() << "; copy it with cudaMemcpy"
                << std::endl;
    sigaction(signal, &previous[signal], nullptr);
    return;
  }
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  const std::uintptr_t top = (lane->stack + kStackBytes - 64) & ~std::uintptr_t{15};
  lane->trap = signal;
  lane->pc = lane->reads_for ? lane->reads_for : instruction(context) + 1;
  lane->trap_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  machine.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(leave_lane));
  machine.gregs[REG_RSP] = static_cast<greg_t>(top - 8);  // as after a call
#else
  machine.pc = reinterpret_cast<std::uintptr_t>(leave_lane);
  machine.sp = top;
#endif
}

}  // namespace

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
