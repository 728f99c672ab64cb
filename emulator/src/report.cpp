// SPDX-License-Identifier: MIT
#include "emulator/report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ostream>

namespace emulator {

std::string_view name(Space space) {
  static constexpr std::string_view kNames[] = {"global", "shared", "distributed", "constant",
                                                "bulk"};
  return kNames[static_cast<int>(space)];
}

std::string_view name(Operation operation) {
  static constexpr std::string_view kNames[] = {"load", "store", "atomic"};
  return kNames[static_cast<int>(operation)];
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const auto sum : {&Traffic::requests, &Traffic::lanes, &Traffic::bytes,
                         &Traffic::transactions, &Traffic::ideal, &Traffic::serialised})
    this->*sum += other.*sum;
  worst = std::max(worst, other.worst);
  return *this;
}

Steps& Steps::operator+=(const Steps& other) {
  for (const auto sum : {&Steps::barriers, &Steps::cluster_barriers, &Steps::warp_operations,
                         &Steps::warp_steps, &Steps::lane_steps})
    this->*sum += other.*sum;
  return *this;
}

Traffic Report::total(Space space, Operation operation) const {
  Traffic sum;
  for (const Line& line : lines)
    if (line.space == space && line.operation == operation) sum += line.traffic;
  return sum;
}

double Report::active_lanes() const {
  return warp_steps == 0 ? 0 : static_cast<double>(lane_steps) / static_cast<double>(warp_steps);
}

std::ostream& operator<<(std::ostream& out, const Report& report) {
  if (!counted()) return out << "nothing was counted: build with cuda_emulator_counted\n";
  char text[256];
  std::snprintf(text, sizeof(text),
                "blocks %" PRIu64 ", threads %" PRIu64 ", barriers %" PRIu64
                ", active lanes %.2f of 32\n"
                "%-24s %-19s %5s %10s %6s %7s %6s %5s\n",
                report.blocks, report.threads, report.barriers, report.active_lanes(), "line",
                "access", "bytes", "requests", "lanes", "trans.", "ideal", "worst");
  out << text;
  for (const Line& line : report.lines) {
    const double requests = static_cast<double>(line.traffic.requests);
    const std::string place = line.file + ":" + std::to_string(line.line);
    const std::string access =
        std::string(name(line.space)) + " " + std::string(name(line.operation));
    std::snprintf(text, sizeof(text), "%-24s %-19s %5d %10.0f %6.2f %7.2f %6.2f %5" PRIu64 "\n",
                  place.c_str(), access.c_str(), line.bytes, requests,
                  static_cast<double>(line.traffic.lanes) / requests,
                  static_cast<double>(line.traffic.transactions) / requests,
                  static_cast<double>(line.traffic.ideal) / requests, line.traffic.worst);
    out << text;
  }
  return out;
}

}  // namespace emulator
