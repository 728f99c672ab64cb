// SPDX-License-Identifier: MIT
//
// What the measured roofs share: buffers, launches, vectors, sums.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device.cuh"
#include "inputs.cuh"
#include "launch.hpp"
#include "vector.cuh"
#include "verify.cuh"

namespace ladders {
namespace {

struct Bits {
  __device__ unsigned operator()(size_t i) const { return random_bits(i); }
};

// One axis says how much: MiB a buffer for DRAM, half the iterations for the loops on chip.
class Roof : public Problem {
 public:
  Roof(const Case& c, const Device& device)
      : sms(device.sms),
        words(size_t(c["size"]) << 18),
        threads(size_t(device.sms) * device.threads_per_sm),
        iterations(static_cast<int>(2 * c["size"])),
        out(std::max(words, kOutputs * threads)) {}
  Memory output() const override { return {out.data(), out.bytes()}; }

  // Filled when a rung first reads it.
  const unsigned* in() {
    if (in_.size() == 0) {
      in_ = DeviceBuffer<unsigned>(words);
      generate(in_.data(), words, Bits{});
    }
    return in_.data();
  }

  static constexpr int kOutputs = 64;  // of a thread at most
  const int sms;
  const size_t words;    // that are read, or written
  const size_t threads;  // that the device can hold at once
  const int iterations;
  const DeviceBuffer<unsigned> out;
  size_t sums = 0;  // of words read, in `out`: how many there are
  int blocks = 0;   // of the last launch

 private:
  DeviceBuffer<unsigned> in_;
};

constexpr size_t kMiB = 1 << 20;
double bytes(const Case& c) { return double(c["size"]) * kMiB; }
double threads(const Device& device) { return double(device.sms) * device.threads_per_sm; }
double iterations(const Case& c) { return 2 * double(c["size"]); }

// `make` of the integral constant among Values that is `value`: an axis as a template argument.
template <int... Values, class Make>
Implementation pick(int64_t value, Make make) {
  Implementation picked;
  ((value == Values && (picked = make(std::integral_constant<int, Values>{}), true)) || ...);
  return picked;
}

// Sums are checked against how many blocks there were: without any, none would be wrong.
const Verdict kNothingRan = {.wrong = "nothing was launched"};

// How often clusters reach into each other's memory: all of them together, whatever their number.
unsigned remote_rounds(int sms, unsigned cluster, double iterations) {
  return std::max(1u, 2 * sms / cluster) * std::max(1, static_cast<int>(iterations) / 16);
}

constexpr unsigned kBlock = 1024;
const Sweep kBlocksSweep = {.axis = {"blocks"}, .measured = {1, 2}, .tested = {1, 2}, .small = {1}};

LaunchPlan blocks_per_sm(const Case& c, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(c["blocks"] * device.sms), .block = kBlock};
}
double threads(const Case& c, const Device& device) {
  return double(c["blocks"]) * device.sms * kBlock;
}

// The sum of value(i), modulo 2^32. Halves of words add up exactly in FP64; whole ones would not.
template <class Value>
uint32_t sum_modulo(size_t n, Value value) {
  const double low =
      fold(n, [=] __device__(size_t i) { return static_cast<double>(value(i) & 0xFFFF); }).sum;
  const double high =
      fold(n, [=] __device__(size_t i) { return static_cast<double>(value(i) >> 16); }).sum;
  return static_cast<uint32_t>(static_cast<uint64_t>(low) + (static_cast<uint64_t>(high) << 16));
}

struct Words {
  const unsigned* data;
  __device__ unsigned operator()(size_t i) const { return data[i]; }
};

}  // namespace
}  // namespace ladders
