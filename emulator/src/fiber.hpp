// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace emulator {

/// Of this system: 4096 on x86-64, up to 65536 on aarch64.
inline std::size_t page_bytes() { return static_cast<std::size_t>(getpagesize()); }

/// Saves where the running context is in *from and goes on where `to` was saved. Kernels change
/// neither rounding modes nor signal masks, which make the standard swapcontext a hundred times as
/// slow.
#if defined(__x86_64__)
inline __attribute__((always_inline)) void switch_context(void** from, void* to) {
  // A jump, as processors predict that a return goes where the last call came from. The compiler
  // saves what it needs of the other registers. It must have no red zone: see CMakeLists.txt.
  asm volatile(R"(
    pushq %%rbp
    pushq %%rbx
    leaq 1f(%%rip), %%rax
    pushq %%rax
    movq %%rsp, (%0)
    movq %1, %%rsp
    popq %%rax
    jmpq *%%rax
  1:
    popq %%rbx
    popq %%rbp)"
               : "+D"(from), "+S"(to)
               :
               : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
                 "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                 "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
                 "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
                 "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3",
                 "k4", "k5", "k6", "k7",
#endif
                 "cc", "memory");
}
#else
void switch_context(void** from, void* to) asm("emulator_switch");
#endif

/// Names the line where the host's own code touches a buffer of the device, before it dies of that.
void handle_traps();

/// From now on the processor's traps in lanes of this host thread, such as of an access far out of
/// bounds, stop the lane (State::stopped) and not the process. They are handled on a stack of their
/// own: the lane's may be what ran out.
void handle_lane_traps(std::span<std::byte> stack);

/// The stacks of a block's threads. Each has at its low end a page without access where it
/// overflows, while the process has few enough of these.
class FiberStacks {
 public:
  FiberStacks();
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;

  /// Takes all back, for a block of so many threads.
  void reset(unsigned threads);
  /// The lowest address of a free one, of kStackBytes.
  char* take();
  void give_back(char* stack) { free_.push_back(stack); }
  /// A context that starts `entry` on the stack; `entry` must not return.
  void* start(char* stack, void (*entry)()) const;
  bool hold(std::uintptr_t address) const;

 private:
  std::size_t number(const char* stack) const;

  char* memory_;
  std::vector<bool> guarded_;  // by number
  std::vector<char*> free_;    // the one used last on top: it is in the cache
};

}  // namespace emulator
