// SPDX-License-Identifier: MIT
//
// Scratch memory for peers that call CUB.
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// Calls `call(memory, bytes)` with the problem's scratch memory, whose size CUB reports in a first
/// call; like a program that calls it often, it keeps the memory. Throws CudaError.
template <class Call>
void with_workspace(Problem& problem, const char* what, Call call) {
  auto& [memory, sized] = problem.workspace;
  if (!sized) {
    size_t bytes = 0;
    check(call(nullptr, bytes), what);
    memory = DeviceBuffer<char>(bytes);
    sized = true;
  }
  size_t bytes = memory.bytes();
  check(call(memory.data(), bytes), what);
}

}  // namespace ladders
