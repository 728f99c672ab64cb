// SPDX-License-Identifier: MIT
//
// SGEMM: C = alpha A B + beta C in FP32, row major, A of m x k, B of k x n, C of m x n.
//
// 2mnk operations on mk + kn + mn elements (C counts twice unless beta is 0): compute bound once
// each loaded element is used often enough. Each rung uses it more often. In `naive` every FMA
// loads its operands through the caches. In `tiled` one load serves 32 FMAs. Later rungs keep
// operands in registers: a thread that owns x by y outputs loads x + y values for x * y FMAs. A
// scheduler issues one instruction per clock, so each instruction that is not an FMA takes an issue
// slot from one.
//
// Tensor cores exceed that roof. They multiply shorter numbers: two or three of these replace an
// FP32 number, and three or six of their products replace an FP32 product at the same accuracy.

#include "sgemm/ladder.hpp"

#include <set>

#include "common/warpgroups.cuh"
#include "sgemm/01_textbook.cuh"
#include "sgemm/02_warp_tiles.cuh"
#include "sgemm/03_bulk_copies.cuh"
#include "sgemm/04_producer_warps.cuh"
#include "sgemm/05_stream_k.cuh"
#include "sgemm/06_split_k.cuh"
#include "sgemm/07_small_tiles.cuh"
#include "sgemm/15_few_tiles.cuh"
#include "sgemm/problem.cuh"

namespace ladders::sgemm {
namespace {

// By the load of an SM in few_tiles: other kernels are faster, but start later.
const Crossover kOthersFromLoad{
    "sgemm.others_from_load", 64,
    [](const Case& c, const Device& device) {
      const int m = int(c["m"]), n = int(c["n"]), k = int(c["k"]);
      return few_tiles_of(m, n, k, device).load(k, device);
    },
    every({{64, 256, 512}, {128, 384}, {32, 64, 128, 192, 256, 512, 1024, 2048}})};

// Where tf32x3 and fp16x3 may err more than FP32.
bool needs_exact_parts(int m, int n, int k) {
  return k < kTuning.exact_parts_below_k ||
         (k <= kTuning.exact_parts_up_to_k && double(m) * n < kTuning.exact_parts_below_outputs);
}
// Where the pass that splits A and B pays.
bool is_large(int m, int n, int k, const Device& device) {
  return m >= kTuning.fp16x3_side && n >= kTuning.fp16x3_side &&
         double(m) * n >= kFp16x3FromOutputs.on(device) &&
         double(m) * n * k >= kFp16x3FromProducts.on(device);
}

#ifdef __CUDACC__
// `call(problem, stream)` enqueues the product; `most` is its longest kernel.
template <class Call>
Implementation mostly(const KernelLaunch& most, Call call) {
  return launches<Sgemm>(
      most.kernel, [=](const Case&, const Device&, const void*) { return most.plan; },
      [=](Sgemm& p, const LaunchPlan&, cudaStream_t stream) { call(p, stream); });
}

template <auto launch_of, auto product>
Implementation in_one_kernel(const Case& c, const Device& device) {
  return mostly(launch_of(c["m"], c["n"], c["k"], device), [](Sgemm& p, cudaStream_t stream) {
    product(p.gemm(), p.device(), p.workspace(), stream);
  });
}
constexpr auto tf32x3_at = in_one_kernel<tf32x3_launch, tf32x3>;
constexpr auto bf16x6_at = in_one_kernel<bf16x6_launch, bf16x6>;

Implementation fp16x3_at(const Case& c, const Device& device) {
  return mostly(fp16x3_launch(c["m"], c["n"], device), [](Sgemm& p, cudaStream_t stream) {
    fp16x3(p.gemm(), p.device(), p.workspace(), stream);
  });
}

Implementation fastest_at(const Case& c, const Device& device) {
  const Scheme scheme = scheme_for(aligned_gemm(c), device);
  if (scheme == Scheme::thin) return chosen("thin", gemm_at<thin_launch>(c, device));
  if (scheme == Scheme::few_tiles) return chosen("few_tiles", gemm_at<few_tiles_launch>(c, device));
  if (scheme == Scheme::few_terms) return chosen("few_terms", gemm_at<few_terms_launch>(c, device));
  if (scheme == Scheme::small_tiles)
    return chosen("small_tiles", gemm_at<small_tiles_launch>(c, device));
  if (scheme == Scheme::tf32x3) return chosen("tf32x3", tf32x3_at(c, device));
  if (scheme == Scheme::bf16x6) return chosen("bf16x6", bf16x6_at(c, device));
  return chosen("fp16x3", fp16x3_at(c, device));
}
#endif

std::string no_wgmma(const Case&, const Device&) {
  return kBuiltForHopper ? "" : "not built for architecture 90a";
}

template <int64_t operations>
std::string slow_from(const Case& c, const Device&) {
  return 2.0 * double(c["m"]) * double(c["n"]) * double(c["k"]) >= operations
             ? "takes seconds per launch at this size"
             : "";
}

bool is_thin(const Case& c) { return std::min(c["m"], c["n"]) <= kThin; }
std::string not_thin(const Case& c, const Device&) {
  return is_thin(c) ? "" : "C has more than 8 rows and columns";
}
bool has_few_terms(const Case& c) { return c["k"] <= kTuning.few_terms; }
bool is_small(const Case& c) { return !is_thin(c) && c["m"] * c["n"] <= 1 << 18; }
bool has_whole_tiles(const Case& c) { return !is_thin(c) && !has_few_terms(c); }

// The largest product shows the power limit; only the rungs on the way to the fastest are measured.
bool but_the_largest(const Case& c) { return c["m"] < 16384 && has_whole_tiles(c); }

template <int64_t least>
bool has_outputs(const Case& c) {
  return c["m"] * c["n"] >= least;
}

// Where Strassen's seven products gain: half a side must not end just beyond a tile.
bool halves_fill_tiles(const Case& c) {
  const int64_t beyond = (c["m"] + 1) / 2 % 128;
  return c["k"] >= 2048 && has_outputs<1 << 22>(c) && (beyond == 0 || beyond >= 64);
}

// Differences of large sums then err too much relative to an output's own row and column.
std::string not_for_strassen(const Case& c, const Device& device) {
  return c["k"] < 128 ? "too inaccurate for k below 128" : no_producers(c, device);
}

std::vector<Rung> steps() {
  using P = Sgemm;
  std::vector<Rung> all = {
      // 01_textbook.cuh
      {.name = "naive_uncoalesced",
       .idea =
           "One output per thread, lanes down a column of C: loads of A and stores touch 32 rows.",
       .implementation = kernel<P>(naive_uncoalesced, one_thread_per_output<true>),
       .skip = slow_from<500'000'000'000>},
      {.name = "naive",
       .idea = "Lanes along a row of C: loads of B and stores are coalesced, A is a broadcast.",
       .implementation = kernel<P>(naive, one_thread_per_output<false>),
       .builds_on = "naive_uncoalesced",
       .target = "global_load_sectors_per_request"},
      {.name = "tiled",
       .idea = "32x32 tiles in shared memory: each element loaded is used 32 times.",
       .implementation = kernel<P>(tiled, one_thread_per_output<false>),
       .builds_on = "naive",
       .target = "global_load_requests"},
      {.name = "register_tile_1d",
       .idea = "Eight outputs of a column per thread: a register of B serves eight FMAs.",
       .implementation = kernel<P>(register_tile_1d, one_block_per_tile<64, 512>),
       .builds_on = "tiled",
       .meant_for = has_outputs<1 << 20>,
       .target = "shared_load_requests"},
      {.name = "register_tile_2d",
       .idea = "8x8 outputs per thread: 16 words of shared memory feed 64 FMAs.",
       .implementation = kernel<P>(register_tile_2d, one_block_per_tile<128, 256>),
       .builds_on = "register_tile_1d",
       .meant_for = has_outputs<1 << 21>,
       .target = "shared_load_requests"},
      {.name = "vectorized",
       .idea = "16-byte loads, A transposed in its tile: the same words in fewer instructions.",
       .implementation = kernel<P>(vectorized, one_block_per_tile<128, 256>),
       .builds_on = "register_tile_2d",
       .target = "shared_load_requests"},
      // 02_warp_tiles.cuh
      {.name = "warp_tile",
       .idea = "8x16 outputs per thread: 24 words feed 128 FMAs; a load takes two wavefronts, not "
               "three.",
       .implementation = kernel<P>(warp_tile<LargeTiles>, one_block_per_warped_tile<LargeTiles>),
       .builds_on = "vectorized",
       .shows = "Fewer loads per FMA gain nothing while the SM's only block waits for its tiles.",
       .target = "shared_load_requests"},
      {.name = "async_copies",
       .idea = "Asynchronous copies fill a ring of stages ahead: no warp waits for its loads.",
       .builds_on = "warp_tile",
       .meant_for = aligned,
       .target = "stall_long_scoreboard",
       .choose = async_copies_at},
      // 03_bulk_copies.cuh
      {.name = "bulk_copies",
       .idea = "The TMA fills the ring: one thread requests tiles, no warp computes addresses.",
       .implementation = by_bulk_copies<false>(),
       .builds_on = "async_copies",
       .target = "warp_instructions",
       .needs = kTma,
       .skip = no_maps,
       .measured = but_the_largest},
      {.name = "persistent",
       .idea = "One block per SM walks over the tiles and loads the next while it stores.",
       .implementation = by_bulk_copies<true>(),
       .builds_on = "bulk_copies",
       .shows = "No gain by itself: a tile is stored once per thousands of terms of k. Later rungs "
                "need it.",
       .target = "issue_utilisation",
       .needs = kTma,
       .skip = no_maps,
       .measured = but_the_largest},
      // 04_producer_warps.cuh
      {.name = "producer_warps",
       .idea = "Four warps only load and transpose A, so that the others' FMAs have no register "
               "bank conflicts.",
       .implementation = by_producer_warps(),
       .builds_on = "persistent",
       .target = "stall_dispatch_stall",
       .needs = kSetmaxnreg,
       .skip = no_producers},
      // 05_stream_k.cuh
      {.name = "stream_k",
       .idea = "The tiles of the partial wave and of one full wave are divided along k: all blocks "
               "end together.",
       .implementation = by_stream_k(),
       .builds_on = "producer_warps",
       .meant_for = [](const Case& c) { return c["k"] >= kTuning.least_terms; },
       .target = "issue_utilisation",
       .needs = kSetmaxnreg,
       .skip = no_producers},
      // 06_split_k.cuh
      {.name = "split_k",
       .idea = "Small tiles for small outputs: warps and blocks of a cluster divide k.",
       .builds_on = "producer_warps",
       .meant_for = [](const Case& c) { return c["m"] * c["n"] <= 1 << 20; },
       .target = "issue_utilisation",
       .needs = kSetmaxnreg,
       .skip = no_producers,
       .measured = but_the_largest,
       .choose = split_k_at},
      // 07_small_tiles.cuh
      {.name = "small_tiles",
       .idea = "64x128 tiles for a short k: three blocks per SM hide each other's waits.",
       .builds_on = "vectorized",
       .meant_for = [](const Case& c) { return c["k"] < kTuning.exact_parts_below_k; },
       .target = "issue_utilisation",
       .choose = gemm_at<small_tiles_launch>},
      // 08_strassen.cuh, strassen.cu
      {.name = "strassen",
       .idea = "Seven products of half-size matrices instead of eight, at the price of additions "
               "and larger errors.",
       .builds_on = "stream_k",
       .meant_for = halves_fill_tiles,
       .shows = "Faster from 2048 on, unless half a side ends just beyond a tile (4097). Errors "
                "are larger.",
       .by_name_only = true,
       .target = "fp32_operations",
       .needs = kSetmaxnreg,
       .skip = not_for_strassen,
       .ceiling = Ceiling{.rung = "roof/fma", .products = 7.0 / 8},
       .choose = strassen_at},
      // 09_tf32x3.cuh
      {.name = "tf32x3",
       .idea = "Each FP32 number becomes two TF32 numbers and each product three, on tensor cores; "
               "blocks divide k.",
       .builds_on = "split_k",
       .meant_for =
           [](const Case& c) { return aligned(c) && !needs_exact_parts(c["m"], c["n"], c["k"]); },
       .shows =
           "Long sums are as accurate as in FP32; unaligned rows (4097) are copied word by word.",
       .target = "tensor_utilisation",
       .needs = kTensorCores,
       .ceiling = Ceiling{.rung = "roof/tf32", .products = 3},
       .choose = LADDERS_GPU_ONLY(tf32x3_at)},
      // 10_bf16x6.cuh
      {.name = "bf16x6",
       .idea = "Each FP32 number becomes three BF16 numbers exactly, and each product six: "
               "accurate for a short k too.",
       .builds_on = "tf32x3",
       .meant_for = [](const Case& c) { return c["k"] < kTuning.exact_parts_below_k; },
       .shows = "As accurate as FP32 where pairs of TF32 numbers are not; a little slower from k = "
                "512 on.",
       .target = "tensor_utilisation",
       .needs = kTensorCores,
       .measured = [](const Case& c) { return c["m"] < 16384; },
       .ceiling = Ceiling{.rung = "roof/bf16", .products = 6},
       .choose = LADDERS_GPU_ONLY(bf16x6_at)},
      // 11_fp16x3_split.cuh, 12_fp16x3_multiply.cuh
      {.name = "fp16x3",
       .idea = "A first kernel scales each number and splits it into two of FP16, multiplied at "
               "twice the rate of TF32.",
       .builds_on = "tf32x3",
       .meant_for = [](const Case& c) { return is_large(c["m"], c["n"], c["k"], {}); },
       .target = "tensor_utilisation",
       .needs = kWgmma,
       .skip = no_wgmma,
       .ceiling = Ceiling{.rung = "sgemm/cublas_fp16", .products = 3},
       .choose = LADDERS_GPU_ONLY(fp16x3_at)},
      // 13_thin.cuh, thin.cu
      {.name = "thin",
       .idea =
           "For a C of few rows or columns, threads divide each sum among them, unless k is short.",
       .builds_on = "naive",
       .target = "global_load_requests",
       .skip = not_thin,
       .measured = is_thin,
       .choose = gemm_at<thin_launch>},
      // 14_few_terms.cuh, thin.cu
      {.name = "few_terms",
       .idea =
           "For k up to 32: all of k is loaded at once, and some blocks load while others store.",
       .builds_on = "small_tiles",
       .target = "issue_utilisation",
       .measured = has_few_terms,
       .choose = gemm_at<few_terms_launch>},
      // 15_few_tiles.cuh
      {.name = "few_tiles",
       .idea = "For a C of few tiles: a block waits for DRAM once per 128 steps of k, and clusters "
               "divide a long k.",
       .builds_on = "tiled",
       .target = "warp_instructions",
       .measured = is_small,
       .choose = gemm_at<few_tiles_launch>},
      // ladder.cu
      {.name = "fastest",
       .idea =
           "The fastest kernel, as measured, of those that are as accurate as FP32 at the shape.",
       .role = Role::choice,
       .needs = kTensorCores,
       .choose = LADDERS_GPU_ONLY(fastest_at)},
  };
  // Where tiles are too large, only rungs that users might take, and the parents of thin and
  // few_terms.
  const std::set<std::string> everywhere = {"naive",  "small_tiles", "tf32x3",
                                            "bf16x6", "fp16x3",      "fastest"};
  for (Rung& rung : all) {
    if (rung.needs.compute_capability == 0 && !rung.skip)  // those that run on any GPU
      rung.skip = slow_from<5'000'000'000'000>;
    if (!everywhere.contains(rung.name) && !rung.measured) rung.measured = has_whole_tiles;
  }
  return all;
}

Shape shape(int64_t m, int64_t n, int64_t k) { return {m, n, k}; }

}  // namespace

#ifdef __CUDACC__
Scheme scheme_for(const Gemm& g, const Device& device) {
  const int m = g.m, n = g.n, k = g.k;
  // thin_columns would read B too often if C has many of its few columns and A is large.
  const bool has_large_a = n > kTuning.thin_columns && n <= m && k > kTuning.few_terms &&
                           double(m) * k > kTuning.thin_elements;
  if (std::min(m, n) <= kThin && !has_large_a) return Scheme::thin;
  const FewTiles few = few_tiles_of(m, n, k, device);
  // If C has few columns and k is short, others' tiles are half empty.
  const bool narrow = n < SmallTiles::kColumns && k <= kTuning.narrow_terms;
  if (few.tiles <= (narrow ? 2 : 1) * kTuning.few_tiles_per_sm * device.sms &&
      (narrow ||
       few.load(k, device) < std::max(kTuning.few_tiles_up_to_load, kOthersFromLoad.on(device))))
    return Scheme::few_tiles;
  if (k <= kTuning.few_terms) return Scheme::few_terms;
  // If B and C are aligned, bf16x6 is faster.
  if (k < kTuning.exact_parts_below_k && !are_b_and_c_float4_aligned(g) &&
      ceil_div(m, SmallTiles::kRows) <= kMostGridRows) {
    const double tiles = std::ceil(double(Tiles64x128::count(m, n)) / device.sms);  // of an SM
    const double time = kTuning.small_tiles_once + kTuning.small_tiles_tile * tiles +
                        (kTuning.small_tiles_term + kTuning.small_tiles_tile_term * tiles) * k;
    if (time < bf16x6_time(g, device)) return Scheme::small_tiles;
  }
  if (needs_exact_parts(m, n, k)) return Scheme::bf16x6;
  const bool has_wgmma = kBuiltForHopper && device.compute_capability == 90;
  return has_wgmma && is_large(m, n, k, device) ? Scheme::fp16x3 : Scheme::tf32x3;
}

void multiply(const Gemm& g, const Device& device, Workspace& workspace, cudaStream_t stream) {
  if (g.m <= 0 || g.n <= 0) return;
  const auto launch_by = [&](GemmLaunch (*launch_of)(const Gemm&, const Device&)) {
    const GemmLaunch found = launch_of(g, device);
    allow(reinterpret_cast<const void*>(found.kernel), found.plan);
    launch(found.plan, stream, found.kernel, g);
  };
  switch (scheme_for(g, device)) {
    case Scheme::thin:
      return launch_by(thin_launch);
    case Scheme::few_tiles:
      return launch_by(few_tiles_launch);
    case Scheme::few_terms:
      return launch_by(few_terms_launch);
    case Scheme::small_tiles:
      return launch_by(small_tiles_launch);
    case Scheme::bf16x6:
      return bf16x6(g, device, workspace, stream);
    case Scheme::tf32x3:
      return tf32x3(g, device, workspace, stream);
    case Scheme::fp16x3:
      return fp16x3(g, device, workspace, stream);
  }
}
#endif

Ladder ladder() {
  return {
      .name = "sgemm",
      .title = "FP32 matrix multiplication",
      .quantity = Quantity::flops,
      .ceiling = "roof/fma",
      .input = "uniform in [-1, 1); verified with normal and with 2^-20 to 2^20 too",
      .error_unit = "norm of the FP64 reference",
      .error_limit = 1e-5,
      .axes = {{.name = "m", .most = 1 << 20},
               {.name = "n", .most = 1 << 20},
               {.name = "k", .most = 1 << 20}},
      // The largest are last: they take the GPU to its power limit, and the clock has to recover.
      .measured = {shape(512, 512, 512), shape(1024, 1024, 1024), shape(2048, 2048, 2048),
                   shape(4096, 4096, 4096), shape(4095, 4095, 4095), shape(4097, 4097, 4097),
                   shape(1000, 3000, 77), shape(1, 4096, 4096), shape(4096, 4, 4096),
                   shape(4096, 4096, 16), shape(256, 256, 64), shape(128, 8192, 8192),
                   shape(8192, 128, 4096), shape(8192, 8192, 8192), shape(16384, 16384, 16384)},
      .small = {{256, 256, 256}, {127, 129, 65}},
      .tested = {shape(1, 1, 1),      shape(31, 31, 31),    shape(33, 65, 17),
                 shape(65, 33, 129),  shape(127, 131, 137), shape(128, 256, 64),
                 shape(132, 260, 36), shape(1, 257, 3),     shape(257, 1, 5),
                 shape(5, 300, 1100), shape(2, 300, 68),    shape(4, 301, 1070),
                 shape(300, 7, 140),  shape(3, 2, 2500),    shape(100, 1, 1),
                 shape(1, 1, 1000),   shape(64, 64, 0),     shape(64, 0, 64),
                 shape(0, 64, 64),    shape(0, 7, 5),       shape(7, 0, 5),
                 shape(2, 7, 600),    shape(6, 300, 20),    shape(2500, 3, 5)},
      .headline = {4096, 4096, 4096},
      .small_headline = {256, 256, 256},
      .work =
          [](const Case& c, const Device&) {
            const double m = c["m"], n = c["n"], k = c["k"];
            return Work{.flops = 2 * m * n * k,
                        .bytes_read = 4 * (m * k + k * n),
                        .bytes_written = 4 * m * n};
          },
      .problem = problem_of<Sgemm>,
      .crossovers = {kOthersFromLoad, kFp16x3FromProducts, kFp16x3FromOutputs},
      // A and B in FP32, in FP16 and in two parts of it; C, a copy of it and its reference in FP64.
      .memory =
          [](const Case& c) {
            const double m = c["m"], n = c["n"], k = c["k"];
            return 10 * (m * k + k * n) + 16 * m * n;
          },
      .rungs = joined(steps(), peers()),
  };
}

}  // namespace ladders::sgemm
