// SPDX-License-Identifier: MIT
//
// Every ladder: a file in kernels/ that defines the function of that name, and its line here. The
// roofs come first, so that what the others are measured against is measured before them.
#pragma once

#include "ladder.hpp"
#include "launch.hpp"

#define LADDERS(X)  \
  X(roof)           \
  X(transpose)      \
  X(sgemm)          \
  X(reduction)      \
  X(scan)           \
  X(histogram)      \
  X(byte_histogram) \
  X(lookup)         \
  X(convolution)    \
  X(smem_layout)

namespace ladders {

#define DECLARE(name) Ladder name();
LADDERS(DECLARE)
#undef DECLARE

}  // namespace ladders
