// SPDX-License-Identifier: MIT
#pragma once

namespace ladders {

/// Whether this is ladder_bench_emulated, which counts what kernels do on an emulated GPU, and not
/// ladder_bench, which times them on a real one. Defined beside the program's meter.
extern const bool kEmulated;

inline const char* program_name() { return kEmulated ? "ladder_bench_emulated" : "ladder_bench"; }

}  // namespace ladders
