// SPDX-License-Identifier: MIT
//
// The first kernel of fp16x3: rows of A and columns of B are scaled by powers of two to FP16's
// range, and split into two FP16 numbers.
#pragma once

#include <cuda_fp16.h>

#include "common/dependent_launch.cuh"
#include "common/flags.cuh"
#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
// B's parts are in chunks, matrices of k rows of 64 columns, 128 bytes: so the splitting kernel
// streams, and tensor cores transpose what they read.
constexpr int kChunk = 64;

// The exponent of a row or column that is not all finite. Others lie from -163 to 113. So the sum
// of a row's and a column's is at least half of it exactly if at least one of them is not finite.
constexpr int kNotFinite = 1 << 20;

__host__ __device__ inline bool is_finite_exponent(int exponent) {
  return exponent < kNotFinite / 2;
}

// 2^e, -126 <= e <= 127.
__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

// Magnitudes are compared as integers: then infinities and NaNs are the largest.
__device__ __forceinline__ unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ __forceinline__ unsigned largest_of(float4 x) {
  return max(max(magnitude(x.x), magnitude(x.y)), max(magnitude(x.z), magnitude(x.w)));
}

// e such that 2^14 <= largest * 2^-e < 2^15.
__device__ __forceinline__ int exponent_for(unsigned largest) {
  if (largest >= 0x7f800000u) return kNotFinite;
  if (largest == 0) return 0;
  const int e = largest >> 23;
  return (e > 0 ? e - 126 : 32 - __clz(largest) - 149) - 15;
}

// Multiplies by 2^-exponent. Two factors, since that may exceed FP32. The result is exact unless
// it underflows in FP16.
struct Scale {
  float first, second;
  __device__ __forceinline__ float operator()(float x) const { return x * first * second; }
};
__device__ __forceinline__ Scale scale_down(int exponent) {
  const int e = is_finite_exponent(exponent) ? -exponent : 0, first = min(e, 127);
  return {power_of_two(first), power_of_two(e - first)};
}

struct Parts {  // of four numbers
  uint2 high, low;
};
__device__ __forceinline__ uint32_t bits(__half2 x) { return *reinterpret_cast<uint32_t*>(&x); }
__device__ __forceinline__ Parts parts_of(float x, float y, float z, float w) {
  const __half2 xy = __floats2half2_rn(x, y), zw = __floats2half2_rn(z, w);
  const float2 high_xy = __half22float2(xy), high_zw = __half22float2(zw);
  return {.high = {bits(xy), bits(zw)},
          .low = {bits(__floats2half2_rn(x - high_xy.x, y - high_xy.y)),
                  bits(__floats2half2_rn(z - high_zw.x, w - high_zw.y))}};
}

// Four elements of a row; zeros past its end. kQuads: rows are aligned multiples of four.
template <bool kQuads>
__device__ __forceinline__ float4 load_four(const float* row, int at, int columns) {
  if constexpr (kQuads) {
    return at < columns ? __ldg(reinterpret_cast<const float4*>(row + at)) : float4{};
  } else {
    return {at < columns ? __ldg(row + at) : 0, at + 1 < columns ? __ldg(row + at + 1) : 0,
            at + 2 < columns ? __ldg(row + at + 2) : 0, at + 3 < columns ? __ldg(row + at + 3) : 0};
  }
}
// The same for data that is not read again.
template <bool kQuads>
__device__ __forceinline__ float4 load_last(const float* row, int at, int columns) {
  if constexpr (kQuads)
    return at < columns ? __ldcs(reinterpret_cast<const float4*>(row + at)) : float4{};
  else
    return load_four<false>(row, at, columns);
}

// B is split in slabs of 64 rows by strips of 128 columns. First all slabs of a strip are searched
// for the largest elements of its columns. Then they are read again from L2, since strips are taken
// in panels of about 8 MB, one searched while another is split. Of a row of A, up to 8192 elements
// stay in registers, and the others are read twice. Blocks draw tickets for these tasks, one ahead
// of the task that they work on. A task waits only for tasks with lower tickets, and a block does
// its tasks in the order of its tickets. So the unfinished task with the lowest ticket never waits:
// there is no deadlock, even if not all blocks are resident.
constexpr int kSplitThreads = 256, kSplitBlocks = 4;
constexpr int kSlab = 64, kStrip = 128, kWarps = kSplitThreads / 32, kHeld = kSlab / kWarps;

// The parts of both matrices, and the exponents of rows of A and columns of B.
struct SplitParts {
  __half *a_high, *a_low, *b_high, *b_low;
  int *row_exponents, *column_exponents;
};
struct SplitPlan : SplitParts {
  int64_t a_pitch;  // from row to row
  // All zero before and after.
  // The next task; of each column; of each strip, how many slabs are searched and split.
  unsigned *ticket, *largest, *searched, *split;
  int slabs, strips, panel, panels;  // panel: strips per panel
  int team, a_tasks;                 // warps that share a row of A
  bool a_quads, b_quads;

  // Tasks in order: search panel 0, rows of A, search 1, split 0, search 2, split 1, ...
  __host__ __device__ int panel_tasks() const { return slabs * panel; }
  __host__ __device__ int tasks() const { return 2 * panels * panel_tasks() + a_tasks; }
};

// A task: `team` warps per row.
template <bool kQuads, class Draw>
__device__ __forceinline__ void split_rows(const SplitPlan& plan, const Gemm& g, int task,
                                           unsigned* warp_largest, Draw draw) {
  const int warp = threadIdx.x / 32, team = plan.team, threads = 32 * team;
  const int row = task * (kWarps / team) + warp / team, thread = threadIdx.x % threads;
  const int columns = row < g.m ? g.k : 0;
  const float* a = g.a + row * g.lda;
  float4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    held[i] = load_last<kQuads>(a, 4 * (thread + i * threads), columns);
  draw();
  unsigned largest = 0;
#pragma unroll 1
  for (int at = 4 * (thread + kHeld * threads); at < columns; at += 4 * threads)
    largest = max(largest, largest_of(load_four<kQuads>(a, at, columns)));
#pragma unroll
  for (int i = 0; i < kHeld; ++i) largest = max(largest, largest_of(held[i]));
  largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x % 32 == 0) warp_largest[warp] = largest;
  __syncthreads();
  for (int i = 0; i < team; ++i) largest = max(largest, warp_largest[warp / team * team + i]);
  const int exponent = exponent_for(largest);
  if (thread == 0 && row < g.m) plan.row_exponents[row] = exponent;
  const Scale scale = scale_down(exponent);
  const auto store = [&](float4 x, int at) {
    if (at >= columns) return;  // the pitch is a multiple of 8
    const Parts parts = parts_of(scale(x.x), scale(x.y), scale(x.z), scale(x.w));
    __stcs(reinterpret_cast<uint2*>(plan.a_high + row * plan.a_pitch + at), parts.high);
    __stcs(reinterpret_cast<uint2*>(plan.a_low + row * plan.a_pitch + at), parts.low);
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) store(held[i], 4 * (thread + i * threads));
#pragma unroll 1
  for (int at = 4 * (thread + kHeld * threads); at < columns; at += 4 * threads)
    store(load_four<kQuads>(a, at, columns), at);
}

// A warp takes every kWarps-th row of the slab.
template <bool kQuads, class Draw>
__device__ __forceinline__ void search_columns(const SplitPlan& plan, const Gemm& g, int slab,
                                               int strip, unsigned (*warp_largest)[kStrip],
                                               Draw draw) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = slab * kSlab + warp, column = strip * kStrip + 4 * lane;
  float4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    held[i] = load_four<kQuads>(g.b + (row + i * kWarps) * g.ldb, column,
                                row + i * kWarps < g.k ? g.n : 0);
  draw();
  uint4 largest{};
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    largest.x = max(largest.x, magnitude(held[i].x));
    largest.y = max(largest.y, magnitude(held[i].y));
    largest.z = max(largest.z, magnitude(held[i].z));
    largest.w = max(largest.w, magnitude(held[i].w));
  }
  *reinterpret_cast<uint4*>(&warp_largest[warp][4 * lane]) = largest;
  __syncthreads();
  if (threadIdx.x < kStrip) {
    unsigned all = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) all = max(all, warp_largest[w][threadIdx.x]);
    if (all > 0) atomicMax(&plan.largest[strip * kStrip + threadIdx.x], all);
  }
}

template <bool kQuads, class Draw>
__device__ __forceinline__ void split_columns(const SplitPlan& plan, const Gemm& g, int slab,
                                              int strip, Draw draw) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = slab * kSlab + warp, column = strip * kStrip + 4 * lane;
  float4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    held[i] = load_last<kQuads>(g.b + (row + i * kWarps) * g.ldb, column,
                                row + i * kWarps < g.k ? g.n : 0);
  draw();
  if (threadIdx.x < 32) {  // a warp that polls as one is faster than a lane that sleeps
    const Count searched(plan.searched[strip]);
    while (!__all_sync(~0u, searched.load(cuda::memory_order_acquire) == unsigned(plan.slabs))) {
    }
  }
  __syncthreads();
  const uint4 largest = __ldcg(reinterpret_cast<const uint4*>(plan.largest + column));
  const int4 exponents = {exponent_for(largest.x), exponent_for(largest.y), exponent_for(largest.z),
                          exponent_for(largest.w)};
  if (slab == 0 && warp == 0) *reinterpret_cast<int4*>(plan.column_exponents + column) = exponents;
  const Scale x = scale_down(exponents.x), y = scale_down(exponents.y), z = scale_down(exponents.z),
              w = scale_down(exponents.w);
  if (column < (g.n + kChunk - 1) / kChunk * kChunk) {
    const int64_t chunk = int64_t(column / kChunk) * g.k;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (row + i * kWarps >= g.k) break;
      const int64_t at = (chunk + row + i * kWarps) * kChunk + column % kChunk;
      const Parts parts = parts_of(x(held[i].x), y(held[i].y), z(held[i].z), w(held[i].w));
      __stcs(reinterpret_cast<uint2*>(plan.b_high + at), parts.high);
      __stcs(reinterpret_cast<uint2*>(plan.b_low + at), parts.low);
    }
  }
}

inline __global__ void __launch_bounds__(kSplitThreads, kSplitBlocks)
    split_operands(const __grid_constant__ SplitPlan plan, const __grid_constant__ Gemm g) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  __shared__ unsigned tickets[2];
  __shared__ __align__(16) unsigned largest[kWarps][kStrip];
  launch_dependent_grids();
  const unsigned tasks = plan.tasks();
  const int panel_tasks = plan.panel_tasks();
  if (threadIdx.x == 0) tickets[0] = atomicAdd(plan.ticket, 1u);
  __syncthreads();
  for (int turn = 0;; turn ^= 1) {
    const unsigned ticket = tickets[turn];
    if (ticket >= tasks) {
      // Each block draws one ticket too many: after the last of these, no more are drawn.
      if (threadIdx.x == 0 && ticket == tasks + gridDim.x - 1) *plan.ticket = 0;
      break;
    }
    // Called when a task's loads are in flight, since it waits for memory too.
    const auto draw = [&] {
      if (threadIdx.x == 0) tickets[turn ^ 1] = atomicAdd(plan.ticket, 1u);
    };
    int task = ticket, panel = 0;
    bool rows = false, search = task < panel_tasks;
    if (!search) {
      task -= panel_tasks;
      rows = task < plan.a_tasks;
      if (!rows) {
        task -= plan.a_tasks;
        panel = task / (2 * panel_tasks), task %= 2 * panel_tasks;
        search = panel < plan.panels - 1 && task < panel_tasks;
        if (search)
          ++panel;
        else if (task >= panel_tasks)
          task -= panel_tasks;
      }
    }
    const int slab = task / plan.panel, strip = panel * plan.panel + task % plan.panel;
    const bool columns = !rows && strip < plan.strips;  // the last panel may be narrower
    if (rows) {
      if (plan.a_quads)
        split_rows<true>(plan, g, task, largest[0], draw);
      else
        split_rows<false>(plan, g, task, largest[0], draw);
    } else if (columns && search) {
      if (plan.b_quads)
        search_columns<true>(plan, g, slab, strip, largest, draw);
      else
        search_columns<false>(plan, g, slab, strip, largest, draw);
    } else if (columns) {
      if (plan.b_quads)
        split_columns<true>(plan, g, slab, strip, draw);
      else
        split_columns<false>(plan, g, slab, strip, draw);
    } else {
      draw();
    }
    __syncthreads();
    // The other warps continue meanwhile.
    if (threadIdx.x == 0 && columns) {
      if (search) {
        Count(plan.searched[strip]).fetch_add(1, cuda::memory_order_release);
      } else if (Count(plan.split[strip]).fetch_add(1, cuda::memory_order_acq_rel) + 1 ==
                 unsigned(plan.slabs)) {  // the strip's last: zeros for the next time
        plan.searched[strip] = plan.split[strip] = 0;
        for (int i = 0; i < kStrip; i += 4)
          *reinterpret_cast<uint4*>(&plan.largest[strip * kStrip + i]) = {};
      }
    }
  }
#endif
}

}  // namespace ladders::sgemm
