// SPDX-License-Identifier: MIT
//
// FP32 products on tensor cores. A row of A (a column of B) is scaled by a power of two to FP16's
// range. There x = high + low, two FP16 numbers, to within 2^-23 of x or 2^-39 of
// the largest number of its row or column, so that
//   A B = A_high B_low + A_low B_high + A_high B_high
// to about FP32's accuracy. One kernel splits A and B, another multiplies.
#ifdef __CUDACC__
#include <algorithm>

#include "sgemm/12_fp16x3_multiply.cuh"
#include "sgemm/ladder.hpp"

namespace ladders::sgemm {
namespace {

int64_t round_up(int64_t x, int64_t unit) { return ceil_div(x, unit) * unit; }

// Where the parts are in a workspace, and where it ends.
struct Layout {
  SplitParts parts;
  uintptr_t end;
};
Layout layout(int64_t m, int64_t n, int64_t k, const void* begin = nullptr) {
  Layout l{.end = reinterpret_cast<uintptr_t>(begin)};
  const auto take = [&l]<class T>(T*& part, int64_t count) {
    part = reinterpret_cast<T*>(l.end);
    l.end += round_up(count * sizeof(T), 256);
  };
  auto& [a_high, a_low, b_high, b_low, row_exponents, column_exponents] = l.parts;
  const int64_t a = m * round_up(k, 8), b = round_up(n, kChunk) * k;
  take(a_high, a), take(a_low, a), take(b_high, b), take(b_low, b), take(row_exponents, m);
  take(column_exponents, round_up(n, kStrip));  // of whole strips
  return l;
}
constexpr int kTicketWords = 32;  // what follows is aligned
size_t counters(int64_t n) { return kTicketWords + (kStrip + 2) * ceil_div(n, kStrip); }

void start_splitting(const Gemm& g, const SplitParts& parts, unsigned* zeros, const Device& device,
                     cudaStream_t stream) {
  SplitPlan plan{parts};
  plan.a_pitch = round_up(g.k, 8);
  plan.slabs = ceil_div(g.k, kSlab), plan.strips = ceil_div(g.n, kStrip);
  const int64_t strips = kTuning.fp16x3_panel_bytes / (int64_t{kStrip} * 4 * g.k);
  plan.panel = int(std::clamp<int64_t>(strips, 1, plan.strips));
  plan.panels = ceil_div(plan.strips, plan.panel);
  plan.panel = ceil_div(plan.strips, plan.panels);  // all about as wide
  plan.ticket = zeros;
  plan.largest = plan.ticket + kTicketWords;
  plan.searched = plan.largest + int64_t{plan.strips} * kStrip,
  plan.split = plan.searched + plan.strips;
  const int held = 32 * 4 * kHeld;  // by a warp
  plan.team = g.k <= held ? 1 : g.k <= 4 * held ? 4 : kWarps;
  plan.a_tasks = ceil_div(g.m, kWarps / plan.team);
  plan.a_quads = is_float4_aligned(g.a, g.lda, g.k),
  plan.b_quads = is_float4_aligned(g.b, g.ldb, g.n);
  launch(
      {.grid = unsigned(std::min(kSplitBlocks * device.sms, plan.tasks())), .block = kSplitThreads},
      stream, split_operands, plan, g);
}

// One long sum rounds more often than cuBLAS, which adds up slices of k if outputs are few relative
// to k. So slices are added up here too: in C, since C is then small.
int k_tiles_per_slice(int m, int n, int k) {
  const bool long_k = double(k) * k > kTuning.fp16x3_slices_above_aspect * double(m) * n;
  const int slices =
      long_k ? std::clamp(k / kTuning.fp16x3_slice_terms, 1, kTuning.fp16x3_most_slices) : 1;
  return ceil_div(k, slices * kDepth);
}

Raster pairs_of(int m, int n, int columns) {
  return {.rows = ceil_div(m, kCluster * kRows),
          .columns = ceil_div(n, columns),
          .band = int64_t{m} * n >= kTuning.fp16x3_wide_band ? 8 : 4};
}

// The kernel for tiles of one width, and the time of its waves of tiles on this device.
struct Multiply {
  decltype(&fp16_products<192>) kernel;
  int chunks;  // of B per tile
  Raster pairs;
  LaunchPlan plan;
  double time;
};
template <int columns>
Multiply in_tiles(int m, int n, const Device& device, double wave) {
  const Raster pairs = pairs_of(m, n, columns);
  const int at_once = std::max(1, device.sms / kCluster);
  return {fp16_products<columns>,
          columns / kChunk,
          pairs,
          {.grid = unsigned(kCluster * std::clamp(pairs.tiles(), 1, at_once)),
           .block = kMultiplyThreads,
           .shared_bytes = WideTiles<columns>::kShared + kRoomToAlign,
           .cluster = kCluster},
          ceil_div(pairs.tiles(), at_once) * wave};
}
Multiply fastest_tiles(int m, int n, const Device& device) {
  return std::min({in_tiles<192>(m, n, device, kTuning.fp16x3_wave_192),
                   in_tiles<256>(m, n, device, kTuning.fp16x3_wave_256),
                   in_tiles<128>(m, n, device, kTuning.fp16x3_wave_128),
                   in_tiles<64>(m, n, device, kTuning.fp16x3_wave_64)},
                  [](const Multiply& a, const Multiply& b) { return a.time < b.time; });
}

// Starts up while the kernel before ends.
void multiply_parts(const Gemm& g, const SplitParts& parts, const Device& device,
                    cudaStream_t stream) {
  const Multiply tiles = fastest_tiles(g.m, g.n, device);
  const auto a_map = [&](const __half* rows) {
    return tensor_map({.data = rows,
                       .element_bytes = 2,
                       .rows = g.m,
                       .columns = g.k,
                       .box_rows = kRows,
                       .box_columns = kDepth,
                       .swizzle = 64,
                       .row_bytes = 2 * round_up(g.k, 8)});
  };
  const auto b_map = [&](const __half* chunks) {
    return tensor_map({.data = chunks,
                       .element_bytes = 2,
                       .rows = g.k,
                       .columns = kChunk,
                       .box_rows = kDepth / kCluster,
                       .box_columns = kChunk,
                       .swizzle = 128,
                       .row_bytes = 2 * kChunk,
                       .matrices = ceil_div(g.n, kChunk),
                       .box_matrices = tiles.chunks});
  };
  allow(reinterpret_cast<const void*>(tiles.kernel), tiles.plan);
  launch(tiles.plan, {.programmatic = true}, stream, tiles.kernel, a_map(parts.a_high),
         a_map(parts.a_low), b_map(parts.b_high), b_map(parts.b_low), parts.row_exponents,
         parts.column_exponents, g, k_tiles_per_slice(g.m, g.n, g.k), tiles.pairs);
}

}  // namespace

KernelLaunch fp16x3_launch(int m, int n, const Device& device) {
  const Multiply tiles = fastest_tiles(m, n, device);
  return {reinterpret_cast<const void*>(tiles.kernel), tiles.plan};
}

void fp16x3(const Gemm& g, const Device& device, Workspace& workspace, cudaStream_t stream) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0 || g.alpha == 0) {
    const int64_t blocks = std::min<int64_t>(ceil_div(int64_t{g.m} * g.n, 256), 4096);
    launch({.grid = unsigned(blocks), .block = 256}, stream, scale_outputs, g);
    return;
  }
  const size_t bytes = layout(g.m, g.n, g.k).end;
  const SplitParts parts = layout(g.m, g.n, g.k, workspace.parts.room_for(bytes)).parts;
  start_splitting(g, parts, workspace.room_for_counts(counters(g.n)), device, stream);
  multiply_parts(g, parts, device, stream);
}

}  // namespace ladders::sgemm
#endif
