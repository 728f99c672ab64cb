// SPDX-License-Identifier: MIT
//
// SGEMM: C = alpha A B + beta C in FP32, row major, A of m x k, B of k x n, C of m x n.
//
// 2mnk operations on mk + kn + 2mn elements: compute bound as soon as each element loaded is used
// often enough, and each rung uses it more often. From L2 once an operation (naive), once in 32
// (shared tile), then from registers, where the FMA units take their operands: a thread that owns
// x by y outputs loads x + y values for x * y FMAs. A scheduler issues one instruction a clock:
// each one that is not an FMA is an FMA lost, and that is the distance to the roof.
//
// Above it are tensor cores. They multiply shorter numbers: two or three of those make up one of
// FP32, and three or six of their products one to FP32's accuracy.

#include "catalogue.hpp"
#include "peers.hpp"
#include "sgemm.hpp"
#include "sgemm_bulk.cuh"
#include "sgemm_problem.cuh"
#include "sgemm_small_tiles.cuh"
#include "sgemm_textbook.cuh"
#include "sgemm_warp_tile.cuh"
#include "tensor_cores.cuh"
#ifdef __CUDACC__
#include "sgemm_fed.cuh"  // emulators have no TMA
#endif

namespace ladders {

#ifdef __CUDACC__
namespace {

// Where few terms make a sum FP32 has hardly rounded, and two TF32 or FP16 numbers for each are
// less exact: as measured, on wide inputs. (cuBLAS seems to add up parts of k where outputs are
// few.)
bool prefers_bf16x6(int m, int n, int k) {
  return k < 256 || (k <= 4096 && double(m) * n < 0x1p20);
}

// As measured on an H200: splitting takes a pass over A and B before it pays, from 1200 cubed on.
// And its tiles are large: 1024 x 1024 outputs are 128 tiles of tf32x3, one for nearly each SM, and
// up to there that is quicker whatever k is.
bool prefers_fp16x3(int m, int n, int k) {
  return kBuiltForHopper && current_gpu().compute_capability == 90 && m >= 512 && n >= 512 &&
         double(m) * n >= 0x1p20 * 1.2 && double(m) * n * k >= 0x1p30 * 1.5;
}

}  // namespace

void sgemm(const Gemm& g, std::shared_ptr<Fp16x3Workspace>& workspace, cudaStream_t stream) {
  if (prefers_bf16x6(g.m, g.n, g.k)) return bf16x6(g, stream);
  if (g.alpha == 0 || !prefers_fp16x3(g.m, g.n, g.k)) return tf32x3(g, stream);
  if (!workspace) workspace = make_fp16x3_workspace(g.m, g.n, g.k);
  fp16x3(g, *workspace, stream);
}
#endif

namespace {

// One thread an output, in blocks of 32 x 32; `x_is_row` where the lanes go down the rows.
template <bool x_is_row>
LaunchPlan thread_an_output(const Case& c, const Device&, const void*) {
  const auto x = static_cast<unsigned>(ceil_div<int64_t>(c[x_is_row ? "m" : "n"], 32));
  const auto y = static_cast<unsigned>(ceil_div<int64_t>(c[x_is_row ? "n" : "m"], 32));
  return {.grid = dim3(x, y), .block = dim3(32, 32)};
}

// One block a square tile of C.
template <int side, int threads>
LaunchPlan block_a_tile(const Case& c, const Device&, const void*) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div<int64_t>(c["n"], side)),
                       static_cast<unsigned>(ceil_div<int64_t>(c["m"], side))),
          .block = threads};
}

// A block the tiles of its warps, with `stages` of them in dynamic shared memory.
template <class Tiles, int stages = 0>
LaunchPlan block_a_tile_of_warps(const Case& c, const Device&, const void*) {
  return {.grid = dim3(static_cast<unsigned>(ceil_div<int64_t>(c["n"], Tiles::kColumns)),
                       static_cast<unsigned>(ceil_div<int64_t>(c["m"], Tiles::kRows))),
          .block = Tiles::kThreads,
          .shared_bytes = stages * Tiles::kWords * sizeof(float)};
}

template <class Tiles, int stages>
Implementation async_copies_at(const Case& c) {
  const bool aligned = c["n"] % 4 == 0 && c["k"] % 4 == 0;
  return kernel<Sgemm>(aligned ? async_copies<Tiles, stages, 16> : async_copies<Tiles, stages, 4>,
                       block_a_tile_of_warps<Tiles, stages>);
}

// One block a tile, or as many as there are SMs.
template <class Tiles, int stages, bool persistent>
Implementation bulk_copies_at(const Case&) {
  const auto raster = [](int64_t m, int64_t n) {
    return Raster{.rows = static_cast<int>(ceil_div<int64_t>(m, Tiles::kRows)),
                  .columns = static_cast<int>(ceil_div<int64_t>(n, Tiles::kColumns)),
                  .band = 8};
  };
  return kernel<Sgemm>(
      bulk_copies<Tiles, stages>,
      [raster](const Case& c, const Device& device, const void*) {
        const unsigned tiles = raster(c["m"], c["n"]).tiles();
        return LaunchPlan{
            .grid = persistent ? std::min(tiles, static_cast<unsigned>(device.sms)) : tiles,
            .block = Tiles::kThreads,
            .shared_bytes = stages * Tiles::kWords * sizeof(float)};
      },
      [raster](Sgemm& p) {
        const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
        return std::tuple(tensor_map({a, 4, m, k, Tiles::kRows, Tiles::kDepth, 128}),
                          tensor_map({b, 4, k, n, Tiles::kDepth, Tiles::kColumns, 0}), c, m, n, k,
                          alpha, beta, raster(m, n));
      });
}

Implementation small_tiles_at(const Case& c) {
  const auto function = c["n"] % 4 == 0 ? small_tiles<16> : small_tiles<4>;
  return kernel<Sgemm>(function, block_a_tile_of_warps<SmallTiles, 1>,
                       [](Sgemm& p) { return std::tuple(p.gemm()); });
}

std::string unaligned(const Case& c, const Device&) {
  if (c["m"] * c["n"] * c["k"] == 0) return "TMA takes no empty matrices";
  return c["n"] % 4 == 0 && c["k"] % 4 == 0 ? "" : "TMA takes rows that start on 16 bytes";
}

#ifdef __CUDACC__
// `call` enqueues what `launch` is the most of.
template <class Call>
Implementation mostly(const KernelLaunch& launch, Call call) {
  return {.kernel = launch.kernel,
          .plan = [=](const Case&, const Device&, const void*) { return launch.plan; },
          .launch = [=](const LaunchPlan&, Problem& problem,
                        cudaStream_t stream) { call(static_cast<Sgemm&>(problem), stream); }};
}

Implementation tf32x3_at(const Case& c) {
  return mostly(tf32x3_launch(c["m"], c["n"], c["k"]),
                [](Sgemm& p, cudaStream_t stream) { tf32x3(p.gemm(), stream); });
}

Implementation bf16x6_at(const Case& c) {
  return mostly(bf16x6_launch(c["m"], c["n"], c["k"]),
                [](Sgemm& p, cudaStream_t stream) { bf16x6(p.gemm(), stream); });
}

Implementation fp16x3_at(const Case& c) {
  return mostly(fp16x3_launch(c["m"], c["n"]), [](Sgemm& p, cudaStream_t stream) {
    auto& workspace = p.fp16x3_workspace();
    const Gemm g = p.gemm();
    if (!workspace) workspace = make_fp16x3_workspace(g.m, g.n, g.k);
    fp16x3(g, *workspace, stream);
  });
}

Implementation fastest_at(const Case& c) {
  const int m = c["m"], n = c["n"], k = c["k"];
  return mostly(
      prefers_bf16x6(m, n, k)   ? bf16x6_launch(m, n, k)
      : prefers_fp16x3(m, n, k) ? fp16x3_launch(m, n)
                                : tf32x3_launch(m, n, k),
      [](Sgemm& p, cudaStream_t stream) { sgemm(p.gemm(), p.fp16x3_workspace(), stream); });
}
#else  // there is no emulating tensor cores
Implementation not_emulated(const Case&) {
  return library<Sgemm>([](Sgemm&, cudaStream_t) {});
}
constexpr auto producer_warps_at = not_emulated, stream_k_at = not_emulated,
               split_k_at = not_emulated, strassen_at = not_emulated, tf32x3_at = not_emulated,
               bf16x6_at = not_emulated, fp16x3_at = not_emulated, fastest_at = not_emulated;
#endif

std::string no_wgmma(const Case&, const Device& device) {
  if (device.compute_capability != 90) return "wgmma is Hopper's";
  return kBuiltForHopper ? "" : "not built for architecture 90a";
}

std::string no_producers(const Case& c, const Device& device) {
  if (c["m"] * c["n"] * c["k"] == 0) return "TMA takes no empty matrices";
  if (device.compute_capability != 90) return "only Hopper's warps hand registers over";
  return kBuiltForHopper ? "" : "not built for architecture 90a";
}

// Differences of large sums are then too far from exact beside an output's own row and column.
std::string not_for_strassen(const Case& c, const Device& device) {
  return c["k"] < 128 ? "exact enough only where many terms count, from k = 128 on"
                      : no_producers(c, device);
}

template <peers::Precision precision>
void cublas(Sgemm& problem, cudaStream_t stream) {
  std::apply([&](auto... arguments) { peers::cublas_sgemm(arguments..., precision, stream); },
             problem.arguments());
}

template <int64_t operations>
std::string slow_from(const Case& c, const Device&) {
  return 2.0 * double(c["m"]) * double(c["n"]) * double(c["k"]) >= operations
             ? "takes seconds a launch at this size"
             : "";
}

// The largest product is there for the power that it draws, and for the rungs that lead there.
bool but_the_largest(const Case& c) { return c["m"] < 16384; }

}  // namespace

Ladder sgemm() {
  using P = Sgemm;
  const auto slow = slow_from<500'000'000'000>, slower = slow_from<5'000'000'000'000>;
  using LargeTiles = WarpTiles<128, 256>;
  return {
      .name = "sgemm",
      .title = "FP32 matrix multiplication",
      .quantity = Quantity::flops,
      .ceiling = "roof/fma",
      .input = "uniform in [-1, 1); verified with normal and with 2^-20 to 2^20 too",
      .error_unit = "norm of the FP64 reference",
      .error_limit = 1e-5,
      .axes = {{"m"}, {"n"}, {"k"}},
      .measured = {{512, 512, 512},
                   {1024, 1024, 1024},
                   {2048, 2048, 2048},
                   {4096, 4096, 4096},
                   {4095, 4095, 4095},
                   {4097, 4097, 4097},
                   {1000, 3000, 77},
                   {128, 8192, 8192},
                   {8192, 128, 4096},
                   // Last: tensor cores take the GPU to its power limit, and the clock needs a
                   // moment to come back.
                   {8192, 8192, 8192},
                   {16384, 16384, 16384}},
      .small = {{256, 256, 256}, {127, 129, 65}},
      .tested = {{1, 1, 1},
                 {31, 31, 31},
                 {33, 65, 17},
                 {65, 33, 129},
                 {127, 131, 137},
                 {128, 256, 64},
                 {132, 260, 36},
                 {1, 257, 3},
                 {257, 1, 5},
                 {100, 1, 1},
                 {1, 1, 1000},
                 {64, 64, 0},
                 {0, 7, 5},
                 {7, 0, 5}},
      .headline = {4096, 4096, 4096},
      .small_headline = {256, 256, 256},
      .work =
          [](const Case& c, const Device&) {
            const double m = double(c["m"]), n = double(c["n"]), k = double(c["k"]);
            return Work{.flops = 2 * m * n * k,
                        .bytes_read = 4 * (m * k + k * n),
                        .bytes_written = 4 * m * n};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<Sgemm>(c); },
      .rungs =
          {
              {.name = "naive_uncoalesced",
               .idea =
                   "One output a thread, lanes down a column of C: every access touches 32 rows.",
               .implementation = kernel<P>(naive_uncoalesced, thread_an_output<true>),
               .skip = slow},
              {.name = "naive",
               .idea = "Lanes along a row of C: loads of B and stores of C are coalesced, A is a "
                       "broadcast.",
               .implementation = kernel<P>(naive, thread_an_output<false>),
               .moves = "global_load_sectors_per_request",
               .skip = slower},
              {.name = "tiled",
               .idea = "32x32 tiles in shared memory: each element loaded is used 32 times.",
               .implementation = kernel<P>(tiled, thread_an_output<false>),
               .moves = "global_load_requests",
               .skip = slower},
              {.name = "register_tile_1d",
               .idea = "Eight outputs of a column a thread: an element of B serves eight FMAs from "
                       "its register.",
               .implementation = kernel<P>(register_tile_1d, block_a_tile<64, 512>),
               .moves = "shared_load_requests",
               .skip = slower},
              {.name = "register_tile_2d",
               .idea = "8x8 outputs a thread: 16 words of shared memory feed 64 FMAs.",
               .implementation = kernel<P>(register_tile_2d, block_a_tile<128, 256>),
               .moves = "shared_load_requests",
               .skip = slower},
              {.name = "vectorized",
               .idea =
                   "16-byte loads everywhere, A transposed in its tile: the same words in fewer "
                   "instructions.",
               .implementation = kernel<P>(vectorized, block_a_tile<128, 256>),
               .moves = "shared_load_requests",
               .skip = slower},
              {.name = "warp_tile",
               .idea = "8x16 outputs a thread, 64x64 a warp, 128x256 a block: 24 words feed 128 "
                       "FMAs, and no load has conflicts.",
               .implementation =
                   kernel<P>(warp_tile<LargeTiles>, block_a_tile_of_warps<LargeTiles>),
               .moves = "shared_load_requests",
               .skip = slower},
              {.name = "async_copies",
               .idea = "A ring of four stages, filled by asynchronous copies three steps ahead: no "
                       "warp waits for global memory.",
               .moves = "stall_long_scoreboard",
               .skip = slower,
               .choose = async_copies_at<LargeTiles, 4>},
              {.name = "bulk_copies",
               .idea = "The tensor memory accelerator fills the ring: one thread asks for whole "
                       "tiles, no warp works out addresses, and bands of tiles meet in L2.",
               .moves = "warp_instructions",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = unaligned,
               .measured = but_the_largest,
               .choose = bulk_copies_at<LargeTiles, 4, false>},
              {.name = "persistent",
               .idea = "A block an SM, which walks over the tiles: copies for the next are under "
                       "way while it stores the last.",
               .moves = "issue_utilisation",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = unaligned,
               .measured = but_the_largest,
               .choose = bulk_copies_at<LargeTiles, 4, true>},
              {.name = "producer_warps",
               .idea = "Four warps do nothing but load, and transpose A: operands come in quads of "
                       "registers, and sums stay out of their banks.",
               .moves = "stall_dispatch_stall",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = no_producers,
               .choose = producer_warps_at},
              {.name = "stream_k",
               .idea =
                   "The tiles of the last wave, too few for all SMs, are shared out by steps of "
                   "k: all blocks end together.",
               .moves = "issue_utilisation",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = no_producers,
               .choose = stream_k_at},
              {.name = "split_k",
               .idea = "Small tiles where large ones leave SMs idle: k is shared among the warps "
                       "of a block and the blocks of a cluster.",
               .moves = "issue_utilisation",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = no_producers,
               .measured = but_the_largest,
               .choose = split_k_at},
              {.name = "small_tiles",
               .idea =
                   "Where k is short: 64x128 tiles, three blocks an SM; while one waits for its "
                   "operands, others multiply.",
               .moves = "issue_utilisation",
               .skip = slower,
               .choose = small_tiles_at},
              {.name = "strassen",
               .idea = "Where nearly every slot is an FMA, do fewer: seven products of half the "
                       "size for eight, for additions and larger errors.",
               .moves = "fp32_operations",
               .compute_capability = 90,
               .hardware_only = "TMA",
               .skip = not_for_strassen,
               .ceiling = "roof/fma",
               .products = 7.0 / 8,
               .choose = strassen_at},
              {.name = "tf32x3",
               .idea = "Small products on tensor cores: TF32 numbers in pairs, three products for "
                       "one to FP32's accuracy, k split among blocks.",
               .moves = "tensor_utilisation",
               .compute_capability = 80,
               .hardware_only = "tensor cores",
               .ceiling = "roof/tf32",
               .products = 3,
               .choose = tf32x3_at},
              {.name = "bf16x6",
               .idea = "Where few terms count, parts must be exact: three of BF16, six products at "
                       "the price of three; a short k is in shared memory at once.",
               .moves = "tensor_utilisation",
               .compute_capability = 80,
               .hardware_only = "tensor cores",
               .measured = but_the_largest,
               .ceiling = "roof/bf16",
               .products = 6,
               .choose = bf16x6_at},
              {.name = "fp16x3",
               .idea = "Large ones at twice that pace: a first kernel scales rows and columns and "
                       "splits them into pairs of FP16 numbers.",
               .moves = "tensor_utilisation",
               .compute_capability = 90,
               .hardware_only = "wgmma",
               .skip = no_wgmma,
               .ceiling = "roof/bf16",  // FP16 is as fast
               .products = 3,
               .choose = fp16x3_at},
              {.name = "fastest",
               .idea = "The fastest kernel of FP32's accuracy for the shape, as measured.",
               .compute_capability = 80,
               .hardware_only = "tensor cores",
               .ceiling = "roof/bf16",
               .products = 3,
               .choose = fastest_at},
              {.name = "cublas",
               .idea = "cublasSgemm held to FP32 throughout (CUBLAS_PEDANTIC_MATH).",
               .implementation = library<P>(cublas<peers::Precision::fp32>),
               .role = Role::peer},
              {.name = "cublas_tf32",
               .idea = "cublasSgemm on tensor cores, inputs rounded to TF32: another precision.",
               .implementation = library<P>(cublas<peers::Precision::tf32>),
               .role = Role::peer,
               .precision = "tf32",
               .error_limit = 2e-3},
          },
  };
}

}  // namespace ladders
