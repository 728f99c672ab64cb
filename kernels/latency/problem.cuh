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
        end(1) {
    generate(lines.data(), lines.size(), Cycle{lines.data(), unsigned(lines.size())});
  }
  Memory output() const override { return {end.data(), end.bytes()}; }

  // Where a launch starts, among so many elements: where the launch before ended.
  unsigned start_among(unsigned elements) {
    return start_ = successor(start_, elements, launched_++ == 0 ? 0 : loads);
  }

  template <class Element>
  Verdict compare_among() const {
    const unsigned ended = to_host(end.data(), 1)[0];
    const unsigned right = successor(start_, unsigned(bytes / sizeof(Element)), loads);
    if (ended == right) return {};
    return {.wrong = "the chain ends at element " + std::to_string(ended) + " instead of " +
                     std::to_string(right)};
  }

  const unsigned loads;
  const size_t bytes;
  const DeviceBuffer<Line> lines;
  const DeviceBuffer<unsigned> end;  // the number of the last element

 private:
  unsigned start_ = 0, launched_ = 0;
};

}  // namespace ladders::latency
