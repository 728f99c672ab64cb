// SPDX-License-Identifier: MIT
#pragma once

#include "measure/sampling.hpp"
#include "model/ladder.hpp"

namespace ladders {

inline const char* program_name() { return kEmulated ? "ladder_bench_emulated" : "ladder_bench"; }

/// A command line that cannot be run; what() is one line for the user.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The program's own flags, and what Google Benchmark is given.
struct Options {
  int device = 0;
  Sampling sampling;
  Shapes cases = kEmulated ? Shapes::small : Shapes::measured;
  std::vector<std::string> shapes;            ///< --shape, in place of the ladders' own
  std::vector<Ladder> ladders = catalogue();  ///< at the shapes that are asked for
  std::string gpu = "h200";                   ///< the GPU that is emulated
  std::string order = "forward";              ///< of emulated threads: forward, reverse or random
  std::optional<double> wall_limit;           ///< in seconds
  int workers = 0;                            ///< host threads that emulate, 0: one per core
  bool plans = false;                         ///< how rungs would be launched, without a run
  bool check = false;                         ///< the emulator looks for races and the like
  bool per_line = false;                      ///< print figures of each source line
  std::string tuning_file;                    ///< --tuning, if any
  bool tune = false;                          ///< both sides of crossovers, and nothing else
  bool energy_of_all = false;                 ///< not only of rows at the headline shapes
  std::string details_file;                   ///< --details_out, if any
  std::string samples_file;                   ///< --samples_out, if any
  bool list = false;                          ///< names only, no GPU needed
  std::string format = "console";             ///< or json
  std::string result_file;                    ///< --benchmark_out, if any
  std::vector<std::string> benchmark_arguments;  ///< argv for the library
};

/// The name of a result file until it is complete.
inline std::string partial(const std::string& file) { return file + ".partial"; }

/// Keeps the program's own flags and adapts some of the library's. Throws UsageError.
Options parse(int argc, char** argv);

/// Prints the flags of the program and of the library to stdout.
void print_help();

/// Applies the command line to the process, before a device is opened. Each program has its own,
/// with its meter. Throws UsageError.
void configure(const Options& options);

}  // namespace ladders
