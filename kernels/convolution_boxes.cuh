// SPDX-License-Identifier: MIT
//
// Rows of the image fetched by the tensor memory accelerator: what is under way needs no registers,
// and what is outside of the image comes as zeros that nobody has asked for.
#pragma once

#include "convolution_sums.cuh"
#include "tma.cuh"

namespace ladders {
namespace {

// Boxes of four rows, as wide as a warp's outputs need; a warp has four of them.
template <int side>
struct Boxes : Strips<side> {
  static constexpr int kRows = 4, kStages = 4;
  static constexpr int kPitch = ceil_div(kAcross + side - 1, 8) * 8;  // boxes start on 128 bytes
  static constexpr int kWords = kRows * kPitch;
  static constexpr int kSharedBytes = Strips<side>::kWarps * kStages * kWords * 4;
  static constexpr int kBlocks = Strips<side>::kBlocks < 6 ? Strips<side>::kBlocks : 6;

  static TensorMap map(const float* image, int64_t rows, int64_t columns) {
    return tensor_map({image, 4, rows, columns, kRows, kPitch, 0});
  }
};

// A warp has a ring of its own, and waits for no other.
template <int side>
__global__ void __launch_bounds__(Boxes<side>::kThreads, Boxes<side>::kBlocks)
    bulk_boxes(const __grid_constant__ TensorMap image, const __grid_constant__ Filter filter,
               float* __restrict__ out, int rows, int columns, int strip) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using B = Boxes<side>;
  __shared__ MBarrier full[B::kWarps][B::kStages], empty[B::kWarps][B::kStages];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int column0 = (blockIdx.x * B::kWarps + warp) * kAcross, column = column0 + lane * kOwn;
  const int first = blockIdx.y * strip, last = min(first + strip, rows);
  if (column0 >= columns) return;
  const int boxes = ceil_div(2 * pairs_for<side>(last - first), B::kRows);
  float* ring = dynamic_shared<float>() + warp * B::kStages * B::kWords;
  const auto fetch = [&](int box, int stage) {
    arrive_expecting(full[warp][stage], B::kWords * 4);
    copy_box(ring + stage * B::kWords, image, first - reach(side) + box * B::kRows,
             column0 - reach(side), full[warp][stage]);
  };
  if (lane == 0) {
    for (int stage = 0; stage < B::kStages; ++stage) {
      initialize(full[warp][stage], 1);
      initialize(empty[warp][stage], kWarp);
    }
    publish_barriers();
    for (int box = 0; box < min(B::kStages, boxes); ++box) fetch(box, box);
  }
  __syncwarp();
  int box = 0, stage = 0, row_of_box = 0;
  uint32_t parity = 0;
  go_down<side>(
      filter, first, last,
      [&](int) {
        if (row_of_box == 0) wait(full[warp][stage], parity);
        const float* from = ring + stage * B::kWords + row_of_box * B::kPitch + lane * kOwn;
        const Pair<side> pair{shared_window<side>(from), shared_window<side>(from + B::kPitch)};
        if ((row_of_box += 2) == B::kRows) {
          arrive(empty[warp][stage]);
          if (lane == 0 && box + B::kStages < boxes) {
            wait(empty[warp][stage], parity);
            fetch(box + B::kStages, stage);
          }
          __syncwarp();
          ++box, row_of_box = 0;
          if (++stage == B::kStages) stage = 0, parity ^= 1;
        }
        return pair;
      },
      [&](int row, const float (&sums)[kOwn]) { store_four(out, row, column, columns, sums); });
#endif
}

}  // namespace
}  // namespace ladders
