// SPDX-License-Identifier: MIT
//
// Stands in for the CUDA Toolkit's header of the same name where kernels are built for the
// emulator.
#pragma once

#include "emulator/language.hpp"
#include "emulator/not_emulated.hpp"
#include "emulator/runtime_api.hpp"
