// SPDX-License-Identifier: MIT
//
// A chain of loads, in which each gives the address of the next.
#pragma once

#include "common/inputs.cuh"

namespace ladders::latency {
// One cycle through 2^k elements, in an order that no cache can guess: a linear congruential
// generator of full period (Hull and Dobell 1962).
constexpr unsigned kFactor = 1664525, kStep = 1013904223;
__host__ __device__ constexpr unsigned successor(unsigned i, unsigned elements) {
  return (kFactor * i + kStep) % elements;
}

// The element that `steps` steps from i lead to, in few operations.
constexpr unsigned successor(unsigned i, unsigned elements, unsigned steps) {
  unsigned factor = kFactor, step = kStep;  // of 1, 2, 4, ... steps at once
  for (; steps > 0; steps /= 2) {
    if (steps % 2 == 1) i = factor * i + step;
    step *= factor + 1;
    factor *= factor;
  }
  return i % elements;
}

struct alignas(128) Line {  // of a cache
  unsigned long long next;  // its address
};

struct Cycle {
  const Line* lines;
  unsigned count;
  __device__ Line operator()(size_t i) const {
    return {reinterpret_cast<unsigned long long>(lines + successor(unsigned(i), count))};
  }
};

inline size_t bytes(const Case& c) { return size_t(c["kibibytes"]) * 1024; }

class Chase : public Problem {
 public:
  Chase(const Case& c, const Device& device)
      : Problem(device),
        loads(unsigned(c["loads"])),
        bytes(latency::bytes(c)),
        lines(bytes / sizeof(Line)),
        way(2),
        position(zeros<unsigned>(1)) {
    generate(lines.data(), lines.size(), Cycle{lines.data(), unsigned(lines.size())});
  }
  Memory output() const override { return {way.data(), way.bytes()}; }

  template <class Element>
  Verdict compare_among() const {
    const std::vector<unsigned> ends = to_host(way.data(), 2);
    const auto elements = unsigned(bytes / sizeof(Element));
    if (ends[0] >= elements) return {.wrong = "no chain was followed"};
    const unsigned right = successor(ends[0], elements, loads);
    if (ends[1] == right) return {};
    return {.wrong = "the chain from element " + std::to_string(ends[0]) + " ends at " +
                     std::to_string(ends[1]) + " instead of " + std::to_string(right)};
  }

  const unsigned loads;
  const size_t bytes;
  const DeviceBuffer<Line> lines;
  const DeviceBuffer<unsigned> way;       // the numbers of its first and last element
  const DeviceBuffer<unsigned> position;  // where the next launch starts, and the last one ended
};

}  // namespace ladders::latency
