// SPDX-License-Identifier: MIT
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ladders {

/// The console: a line a row with its speed and its percent of the ceiling. (The library would
/// print all counters, and the whole context with the ladders in it.)
std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(bool color, bool tabular);

/// The console of counted rows: transactions a request and occupancy, no time. `text_of` returns
/// what is to be printed below the row of a name.
std::unique_ptr<benchmark::BenchmarkReporter> counting_console_reporter(
    std::function<std::string(const std::string& row)> text_of);

/// Says nothing.
std::unique_ptr<benchmark::BenchmarkReporter> silent_reporter();

/// CSV with a column for each of `counters`: the library's own writer aborts where a row lacks a
/// counter that another has.
std::unique_ptr<benchmark::BenchmarkReporter> csv_reporter(std::vector<std::string> counters);

}  // namespace ladders
