// SPDX-License-Identifier: MIT
#include "reporters.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <utility>

namespace ladders {
namespace {

using benchmark::ConsoleReporter;

class Console : public ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;

  bool ReportContext(const Context& context) override {
    name_field_width_ = context.name_field_width;
    printed_header_ = false;
    prev_counters_.clear();
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> brief = runs;
    for (Run& run : brief)
      std::erase_if(run.counters, [](const auto& counter) {
        return counter.first != "flops_per_second" && counter.first != "bytes_per_second" &&
               counter.first != "percent_of_ceiling";
      });
    ConsoleReporter::ReportRuns(brief);
  }
};

// Why a row has no figures, or empty. Google Benchmark has told skipped from failed since 1.8.0;
// before, the message itself begins with it.
template <class Run>
std::string trouble(const Run& run) {
  if constexpr (requires { run.skip_message; }) {
    if (run.skipped == decltype(run.skipped){}) return "";
    const bool failed = static_cast<int>(run.skipped) == 2;  // internal::SkippedWithError
    return (failed ? "" : "skipped: ") + run.skip_message;
  } else {
    return run.error_occurred ? run.error_message : "";
  }
}

class CountingConsole : public benchmark::BenchmarkReporter {
 public:
  explicit CountingConsole(std::function<std::string(const std::string&)> text_of)
      : text_of_(std::move(text_of)) {}

  bool ReportContext(const Context& context) override {
    width_ = static_cast<int>(context.name_field_width);
    print("%-*s  %20s  %20s  %9s\n", width_, "", "wavefronts a request", "sectors a request", "");
    print("%-*s", width_, "row");
    for (int space = 0; space < 2; ++space) print("  %6s %6s %6s", "load", "store", "atomic");
    print("  %9s\n", "occupancy");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      print("%-*s", width_, run.benchmark_name().c_str());
      if (const std::string why = trouble(run); !why.empty()) {
        print("  %s\n", why.c_str());
        continue;
      }
      for (const char* space : {"shared", "global"}) {
        GetOutputStream() << " ";
        for (const char* operation : {"load", "store", "atomic"}) {
          const bool sectors = space[0] == 'g';
          cell(run, std::string(space) + "_" + operation +
                        (sectors ? "_sectors_per_request" : "_wavefronts_per_request"));
        }
      }
      const auto occupancy = run.counters.find("theoretical_occupancy");
      if (occupancy != run.counters.end())
        print("  %8.1f%%", 100 * double(occupancy->second));
      else if (run.counters.contains("grid_blocks"))
        print("%s", "  registers unknown: no nvcc");
      GetOutputStream() << std::endl;
    }
    if (!runs.empty() && runs.front().run_type == Run::RT_Iteration)
      print("%s", text_of_(runs.front().run_name.function_name).c_str());
  }

 private:
  void cell(const Run& run, const std::string& counter) {
    const auto found = run.counters.find(counter);
    if (found == run.counters.end())
      print(" %6s", "-");
    else
      print(" %6.2f", double(found->second));
  }

  template <class... Arguments>
  void print(const char* format, Arguments... arguments) {
    std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, format, arguments...)) + 1, 0);
    std::snprintf(text.data(), text.size(), format, arguments...);
    text.pop_back();
    GetOutputStream() << text << std::flush;
  }

  std::function<std::string(const std::string&)> text_of_;
  int width_ = 0;
};

// The library means to drop its CSV writer some day; until then the flag works.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
class Csv : public benchmark::CSVReporter {
 public:
  explicit Csv(std::vector<std::string> counters) : counters_(std::move(counters)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> filled = runs;
    for (Run& run : filled)
      for (const std::string& name : counters_) run.counters.try_emplace(name, NAN);
    CSVReporter::ReportRuns(filled);
  }

 private:
  std::vector<std::string> counters_;
};

class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

}  // namespace

std::unique_ptr<benchmark::BenchmarkReporter> silent_reporter() {
  return std::make_unique<Silent>();
}

std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(bool color, bool tabular) {
  const int options =
      (color ? ConsoleReporter::OO_Color : 0) | (tabular ? ConsoleReporter::OO_Tabular : 0);
  return std::make_unique<Console>(static_cast<ConsoleReporter::OutputOptions>(options));
}

std::unique_ptr<benchmark::BenchmarkReporter> counting_console_reporter(
    std::function<std::string(const std::string& row)> text_of) {
  return std::make_unique<CountingConsole>(std::move(text_of));
}

std::unique_ptr<benchmark::BenchmarkReporter> csv_reporter(std::vector<std::string> counters) {
  return std::make_unique<Csv>(std::move(counters));
}
#pragma GCC diagnostic pop

}  // namespace ladders
