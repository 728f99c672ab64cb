// SPDX-License-Identifier: MIT
//
// The last clocks without an FMA: warps that do nothing but load, and the banks of registers.
//
// A scheduler's registers are in two banks, the even and the odd ones, and each gives one operand a
// clock. (Measured on an H200: an FFMA that reads two of a bank, or three in all, takes two
// clocks.) An FFMA has three operands. So one must be that of the FFMA before, which is still at
// hand, and the other two of different banks: along a row of outputs A's operand stays, and each
// sum must be in the other bank than its operand of B. Operands come in 16-byte loads, which take
// four registers in order; and sums, asked for by their own 16-byte stores, with neighbours
// swapped.
#pragma once

#include <cooperative_groups.h>

#include <cuda/atomic>

#include "device.cuh"
#include "sgemm_bulk.cuh"

namespace ladders {
namespace {

constexpr int kProducers = 128;  // threads: a warpgroup, which can hand its registers over
// 384 threads are launched with 168 registers each; the consumers need more for their sums:
// 256 * 216 + 128 * 72 is as many.

// A block of `rows` x `columns` outputs, 64 x 64 a warp and slice of each stage's depth, and
// another warpgroup that feeds them. A stage is A's tile, transposed, and B's.
template <int rows, int columns, int slices = 1, int depth = 32>
struct FedTiles {
  static constexpr int kRows = rows, kColumns = columns, kSlices = slices, kDepth = depth;
  static constexpr int kWarps = rows / 64 * (columns / 64);  // a slice
  static constexpr int kConsumers = 32 * kWarps * slices, kThreads = kConsumers + kProducers;
  static constexpr int kWords = kDepth * (rows + columns);
};

// Each stage is full when every producer and B's bytes have arrived, empty when every consumer has.
template <int stages>
__device__ __forceinline__ void start_ring(MBarrier* full, MBarrier* empty, int consumers) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      initialize(full[s], kProducers + 1);
      initialize(empty[s], consumers);
    }
    publish_barriers();
  }
  __syncthreads();
}

// Keeps the ring full: B by TMA, A by way of registers, where blocks of 4 x 4 are transposed, so
// that consumers load four of a column at once. A's rows may start anywhere, B's start on 16 bytes.
template <class Tiles, int stages>
struct Producer {
  static constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  static constexpr int kBlocks = kRows * kDepth / 16 / kProducers;  // 4 x 4, a thread
  static constexpr int kApart = 16 * kProducers / kRows;            // of k, between them
  static_assert(kRows <= kProducers);

  float* ring;
  MBarrier *full, *empty;
  const float* a;
  const TensorMap& b_map;
  int m, k;
  int s = 0;
  uint32_t parity = 1;

  // The stages of a tile from k0 on.
  __device__ __forceinline__ void produce(int row0, int column0, int k0, int steps) {
    const int thread = threadIdx.x - Tiles::kConsumers, lane = thread % 32, warp = thread / 32;
    // Eight lanes are neighbours in a row of the transpose, so that their stores meet no conflict;
    // four cover 64 bytes of a row of A, by words: what they save is the moves of the transpose.
    const int row = warp % (kRows / 32) * 32 + lane % 8 * 4;
    const int depth = warp / (kRows / 32) * 16 + lane / 8 * 4;
    const float* from[4];  // rows beyond A are read as its last one: nothing is stored of theirs
#pragma unroll
    for (int j = 0; j < 4; ++j) from[j] = a + size_t(min(row0 + row + j, m - 1)) * k + k0 + depth;
    float block[kBlocks][4][4];  // [of k][of rows]
    int left = k - k0;
    const auto load = [&] {
      if (left >= kDepth) {
#pragma unroll
        for (int i = 0; i < 16 * kBlocks; ++i)
          block[i / 16][i % 4][i / 4 % 4] = from[i / 4 % 4][i / 16 * kApart + i % 4];
      } else {
#pragma unroll
        for (int i = 0; i < 16 * kBlocks; ++i) {
          const int along = i / 16 * kApart + i % 4;
          block[i / 16][i % 4][i / 4 % 4] = depth + along < left ? from[i / 4 % 4][along] : 0;
        }
      }
      left -= kDepth;
#pragma unroll
      for (int j = 0; j < 4; ++j) from[j] += kDepth;
    };
    load();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      float* a_tile = ring + s * Tiles::kWords;
      wait(empty[s], parity);
      if (thread == 0) {
        arrive_expecting(full[s], kDepth * kColumns * 4);
        copy_box(a_tile + kRows * kDepth, b_map, k0 + step * kDepth, column0, full[s]);
      }
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        float4* to = reinterpret_cast<float4*>(&a_tile[(depth + i * kApart) * kRows + row]);
#pragma unroll
        for (int x = 0; x < 4; ++x)
          to[x * kRows / 4] = {block[i][x][0], block[i][x][1], block[i][x][2], block[i][x][3]};
      }
      arrive(full[s]);
      if (step + 1 < steps) load();
      if (++s == stages) s = 0, parity ^= 1;
    }
  }
};

// Takes stages and adds their products to a thread's sums: quads of rows at 4 y and 32 + 4 y, of
// columns at 4 x, 16 + 4 x, ... One of k at a time, whose operands are loaded while those
// before are multiplied, across stages and tiles too.
template <class Tiles, int stages>
struct Consumer {
  static constexpr int kDepth = Tiles::kDepth / Tiles::kSlices, kUnrolled = 8;
  static_assert(kDepth % kUnrolled == 0);

  const float *a, *b;  // of this thread, in stage 0
  MBarrier *full, *empty;
  int s = 0;
  uint32_t parity = 0;
  float x[2][8], y[2][16];

  __device__ __forceinline__ void load(int to, const float* from_a, const float* from_b) {
#pragma unroll
    for (int j = 0; j < 16; j += 4)
      *reinterpret_cast<float4*>(&y[to][j]) = *reinterpret_cast<const float4*>(from_b + 4 * j);
#pragma unroll
    for (int r = 0; r < 8; r += 4)
      *reinterpret_cast<float4*>(&x[to][r]) = *reinterpret_cast<const float4*>(from_a + 8 * r);
  }
  __device__ __forceinline__ void start() {
    wait(full[0], 0);
    load(0, a, b);
  }
  // Rows are walked there and back, so that at the turn B's operand stays. (Where the walk begins,
  // and that A's operands are loaded last, makes no difference but to the compiler: of the orders
  // measured on an H200 none is quicker, though one leaves fewer conflicts.)
  __device__ __forceinline__ void multiply(float (&sums)[8][16], int from) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int row = r ^ 6, column = ((r % 2 ? 15 - j : j) + 4) % 16;
        sums[row][column] += x[from][row] * y[from][column];
      }
  }
  // `last` where no stages come after these: then the last load brings what is not used, which
  // takes less than to leave it out.
  __device__ __forceinline__ void consume(float (&sums)[8][16], int steps, bool last) {
    const float *from_a = a + s * Tiles::kWords, *from_b = b + s * Tiles::kWords;
    for (int step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int k = 0; k < kDepth; k += kUnrolled) {
#pragma unroll
        for (int i = 0; i < kUnrolled - 1; ++i) {
          load((i + 1) % 2, from_a + (i + 1) * Tiles::kRows, from_b + (i + 1) * Tiles::kColumns);
          multiply(sums, i % 2);
        }
        from_a += kUnrolled * Tiles::kRows, from_b += kUnrolled * Tiles::kColumns;
        const int old = s;
        const bool used_up = k + kUnrolled == kDepth;
        if (used_up) {
          if (++s == stages) s = 0, parity ^= 1;
          from_a = a + s * Tiles::kWords, from_b = b + s * Tiles::kWords;
          if (!last || step + 1 < steps) wait(full[s], parity);
        }
        load(0, from_a, from_b);
        multiply(sums, 1);
        if (used_up) arrive(empty[old]);
      }
    }
  }
};

__device__ __forceinline__ void add(float4& to, const float4& more) {
  to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
}

// Where a tile of sums goes: alpha times them plus beta times what is there, from this row and
// column of a row-major matrix on.
struct Destination {
  float* matrix;
  int row, column, rows, columns;
  float alpha, beta;

  // Whether a tile is inside, its rows start on 16 bytes, and nothing is to be read. That is worth
  // code of its own: what a block runs once, it waits for from DRAM, 16 bytes an instruction.
  template <class Tiles>
  __device__ __forceinline__ bool plain() const {
    return beta == 0 && columns % 4 == 0 && row + Tiles::kRows <= rows &&
           column + Tiles::kColumns <= columns;
  }
  template <bool plain>
  __device__ __forceinline__ void store(int below, int right, const float4& s) const {
    if constexpr (plain)
      *reinterpret_cast<float4*>(&matrix[size_t(row + below) * columns + column + right]) = {
          alpha * s.x, alpha * s.y, alpha * s.z, alpha * s.w};
    else
      store_four(matrix, row + below, column + right, rows, columns, alpha, &s.x, beta);
  }
};

// A warp's 64 x 64 sums go by way of shared memory, eight rows at a time, so that whole rows of
// them are stored. They begin in this row and column of their tile.
template <bool plain>
__device__ __forceinline__ void store(const float (&sums)[8][16], int row, int column,
                                      float* way_out, const Destination& to) {
  const int lane = threadIdx.x % 32;
  const auto [x, y] = corner();
#pragma unroll 1
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int known = 0; known < 8; ++known)
      if (known == r)
#pragma unroll
        for (int j = 0; j < 16; j += 4)
          *reinterpret_cast<float4*>(&way_out[y * 64 + ((x + j) ^ y) * 4]) =
              swapped(&sums[known][j]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const int from = i + lane / 16, quad = lane % 16;
      to.store<plain>(row + r / 4 * 32 + 4 * from + r % 4, column + 4 * quad,
                      swapped(&way_out[from * 64 + (quad ^ from) * 4]));
    }
    __syncwarp();
  }
}
template <class Tiles>
__device__ __forceinline__ void store(const float (&sums)[8][16], int row, int column,
                                      float* way_out, const Destination& to) {
  if (to.plain<Tiles>())
    store<true>(sums, row, column, way_out, to);
  else
    store<false>(sums, row, column, way_out, to);
}

// A block an SM, which takes every gridDim.x-th tile.
template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    producer_warps(const float* __restrict__ a, const __grid_constant__ TensorMap b_map,
                   float* __restrict__ c, int m, int n, int k, float alpha, float beta,
                   Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns;
  __shared__ MBarrier barriers[2 * stages];
  MBarrier *full = kept(barriers), *empty = full + stages;
  float* ring = kept(swizzled_shared<float>());
  start_ring<stages>(full, empty, Tiles::kConsumers);
  const int steps = ceil_div(k, Tiles::kDepth), grid = gridDim.x;
  const int tiles = (raster.tiles() - int(blockIdx.x) + grid - 1) / grid;
  if (threadIdx.x >= Tiles::kConsumers) {
    shrink_to<72>();
    Producer<Tiles, stages> producer{ring, full, empty, a, b_map, m, k};
    for (int t = 0; t < tiles; ++t) {
      const Place tile = raster.place(blockIdx.x + t * grid);
      producer.produce(tile.row * kRows, tile.column * kColumns, 0, steps);
    }
    return;
  }
  grow_to<216>();
  constexpr int kWarpsX = kColumns / 64;
  const int warp = threadIdx.x / 32;
  const auto [x, y] = corner();
  const int row = warp / kWarpsX * 64, column = warp % kWarpsX * 64;
  float* way_out = ring + stages * Tiles::kWords + warp * 8 * 64;
  Consumer<Tiles, stages> consumer{ring + row + 4 * y,
                                   ring + kRows * Tiles::kDepth + column + 4 * x, full, empty};
  consumer.start();
  for (int t = 0; t < tiles; ++t) {
    float sums[8][16] = {};
    consumer.consume(sums, steps, t + 1 == tiles);
    const Place tile = raster.place(blockIdx.x + t * grid);
    store<Tiles>(sums, row, column, way_out,
                 {c, tile.row * kRows, tile.column * kColumns, m, n, alpha, beta});
  }
#endif
}

// Some steps of a tile.
struct Part {
  int tile, first, steps;
};

// What a block has to do: an equal share of the steps of the tiles that make no whole wave, and of
// those of a wave more if there is one, and then whole tiles. So all blocks end together.
class Share {
 public:
  __device__ Share(int tiles, int steps) : tiles_(tiles), steps_(steps) {
    const int blocks = gridDim.x, rest = tiles % blocks, shared = min(tiles, blocks + rest);
    all_ = rest == 0 ? 0 : shared * steps;
    each_ = all_ / blocks, more_ = all_ % blocks;
    begin_ = next_ = begin(blockIdx.x);
    end_ = begin(blockIdx.x + 1);
    tile_ = rest == 0 ? blockIdx.x : shared + blockIdx.x;
  }
  __device__ bool more() const { return next_ < end_ || tile_ < tiles_; }
  __device__ Part next() {
    if (next_ == end_) {
      const int tile = tile_;
      tile_ += gridDim.x;
      return {tile, 0, steps_};
    }
    const int tile = next_ / steps_, first = next_ % steps_;
    const int steps = min(steps_ - first, end_ - next_);
    next_ += steps;
    return {tile, first, steps};
  }
  // Whether `part` is the last of the shared ones. All that this block shares with others are of
  // tiles from first_tile() to last_tile(), in between whole ones.
  __device__ bool is_last_shared(const Part& part) const {
    return end_ > begin_ && int64_t{part.tile} * steps_ + part.first + part.steps == end_;
  }
  __device__ int first_tile() const { return begin_ / steps_; }
  __device__ int last_tile() const { return (end_ - 1) / steps_; }
  // The blocks that have steps of a shared tile, from .x to .y.
  __device__ int2 blocks_of(int tile) const {
    return {block_of(tile * steps_), block_of((tile + 1) * steps_ - 1)};
  }

 private:
  __device__ int begin(int block) const {
    return each_ * block + more_ * block / static_cast<int>(gridDim.x);
  }
  __device__ int block_of(int step) const {
    int block = static_cast<int>(float(step) * gridDim.x / all_);  // or next to it
    while (begin(block) > step) --block;
    while (begin(block + 1) <= step) ++block;
    return block;
  }

  int tiles_, steps_, tile_;
  int all_, each_, more_, begin_, end_, next_;  // steps of shared tiles
};

// Where blocks leave their sums of parts of tiles, each thread's quads as it has them. Once all
// parts of a tile are there, each of its blocks adds up some quads of all of them, always in the
// same order, and stores these: a warp those of the same warp. A flag says how many blocks have
// still to see that a warp's sums are there, and so is 0 between launches, which must not overlap.
// All blocks must run at once.
template <class Tiles>
struct Handover {
  static constexpr int kQuads = 32;  // a thread

  float4* quads;     // of as many tiles as there are blocks and shared tiles
  unsigned* unseen;  // one a warp of each

  using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
  // What this warp of a block has of a tile: blocks have tiles in order, so no two have the same.
  __device__ static int slot(int block, int tile) {
    return (block + tile) * Tiles::kWarps + threadIdx.x / 32;
  }
  __device__ float4* quads_of(int slot) const {
    return quads + slot * kQuads * 32 + threadIdx.x % 32;
  }
  // For the blocks from .x to .y, which share the tile.
  __device__ void leave(const float (&sums)[8][16], int tile, const int2& blocks) const {
    const int mine = slot(blockIdx.x, tile);
    float4* to = quads_of(mine);
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) __stcg(to + (4 * r + j) * 32, swapped(&sums[r][4 * j]));
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      Flag(unseen[mine]).store(blocks.y - blocks.x + 1, cuda::memory_order_release);
  }
  // Until this warp's sums of all parts are there.
  __device__ void wait(int tile, const int2& blocks) const {
    const int lane = threadIdx.x % 32;
    for (bool there = false; !__all_sync(~0u, there);) {
      there = true;
#pragma unroll 1
      for (int b = blocks.x + lane; b <= blocks.y; b += 32)
        there = there && Flag(unseen[slot(b, tile)]).load(cuda::memory_order_acquire) != 0;
    }
#pragma unroll 1
    for (int b = blocks.x + lane; b <= blocks.y; b += 32)
      Flag(unseen[slot(b, tile)]).fetch_sub(1, cuda::memory_order_relaxed);
    __syncwarp();
  }
  // The warp's sums begin in this row and column of `to`.
  template <bool plain>
  __device__ void add_up(int tile, const int2& blocks, const Destination& to, int row,
                         int column) const {
    constexpr int kAtOnce = 4, kApart = Tiles::kWarps * kQuads * 32;
    const int parts = blocks.y - blocks.x + 1, mine = blockIdx.x - blocks.x;
    const int end = kQuads * (mine + 1) / parts;
    const auto [x, y] = corner();
#pragma unroll 1
    for (int quad = kQuads * mine / parts; quad < end; quad += kAtOnce) {
      float4 sums[kAtOnce] = {};
      const float4* from = quads_of(slot(blocks.x, tile)) + quad * 32;
#pragma unroll 1
      for (int left = parts; left > 0; left -= kAtOnce) {
        float4 more[kAtOnce][kAtOnce];  // all are asked for before any is waited for
#pragma unroll
        for (int i = 0; i < kAtOnce * kAtOnce; ++i) {
          const int ahead = i / kAtOnce, right = i % kAtOnce;
          const bool there = ahead < left && quad + right < end;
          more[ahead][right] = there ? __ldcg(from + ahead * kApart + right * 32) : float4{};
        }
#pragma unroll
        for (int i = 0; i < kAtOnce * kAtOnce; ++i)
          add(sums[i % kAtOnce], more[i / kAtOnce][i % kAtOnce]);
        from += kAtOnce * kApart;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = (quad + i) / 4, j = (quad + i) % 4;
        if (quad + i < end)
          to.store<plain>(row + r / 4 * 32 + 4 * y + r % 4, column + 16 * j + 4 * x,
                          swapped(&sums[i].x));
      }
    }
  }
};

template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    stream_k(const float* __restrict__ a, const __grid_constant__ TensorMap b_map,
             float* __restrict__ c, int m, int n, int k, float alpha, float beta, Raster raster,
             Handover<Tiles> handover) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  __shared__ MBarrier barriers[2 * stages];
  MBarrier *full = kept(barriers), *empty = full + stages;
  float* ring = kept(swizzled_shared<float>());
  start_ring<stages>(full, empty, Tiles::kConsumers);
  const int steps = ceil_div(k, kDepth);
  Share share(raster.tiles(), steps);
  if (threadIdx.x >= Tiles::kConsumers) {
    shrink_to<72>();
    Producer<Tiles, stages> producer{ring, full, empty, a, b_map, m, k};
    while (share.more()) {
      const Part part = share.next();
      const Place tile = raster.place(part.tile);
      producer.produce(tile.row * kRows, tile.column * kColumns, part.first * kDepth, part.steps);
    }
    return;
  }
  grow_to<216>();
  constexpr int kWarpsX = kColumns / 64;
  const int warp = threadIdx.x / 32;
  const auto [x, y] = corner();
  const int row = warp / kWarpsX * 64, column = warp % kWarpsX * 64;
  float* way_out = ring + stages * Tiles::kWords + warp * 8 * 64;
  Consumer<Tiles, stages> consumer{ring + row + 4 * y, ring + kRows * kDepth + column + 4 * x, full,
                                   empty};
  const auto out = [&](int tile) -> Destination {
    const Place place = raster.place(tile);
    return {c, place.row * kRows, place.column * kColumns, m, n, alpha, beta};
  };
  if (share.more()) consumer.start();
  while (share.more()) {
    const Part part = share.next();
    float sums[8][16] = {};
    consumer.consume(sums, part.steps, !share.more());
    if (part.steps == steps)
      store<Tiles>(sums, row, column, way_out, out(part.tile));
    else
      handover.leave(sums, part.tile, share.blocks_of(part.tile));
    if (share.is_last_shared(part))
      for (int tile = share.first_tile(); tile <= share.last_tile(); ++tile)
        if (const int2 others = share.blocks_of(tile); others.x < others.y) {
          const Destination to = out(tile);
          handover.wait(tile, others);
          if (to.plain<Tiles>())
            handover.template add_up<true>(tile, others, to, row, column);
          else
            handover.template add_up<false>(tile, others, to, row, column);
        }
  }
#endif
}

// Adds up the sums that a tile's slices and, in a cluster, its blocks have in shared memory, and
// stores them.
template <class Tiles, bool plain>
__device__ __forceinline__ void add_up_slices(float* sums, const Destination& to) {
  constexpr int kPitch = Tiles::kColumns + 4, kQuads = Tiles::kColumns / 4;
  const auto cluster = cooperative_groups::this_cluster();
  const int part = cluster.block_rank(), parts = cluster.num_blocks();
  const int rows = Tiles::kRows / parts;  // of each block of the cluster
  const auto quad = [&](int row, int i) {
    return reinterpret_cast<float4*>(&sums[row * kPitch + i * 4]);
  };
  const auto of_slices = [&](int row, int i) {
    float4 sum = *quad(row, i);
#pragma unroll
    for (int other = 1; other < Tiles::kSlices; ++other)
      add(sum, *quad(other * Tiles::kRows + row, i));
    return sum;
  };
  if (parts > 1) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Tiles::kRows * kQuads; i += Tiles::kThreads)
      *quad(i / kQuads, i % kQuads) = of_slices(i / kQuads, i % kQuads);
    cluster.sync();
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * kQuads; i += Tiles::kThreads) {
    const int row = part * rows + i / kQuads;
    float4 sum{};
    if (parts == 1) sum = of_slices(row, i % kQuads);
#pragma unroll 2
    for (int rank = 0; parts > 1 && rank < parts; ++rank)
      add(sum, *cluster.map_shared_rank(quad(row, i % kQuads), rank));
    to.store<plain>(row, i % kQuads * 4, swapped(&sum.x));
  }
  if (parts > 1) cluster.sync();  // no block may go while another reads of it
}

// A product too small for a large tile an SM: the warps of a block share a small one, each with a
// slice of every stage, and so do the blocks of a cluster, each with a part of k. The sums meet in
// shared memory, always in the same order.
template <class Tiles, int stages>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    split_k(const float* __restrict__ a, const __grid_constant__ TensorMap b_map,
            float* __restrict__ c, int m, int n, int k, float alpha, float beta, Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  constexpr int kPitch = kColumns + 4, kSliceDepth = kDepth / Tiles::kSlices;
  static_assert(Tiles::kSlices * kRows * kPitch <= stages * Tiles::kWords);
  const auto cluster = cooperative_groups::this_cluster();
  const int part = cluster.block_rank(), parts = cluster.num_blocks();
  const Place tile = raster.place(blockIdx.x / parts);
  const int all = ceil_div(k, kDepth), first = all * part / parts;
  const int steps = all * (part + 1) / parts - first;
  __shared__ MBarrier barriers[2 * stages], used_up;
  MBarrier *full = kept(barriers), *empty = full + stages;
  float* ring = kept(swizzled_shared<float>());
  if (threadIdx.x == 0) initialize(used_up, Tiles::kConsumers);
  start_ring<stages>(full, empty, Tiles::kConsumers);
  if (threadIdx.x >= Tiles::kConsumers) {
    shrink_to<88>();
    Producer<Tiles, stages> producer{ring, full, empty, a, b_map, m, k};
    producer.produce(tile.row * kRows, tile.column * kColumns, first * kDepth, steps);
  } else {
    grow_to<208>();
    constexpr int kWarpsX = kColumns / 64;
    const int warp = threadIdx.x / 32 % Tiles::kWarps, slice = threadIdx.x / 32 / Tiles::kWarps;
    const auto [x, y] = corner();
    const int row = warp / kWarpsX * 64 + 4 * y, column = warp % kWarpsX * 64 + 4 * x;
    float sums[8][16] = {};
    Consumer<Tiles, stages> consumer{
        ring + slice * kSliceDepth * kRows + row,
        ring + kRows * kDepth + slice * kSliceDepth * kColumns + column, full, empty};
    if (steps > 0) consumer.start();
    consumer.consume(sums, steps, true);
    arrive(used_up);
    wait(used_up, 0);  // the ring is free
    float* own = ring + slice * kRows * kPitch + row * kPitch + column;
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int j = 0; j < 16; j += 4)
        *reinterpret_cast<float4*>(&own[(r / 4 * 32 + r % 4) * kPitch + 4 * j]) =
            swapped(&sums[r][j]);
  }
  __syncthreads();
  const Destination to{c, tile.row * kRows, tile.column * kColumns, m, n, alpha, beta};
  if (to.plain<Tiles>())
    add_up_slices<Tiles, true>(ring, to);
  else
    add_up_slices<Tiles, false>(ring, to);
#endif
}

// A copy whose rows are `pitch` floats apart, a multiple of 4, and filled up with zeros.
__global__ void pad_rows(const float* __restrict__ from, float* __restrict__ to, int rows,
                         int columns, int pitch) {
  const size_t quads = size_t(rows) * (pitch / 4), stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < quads; i += stride)
    reinterpret_cast<float4*>(to)[i] =
        four(from, i / (pitch / 4), i % (pitch / 4) * 4, rows, columns);
}

}  // namespace
}  // namespace ladders
