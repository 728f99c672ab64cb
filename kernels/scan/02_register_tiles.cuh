// SPDX-License-Identifier: MIT
//
// Tiles in registers: vectors of 16 bytes, all loads in flight at once. Lanes load, scan and store
// neighbouring vectors, row by row, so only sums of warps move through shared memory.
#pragma once

#include "scan/01_textbook.cuh"

namespace ladders::scan {
template <class Type, int kThreads, int kVectors>
struct Tile {
  using T = Value<Type>;
  using Vector = typename Type::Vector;
  static constexpr int kWarps = kThreads / 32;
  static constexpr size_t kElements = size_t{4} * kThreads * kVectors;
  static_assert(kWarps <= 32);

  Vector v[kVectors];  // one of each row of 32
  T sum;               // of the tile

  __device__ static size_t first_of(size_t tile) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return tile * kElements + 4 * (warp * 32 * kVectors + lane);
  }

  // The L2 evicts the elements first, unless the next launch reads them again. Only the vector that
  // the end of the input cuts is loaded and stored word by word.
  template <bool read_again = false>
  __device__ __forceinline__ void load(const T* in, size_t count, size_t tile) {
    const size_t first = first_of(tile);
    const auto* wide = reinterpret_cast<const Vector*>(in + first);
    const auto load_vector = [&](int j) {
      return read_again ? wide[32 * j] : __ldcs(wide + 32 * j);
    };
    if ((tile + 1) * kElements <= count) {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) v[j] = load_vector(j);
    } else {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const size_t i = first + 128 * j;
        if (i + 4 <= count)
          v[j] = load_vector(j);
        else
          v[j] = {scan::load(in, i, count), scan::load(in, i + 1, count),
                  scan::load(in, i + 2, count), T{}};
      }
    }
  }

  // The output is not read again: it is evicted first from the L2.
  __device__ __forceinline__ void store(T* out, size_t count, size_t tile, T tiles_before) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j) add(v[j], tiles_before);
    const size_t first = first_of(tile);
    auto* wide = reinterpret_cast<Vector*>(out + first);
    if ((tile + 1) * kElements <= count) {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) __stcs(wide + 32 * j, v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const size_t i = first + 128 * j;
        if (i + 4 <= count) {
          __stcs(wide + 32 * j, v[j]);
        } else {
          if (i < count) out[i] = v[j].x;
          if (i + 1 < count) out[i + 1] = v[j].y;
          if (i + 2 < count) out[i + 2] = v[j].z;
        }
      }
    }
  }

  // All threads call `before_barrier` before the only barrier.
  __device__ __forceinline__ void scan(auto before_barrier) {
    __shared__ T warps[kWarps];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T before[kVectors];
    const T own = scan_rows(before, T{});
    if (lane == 0) warps[warp] = own;
    before_barrier();
    __syncthreads();
    const T sums = scan_warp(lane < kWarps ? warps[lane] : T{});
    sum = __shfl_sync(0xFFFFFFFF, sums, kWarps - 1);
    const T left = __shfl_sync(0xFFFFFFFF, sums, warp == 0 ? 0 : warp - 1);
#pragma unroll
    for (int j = 0; j < kVectors; ++j) add(v[j], warp == 0 ? before[j] : left + before[j]);
  }

  // Scans each vector. Sets before[j] to `carry` plus all that the warp has to the left of vector
  // j. Returns `carry` plus the sum of the warp.
  __device__ __forceinline__ T scan_rows(T (&before)[kVectors], T carry) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      v[j].y += v[j].x;
      v[j].z += v[j].y;
      v[j].w += v[j].z;
      before[j] = scan_warp(v[j].w);
    }
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      const T row = __shfl_sync(0xFFFFFFFF, before[j], 31);
      const T left = __shfl_up_sync(0xFFFFFFFF, before[j], 1);
      before[j] = threadIdx.x % 32 == 0 ? carry : carry + left;
      carry += row;
    }
    return carry;
  }

  __device__ __forceinline__ static void add(Vector& v, T x) {
    v = {v.x + x, v.y + x, v.z + x, v.w + x};
  }
};

template <class Type, int kThreads, int kVectors>
__global__ void sum_wide_tiles(const Value<Type>* in, size_t count, Value<Type>* sums) {
  Tile<Type, kThreads, kVectors> tile;
  tile.template load<true>(in, count, blockIdx.x);
  tile.scan([] {});
  if (threadIdx.x == 0) sums[blockIdx.x] = tile.sum;
}

template <class Type, int kThreads, int kVectors>
__global__ void scan_wide_tiles(const Value<Type>* in, size_t count, Value<Type>* out,
                                const Value<Type>* sums) {
  Tile<Type, kThreads, kVectors> tile;
  tile.load(in, count, blockIdx.x);
  tile.scan([] {});
  tile.store(out, count, blockIdx.x, blockIdx.x == 0 ? 0 : sums[blockIdx.x - 1]);
}

}  // namespace ladders::scan
