// SPDX-License-Identifier: MIT
//
// The keys of the histogram, and scratch memory.
#pragma once

#include "common/counted_keys.cuh"

namespace ladders::histogram {
class Histogram : public CountedKeys<int> {
 public:
  Histogram(const Case& c, const Device& device)
      : CountedKeys(device, c["keys"], int(c["bins"]), Distribution(c["distribution"])),
        overflow_sums_(zeros<unsigned>(c["bins"])) {}
  auto arguments() const {
    return std::tuple_cat(CountedKeys::arguments(), std::tuple(int(overflow_sums_.size())));
  }

  // Room for the counters that blocks store, and one word per bin that is zero between launches.
  unsigned* room_for_counters(size_t words) { return counters_.room_for(words); }
  unsigned* overflow_sums() { return overflow_sums_.data(); }

 private:
  DeviceBuffer<unsigned> overflow_sums_, counters_;
};

}  // namespace ladders::histogram
