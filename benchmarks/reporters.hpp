// SPDX-License-Identifier: MIT
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

namespace ladders {

/// The console: a line a row with its speed and its percent of the ceiling. (The library would
/// print all counters, and the whole context with the ladders in it.)
std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(bool color, bool tabular);

/// CSV with a column for each of `counters`: the library's own writer aborts where a row lacks a
/// counter that another has.
std::unique_ptr<benchmark::BenchmarkReporter> csv_reporter(std::vector<std::string> counters);

}  // namespace ladders
