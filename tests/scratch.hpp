// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace ladders {

// A file's path that no other process uses. What is written there is removed at the end.
struct ScratchFile {
  explicit ScratchFile(const std::string& name)
      : path(testing::TempDir() + std::to_string(getpid()) + "-" + name) {}
  ScratchFile(const ScratchFile&) = delete;
  ~ScratchFile() { std::remove(path.c_str()); }
  const std::string path;
};

}  // namespace ladders
