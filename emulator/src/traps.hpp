// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace emulator {

/// Names the line where the host's own code touches a buffer of the device, before it dies of that.
void handle_traps();

/// While it lives, the processor's traps in lanes of this host thread, such as of an access far out
/// of bounds, stop the lane (State::stopped) and not the process.
class TrapHandling {
 public:
  TrapHandling();
  ~TrapHandling();
  TrapHandling(const TrapHandling&) = delete;

 private:
  // Signals are handled on a stack of their own: the lane's may be what ran out.
  alignas(16) std::byte stack_[64 * 1024];
};

}  // namespace emulator
