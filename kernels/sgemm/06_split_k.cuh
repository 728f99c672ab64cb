// SPDX-License-Identifier: MIT
//
// Small tiles for products with few outputs: warps and blocks divide k.
#pragma once

#include <cooperative_groups.h>

#include "sgemm/04_producer_warps.cuh"

namespace ladders::sgemm {
// Adds up and stores the sums of a tile's slices and, in a cluster, of its blocks.
template <class Tiles, bool plain>
__device__ __forceinline__ void add_up_slices(float* sums, const Destination& to) {
  constexpr int kPitch = Tiles::kColumns + 4, kQuads = Tiles::kColumns / 4;
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = cluster.block_rank(), cluster_size = cluster.num_blocks();
  const int rows = Tiles::kRows / cluster_size;  // that each block of the cluster stores
  const auto quad = [&](int row, int i) { return &as_float4(&sums[row * kPitch + i * 4]); };
  const auto of_slices = [&](int row, int i) {
    float4 sum = *quad(row, i);
#pragma unroll
    for (int other = 1; other < Tiles::kSlices; ++other)
      add(sum, *quad(other * Tiles::kRows + row, i));
    return sum;
  };
  if (cluster_size > 1) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Tiles::kRows * kQuads; i += Tiles::kThreads)
      *quad(i / kQuads, i % kQuads) = of_slices(i / kQuads, i % kQuads);
    cluster_sync_shared();
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * kQuads; i += Tiles::kThreads) {
    const int row = rank * rows + i / kQuads;
    float4 sum{};
    if (cluster_size == 1) sum = of_slices(row, i % kQuads);
#pragma unroll 2
    for (int other = 0; cluster_size > 1 && other < cluster_size; ++other)
      add(sum, *cluster.map_shared_rank(quad(row, i % kQuads), other));
    to.store<plain>(row, i % kQuads * 4, swapped(&sum.x));
  }
  if (cluster_size > 1) cluster_sync_shared();  // no block may exit while another loads from it
}

// For outputs that would leave SMs idle with large tiles: the warps of a block share a small tile,
// each with a slice of every stage, and the blocks of a cluster share k. The order of additions is
// fixed.
template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    split_k(Input a, const __grid_constant__ TensorMap b_map, Output c, int m, int n, int k,
            float alpha, float beta, Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  constexpr int kPitch = kColumns + 4, kSliceDepth = kDepth / Tiles::kSlices;
  static_assert(Tiles::kSlices * kRows * kPitch <= Tiles::kStages * Tiles::kWords);
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = cluster.block_rank(), cluster_size = cluster.num_blocks();
  const auto tile = raster.place(blockIdx.x / cluster_size);
  const int all = ceil_div(k, kDepth), first = all * rank / cluster_size;
  const int k_tiles = all * (rank + 1) / cluster_size - first;
  __shared__ MBarrier barriers[2 * Tiles::kStages], used_up;
  const auto ring = Tiles::Barriers::in_registers(barriers);
  float* stages = in_register(swizzled_shared<float>());
  if (threadIdx.x == 0) mbarrier_init(used_up, Tiles::kConsumers);
  ring.start(Tiles::kFillers, Tiles::kReaders);
  if (threadIdx.x >= Tiles::kConsumers) {
    warpgroup_reg_dealloc<Tiles::kProducerRegisters>();
    Producer<Tiles> producer{stages, ring};
    Rows rows{a, m, k};
    producer.produce(rows, tile.row * kRows, first * kDepth, k, b_map, first * kDepth,
                     tile.column * kColumns, k_tiles);
  } else {
    warpgroup_reg_alloc<Tiles::kConsumerRegisters>();
    constexpr int kWarpsX = kColumns / 64;
    const int warp = threadIdx.x / 32 % Tiles::kWarps, slice = threadIdx.x / 32 / Tiles::kWarps;
    const auto [x, y] = lane_position();
    const int row = warp / kWarpsX * 64 + 4 * y, column = warp % kWarpsX * 64 + 4 * x;
    float sums[8][16] = {};
    Consumer<Tiles, 6> consumer{stages + slice * kSliceDepth * kRows + row,
                                stages + kRows * kDepth + slice * kSliceDepth * kColumns + column,
                                ring};
    if (k_tiles > 0) consumer.start();
    consumer.consume(sums, k_tiles, true);
    arrive(used_up);
    wait(used_up, 0);  // the ring is free
    float* own = stages + slice * kRows * kPitch + row * kPitch + column;
#pragma unroll
    for (int r = 0; r < 8; ++r)
      for (int j = 0; j < 16; j += 4)
        as_float4(&own[(r / 4 * 32 + r % 4) * kPitch + 4 * j]) = swapped(&sums[r][j]);
  }
  __syncthreads();
  const Destination to{c, tile.row * kRows, tile.column * kColumns, m, n, alpha, beta};
  if (to.plain<Tiles>())
    add_up_slices<Tiles, true>(stages, to);
  else
    add_up_slices<Tiles, false>(stages, to);
#endif
}

// A choice of tiles, and its modelled time: the blocks of a wave end together.
struct SplitTiles {
  Implementation implementation;
  double time;
};
template <WarpSpecializedShape shape>
SplitTiles split_tiles(const Case& c, const Device& device, unsigned cluster_size,
                       double term_time) {
  using Tiles = WarpSpecializedTiles<shape>;
  const int64_t blocks = int64_t{raster_of<Tiles>(c["m"], c["n"]).tiles()} * cluster_size;
  const int64_t k_tiles = ceil_div(ceil_div(c["k"], Tiles::kDepth), cluster_size);
  const LaunchPlan plan{
      .grid = unsigned(blocks),
      .block = Tiles::kThreads,
      .shared_bytes = sizeof(float) * Tiles::kStages * Tiles::kWords + kRoomToAlign,
      .cluster = cluster_size};
  return {warp_specialized<Tiles>(split_k<Tiles>,
                                  [plan](const Case&, const Device&, const void*) { return plan; }),
          term_time * ceil_div(blocks, device.sms) * Tiles::kRows * Tiles::kColumns *
              (k_tiles * Tiles::kDepth + kTuning.split_k_start)};
}

inline Implementation split_k_at(const Case& c, const Device& device) {
  constexpr WarpSpecializedShape k128x128{
      .rows = 128, .columns = 128, .slices = 2, .depth = 64, .stages = 3};
  constexpr WarpSpecializedShape k64x128{.rows = 64, .columns = 128, .slices = 4, .depth = 64};
  constexpr WarpSpecializedShape k64x64{
      .rows = 64, .columns = 64, .slices = 8, .depth = 64, .stages = 6};
  return std::ranges::min({split_tiles<k128x128>(c, device, 2, kTuning.split_k_128x128),
                           split_tiles<k64x128>(c, device, 1, kTuning.split_k_64x128),
                           split_tiles<k64x64>(c, device, 2, kTuning.split_k_64x64)},
                          {}, &SplitTiles::time)
      .implementation;
}

}  // namespace ladders::sgemm
