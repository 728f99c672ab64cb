// SPDX-License-Identifier: MIT
//
// No partial waves: blocks divide the remaining tiles along k. The block that begins a tile adds
// the partial sums of the others, which CUTLASS calls fixup.
#pragma once

#include "common/flags.cuh"
#include "sgemm/04_producer_warps.cuh"

namespace ladders::sgemm {
// The k tiles of one output tile that a block computes: `k_tiles` of them from `first` on.
struct WorkTile {
  int tile, first, k_tiles;
  __device__ bool needs_fixup(int all) const { return first == 0 && k_tiles < all; }
};

// The work of a block. If tiles are left over that do not fill a wave, blocks share the k tiles of
// these, and of one full wave if there is one, equally. The other tiles stay whole and come after.
// So all blocks end together.
class TileScheduler {
 public:
  __device__ TileScheduler(int tiles, int k_tiles) : tiles_(tiles), k_tiles_(k_tiles) {
    const int blocks = gridDim.x, rest = tiles % blocks, shared = min(tiles, blocks + rest);
    const int all = rest == 0 ? 0 : shared * k_tiles, each = all / blocks, more = all % blocks;
    const auto begin = [=](int block) { return each * block + more * block / blocks; };
    next_ = begin(blockIdx.x);
    end_ = begin(blockIdx.x + 1);
    tile_ = rest == 0 ? blockIdx.x : shared + blockIdx.x;
    if (next_ < end_ && end_ % k_tiles > 0) {
      const int tile_end = (end_ / k_tiles + 1) * k_tiles;
      do ++followers_;
      while (begin(blockIdx.x + followers_ + 1) < tile_end);
    }
  }
  __device__ bool more() const { return next_ < end_ || tile_ < tiles_; }
  __device__ WorkTile next() {
    if (next_ == end_) {
      const int tile = tile_;
      tile_ += gridDim.x;
      return {tile, 0, k_tiles_};
    }
    const int tile = next_ / k_tiles_, first = next_ % k_tiles_;
    const int k_tiles = min(k_tiles_ - first, end_ - next_);
    next_ += k_tiles;
    return {tile, first, k_tiles};
  }
  // How many of the next blocks have the rest of the tile that this one begins.
  __device__ int followers() const { return followers_; }

 private:
  int tiles_, k_tiles_, tile_, followers_ = 0;
  int next_, end_;  // k tiles of shared tiles
};

// Where a block stores its partial sums of a tile that begins in an earlier block. It computes them
// first. The earlier block computes the beginning of that tile as the last of its shared k tiles,
// so the sums are usually ready when needed. Producers copy them to the ring like operands, always
// in the same order. `arrived` counts, for each block, the warps that have stored theirs. It is 0
// between launches, which must not overlap. All blocks must be resident.
template <class Tiles>
struct Fixup {
  static constexpr int kQuads = 32, kAtOnce = 8;  // per thread; of those, per stage
  static constexpr int kStageQuads = kAtOnce * Tiles::kConsumers;
  static_assert(4 * kStageQuads <= Tiles::kWords);

  float4* quads;  // one tile per block
  unsigned* arrived;

  __device__ float4* quads_of(int block) const {
    return quads + size_t(block) * kQuads * Tiles::kConsumers;
  }
  __device__ void store_partials(const float (&sums)[8][16]) const {
    float4* to = quads_of(blockIdx.x) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      __stcg(to + i * Tiles::kConsumers, swapped(&sums[i / 4][i % 4 * 4]));
    __syncwarp();
    if (threadIdx.x % 32 == 0) Count(arrived[blockIdx.x]).fetch_add(1, cuda::memory_order_release);
  }
  // For the producers: copies the partial sums of a block to the ring.
  template <class Producer>
  __device__ void load_partials(Producer& to, int block) const {
    for (int i = 0; i < kQuads / kAtOnce; ++i) {
      const int s = to.state.stage;
      wait(to.ring.empty[s], to.state.parity);
      if (threadIdx.x == Tiles::kConsumers) {
        const Count count(arrived[block]);
        if (i == 0) {
          wait_uncounted(&arrived[block], Tiles::kWarps);
          while (count.load(cuda::memory_order_acquire) < Tiles::kWarps) {
          }
          count.store(0, cuda::memory_order_relaxed);
          fence_proxy_async();
        } else {
          fence_proxy_async_shared();  // this copy overwrites what other producers stored
        }
        arrive_expect_tx(to.ring.full[s], kStageQuads * 16);
        bulk_load(to.stages + s * Tiles::kWords, quads_of(block) + i * kStageQuads,
                  kStageQuads * 16, to.ring.full[s]);
      }
      to.commit();
    }
  }
  // For the consumers: adds these partial sums to their own.
  template <class Consumer>
  __device__ void add_partials(float (&sums)[8][16], Consumer& from, const float* stages) const {
#pragma unroll
    for (int i = 0; i < kQuads; i += kAtOnce) {
      wait(from.ring.full[from.state.stage], from.state.parity);
      const float4* more =
          reinterpret_cast<const float4*>(stages + from.state.stage * Tiles::kWords) + threadIdx.x;
      for (int j = 0; j < kAtOnce; ++j) {
        const float4 quad = more[j * Tiles::kConsumers];
        float* to = &sums[(i + j) / 4][(i + j) % 4 * 4];
        to[0] += quad.y, to[1] += quad.x, to[2] += quad.w, to[3] += quad.z;
      }
      // The next bulk copy into this stage could overtake these loads: the fence orders them.
      fence_proxy_async_shared();
      from.release();
    }
  }
};

// `products` has the number of tiles, of `k_tiles` each, loads the operands of work tiles, and says
// where sums go.
template <class Tiles, class Products>
__device__ __forceinline__ void multiply_stream_k(const Products& products, int k_tiles,
                                                  const Fixup<Tiles>& fixup) {
  __shared__ MBarrier barriers[2 * Tiles::kStages];
  const auto ring = Tiles::Barriers::in_registers(barriers);
  float* stages = in_register(swizzled_shared<float>());
  ring.start(Tiles::kFillers, Tiles::kReaders);
  TileScheduler scheduler(products.tiles(), k_tiles);
  if (threadIdx.x >= Tiles::kConsumers) {
    warpgroup_reg_dealloc<Tiles::kProducerRegisters>();
    Producer<Tiles> producer{stages, ring};
    while (scheduler.more()) {
      const WorkTile work = scheduler.next();
      products.load(producer, work);
      if (work.needs_fixup(k_tiles))
        for (int i = 1; i <= scheduler.followers(); ++i)
          fixup.load_partials(producer, blockIdx.x + i);
    }
    return;
  }
  warpgroup_reg_alloc<Tiles::kConsumerRegisters>();
  const auto mine = WarpTile<Tiles>::mine(stages);
  auto consumer = mine.template consumer<6>(stages, ring);
  if (scheduler.more()) consumer.start();
  while (scheduler.more()) {
    const WorkTile work = scheduler.next();
    float sums[8][16] = {};
    // consume() loads from the stage after the last, too. Here that holds partial sums of others:
    // it must wait for them, although it does not use what it loads.
    consumer.consume(sums, work.k_tiles, !work.needs_fixup(k_tiles) && !scheduler.more());
    if (work.first > 0) {
      fixup.store_partials(sums);
      continue;
    }
    if (work.needs_fixup(k_tiles)) {
      for (int i = 0; i < scheduler.followers(); ++i) fixup.add_partials(sums, consumer, stages);
      if (scheduler.more()) consumer.start();
    }
    mine.store(sums, products.destination(work.tile));
  }
}

template <class Tiles>
struct OneProduct {
  const float* a;
  const TensorMap& b_map;
  float* c;
  int m, n, k;
  float alpha, beta;
  Raster raster;

  __device__ __forceinline__ int tiles() const { return raster.tiles(); }
  template <class Producer>
  __device__ __forceinline__ void load(Producer& producer, WorkTile work) const {
    const auto tile = raster.place(work.tile);
    const int k0 = work.first * Tiles::kDepth;
    Rows rows{a, m, k};
    producer.produce(rows, tile.row * Tiles::kRows, k0, k, b_map, k0, tile.column * Tiles::kColumns,
                     work.k_tiles);
  }
  __device__ __forceinline__ Destination destination(int number) const {
    const auto tile = raster.place(number);
    return {c, tile.row * Tiles::kRows, tile.column * Tiles::kColumns, m, n, alpha, beta};
  }
};

template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    stream_k(Input a, const __grid_constant__ TensorMap b_map, Output c, int m, int n, int k,
             float alpha, float beta, Raster raster, Fixup<Tiles> fixup) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const OneProduct<Tiles> product{a, b_map, c, m, n, k, alpha, beta, raster};
  multiply_stream_k<Tiles>(product, ceil_div(k, Tiles::kDepth), fixup);
#endif
}

template <class Tiles>
Fixup<Tiles> fixup_of(Sgemm& p, size_t blocks) {
  const auto [sums, counts] =
      p.workspace().room_for_partials(blocks * Tiles::kRows * Tiles::kColumns / 4, blocks);
  return {sums, counts};
}

// At most so many blocks per tile: each has at least least_terms terms, or all of a shorter k.
inline int64_t most_blocks_per_tile(int64_t k) {
  return std::max<int64_t>(1, k / kTuning.least_terms);
}

inline Implementation by_stream_k() {
  using Tiles = LargeWarpSpecializedTiles;
  return warp_specialized<Tiles>(
      stream_k<Tiles>,
      [](const Case& c, const Device& device, const void*) {
        return persistent_plan<Tiles>(raster_of<Tiles>(c["m"], c["n"]).tiles(),
                                      most_blocks_per_tile(c["k"]), device);
      },
      {.cooperative = true},
      [](Sgemm& p, const LaunchPlan& plan) { return fixup_of<Tiles>(p, plan.grid.x); });
}

}  // namespace ladders::sgemm
