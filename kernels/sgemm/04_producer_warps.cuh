// SPDX-License-Identifier: MIT
//
// Warp specialization: one warpgroup, the producers, only loads; the others, the consumers, only
// multiply. So A can be transposed on its way to shared memory, at no cost to the consumers. They
// then load all operands 16 bytes at a time, which decides the registers that these land in.
//
// A scheduler's registers lie in two banks, even and odd, and each bank gives one operand per
// clock. So of an FFMA's three operands one must be reused from the FFMA before, and the other two
// must lie in different banks. Here A's operand is reused along a row of outputs, and each sum lies
// in a different bank from its operand of B. The source cannot name registers, but 16-byte accesses
// can place them: a load puts operands in four aligned registers, in order. Sums are stored with
// neighbours swapped, so that the compiler puts each sum in the other bank.
#pragma once

#include "common/warpgroups.cuh"
#include "sgemm/03_bulk_copies.cuh"

namespace ladders::sgemm {
// Threads that load: a whole warpgroup, since all its warps must execute the same setmaxnreg.
constexpr int kProducers = 128;

// A block's tile of `rows` x `columns` outputs. A consumer warp has 64 x 64 of them, for one of
// `slices` slices of each stage's depth. One more warpgroup loads. A stage is A's tile, transposed,
// and B's.
struct WarpSpecializedShape {
  int rows, columns;
  int slices = 1, depth = 32, stages = 4;
  int producer_registers = 88;  // per thread: what is left of 168 goes to consumers
};
template <WarpSpecializedShape shape>
struct WarpSpecializedTiles {
  static constexpr int kRows = shape.rows, kColumns = shape.columns, kDepth = shape.depth;
  static constexpr int kSlices = shape.slices, kStages = shape.stages;
  static constexpr int kWarps = kRows / 64 * (kColumns / 64);  // per slice
  static constexpr int kConsumers = 32 * kWarps * kSlices, kThreads = kConsumers + kProducers;
  static constexpr int kWords = kDepth * (kRows + kColumns);
  static_assert(kThreads == 384);
  // Launched with 168 registers per thread: consumers need more, and share what the producers
  // release.
  static constexpr int kProducerRegisters = shape.producer_registers;
  static constexpr int kConsumerRegisters = (3 * 168 - kProducerRegisters) / 2;

  // A stage is full when every producer and B's bytes have arrived, empty when every consumer has.
  static constexpr int kFillers = kProducers + 1, kReaders = kConsumers;
  using Barriers = Ring<kStages>;
};

// The rows of A that a producer loads, word by word: so the transpose needs no moves. Blocks of 4 x
// 4 are indexed [k][row].
struct Rows {
  const float* a;
  int m, k;
  const float* from[4];
  int left;

  // Starts at this row of A, which may be beyond the last, and this column.
  __device__ __forceinline__ void begin(int row, int column, int columns_left) {
#pragma unroll
    for (int j = 0; j < 4; ++j)  // rows beyond A read its last one; their outputs are not stored
      from[j] = a + size_t(min(row + j, m - 1)) * k + column;
    left = columns_left;
  }
  // Loads blocks `apart` terms apart, the first at `depth` of this stage; moves on by a stage.
  template <int stage_depth, int apart, int blocks>
  __device__ __forceinline__ void load(float (&block)[blocks][4][4], int depth) {
    if (left >= stage_depth) {
#pragma unroll
      for (int i = 0; i < 16 * blocks; ++i)
        block[i / 16][i % 4][i / 4 % 4] = from[i / 4 % 4][i / 16 * apart + i % 4];
    } else {
#pragma unroll
      for (int i = 0; i < 16 * blocks; ++i) {
        const int along = i / 16 * apart + i % 4;
        block[i / 16][i % 4][i / 4 % 4] = depth + along < left ? from[i / 4 % 4][along] : 0;
      }
    }
    left -= stage_depth;
#pragma unroll
    for (int j = 0; j < 4; ++j) from[j] += stage_depth;
  }
};

// Keeps the ring full: B by TMA, A through registers, where blocks of 4 x 4 are transposed, so that
// consumers load four elements of a column at once. A's rows may be unaligned, B's start on 16
// bytes.
template <class Tiles>
struct Producer {
  static constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kDepth = Tiles::kDepth;
  static constexpr int kBlocks = kRows * kDepth / 16 / kProducers;  // 4 x 4, per thread
  static constexpr int kApart = 16 * kProducers / kRows;            // terms between them
  static_assert(kRows <= kProducers);

  float* stages;
  typename Tiles::Barriers ring;
  PipelineState<Tiles::kStages> state{.parity = 1};

  // Fills the stages of a tile from k0 on; B's boxes start at this row and column.
  template <class Operand>
  __device__ __forceinline__ void produce(Operand& a, int row0, int k0, int k,
                                          const TensorMap& b_map, int b_row, int b_column,
                                          int k_tiles) {
    const int thread = threadIdx.x - Tiles::kConsumers, lane = thread % 32, warp = thread / 32;
    // Eight lanes are neighbours in a row of the transpose, so their stores have no conflicts.
    const int row = warp % (kRows / 32) * 32 + lane % 8 * 4;
    const int depth = warp / (kRows / 32) * 16 + lane / 8 * 4;
    alignas(16) float block[kBlocks][4][4];
    a.begin(row0 + row, k0 + depth, k - k0);
    a.template load<kDepth, kApart>(block, depth);
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int s = state.stage;
      float* a_tile = stages + s * Tiles::kWords;
      wait(ring.empty[s], state.parity);
      if (thread == 0) {
        arrive_expect_tx(ring.full[s], kDepth * kColumns * 4);
        tma_load(a_tile + kRows * kDepth, b_map, b_row + k_tile * kDepth, b_column, ring.full[s]);
      }
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        float* to = &a_tile[(depth + i * kApart) * kRows + row];
        for (int x = 0; x < 4; ++x) as_float4(to + x * kRows) = as_float4(block[i][x]);
      }
      commit();
      if (k_tile + 1 < k_tiles) a.template load<kDepth, kApart>(block, depth);
    }
  }
  __device__ __forceinline__ void commit() {
    arrive(ring.full[state.stage]);
    state.next();
  }
};

// Adds the products of stages to a thread's sums: four rows at 4 y and at 32 + 4 y, four columns at
// 4 x, 16 + 4 x, ... Meanwhile it loads the operands of the next k, also of the next tile's first.
template <class Tiles, int first>
struct Consumer {
  static constexpr int kDepth = Tiles::kDepth / Tiles::kSlices;
  static constexpr int kUnrolled = Tiles::kSlices > 1 ? 2 : 4;
  static_assert(kDepth % kUnrolled == 0);

  const float *a, *b;  // of this thread, in stage 0
  typename Tiles::Barriers ring;
  PipelineState<Tiles::kStages> state;
  alignas(16) float a_fragment[2][8], b_fragment[2][16];

  __device__ __forceinline__ void load(int to, const float* from_a, const float* from_b) {
#pragma unroll
    for (int j = 0; j < 16; j += 4) as_float4(&b_fragment[to][j]) = as_float4(from_b + 4 * j);
#pragma unroll
    for (int r = 0; r < 8; r += 4) as_float4(&a_fragment[to][r]) = as_float4(from_a + 8 * r);
  }
  __device__ __forceinline__ void start() {
    wait(ring.full[state.stage], state.parity);
    load(0, a + state.stage * Tiles::kWords, b + state.stage * Tiles::kWords);
  }
  __device__ __forceinline__ void release() {
    arrive(ring.empty[state.stage]);
    state.next();
  }
  // Columns alternate in direction, so that B's operand is reused where the row changes. (The first
  // row and column, and the unrolling, only change the compiler's choice of registers.)
  __device__ __forceinline__ void multiply(float (&sums)[8][16], int from) {
#pragma unroll
    for (int r = 0; r < 8; ++r)
      for (int j = 0; j < 16; ++j) {
        const int row = r ^ first, column = ((r % 2 ? 15 - j : j) + 4) % 16;
        sums[row][column] += a_fragment[from][row] * b_fragment[from][column];
      }
  }
  // `last` if no stages follow: the last load is not used, but is faster than a branch. A stage is
  // released after its operands are used: only then are its loads complete. Before, a TMA copy into
  // the stage could overtake them.
  __device__ __forceinline__ void consume(float (&sums)[8][16], int k_tiles, bool last) {
    const float *from_a = a + state.stage * Tiles::kWords,
                *from_b = b + state.stage * Tiles::kWords;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll 1
      for (int k = 0; k < kDepth - kUnrolled; k += kUnrolled) {
#pragma unroll
        for (int i = 0; i < kUnrolled; ++i) {
          load((i + 1) % 2, from_a + (i + 1) * Tiles::kRows, from_b + (i + 1) * Tiles::kColumns);
          multiply(sums, i % 2);
        }
        from_a += kUnrolled * Tiles::kRows, from_b += kUnrolled * Tiles::kColumns;
      }
#pragma unroll
      for (int i = 0; i < kUnrolled - 1; ++i) {
        load((i + 1) % 2, from_a + (i + 1) * Tiles::kRows, from_b + (i + 1) * Tiles::kColumns);
        multiply(sums, i % 2);
      }
      const int old = state.stage;
      state.next();
      from_a = a + state.stage * Tiles::kWords, from_b = b + state.stage * Tiles::kWords;
      if (!last || k_tile + 1 < k_tiles) wait(ring.full[state.stage], state.parity);
      if (kLoadsUnused || !last || k_tile + 1 < k_tiles) load(0, from_a, from_b);
      multiply(sums, 1);
      arrive(ring.empty[old]);
    }
  }
};

// Where a tile is stored: C = alpha sums + beta C.
struct Destination {
  float* matrix;
  int row, column, rows, columns;
  float alpha, beta;

  // Whether a tile is inside, its rows start on 16 bytes, and C is not read. This case has its own
  // code, which is short: code that runs once is fetched from DRAM, 16 bytes per instruction.
  template <class Tiles>
  __device__ __forceinline__ bool plain() const {
    return beta == 0 && columns % 4 == 0 && row + Tiles::kRows <= rows &&
           column + Tiles::kColumns <= columns;
  }
  template <bool plain>
  __device__ __forceinline__ void store(int below, int right, const float4& s) const {
    if constexpr (plain)
      as_float4(&matrix[size_t(row + below) * columns + column + right]) = {
          alpha * s.x, alpha * s.y, alpha * s.z, alpha * s.w};
    else
      store_four(matrix, row + below, column + right, rows, columns, alpha, &s.x, beta);
  }
};

// The 64 x 64 outputs of a consumer warp: their place in the block's tile, and shared memory behind
// the ring for eight rows of them.
template <class Tiles>
struct WarpTile {
  int row, column;
  float* staging;

  static __device__ __forceinline__ WarpTile mine(float* stages) {
    constexpr int kWarpsX = Tiles::kColumns / 64;
    const int warp = threadIdx.x / 32;
    return {warp / kWarpsX * 64, warp % kWarpsX * 64,
            stages + Tiles::kStages * Tiles::kWords + warp * 8 * 64};
  }
  template <int first>
  __device__ __forceinline__ Consumer<Tiles, first> consumer(
      float* stages, const typename Tiles::Barriers& ring) const {
    const auto [x, y] = lane_position();
    return {stages + row + 4 * y, stages + Tiles::kRows * Tiles::kDepth + column + 4 * x, ring};
  }
  // Through shared memory, so that whole rows of the sums are stored. The XOR moves odd rows by 16
  // banks, since eight lanes, whose stores are served together, have quarters of two rows.
  __device__ __forceinline__ void store(const float (&sums)[8][16], const Destination& to) const {
    const int lane = threadIdx.x % 32;
    const auto [x, y] = lane_position();
    by_case(to.plain<Tiles>(), [&](auto plain) {
#pragma unroll 1
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int known = 0; known < 8; ++known)
          if (known == r)
            for (int j = 0; j < 16; j += 4)
              as_float4(&staging[y * 64 + ((x + j) ^ y % 2 * 4) * 4]) = swapped(&sums[known][j]);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
          const int from = i + lane / 16, quad = lane % 16;
          to.store<plain.value>(row + r / 4 * 32 + 4 * from + r % 4, column + 4 * quad,
                                swapped(&staging[from * 64 + (quad ^ from % 2 * 4) * 4]));
        }
        __syncwarp();
      }
    });
  }
};

// One block per SM, which takes every gridDim.x-th tile.
template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    producer_warps(Input a, const __grid_constant__ TensorMap b_map, Output c, int m, int n, int k,
                   float alpha, float beta, Raster raster) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns;
  __shared__ MBarrier barriers[2 * Tiles::kStages];
  const auto ring = Tiles::Barriers::in_registers(barriers);
  float* stages = in_register(swizzled_shared<float>());
  ring.start(Tiles::kFillers, Tiles::kReaders);
  const int k_tiles = ceil_div(k, Tiles::kDepth), grid = gridDim.x;
  const int tiles = ceil_div(raster.tiles() - int(blockIdx.x), grid);
  if (threadIdx.x >= Tiles::kConsumers) {
    warpgroup_reg_dealloc<Tiles::kProducerRegisters>();
    Producer<Tiles> producer{stages, ring};
    Rows rows{a, m, k};
    for (int t = 0; t < tiles; ++t) {
      const auto tile = raster.place(blockIdx.x + t * grid);
      producer.produce(rows, tile.row * kRows, 0, k, b_map, 0, tile.column * kColumns, k_tiles);
    }
    return;
  }
  warpgroup_reg_alloc<Tiles::kConsumerRegisters>();
  const auto mine = WarpTile<Tiles>::mine(stages);
  auto consumer = mine.template consumer<0>(stages, ring);
  consumer.start();
  for (int t = 0; t < tiles; ++t) {
    float sums[8][16] = {};
    consumer.consume(sums, k_tiles, t + 1 == tiles);
    const auto tile = raster.place(blockIdx.x + t * grid);
    mine.store(sums, {c, tile.row * kRows, tile.column * kColumns, m, n, alpha, beta});
  }
#endif
}

// A copy whose rows are `pitch` floats apart, a multiple of 4, padded with zeros.
inline __global__ void pad_rows(Input from, Output to, int rows, int columns, int pitch) {
  const int quads = pitch / 4;
  for_all_in_grid(size_t(rows) * quads, [&](size_t i) {
    reinterpret_cast<float4*>(to)[i] =
        load_float4_or_zero(from, i / quads, i % quads * 4, rows, columns);
  });
}

// The map of B, or of such a copy if B's rows do not start on 16 bytes.
template <class Tiles>
TensorMap map_of_b(Sgemm& p, const float* b, int k, int n, cudaStream_t stream) {
  const int pitch = ceil_div(n, 4) * 4;
  if (pitch != n) {
    float* copy = p.room_for_copy(size_t(k) * pitch);
    launch({.grid = 1024, .block = 256}, stream, pad_rows, b, copy, k, n, pitch);
    b = copy;
  }
  return tensor_map({b, 4, k, n, Tiles::kDepth, Tiles::kColumns, 0, 4 * int64_t{pitch}});
}

// How producer_warps, stream_k and split_k are launched. `more(problem, plan)` returns the
// argument that only stream_k takes.
template <class Tiles, class... Parameters, class Plan, class... More>
Implementation warp_specialized(void (*function)(Parameters...), Plan plan, LaunchMode mode = {},
                                More... more) {
  return launches<Sgemm>(function, plan, [=](Sgemm& p, const LaunchPlan& plan, auto stream) {
    const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
    launch(plan, mode, stream, function, a, map_of_b<Tiles>(p, b, k, n, stream), c, m, n, k, alpha,
           beta, raster_of<Tiles>(m, n), more(p, plan)...);
  });
}

// So many blocks per tile, but no more blocks than SMs.
template <class Tiles>
LaunchPlan persistent_plan(int64_t tiles, int64_t blocks_per_tile, const Device& device) {
  return {
      .grid = unsigned(std::min<int64_t>(tiles * blocks_per_tile, device.sms)),
      .block = Tiles::kThreads,
      .shared_bytes =
          sizeof(float) * (Tiles::kStages * Tiles::kWords + Tiles::kWarps * 8 * 64) + kRoomToAlign};
}

using LargeWarpSpecializedTiles = WarpSpecializedTiles<WarpSpecializedShape{
    .rows = 128, .columns = 256, .producer_registers = 72}>;

inline Implementation by_producer_warps() {
  return warp_specialized<LargeWarpSpecializedTiles>(
      producer_warps<LargeWarpSpecializedTiles>,
      [](const Case& c, const Device& device, const void*) {
        return persistent_plan<LargeWarpSpecializedTiles>(
            raster_of<LargeWarpSpecializedTiles>(c["m"], c["n"]).tiles(), 1, device);
      });
}
inline std::string no_producers(const Case& c, const Device&) {
  if (c["m"] * c["n"] * c["k"] == 0) return "TMA takes no empty matrices";
  return kBuiltForHopper || kEmulated ? "" : "not built for architecture 90a";
}

}  // namespace ladders::sgemm
