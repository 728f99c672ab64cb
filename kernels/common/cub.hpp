// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// Calls `call(memory, bytes)` with the problem's scratch memory, whose size CUB reports first.
template <class Call>
void with_workspace(Problem& problem, const char* what, Call call) {
  if (!problem.workspace) {
    size_t bytes = 0;
    check(call(nullptr, bytes), what);
    problem.workspace.emplace(bytes);
  }
  size_t bytes = problem.workspace->bytes();
  check(call(problem.workspace->data(), bytes), what);
}

}  // namespace ladders
