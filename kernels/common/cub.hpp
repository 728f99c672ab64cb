// SPDX-License-Identifier: MIT
//
// Peers that call CUB.
#pragma once

#include "model/launch.hpp"

namespace ladders {
/// The implementation that calls CUB: `call(P&, memory, bytes, cudaStream_t)`. A first call asks
/// how much memory CUB needs; like a program that calls it often, the problem keeps that.
template <class P, class Call>
Implementation calls_cub(Call call) {
  return library<P>([call](P& problem, cudaStream_t stream) {
    static const char this_call = 0;
    const auto [found, is_new] = problem.workspaces.try_emplace(&this_call);
    auto& memory = found->second;
    size_t bytes = memory.bytes();
    if (is_new) {
      check(call(problem, nullptr, bytes, stream), "CUB");
      memory = DeviceBuffer<char>(bytes);
    }
    check(call(problem, memory.data(), bytes, stream), "CUB");
  });
}

}  // namespace ladders
