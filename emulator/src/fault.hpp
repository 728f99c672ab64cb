// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace emulator {

/// What a kernel did wrong, in words for its author. Ends the launch. An empty one only unwinds a
/// block of a cluster in which another block was at fault.
struct Fault {
  std::string text;
};

}  // namespace emulator
