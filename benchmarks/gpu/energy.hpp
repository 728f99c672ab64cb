// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>

#include "gpu/nvml.hpp"
#include "gpu/sm_clock.hpp"
#include "measure/meter.hpp"

namespace ladders {

/// Launches `subject` back to back and reads the driver's energy counter meanwhile: all counters of
/// docs/power.md except idle_share. `launch_seconds` times one launch, in seconds; it is called
/// once before each attempt. Graphs are captured on `capture_stream`, and all launches are on the
/// default stream. Throws CudaError, NoNvml if the energy counter cannot be read or does not
/// change, and std::runtime_error if `subject` launches nothing.
std::map<std::string, double> measure_energy(const Subject& subject,
                                             const std::function<double()>& launch_seconds,
                                             const Nvml& nvml, SmClock& sm_clock,
                                             cudaStream_t capture_stream);

}  // namespace ladders
