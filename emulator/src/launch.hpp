// SPDX-License-Identifier: MIT
//
// What the runtime API knows of launches.
#pragma once

#include "emulator/runtime_api.hpp"

namespace emulator {

/// Blocks of a cluster in this launch, one without clusters.
uint3 cluster_of(const cudaLaunchConfig_t& config);

/// Whether all blocks of the launch are resident at once.
bool is_cooperative(const cudaLaunchConfig_t& config);

/// Whether the modelled GPU would take the launch.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel);

/// Whether it lies in a variable whose address cudaGetSymbolAddress gave, or just behind.
bool is_device_address(std::uintptr_t address);

/// From now on calls return the fault.
void stick();

}  // namespace emulator
