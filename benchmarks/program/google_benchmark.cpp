// SPDX-License-Identifier: MIT
#include "program/google_benchmark.hpp"

#include <cstdio>
#include <ostream>
#include <set>

#include "model/cuda_check.hpp"

namespace ladders {
namespace {

// Why a row has no figures, beginning with "skipped: " if that is no failure; empty if it has.
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

class Console : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    console_->SetErrorStream(&nowhere_);
    return console_->ReportContext(context);
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    static const std::set<std::string> shown = {"flops_per_second", "bytes_per_second",
                                                "percent_of_ceiling"};
    std::vector<Run> brief = runs;
    for (Run& run : brief)
      std::erase_if(run.counters,
                    [](const auto& counter) { return !shown.contains(counter.first); });
    console_->ReportRuns(brief);
  }

 private:
  std::ostream nowhere_{nullptr};
  benchmark::BenchmarkReporter* console_ = benchmark::CreateDefaultDisplayReporter();
};

class CountingConsole : public benchmark::BenchmarkReporter {
 public:
  explicit CountingConsole(TextOf text_of) : text_of_(std::move(text_of)) {}

  bool ReportContext(const Context& context) override {
    width_ = static_cast<int>(context.name_field_width);
    std::printf("%-*s    wavefronts/request       sectors/request\n", width_, "");
    std::printf("%-*s    load  store atomic    load  store atomic  occupancy\n", width_, "row");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      std::printf("%-*s", width_, run.benchmark_name().c_str());
      if (const std::string why = trouble(run); !why.empty()) {
        std::printf("  %s\n", why.c_str());
        continue;
      }
      for (const std::string space : {"shared", "global"}) {
        const char* unit = space == "shared" ? "_wavefronts" : "_sectors";
        std::printf(" ");
        for (const char* operation : {"_load", "_store", "_atomic"}) {
          const auto found = run.counters.find(space + operation + unit + "_per_request");
          if (found == run.counters.end())
            std::printf(" %6s", "-");
          else
            std::printf(" %6.2f", double(found->second));
        }
      }
      if (const auto found = run.counters.find("theoretical_occupancy");
          found != run.counters.end())
        std::printf("  %8.1f%%", 100 * double(found->second));
      else if (run.counters.contains("grid_blocks"))
        std::printf("  registers unknown: not compiled by nvcc");
      std::printf("\n");
    }
    if (!runs.empty() && runs.front().run_type == Run::RT_Iteration)
      std::printf("%s", text_of_(runs.front().run_name.function_name).c_str());
    std::fflush(stdout);
  }

 private:
  TextOf text_of_;
  int width_ = 0;
};

}  // namespace

std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(TextOf text_of) {
  if (kEmulated) return std::make_unique<CountingConsole>(std::move(text_of));
  return std::make_unique<Console>();
}

}  // namespace ladders
