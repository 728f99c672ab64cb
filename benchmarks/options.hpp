// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "ladder.hpp"
#include "program.hpp"
#include "sampling.hpp"

namespace ladders {

/// A command line that cannot be run; what() is one line for the user.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The program's own flags, and what Google Benchmark is given.
struct Options {
  int device = 0;
  Sampling sampling;
  Shapes cases = kEmulated ? Shapes::small : Shapes::measured;
  std::string gpu = "h200";            ///< the GPU that is emulated
  std::string order = "forward";       ///< of threads where CUDA leaves it open: --order
  int workers = 0;                     ///< host threads that emulate, 0: one a core
  bool check = false;                  ///< the emulator looks for races and the like
  bool per_line = false;               ///< figures of each source line are printed
  std::string details_file;            ///< --details_out, empty if not asked for
  bool list = false;                   ///< --benchmark_list_tests: names only, no GPU needed
  std::string format = "console";      ///< --benchmark_format: console, json or csv
  std::string result_format = "json";  ///< --benchmark_out_format
  std::string color = "auto";          ///< --benchmark_color
  bool tabular = false;                ///< --benchmark_counters_tabular
  std::string result_file;             ///< --benchmark_out, empty if not asked for
  std::string partial_file;            ///< where the library writes it until it is whole
  std::vector<std::string> benchmark_arguments;  ///< argv for the library
};

/// Takes the program's own flags out of argv and adapts those that the library must see
/// differently. Throws UsageError for values that make no sense.
Options parse(int argc, char** argv);

/// Prints the help of the program and of the library to stdout.
void print_help();

}  // namespace ladders
