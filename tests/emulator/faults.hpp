// SPDX-License-Identifier: MIT
//
// Kernels that are each wrong in one way: *_faults_test.cpp. Every fault must be found, in whatever
// order threads run, and reported with its kernel, source line, block and thread. The lines that
// may be named are those marked "fault"; where threads wait for each other all of them must be.
#pragma once

#include "support.hpp"

namespace emulator {

inline constexpr int kInts = 64;  // of the buffer that the kernels are given

template <class... A>
void expect_fault(const char* file, const char* kernel, void (*function)(int*, A...),
                  const Planted& planted, Named named, std::type_identity_t<A>... arguments) {
  expect_planted(file, kernel, planted, named, [&] {
    const DeviceArray<int> data(kInts);
    return planted.cluster == 1 ? launch(planted.shape, function, data.data(), arguments...)
                                : launch_clusters(planted.cluster, planted.shape, function,
                                                  data.data(), arguments...);
  });
}

// The fault is at one of the marked lines.
#define EXPECT_FAULT(kernel, ...) \
  expect_fault(__FILE__, #kernel, kernel, Planted{__VA_ARGS__}, Named::one_line)
// Threads wait at all of the marked lines.
#define EXPECT_STUCK(kernel, ...) \
  expect_fault(__FILE__, #kernel, kernel, Planted{__VA_ARGS__}, Named::all_lines)

}  // namespace emulator
