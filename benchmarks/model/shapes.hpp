// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders {

/// Copies of `ladders`, measured at the shapes that `texts` list, by every rung. Ladders that no
/// text names are measured at no shape. A text is "LADDER:AXES=VALUES,...": AXES is an axis or
/// several equal ones, "m=n=k"; VALUES are a list of integers, powers "2^20", labels of the axis,
/// and ranges "1024..8192*2" or "0..100+10". Axes that are not named have the value of the headline
/// of `cases`; several texts of a ladder are joined. Throws std::invalid_argument.
std::vector<Ladder> at_shapes(const std::vector<Ladder>& ladders,
                              const std::vector<std::string>& texts, Shapes cases);

/// Which problem of these ladders needs more than `bytes` of memory, in words; empty if none does.
std::string too_large(const std::vector<Ladder>& ladders, Shapes cases, const Device& device,
                      size_t bytes);

/// Which problem of these ladders is the most work for the emulator, in words; empty if each takes
/// it a minute at most.
std::string takes_long(const std::vector<Ladder>& ladders, Shapes cases, const Device& device);

}  // namespace ladders
