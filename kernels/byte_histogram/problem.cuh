// SPDX-License-Identifier: MIT
//
// The keys of the histogram of bytes, and how its blocks synchronize.
#pragma once

#include "common/counted_keys.cuh"

namespace ladders::byte_histogram {
using Byte = unsigned char;
constexpr int kByteBins = 256;

// On the axis of the ladder.
enum ByteDistribution { bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few };
constexpr Distribution kDistributions[] = {uniform, constant, zipf, sorted, few};

// How the blocks of one launch synchronize: zero before the launch and after it.
struct Arrivals {
  unsigned count;   // each block arrives twice: when it starts and when it has counted
  unsigned zeroed;  // whether the bins are zero
};

class ByteHistogram : public CountedKeys<Byte> {
 public:
  ByteHistogram(const Case& c, const Device& device)
      : CountedKeys(device, c["keys"], kByteBins, kDistributions[c["distribution"]]) {}
  Arrivals* arrivals() { return arrivals_.data(); }

 private:
  DeviceBuffer<Arrivals> arrivals_ = zeros<Arrivals>(1);
};

}  // namespace ladders::byte_histogram
