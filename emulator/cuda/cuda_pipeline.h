// SPDX-License-Identifier: MIT
//
// Asynchronous copies from global to shared memory, on the emulator. The source is read when a copy
// is issued; the bytes arrive when the thread that issued it waits, or exits, and not before.
#pragma once

#include "emulator/language.hpp"

/// `bytes` are 4, 8 or 16. The last `zfill` of them become zeros and are not read.
void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                             std::size_t zfill = 0);
void __pipeline_commit();
void __pipeline_wait_prior(std::size_t groups);
