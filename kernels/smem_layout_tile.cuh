// SPDX-License-Identifier: MIT
//
// How a tile lies in shared memory, who touches what of it, and what that is predicted to cost.
#pragma once

#include <algorithm>
#include <array>
#include <set>

#include "device.cuh"
#include "vector.cuh"

namespace ladders {
namespace {

// Which vector of the tile each thread touches. In the first two orders everyone has its own; in
// the others a warp asks for one word, for two in different banks, or for two in the same bank.
enum Order { row, column, one_word, two_banks, one_bank };

// Instead of spare vectors: the column is XORed with the row, as TMA does to its boxes of 128-byte
// rows in units of 16 bytes.
constexpr int swizzled = -1;

// A tile of rows of 128 bytes, which is a word for each bank, and then `pad` spare vectors. A
// vector of `bytes` is what a thread stores and loads at once; there are as many as threads.
template <int height, int pad, Order write_order, Order read_order, int bytes = 4>
struct Layout {
  static constexpr int kWarp = 32, kBanks = 32;
  static constexpr int kBytes = bytes, kWords = bytes / 4;  // of a vector
  static constexpr int kColumns = 128 / bytes;              // vectors of a row
  static constexpr int kStride = kColumns + (pad == swizzled ? 0 : pad);
  static constexpr int kThreads = height * kColumns;
  static constexpr int kTile = height * kStride * kWords;  // words
  static constexpr Order kWrite = write_order, kRead = read_order;
  // Requests in a loop's body: the loop itself shall not show, nor registers cost occupancy.
  static constexpr int kUnroll = 16 / kWords;

  __host__ __device__ static constexpr int at(int y, int x) {
    return y * kStride + (pad == swizzled ? x ^ y % kColumns : x);
  }
  // The vector that thread i of the block touches.
  __host__ __device__ static constexpr int vector(Order order, int i) {
    switch (order) {
      case row:
        return at(i / kColumns, i % kColumns);
      case column:
        return at(i % height, i / height);
      case one_word:
        return at(i / kWarp, 0);
      case two_banks:
        return at(i / kWarp, i % 2);
      default:
        return at((i / kWarp + i % 2) % height, 0);
    }
  }

  // Wavefronts of a request. As many lanes as make 128 bytes (half a warp for 8 bytes each, a
  // quarter for 16) take as many as the busiest bank has different words to give.
  static int wavefronts(Order order) {
    int worst = 0;
    for (int warp = 0; warp < kThreads; warp += kWarp) {
      int sum = 0;
      for (int lanes = 0; lanes < kWarp; lanes += kColumns) {
        std::array<std::set<int>, kBanks> asked;
        for (int lane = lanes; lane < lanes + kColumns; ++lane)
          for (int i = 0; i < kWords; ++i) {
            const int word = vector(order, warp + lane) * kWords + i;
            asked[word % kBanks].insert(word);
          }
        sum += static_cast<int>(std::ranges::max(asked, {}, &std::set<int>::size).size());
      }
      worst = std::max(worst, sum);
    }
    return worst;
  }

  // Different words that a warp asks for.
  static int words(Order order) {
    std::set<int> asked;
    for (int lane = 0; lane < kWarp; ++lane) asked.insert(vector(order, lane));
    return static_cast<int>(asked.size()) * kWords;
  }

  // Sectors of 32 bytes that a request touches: the units in which another block's memory comes.
  static int sectors(Order order) {
    int worst = 0;
    for (int warp = 0; warp < kThreads; warp += kWarp) {
      std::set<int> touched;
      for (int lane = 0; lane < kWarp; ++lane)
        touched.insert(vector(order, warp + lane) * bytes / 32);
      worst = std::max(worst, static_cast<int>(touched.size()));
    }
    return worst;
  }
};

// Each of these is an instruction, though the same was stored or loaded before: the assembler, too,
// leaves volatile accesses alone. C++ has no volatile vectors.
#ifdef __CUDA_ARCH__
#define LADDERS_LOAD_AGAIN(space, p, constraint)                                  \
  Vector<bytes> v;                                                                \
  if constexpr (bytes == 4)                                                       \
    asm volatile("ld.volatile" space ".u32 %0, [%1];" : "=r"(v) : constraint(p)); \
  else if constexpr (bytes == 8)                                                  \
    asm volatile("ld.volatile" space ".v2.u32 {%0, %1}, [%2];"                    \
                 : "=r"(v.x), "=r"(v.y)                                           \
                 : constraint(p));                                                \
  else                                                                            \
    asm volatile("ld.volatile" space ".v4.u32 {%0, %1, %2, %3}, [%4];"            \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                     \
                 : constraint(p));                                                \
  return sum_of(v);
#else
#define LADDERS_LOAD_AGAIN(space, p, constraint) \
  asm volatile("" ::: "memory");                 \
  return sum_of(*reinterpret_cast<const Vector<bytes>*>(from));
#endif

// The sum of the words that start here, in the block's own shared memory.
template <int bytes>
__device__ __forceinline__ unsigned load_again(const unsigned* from) {
  LADDERS_LOAD_AGAIN(".shared", static_cast<unsigned>(__cvta_generic_to_shared(from)), "r")
}

// The same wherever in the cluster they are.
template <int bytes>
__device__ __forceinline__ unsigned load_again_from_cluster(const unsigned* from) {
  LADDERS_LOAD_AGAIN("", from, "l")
}
#undef LADDERS_LOAD_AGAIN

template <int bytes>
__device__ __forceinline__ void store_again(unsigned* to, Vector<bytes> v) {
#ifdef __CUDA_ARCH__
  const auto p = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (bytes == 4)
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(p), "r"(v) : "memory");
  else if constexpr (bytes == 8)
    asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %2};" ::"r"(p), "r"(v.x), "r"(v.y)
                 : "memory");
  else
    asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
#else
  *reinterpret_cast<Vector<bytes>*>(to) = v;
  asm volatile("" ::: "memory");
#endif
}

}  // namespace
}  // namespace ladders
