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
struct Meeting {
  unsigned blocks;  // number of arrivals and departures
  unsigned zeroed;  // whether the bins are zero
};

class ByteHistogram : public CountedKeys<Byte> {
 public:
  ByteHistogram(const Case& c, const Device& device)
      : CountedKeys(device, c["keys"], kByteBins, kDistributions[c["distribution"]]) {}
  Meeting* meeting() { return meeting_.data(); }

 private:
  DeviceBuffer<Meeting> meeting_ = zeros<Meeting>(1);
};

}  // namespace ladders::byte_histogram
