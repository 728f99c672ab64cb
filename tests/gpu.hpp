// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include "model/device.hpp"

/// Skips the test where there is no GPU, and says so.
#define NEED_GPU() \
  if (ladders::Device::count() == 0) GTEST_SKIP() << "no CUDA device"
