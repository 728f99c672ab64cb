// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>

namespace emulator {

/// Names the line where the host's own code touches a buffer of the device, before it dies of that.
void handle_traps();

/// From now on the processor's traps in lanes of this host thread, such as of an access far out of
/// bounds, stop the lane (State::stopped) and not the process. They are handled on a stack of their
/// own: the lane's may be what ran out.
void handle_lane_traps(std::span<std::byte> stack);

}  // namespace emulator
