// SPDX-License-Identifier: MIT
//
// The tensor memory accelerator on both sides: it brings swizzled boxes and takes them away, and
// deals with the edges. What is left to a warp is to turn its box where it lies.
#pragma once

#include "tma.cuh"
#include "transpose_vectorized.cuh"

namespace ladders {
namespace {

#if __CUDA_ARCH__ >= 900
#define LADDERS_PTX(...) asm volatile(__VA_ARGS__)
#else  // TMA is Hopper's
#define LADDERS_PTX(...)
#endif

// What this thread has written to shared memory can be read by the copies that it starts.
__device__ __forceinline__ void publish_to_copies() {
  LADDERS_PTX("fence.proxy.async.shared::cta;" :: : "memory");
}

// Starts the copy of a box from shared memory to this row and column; parts of it that lie outside
// of the matrix go nowhere.
__device__ __forceinline__ void store_box([[maybe_unused]] const TensorMap& map,
                                          [[maybe_unused]] int row, [[maybe_unused]] int column,
                                          [[maybe_unused]] const void* from) {
  LADDERS_PTX(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
      "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))), "r"(column), "r"(row) : "memory");
  LADDERS_PTX("cp.async.bulk.commit_group;" :: : "memory");
}

// Until the copies that this thread has started have read their boxes.
__device__ __forceinline__ void wait_for_stores() {
  LADDERS_PTX("cp.async.bulk.wait_group.read 0;" :: : "memory");
}
#undef LADDERS_PTX

// A box of 8 x 8 squares, its rows 128 bytes: what the swizzle takes. A tile is 2 x 2 of them.
template <class T>
struct Box {
  static constexpr int kVector = 16 / sizeof(T), kAcross = 8;
  static constexpr int kSide = kAcross * kVector, kVectors = kSide * kAcross;
  static constexpr int kBytes = 16 * kVectors;
  static constexpr int kTileSide = 2 * kSide, kWarps = 4;

  static __device__ __forceinline__ int slot(int row, int vector) {
    return row * kAcross + (vector ^ row % 8);
  }
  // Of words, whatever the elements.
  static TensorMap map(const T* data, int64_t rows, int64_t columns) {
    return tensor_map({data, 4, rows, columns * int64_t{sizeof(T)} / 4, kSide, kAcross * 4, 128});
  }
  __host__ __device__ static constexpr int word(int column) {
    return column * static_cast<int>(sizeof(T)) / 4;
  }

  // All lanes, two squares each: eight neighbouring lanes have squares of different columns and,
  // on the way back, of different rows, so that neither way has conflicts.
  static __device__ __forceinline__ void turn(Vector<T>* box) {
    const int x = threadIdx.x % kAcross, quarter = threadIdx.x % 32 / kAcross;
    Vector<T> squares[2][kVector];
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        squares[s][i].bits = box[slot((x ^ (quarter + 4 * s)) * kVector + i, x)].bits;
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        Vector<T> turned;
#pragma unroll
        for (int j = 0; j < kVector; ++j) turned.elements[j] = squares[s][j].elements[i];
        box[slot(x * kVector + i, x ^ (quarter + 4 * s))].bits = turned.bits;
      }
  }
};

// A warp has a box and a barrier of its own, and waits for no other.
template <class T>
__global__ void __launch_bounds__(32 * Box<T>::kWarps)
    bulk_copies(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,
                int rows, int columns) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using B = Box<T>;
  __shared__ MBarrier full[B::kWarps];
  const auto [x, y] =
      my_tile<Order::bands>(ceil_div(columns, B::kTileSide), ceil_div(rows, B::kTileSide));
  if (x * B::kTileSide >= columns) return;  // beyond a band that is not full
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = y * B::kTileSide + warp / 2 * B::kSide;
  const int column = x * B::kTileSide + warp % 2 * B::kSide;
  Vector<T>* box = swizzled_shared<Vector<T>>() + warp * B::kVectors;
  if (lane == 0) {
    initialize(full[warp], 1);
    publish_barriers();
    arrive_expecting(full[warp], B::kBytes);
    copy_box(box, in, row, B::word(column), full[warp]);
  }
  __syncwarp();
  wait(full[warp], 0);
  B::turn(box);
  publish_to_copies();
  __syncwarp();
  if (lane == 0) {
    store_box(out, column, B::word(row), box);
    wait_for_stores();
  }
#endif
}

}  // namespace
}  // namespace ladders
