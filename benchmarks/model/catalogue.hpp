// SPDX-License-Identifier: MIT
//
// Every ladder: a folder in kernels/, which defines <name>::ladder(), and its line here. The roofs
// are measured first, since the others are compared with them.
#pragma once

#include "model/ladder.hpp"

#define LADDERS(X)  \
  X(roof)           \
  X(latency)        \
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

#define DECLARE(name) \
  namespace name {    \
  Ladder ladder();    \
  }
LADDERS(DECLARE)
#undef DECLARE

}  // namespace ladders
