// SPDX-License-Identifier: MIT
//
// Every ladder: a file in kernels/ that defines one of these, and its line in catalogue.cpp.
#pragma once

#include "ladder.hpp"
#include "launch.hpp"

namespace ladders {

Ladder transpose();
Ladder sgemm();
Ladder reduction();
Ladder histogram();
Ladder smem_layout();
Ladder roof();

}  // namespace ladders
