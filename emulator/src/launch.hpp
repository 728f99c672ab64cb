// SPDX-License-Identifier: MIT
//
// What the runtime API knows of launches.
#pragma once

#include "emulator/runtime_api.hpp"

namespace emulator {

/// Blocks of a cluster in this launch, 1 without clusters.
unsigned cluster_blocks(const cudaLaunchConfig_t& config);

/// Whether the modelled GPU would take the launch.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel);

/// Whether the address of a variable is one that the host was given to pass on.
bool is_device_address(const void* variable);

/// A kernel was at fault: so are all calls from now on.
void stick();

}  // namespace emulator
