// SPDX-License-Identifier: MIT
//
// FP32 by six BF16 products on tensor cores: how elements are split, for the kernel of
// 09_tf32x3.cuh, and a kernel for a short k. FP32 hardly rounds sums of few terms, so two TF32
// numbers per element are not accurate enough: three BF16 numbers hold an element exactly, and six
// products take as long as three of TF32. If k is short, the start and the end of a block take
// longer than its products. So blocks are small, and several per SM: some load or store while
// others multiply.
// * All of k fits into shared memory, so no part of it is filled twice.
// * Sums are stored from registers if rows of B and C start on 16 bytes, else by way of shared
//   memory. Lanes take columns of B such that a store of a warp has 64 neighbouring bytes of each
//   of eight rows.
// * Infinities and NaNs are handled as with TF32. Below 2^-110 elements err by up to 2^-134.
#pragma once

#include "sgemm/09_tf32x3.cuh"

namespace ladders::sgemm {
// k, at most kDepth, is taken in slabs of kSlab. So many `blocks` should fit on an SM.
template <int slabs, int blocks>
struct ShortTiles {
  static constexpr int kRows = 64, kColumns = 64, kWarpRows = 32, kWarpColumns = 32;
  static constexpr int kWarpsX = kColumns / kWarpColumns, kBlocks = blocks;
  static constexpr int kThreads = 32 * (kRows / kWarpRows) * kWarpsX;
  static constexpr int kSlab = 16, kSlabs = slabs, kDepth = kSlab * kSlabs;
  static constexpr int kShared = 4 * kDepth * (kRows + kColumns);
  static_assert(kDepth % 32 == 16);  // two rows of A take half of the banks each
};

// All threads start the copy of a box to place(row, column); elements outside become 0.
template <int rows, int columns, int words, int threads, class Place>
__device__ __forceinline__ void cp_async_box_by_block(const float* matrix, int64_t pitch, int row0,
                                                      int column0, int end_row, int end_column,
                                                      Place place) {
  constexpr int kPerRow = columns / words, kApart = threads / kPerRow;
  static_assert(threads % kPerRow == 0 && rows % kApart == 0);
  const int row = threadIdx.x / kPerRow, column = threadIdx.x % kPerRow * words;
  const float* from = matrix + (row0 + row) * pitch + column0 + column;
  const int left = column0 + column < end_column ? end_row - row0 - row : 0;
#pragma unroll
  for (int y = 0; y < rows; y += kApart, from += kApart * pitch)
    cp_async_words<words>(place(row + y, column), from, y < left);
}

// x and y as sums of three BF16 numbers each, x in the lower halves. Each part is the rounded
// rest. So parts have either sign, and the products that are left out have no bias.
__device__ __forceinline__ void split_in_three(float x, float y, uint32_t& high, uint32_t& middle,
                                               uint32_t& low) {
#define LADDERS_ROUND(pair) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x))
  LADDERS_ROUND(high);
  x -= __uint_as_float(high << 16), y -= __uint_as_float(high & 0xffff0000);
  LADDERS_ROUND(middle);
  x -= __uint_as_float(middle << 16), y -= __uint_as_float(middle & 0xffff0000);
  LADDERS_ROUND(low);
#undef LADDERS_ROUND
}

// How elements are split. Three of the nine products, at most 2^-24 of the whole, are left out.
struct ThreeOfBf16 {
  using Type = Bf16;
  static constexpr int kParts = 3;
  static __device__ constexpr PartIndices product(int i) {
    constexpr PartIndices kProducts[] = {{1, 1}, {2, 0}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    return kProducts[i];
  }

  static __device__ __forceinline__ void split_a(float4 v, int h, uint32_t (&parts)[kParts][4]) {
    split_in_three(v.x, v.y, parts[0][h], parts[1][h], parts[2][h]);
    split_in_three(v.z, v.w, parts[0][h + 2], parts[1][h + 2], parts[2][h + 2]);
  }
  static __device__ __forceinline__ void split_b(const float* b, int pitch,
                                                 uint32_t (*parts)[kParts][2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      alignas(16) float x[4], y[4];
      as_float4(x) = as_float4(b + 2 * i * pitch),
      as_float4(y) = as_float4(b + (2 * i + 1) * pitch);
      for (int j = 0; j < 4; ++j)
        split_in_three(x[j], y[j], parts[j][0][i], parts[j][1][i], parts[j][2][i]);
    }
  }
};

// One store: compilers split it if the four are not neighbours in registers.
__device__ __forceinline__ void store_whole(float* to, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

// If `aligned_a`, rows of A start on 16 bytes and have whole multiples of them. `aligned_b_and_c`
// says the same of B and C.
template <class T, bool aligned_a, bool aligned_b_and_c>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    bf16_products(const __grid_constant__ AlignedGemm p) {
#if __CUDA_ARCH__ >= 800
  constexpr int kSlab = T::kSlab, kTilesY = T::kWarpRows / 16, kSums = 16 * kTilesY;
  __shared__ MBarrier barriers[T::kSlabs];
  MBarrier* full = in_register(barriers);
  float *a_tile = in_register(dynamic_shared<float>()), *b_tile = a_tile + T::kRows * T::kDepth;
  if (threadIdx.x == 0)
    for (int i = 0; i < T::kSlabs; ++i) mbarrier_init(full[i], T::kThreads);
  __syncthreads();
  const int row0 = blockIdx.y * T::kRows, column0 = blockIdx.x * T::kColumns;
  const int slabs = ceil_div(p.k, kSlab);
#pragma unroll 1  // code that runs once should be short: it comes from DRAM
  for (int slab = 0; slab < slabs; ++slab) {
    const int k0 = slab * kSlab;
    const uint32_t to_a = shared_address(a_tile) + 4 * k0;
    const uint32_t to_b = shared_address(b_tile) + 4 * k0 * T::kColumns;
    const auto copy_a = [&]<int words>(std::integral_constant<int, words>) {
      const auto place = [&](int row, int column) { return to_a + 4 * (row * T::kDepth + column); };
      cp_async_box_by_block<T::kRows, kSlab, words, T::kThreads>(p.a, p.lda, row0, k0, p.m, p.k,
                                                                 place);
    };
    const auto copy_b = [&]<int words>(std::integral_constant<int, words>) {
      const auto place = [&](int row, int column) {
        return to_b + 4 * place_b<T::kColumns, 4>(row, column);
      };
      cp_async_box_by_block<kSlab, T::kColumns, words, T::kThreads>(p.b, p.ldb, k0, column0, p.k,
                                                                    p.n, place);
    };
    by_words(aligned_a ? 4 : p.words_a, copy_a);
    by_words(aligned_b_and_c ? 4 : p.words_b, copy_b);
    cp_async_arrive_noinc(full[slab]);
  }

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int my_row = warp / T::kWarpsX * T::kWarpRows;
  const int my_column = warp % T::kWarpsX * T::kWarpColumns;
  const float* a = a_tile + (my_row + g) * T::kDepth + 4 * t;
  // Lane g loads chunk g / 2 or, if odd, 4 + g / 2: so lane t has sums of chunks t and 4 + t.
  const float* b = b_tile + place_b<T::kColumns, 4>(4 * t, my_column + 4 * (g / 2 + g % 2 * 4));
  float sums[kTilesY][4][4] = {};
#pragma unroll 1
  for (int slab = 0; slab < slabs; ++slab) {
    poll(full[slab], 0);
    __syncwarp();
    add_group<T, ThreeOfBf16>(sums, a + slab * kSlab, b + slab * kSlab * T::kColumns);
  }

  const int row = row0 + my_row + g, column = column0 + my_column + 4 * t;
  const auto sum = [&](int i) -> float& { return sums[i / 16][i / 4 % 4][i % 4]; };
  const auto row_of = [&](int i) { return row + i / 16 * 16 + i % 4 / 2 * 8; };
  const auto column_of = [&](int i) { return column + i % 2 * 16 + i / 4 % 4; };
  restore_lost<kSums>(sum, [&](int i) -> float {
    if (row_of(i) >= p.m || column_of(i) >= p.n) return 0;
    return exact_product(&p.a[row_of(i) * p.lda], &p.b[column_of(i)], p.ldb, p.k);
  });
  const auto four_sums = [&](int y, int h) -> float4 {
    const auto& of = sums[y / 2];
    const int e = y % 2 * 2 + h;
    return {of[0][e], of[1][e], of[2][e], of[3][e]};
  };
  if constexpr (aligned_b_and_c) {
    float* out = p.c + row * p.ldc + column;
#pragma unroll
    for (int y = 0; y < 2 * kTilesY; ++y) {
      for (int h = 0; h < 2; ++h) {
        if (row + 8 * y >= p.m || column + 16 * h >= p.n) continue;
        float4 chunk = {};
        if (p.beta != 0) chunk = as_float4(out + 16 * h);
        const float4 products = four_sums(y, h);
        update(chunk.x, p.alpha, products.x, p.beta);
        update(chunk.y, p.alpha, products.y, p.beta);
        update(chunk.z, p.alpha, products.z, p.beta);
        update(chunk.w, p.alpha, products.w, p.beta);
        store_whole(out + 16 * h, chunk);
      }
      out += 8 * p.ldc;
    }
  } else {
    // Each store of a warp writes 32 neighbouring words of a row: stores that fill parts of sectors
    // of 32 bytes are slow.
    constexpr int kPitch = 48;  // two rows are half of the banks apart
    static_assert(T::kThreads / 32 * T::kWarpRows * kPitch * sizeof(float) <= T::kShared);
    __syncthreads();  // all have read A and B
    float* staged = a_tile + warp * T::kWarpRows * kPitch;
#pragma unroll
    for (int y = 0; y < 2 * kTilesY; ++y)
      for (int h = 0; h < 2; ++h)
        as_float4(&staged[(g + 8 * y) * kPitch + 4 * t + 16 * h]) = four_sums(y, h);
    __syncwarp();
    const int lane = threadIdx.x % 32, out_column = column0 + my_column + lane;
    if (out_column >= p.n) return;
    float* out = p.c + (row0 + my_row) * p.ldc + out_column;
#pragma unroll 4
    for (int i = 0; i < min(T::kWarpRows, p.m - row0 - my_row); ++i)
      update(out[i * p.ldc], p.alpha, staged[i * kPitch + lane], p.beta);
  }
#endif
}

}  // namespace ladders::sgemm
