// SPDX-License-Identifier: MIT
//
// How a tile lies in shared memory, what each thread accesses, and the cost that this predicts.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <set>

namespace ladders::smem_layout {
// Each thread accesses its own vector, along rows or columns; or a warp accesses one word, two
// words in different banks, or two in one bank.
enum Order { row, column, one_word, two_banks, one_bank };

// Instead of padding: the column is XORed with the row. With vectors of 16 bytes this is the
// 128-byte swizzle of TMA.
constexpr int swizzled = -1;

// A row is 128 bytes and `pad` spare vectors. Each thread stores and loads a vector of `bytes`.
template <int height, int pad, Order write_order, Order read_order, int bytes = 4>
struct Layout {
  static constexpr int kWarp = 32, kBanks = 32;
  static constexpr int kBytes = bytes, kWords = bytes / 4;  // of a vector
  static constexpr int kColumns = 128 / bytes;              // vectors of a row
  static constexpr int kPad = pad, kStride = kColumns + (pad == swizzled ? 0 : pad);
  static constexpr int kThreads = height * kColumns;
  static constexpr int kTile = height * kStride * kWords;  // words
  static constexpr Order kWrite = write_order, kRead = read_order;
  // Requests per iteration of a loop: enough to hide the loop's own instructions, few enough that
  // registers do not limit occupancy.
  static constexpr int kUnroll = 16 / kWords;

  __host__ __device__ static constexpr int at(int y, int x) {
    return y * kStride + (pad == swizzled ? x ^ y % kColumns : x);
  }
  // The vector that thread i of the block touches.
  __host__ __device__ static constexpr int vector(Order order, int i) {
    if (order == row) return at(i / kColumns, i % kColumns);
    if (order == column) return at(i % height, i / height);
    if (order == one_word) return at(i / kWarp, 0);
    if (order == two_banks) return at(i / kWarp, i % 2);
    return at((i / kWarp + i % 2) % height, 0);
  }

  // Wavefronts of a request: for each 128 bytes of lanes (half a warp with 8 bytes each, a quarter
  // with 16), the number of different words in the busiest bank.
  static int wavefronts(Order order) {
    return of_the_worst_warp([order](int warp) {
      int sum = 0;
      for (int lanes = warp; lanes < warp + kWarp; lanes += kColumns) {
        std::array<std::set<int>, kBanks> asked;
        for (int lane = lanes; lane < lanes + kColumns; ++lane)
          for (int i = 0; i < kWords; ++i) {
            const int word = vector(order, lane) * kWords + i;
            asked[word % kBanks].insert(word);
          }
        sum += int(std::ranges::max(asked, {}, &std::set<int>::size).size());
      }
      return sum;
    });
  }

  // Different pieces of `size` bytes that a request touches.
  static int pieces(Order order, int size) {
    return of_the_worst_warp([=](int warp) {
      std::set<int> touched;
      for (int i = warp; i < warp + kWarp; ++i) touched.insert(vector(order, i) * bytes / size);
      return int(touched.size());
    });
  }

 private:
  template <class F>
  static int of_the_worst_warp(F count) {
    int worst = 0;
    for (int warp = 0; warp < kThreads; warp += kWarp) worst = std::max(worst, count(warp));
    return worst;
  }
};

}  // namespace ladders::smem_layout
