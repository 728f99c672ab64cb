// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <cstddef>

namespace emulator {

/// Of this system: 4096 on x86-64, up to 65536 on aarch64.
inline std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace emulator
