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

/// Bounds of accuracy, and constants of the models of the kernels' times on an H200.
struct Tuning {
  // A sum of few terms hardly rounds in FP32, and pairs of TF32 or FP16 numbers are less accurate.
  // So bf16x6 serves a k below the first bound, and a k up to the second if C has fewer outputs
  // than the third.
  int exact_parts_below_k = 256;
  int exact_parts_up_to_k = 4096;
  double exact_parts_below_outputs = 0x1p20;

  int fp16x3_side = 512;                 ///< least m and n for fp16x3: its tiles are large
  int64_t fp16x3_panel_bytes = 8 << 20;  ///< of B: stays in the L2 between the search and the split
  // Time of a wave of tiles of 64 to 256 columns, per term. Only ratios matter. Measured on an
  // H100 at 8192 cubed; the ratio of 64 to 128 columns on an H200 at m = n = 1024.
  double fp16x3_wave_64 = 104, fp16x3_wave_128 = 143, fp16x3_wave_192 = 192, fp16x3_wave_256 = 258;
  int64_t fp16x3_wide_band = 1 << 27;  ///< from this many outputs on, bands are twice as high
  // Above this k k / (m n), C adds up slices of k, of so many terms each: at most so many slices.
  double fp16x3_slices_above_aspect = 4;
  int fp16x3_slice_terms = 1024, fp16x3_most_slices = 8;

  // few_tiles serves at most this many tiles per SM; twice as many if C has few columns and k is at
  // most narrow_terms. Then the fewest terms that a block keeps when a cluster divides k; the
  // second of these applies while at most half of the SMs have a block.
  int few_tiles_per_sm = 2, few_tiles_terms = 96, few_tiles_least_terms = 64, narrow_terms = 80;
  // Below this load of an SM it is few_tiles even where bf16x6 is faster. cuBLAS divides such a k,
  // and errs less than bf16x6 if all elements are positive (16 x 300 x 1001, a load of 75).
  double few_tiles_up_to_load = 80;

  // If A has more elements than thin_elements and C more columns than thin_columns, tensor cores
  // are faster than thin.
  int thin_columns = 4;
  double thin_elements = 1 << 22;

  // thin gives a whole column (row) of C to one thread if C has at least this many columns (rows)
  // per SM and term of k. Half as many suffice if C has more than four rows (columns).
  int thin_alone_columns = 1, thin_alone_rows = 3;

  // Up to this k the choice is few_terms: bf16x6 is less accurate there.
  int few_terms = 32;
  // few_terms uses its large tiles if there are at least this many per SM.
  double large_tiles_from = 1.5;

  // The model by which tf32x3 and bf16x6 choose tiles and shares of k, in units of 1.2 ns. It is
  // fitted to times of 118 shapes on an H200. Where several blocks fit on an SM, one alone leaves
  // it partly idle. It takes as long as this number of blocks would together:
  double time_alone = 1.2;
  // To start, once per wave of blocks; and to store one output:
  double time_once = 1900, time_per_output = 0.155;
  // A cluster barrier; and the bytes that a cluster exchanges per unit of time:
  double time_of_cluster_sync = 420, bytes_per_unit = 25;
  // Until the last cluster may read the others' sums; and each of its rounds of loads:
  double time_of_fixup = 750, time_of_load = 410;
  // With all of k in shared memory: to begin; and for each tile on an SM, once and per term,
  // where rows of B and C start on 16 bytes and where not.
  double time_short_once = 1030, time_short_tile = 260, time_short_term = 18.5;
  double time_short_tile_unaligned = 600, time_short_term_unaligned = 25.3;
  // If rows of B or C do not start on 16 bytes, the other kernel of bf16x6 takes longer, per
  // output:
  double time_per_unaligned_output = 0.004;
  // small_tiles, for such rows: to begin; for each tile on an SM, once and per term; and per
  // term for all tiles.
  double small_tiles_once = 490, small_tiles_tile = 1190, small_tiles_tile_term = 39;
  double small_tiles_term = 17;

  // The model by which split_k chooses tiles: time per output and term, and the terms that a
  // block takes to begin and to end.
  double split_k_128x128 = 1.08, split_k_64x128 = 1.12, split_k_64x64 = 1.25;
  int split_k_start = 128;

  // stream_k and strassen launch at most k / least_terms blocks per tile (strassen: of half of k),
  // and at most one per SM. (A block's range that crosses the edge of a tile can still have few
  // terms on one side.) tf32x3 divides a tile among clusters that each get at least
  // least_cluster_terms terms.
  int least_terms = 128, least_cluster_terms = 64;
};
inline constexpr Tuning kTuning;

}  // namespace ladders::sgemm
