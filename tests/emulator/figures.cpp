// SPDX-License-Identifier: MIT
#include "figures.hpp"

#include <map>
#include <tuple>

namespace emulator {

std::string text_of(const Figures& figures) {
  std::map<std::tuple<Space, Operation, int>, Traffic> sums;
  for (const Figure& f : figures)
    sums[{f.space, f.operation, f.bytes}] +=
        {.requests = f.requests, .lanes = f.lanes, .transactions = f.transactions};
  std::string text;
  for (const auto& [kind, t] : sums) {
    const auto& [space, operation, bytes] = kind;
    text += std::string(name(space)) + " " + std::string(name(operation)) + " of " +
            std::to_string(bytes) + ": " + std::to_string(t.requests) + " requests, " +
            std::to_string(t.lanes) + " lanes, " + std::to_string(t.transactions) +
            " transactions\n";
  }
  return text;
}
std::string text_of(const Report& report) {
  Figures figures;
  for (const Line& line : report.lines)
    figures.push_back({line.space, line.operation, line.bytes, line.traffic.requests,
                       line.traffic.lanes, line.traffic.transactions});
  return text_of(figures);
}
void expect_figures(const Report& report, const Figures& expected) {
  EXPECT_EQ(text_of(report), text_of(expected));
}

}  // namespace emulator
