// SPDX-License-Identifier: MIT
//
// What the headers of the kernels expect of a program.
#include "model/cuda_check.hpp"

const bool ladders::kEmulated = true;
