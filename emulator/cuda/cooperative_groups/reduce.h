// SPDX-License-Identifier: MIT
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

// clang-format off
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
// clang-format on

/// Every lane gets the result.
template <unsigned Size, class Parent, class T, class Operator>
EMULATOR_INLINE T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operator join) {
  for (unsigned k = Size / 2; k > 0; k /= 2) value = join(value, tile.shfl_xor(value, k));
  return value;
}
template <class T, class Operator>
EMULATOR_INLINE T reduce(const coalesced_group& group, T value, Operator join) {
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank)
    result = join(result, group.shfl(value, rank));
  return result;
}

}  // namespace cooperative_groups
