// SPDX-License-Identifier: MIT
#include "reporters.hpp"

#include <cmath>
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

}  // namespace

std::unique_ptr<benchmark::BenchmarkReporter> console_reporter(bool color, bool tabular) {
  const int options =
      (color ? ConsoleReporter::OO_Color : 0) | (tabular ? ConsoleReporter::OO_Tabular : 0);
  return std::make_unique<Console>(static_cast<ConsoleReporter::OutputOptions>(options));
}

std::unique_ptr<benchmark::BenchmarkReporter> csv_reporter(std::vector<std::string> counters) {
  return std::make_unique<Csv>(std::move(counters));
}
#pragma GCC diagnostic pop

}  // namespace ladders
