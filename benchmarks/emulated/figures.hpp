// SPDX-License-Identifier: MIT
//
// What a row of ladder_bench_emulated says, made from the emulator's report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/report.hpp"
#include "meter.hpp"

namespace ladders {

/// The counters of one launch; those of a kind of request are absent where there was none.
std::map<std::string, double> counters_of(const emulator::Report& report);

/// Every name that counters_of() and limits_of() may use.
std::vector<std::string> figure_names();

/// How many blocks of the subject's launch each resource of an SM would hold.
std::map<std::string, double> limits_of(const emulator::Gpu& gpu, const Subject& subject);

/// The report line by line, and what occupancy other blocks and other shared memory would have.
Details details_of(const emulator::Report& report, const emulator::Gpu& gpu,
                   const Subject& subject);

}  // namespace ladders
