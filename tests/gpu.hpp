// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include "model/device.hpp"

namespace ladders {

/// What rungs choose by on an H200, for tests without one.
inline const Device kH200{.name = "H200",
                          .compute_capability = 90,
                          .sms = 132,
                          .threads_per_sm = 2048,
                          .l2_bytes = 60 << 20,
                          .shared_bytes_per_block = 227 << 10,
                          .shared_bytes_per_sm = 228 << 10,
                          .clusters_at_once = {0, 132, 66, 39, 30, 0, 17, 0, 15}};

}  // namespace ladders

/// Skips the test where there is no GPU, and says so.
#define NEED_GPU() \
  if (ladders::Device::count() == 0) GTEST_SKIP() << "no CUDA device"
