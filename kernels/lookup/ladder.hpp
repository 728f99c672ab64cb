// SPDX-License-Identifier: MIT
#pragma once

#include "model/ladder.hpp"

namespace ladders::lookup {
std::vector<Rung> peers();  ///< the library in peers.cu

/// Where staging a table in shared memory pays, as measured on an H200.
inline constexpr struct Tuning {
  int64_t small_table = 256;  ///< entries, up to which the L1 is fast whatever the indices
  int64_t l1_table = 16384;   ///< entries that the L1 keeps
  int64_t worth_staging_l1_table = 1 << 24;  ///< lookups
  int64_t worth_staging_per_entry = 64;      ///< lookups in larger tables
} kTuning;

}  // namespace ladders::lookup
