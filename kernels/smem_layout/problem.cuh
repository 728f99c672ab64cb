// SPDX-License-Identifier: MIT
//
// What every rung computes, and how it is verified.
#pragma once

#include "common/vector.cuh"
#include "common/verify.cuh"
#include "smem_layout/01_layout.cuh"

namespace ladders::smem_layout {
// `repetitions` counts words: vectors move the same bytes in fewer requests.
template <class Layout>
__host__ __device__ constexpr int requests(int repetitions) {
  return ceil_div(repetitions, Layout::kWords);
}

// Threads of every launch: as many blocks of 1024 as the device holds, rounded up to whole pairs.
inline int threads_on(const Device& device) {
  return ceil_div(device.sms * (device.threads_per_sm / 1024), 2) * 2048;
}

class Tiles : public Problem {
 public:
  Tiles(const Case& c, const Device& device)
      : Problem(device), repetitions_(int(c["repetitions"])), out_(threads_on(device)) {}
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(out_.data(), repetitions_); }

  // A thread sums the numbers of the words that it reads, once per request.
  template <class Layout, bool remote>
  Verdict compare() const {
    constexpr int kThreads = Layout::kThreads;
    std::vector<int> writer(Layout::kTile);
    for (int i = 0; i < kThreads; ++i) writer[Layout::vector(Layout::kWrite, i)] = i;
    const std::vector<unsigned> sums = to_host(out_.data(), out_.size());
    for (size_t thread = 0; thread < sums.size(); ++thread) {
      const unsigned block = thread / kThreads, i = thread % kThreads;
      const unsigned from =
          (remote ? block ^ 1 : block) * kThreads + writer[Layout::vector(Layout::kRead, i)];
      if (sums[thread] !=
          requests<Layout>(repetitions_) * iota_sum<Layout::kBytes>(Layout::kWords * from))
        return {.wrong = "thread " + std::to_string(i) + " of block " + std::to_string(block)};
    }
    return {};
  }

 private:
  int repetitions_;
  DeviceBuffer<unsigned> out_;
};

}  // namespace ladders::smem_layout
