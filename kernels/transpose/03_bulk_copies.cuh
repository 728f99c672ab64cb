// SPDX-License-Identifier: MIT
//
// TMA loads and stores swizzled boxes and clips them at the edges; warps transpose them.
#pragma once

#include "common/tma.cuh"
#include "transpose/02_vectorized.cuh"

namespace ladders::transpose {
// A box of 8 x 8 squares, whose rows are the 128 bytes of the swizzle. A tile is 2 x 2 boxes.
template <class T>
struct Box {
  static constexpr int kVector = 16 / sizeof(T), kAcross = 8;
  static constexpr int kSide = kAcross * kVector, kVectors = kSide * kAcross;
  static constexpr int kBytes = 16 * kVectors;
  static constexpr int kTileSide = 2 * kSide, kWarps = 4;

  static __device__ __forceinline__ int slot(int row, int vector) {
    return row * kAcross + (vector ^ row % 8);
  }
  // The map counts words, for elements of any size.
  static TensorMap map(const T* data, int64_t rows, int64_t columns) {
    return tensor_map({data, 4, rows, columns * int64_t{sizeof(T)} / 4, kSide, kAcross * 4, 128});
  }
  __host__ __device__ static constexpr int word(int column) { return column * int(sizeof(T)) / 4; }

  // Two squares per lane. Eight neighbours load different columns and store different rows.
  static __device__ __forceinline__ void transpose_in_shared(Vector<T>* box) {
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

template <class T>
__global__ void __launch_bounds__(32 * Box<T>::kWarps)
    bulk_copies(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,
                int rows, int columns) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using B = Box<T>;
  __shared__ MBarrier full[B::kWarps];
  const auto [x, y] =
      my_tile<Order::bands>(ceil_div(columns, B::kTileSide), ceil_div(rows, B::kTileSide));
  if (x * B::kTileSide >= columns) return;  // in a partial band
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = y * B::kTileSide + warp / 2 * B::kSide;
  const int column = x * B::kTileSide + warp % 2 * B::kSide;
  Vector<T>* box = swizzled_shared<Vector<T>>() + warp * B::kVectors;
  if (lane == 0) {
    mbarrier_init(full[warp], 1);
    fence_mbarrier_init();
    arrive_expect_tx(full[warp], B::kBytes);
    tma_load(box, in, row, B::word(column), full[warp]);
  }
  __syncwarp();
  wait(full[warp], 0);
  B::transpose_in_shared(box);
  fence_proxy_async_shared();
  __syncwarp();
  if (lane == 0) {
    tma_store(out, column, B::word(row), box);
    bulk_wait_group_read();
  }
#endif
}

template <class T>
Implementation boxes() {
  using B = Box<T>;
  return kernel<Transpose<T>>(
      bulk_copies<T>,
      [](const Case& c, const Device&, const void*) {
        LaunchPlan plan =
            tiles_in_order<Order::bands>(ceil_div(c["columns"], B::kTileSide),
                                         ceil_div(c["rows"], B::kTileSide), 32 * B::kWarps);
        plan.shared_bytes = B::kWarps * B::kBytes + kRoomToAlign;
        return plan;
      },
      [](Transpose<T>& problem) {
        const auto [out, in, rows, columns] = problem.arguments();
        return std::tuple(B::map(in, rows, columns), B::map(out, columns, rows), rows, columns);
      });
}
inline std::string no_boxes(const Case& c, const Device& device) {
  if (c["rows"] * c["columns"] == 0) return "TMA takes no empty matrices";
  return unaligned(c, device);
}

}  // namespace ladders::transpose
