// SPDX-License-Identifier: MIT
//
// What the measured roofs share: buffers, sweeps, launches and comparisons.
#pragma once

#include <cooperative_groups.h>

#include "common/vector.cuh"
#include "common/verify.cuh"

namespace ladders::roof {
struct Bits {
  __device__ unsigned operator()(size_t i) const { return random_bits(i); }
};

constexpr size_t kMiB = 1 << 20;
constexpr unsigned kBlock = 1024;

// `size` is the MiB of a DRAM buffer, and half the iterations of the loops on chip, which expensive
// loops divide by `part`.
inline double bytes(const Case& c) { return double(c["size"]) * kMiB; }
inline int iterations(const Case& c, int part = 1) {
  return std::max(1, int(2 * c["size"]) / part);
}
inline double threads(const Device& device) { return double(device.sms) * device.threads_per_sm; }

class Roof : public Problem {
 public:
  Roof(const Case& c, const Device& device)
      : Problem(device),
        words(size_t(c["size"]) << 18),
        out(std::max(words, size_t(kOutputs * threads(device)))) {}
  Memory output() const override { return {out.data(), out.bytes()}; }

  // Allocated when a rung first reads it.
  const unsigned* in() {
    if (in_.size() == 0) {
      in_ = DeviceBuffer<unsigned>(words);
      generate(in_.data(), words, Bits{});
    }
    return in_.data();
  }

  static constexpr int kOutputs = 64;  // per thread, at most
  const size_t words;                  // of the input
  const DeviceBuffer<unsigned> out;
  size_t launched = 0;  // threads of the last launch

 private:
  DeviceBuffer<unsigned> in_;
};

// Launches `kernel` with the tuple `arguments(roof)`; `check(roof)` verifies it. Without the count
// of threads, a launch of none would pass.
template <class... Parameters, class Plan, class Arguments, class Check>
Implementation verified(void (*kernel)(Parameters...), Plan plan, Arguments arguments,
                        Check check) {
  const auto counted = [=](Roof& roof, const LaunchPlan& plan) {
    roof.launched = size_t{plan.grid.x} * plan.block.x;
    return arguments(roof);
  };
  return checked<Roof>(ladders::kernel<Roof>(kernel, plan, counted), [=](const Roof& roof) {
    return roof.launched > 0 ? check(roof) : Verdict{.wrong = "nothing was launched"};
  });
}

// The arguments of a kernel: the output as an array of T, then `values`.
template <class T = unsigned, class... Values>
auto out_and(Values... values) {
  return [=](Roof& roof) { return std::tuple(reinterpret_cast<T*>(roof.out.data()), values...); };
}

// Compares the first `count` values of the output with expected(i) on the host.
template <class T, class F>
Verdict compare(const Roof& roof, size_t count, F expected) {
  const std::vector<T> values = to_host(reinterpret_cast<const T*>(roof.out.data()), count);
  for (size_t i = 0; i < count; ++i)
    if (const T right = expected(i); values[i] != right)
      return {.wrong = "output " + std::to_string(i) + ": " + std::to_string(values[i]) +
                       " instead of " + std::to_string(right)};
  return {};
}

// The sum of value(i), modulo 2^32. FP64 adds halves of words exactly; whole words would overflow.
template <class Value>
uint32_t sum_modulo(size_t n, Value value) {
  uint64_t sum = 0;
  for (const int shift : {0, 16}) {
    const auto half = [=] __device__(size_t i) { return double(value(i) >> shift & 0xFFFF); };
    sum += uint64_t(reduce(n, half).sum) << shift;
  }
  return uint32_t(sum);
}

// Compares the sum of the first `count` words of the output.
inline Verdict compare_sum(const Roof& roof, size_t count, uint32_t expected) {
  const unsigned* words = roof.out.data();
  const uint32_t sum = sum_modulo(count, [=] __device__(size_t i) { return words[i]; });
  if (sum == expected) return {};
  return {.wrong = "sum " + std::to_string(sum) + " instead of " + std::to_string(expected)};
}

// `make` of the integral constant among Values that equals `value`: an axis as template argument.
template <int... Values, class Make>
Implementation pick(int64_t value, Make make) {
  Implementation picked;
  ((value == Values && (picked = make(std::integral_constant<int, Values>{}), true)) || ...);
  return picked;
}

// The sweeps: axis, then the values that are measured, tested and emulated.
enum Grid { per_tile, resident };
inline const std::vector<Sweep> kDramSweeps = {
    {{"bytes"}, {4, 16}, {4, 16}, {16}},
    {{"in_flight"}, {1, 4}, {1, 4}, {4}},
    {{"threads"}, {128, 512}, {128}, {128}},
    {{"grid", {"per_tile", "resident"}}, {per_tile, resident}, {per_tile, resident}, {per_tile}}};
inline const Sweep kBlocksSweep = {{"blocks"}, {1, 2}, {1, 2}, {1}};
inline const Sweep kClusterSweep = {{"cluster"}, {2, 4, 8, 16}, {2, 3, 16}, {2, 8}};
enum Instruction { mma, wgmma };  // of one warp, of a group of four

template <unsigned kThreads = kBlock>
LaunchPlan blocks_per_sm(const Case& c, const Device& device, const void*) {
  return {.grid = unsigned(c["blocks"] * device.sms), .block = kThreads};
}
inline double threads(const Case& c, const Device& device) {
  return double(c["blocks"]) * device.sms * kBlock;
}

// As many clusters as the device holds.
inline auto clusters(size_t shared_bytes = 0) {
  return [=](const Case& c, const Device& device, const void* kernel) {
    const auto cluster = unsigned(c["cluster"]);
    return fill_device({.block = kBlock, .shared_bytes = shared_bytes, .cluster = cluster}, kernel,
                       device);
  };
}

// Rounds of accesses to other blocks, of all clusters together.
inline unsigned cluster_rounds(const Case& c, const Device& device, int part) {
  return std::max(1u, unsigned(2 * device.sms / c["cluster"])) * iterations(c, part);
}

}  // namespace ladders::roof
