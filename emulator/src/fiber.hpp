// SPDX-License-Identifier: MIT
#pragma once

namespace emulator {

/// Saves where the running context is in *from and goes on where `to` was saved. Callee-saved
/// registers only: kernels change neither rounding modes nor signal masks, which make the standard
/// swapcontext a hundred times as slow.
extern "C" void emulator_switch(void** from, void* to);

/// A context that starts `entry` on a stack that ends at `top`; `entry` must not return.
void* make_fiber(char* top, void (*entry)());

}  // namespace emulator
