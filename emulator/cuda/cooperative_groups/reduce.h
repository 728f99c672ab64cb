// SPDX-License-Identifier: MIT
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

// clang-format off
#define EMULATOR_OPERATOR(NAME, VALUE) \
  template <class T> struct NAME { EMULATOR_INLINE T operator()(T a, T b) const { return VALUE; } };
EMULATOR_OPERATOR(plus, a + b) EMULATOR_OPERATOR(less, b < a ? b : a)
EMULATOR_OPERATOR(greater, a < b ? b : a) EMULATOR_OPERATOR(bit_and, a & b)
EMULATOR_OPERATOR(bit_or, a | b) EMULATOR_OPERATOR(bit_xor, a ^ b)
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
