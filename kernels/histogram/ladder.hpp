// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::histogram {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Where merging counters in pairs of blocks is faster than atomics from each, measured on an H200.
inline constexpr struct Tuning {
  int64_t merge_in_pairs_from_bins = 32768;
  int64_t merge_in_pairs_up_to_keys = 1 << 26;
} kTuning;

}  // namespace ladders::histogram
