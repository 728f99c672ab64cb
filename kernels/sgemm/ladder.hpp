// SPDX-License-Identifier: MIT
#pragma once

#include "sgemm/sgemm.hpp"

namespace ladders::sgemm {
std::vector<Rung> peers();  ///< the library in peers.cu
/// The rung of strassen.cu at the case's shape.
Implementation strassen_at(const Case& c, const Device& device);
/// The same product by the library, in FP32 throughout: errors are compared with its errors.
void library_product(const Gemm& gemm, cudaStream_t stream);

/// The splitting of fp16x3 pays if there are many products, and its large tiles if there are many
/// outputs, whatever k is.
inline const Crossover kFp16x3FromProducts{
    "sgemm.fp16x3_from_products", 0x1p28 * 1.5,
    [](const Case& c, const Device&) { return double(c["m"]) * double(c["n"]) * double(c["k"]); },
    every({{1024}, {1024}, {256, 320, 384, 448, 512, 640, 768, 1024}})};
inline const Crossover kFp16x3FromOutputs{
    "sgemm.fp16x3_from_outputs", 1152.0 * 512,
    [](const Case& c, const Device&) { return double(c["m"]) * double(c["n"]); },
    every({{512, 768, 1024, 1280, 1536, 1792, 2048}, {512}, {8192}})};

/// Bounds of accuracy, and models of the kernels' time as measured on an H200.
struct Tuning {
  // FP32 hardly rounds a sum of few terms, and pairs of TF32 or FP16 numbers are less accurate:
  // bf16x6 serves below the first k, and up to the second if C has fewer elements than the third.
  int exact_parts_below_k = 256;
  int exact_parts_up_to_k = 4096;
  double exact_parts_below_outputs = 0x1p20;

  int fp16x3_side = 512;                 ///< its tiles are large
  int64_t fp16x3_panel_bytes = 8 << 20;  ///< of B: searched, and split before it leaves the L2
  // Time of a wave of tiles of so many columns, per step of k, in any unit: on an H100 at 8192
  // cubed; the first by its ratio to the second on an H200, with m = n = 1024.
  double fp16x3_wave_64 = 104, fp16x3_wave_128 = 143, fp16x3_wave_192 = 192, fp16x3_wave_256 = 258;
  int64_t fp16x3_wide_band = 1 << 27;    ///< outputs from which bands of tiles are twice as high
  double fp16x3_parts_above_aspect = 4;  ///< k k / (m n) above which C adds up parts of k ...
  int fp16x3_part = 1024, fp16x3_parts = 8;  ///< ... of so many terms, and how many at most

  // few_tiles serves at most so many tiles per SM, twice as many if C has few columns and k is
  // short; blocks of a cluster keep so many terms each, or so many if there are few blocks.
  int few_tiles_per_sm = 2, few_tiles_part = 96, few_tiles_small_part = 64;

  // If A has more elements than this, tensor cores are faster where C has more columns than these.
  int thin_columns = 4;
  double thin_elements = 1 << 22;

  // A thread of thin takes a column of C alone (a row) if there are so many of them per term of k
  // and SM, or half as many if C has more than four rows (columns).
  int thin_alone_columns = 1, thin_alone_rows = 3;

  // Up to the first k, few_terms is taken. Up to the second, small_tiles (few_terms if an SM has
  // more than so many tiles), unless the model below predicts that bf16x6 is faster.
  int few_terms = 32, fma_terms = 80;
  int small_tiles_up_to = 2;
  // few_terms takes its large tiles if there are at least so many per SM.
  double large_tiles_from = 1.5;

  // The model by which tf32x3 and bf16x6 choose tiles and shares of k, in units of 1.2 ns. It is
  // fitted to times of 146 shapes on an H200.
  // What a tensor core takes for one m16n8k8, by the tile; slices of a stage or deeper stages too:
  double time_64x64 = 7.84, time_64x64_deep = 7.54, time_64x64_sliced = 7.5;
  double time_128x32 = 8.58, time_128x64 = 7.34, time_128x64_sliced = 7.02;
  double time_64x128_sliced = 6.96;
  double time_128x128 = 6.9;
  // To begin, once for the blocks of an SM, and to store an output of a tile:
  double time_once = 780, time_per_output = 0.094;
  // To synchronize a cluster, and the bytes that it exchanges per unit:
  double time_of_meeting = 220, bytes_per_unit = 25;
  // Until the last cluster may read what others left, and each of its loads:
  double time_of_handover = 550, time_of_load = 600;
  // The kernel with all of k in shared memory: to begin, and a step of k of a tile:
  double time_short_once = 2000, time_short = 100;
  // The kernels of multiply-adds: to begin, and a step of k of a tile:
  double time_fma_once = 1100, time_few_terms = 48, time_small_tiles = 42;

  // The model by which split_k chooses tiles: time per output and step of k, and the steps that a
  // block takes to begin and to end.
  double split_k_128x128 = 1.08, split_k_64x128 = 1.12, split_k_64x64 = 1.25;
  int split_k_start = 128;

  // stream_k and strassen cut a tile into no more parts than it has of so many steps of k, tf32x3
  // into no more clusters than of so many.
  int least_share = 128, least_cluster_share = 64;
};
inline constexpr Tuning kTuning;

}  // namespace ladders::sgemm
