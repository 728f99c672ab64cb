// SPDX-License-Identifier: MIT
//
// Figures of kernels, counted and expected.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support.hpp"

namespace emulator {

inline constexpr Space kGlobal = Space::global, kShared = Space::shared;
inline constexpr Operation kLoad = Operation::load, kStore = Operation::store,
                           kAtomic = Operation::atomic;

/// All requests of a kind.
struct Figure {
  Space space;
  Operation operation;
  int bytes;
  std::uint64_t requests, lanes, transactions;
};
using Figures = std::vector<Figure>;

/// A text a line, so that failures show all of both sides.
inline std::string text_of(const Figures& figures) {
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
inline std::string text_of(const Report& report) {
  Figures figures;
  for (const Line& line : report.lines)
    figures.push_back({line.space, line.operation, line.bytes, line.traffic.requests,
                       line.traffic.lanes, line.traffic.transactions});
  return text_of(figures);
}

/// Launches a kernel that must have no fault.
template <class... P, class... A>
Report counted_launch(const Shape& shape, void (*kernel)(P...), A&&... arguments) {
  const Settings settings({.check = true});
  const Recording recording;
  EXPECT_EQ(launch(shape, kernel, std::forward<A>(arguments)...), cudaSuccess) << last_fault();
  return recording.report();
}

/// One warp of a kernel whose first argument is an array of so many elements.
template <class T, class... P, class... A>
void expect_figures(void (*kernel)(T*, P...), std::size_t elements, const Figures& expected,
                    A... more) {
  const DeviceArray<T> array(elements);
  EXPECT_EQ(text_of(counted_launch({1, 32}, kernel, array, more...)), text_of(expected));
}

}  // namespace emulator
