// SPDX-License-Identifier: MIT
//
// Figures of kernels, counted and expected.
#pragma once

#include <string>
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
std::string text_of(const Figures& figures);
std::string text_of(const Report& report);
void expect_figures(const Report& report, const Figures& expected);

/// Launches a kernel that must have no fault.
template <class... P, class... A>
Report counted_launch(const Shape& shape, void (*kernel)(P...), A&&... arguments) {
  const Settings settings({.check = true});
  const Recording recording;
  EXPECT_TRUE(runs(launch(shape, kernel, std::forward<A>(arguments)...)));
  return recording.report();
}

/// One warp of a kernel whose first argument is an array of so many elements.
template <class T, class... P, class... A>
void expect_figures(void (*kernel)(T*, P...), std::size_t elements, const Figures& expected,
                    A... more) {
  const DeviceArray<T> array(elements);
  expect_figures(counted_launch({1, 32}, kernel, array, more...), expected);
}

}  // namespace emulator
