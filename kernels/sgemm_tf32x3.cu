// SPDX-License-Identifier: MIT
#include "sgemm_tf32x3.cuh"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "cuda_check.hpp"
#include "sgemm_bf16x6.cuh"

namespace ladders {
namespace {

// A configuration, and what the choice among them goes by.
struct Variant {
  int rows, columns, depth, threads, shared_bytes;
  int blocks;     // that run on an SM together
  double clocks;  // of a tensor core for one m16n8k8, everything in the loop included: a guess
  void (*kernel)(AlignedGemm, int parts, int tiles_x);
};
template <class Tiles, class Parts>
constexpr Variant variant(double clocks) {
  return {Tiles::kRows,   Tiles::kColumns, Tiles::kDepth, Tiles::kThreads,
          Tiles::kShared, Tiles::kBlocks,  clocks,        split_products<Tiles, Parts>};
}
//      rows, columns, those of a warp, slices, groups, stages, blocks
template <class Parts>
constexpr Variant kVariants[] = {
    variant<StagedTiles<64, 64, 32, 32, 2, 1, 6, 2>, Parts>(8.8),
    variant<StagedTiles<64, 64, 32, 32, 2, 2, 3, 2>, Parts>(8.4),
    variant<StagedTiles<64, 64, 64, 32, 4, 1, 6, 1>, Parts>(8.1),
    variant<StagedTiles<128, 64, 32, 32, 1, 2, 4, 2>, Parts>(8.1),
    variant<StagedTiles<128, 64, 64, 32, 2, 2, 4, 1>, Parts>(7.7),
    variant<StagedTiles<64, 128, 64, 32, 2, 2, 4, 1>, Parts>(7.7),
    variant<StagedTiles<128, 128, 64, 32, 1, 2, 6, 1>, Parts>(7.6),
};

// The variant and its number of blocks a tile that a model has as the fastest: time in clocks of an
// SM that has the most blocks.
struct Choice {
  const Variant* variant;
  int parts;
};
template <class Parts>
Choice choose(int m, int n, int k) {
  const Clusters clusters = clusters_at_once();
  Choice best{&kVariants<Parts>[0], 1};
  double least = std::numeric_limits<double>::max();
  for (const Variant& v : kVariants<Parts>)
    for (int parts = 1; parts < std::ssize(clusters); ++parts) {
      if (clusters[parts] == 0) continue;
      if (v.shared_bytes + size_t{1024} > current_gpu().shared_bytes_per_block) continue;
      const int steps = ceil_div(ceil_div(k, v.depth), parts);
      const double depth = std::min(double(steps) * v.depth, double(ceil_div(k, 16)) * 16);
      const double tiles = double(ceil_div(m, v.rows)) * ceil_div(n, v.columns);
      const double a_block = v.rows * v.columns * depth * 3 / 4096;
      const double most = std::ceil(tiles / clusters[parts]);  // of an SM
      const double rounds = std::ceil(most / v.blocks);
      // Once a round: some 2000 clocks to fill the ring and to store; to meet in a cluster, 1000,
      // and what others have at 16 bytes a clock.
      const double others = v.rows * v.columns * 4.0 * (parts - 1) / parts;
      const double once = 2000 + (parts > 1 ? 1000 + others / 16 : 0);
      const double clocks = most * a_block * v.clocks + rounds * once;
      if (clocks < least) least = clocks, best = {&v, parts};
    }
  return best;
}

LaunchPlan plan_of(const Choice& choice, int m, int n) {
  const auto& [v, parts] = choice;
  const int64_t tiles = int64_t{ceil_div(m, v->rows)} * ceil_div(n, v->columns);
  if (parts * tiles > std::numeric_limits<int>::max())
    throw DoesNotFit("too many tiles for a grid");
  return {.grid = static_cast<unsigned>(parts * tiles),
          .block = static_cast<unsigned>(v->threads),
          .shared_bytes = static_cast<size_t>(v->shared_bytes),
          .cluster = static_cast<unsigned>(parts)};
}

bool wide(const float* matrix, int64_t pitch, int columns = 0) {
  return reinterpret_cast<uintptr_t>(matrix) % 16 == 0 && pitch % 4 == 0 && columns % 4 == 0;
}

AlignedGemm product_of(const Gemm& gemm) {
  AlignedGemm p{gemm};
  if (p.k <= 0 || p.alpha == 0) p.k = 0, p.alpha = 0;  // neither A nor B counts
  p.wide_a = wide(p.a, p.lda, p.k), p.wide_b = wide(p.b, p.ldb, p.n), p.wide_c = wide(p.c, p.ldc);
  return p;
}

template <class Parts>
KernelLaunch staged_launch(int m, int n, int k) {
  const Choice choice = choose<Parts>(m, n, k);
  return {reinterpret_cast<const void*>(choice.variant->kernel), plan_of(choice, m, n)};
}
template <class Parts>
void staged(const AlignedGemm& p, cudaStream_t stream) {
  if (p.m <= 0 || p.n <= 0) return;
  const Choice choice = choose<Parts>(p.m, p.n, p.k);
  const LaunchPlan plan = plan_of(choice, p.m, p.n);
  allow(reinterpret_cast<const void*>(choice.variant->kernel), plan);
  launch(plan, stream, choice.variant->kernel, p, choice.parts,
         ceil_div(p.n, choice.variant->columns));
}

// Whether all of k is in shared memory at once: where that fits, and, as measured on an H200, tiles
// are enough for all SMs.
bool is_short(int m, int n, int k) {
  return m <= 1 << 22 && m >= 256 && n >= 256 && double(m) * n >= 0x1p20 &&
         k <= ShortTiles::kDepth &&
         ShortTiles::kShared + size_t{1024} <= current_gpu().shared_bytes_per_block;
}
auto short_kernel(bool wide_a, bool wide_b) {
  if (wide_a) return wide_b ? bf16_products<4, 4> : bf16_products<4, 1>;
  return wide_b ? bf16_products<1, 4> : bf16_products<1, 1>;
}
LaunchPlan short_plan(int m, int n) {
  using T = ShortTiles;
  return {.grid = dim3(ceil_div(n, T::kColumns), ceil_div(m, T::kRows)),
          .block = T::kThreads,
          .shared_bytes = T::kShared};
}

}  // namespace

Clusters clusters_at_once() {
  if (Device::count() == 0) return {0, 132, 66, 39, 30, 0, 17, 0, 15};
  const Device& gpu = current_gpu();
  static thread_local std::map<int, Clusters> known;  // asking takes long beside a launch
  if (const auto found = known.find(gpu.index); found != known.end()) return found->second;
  const Variant& v = kVariants<TwoOfTf32>[0];
  Clusters clusters = {0, gpu.sms};
  if (gpu.compute_capability >= 90)
    for (const unsigned blocks : {2, 3, 4, 6, 8}) try {
        const LaunchPlan plan{.grid = blocks,
                              .block = static_cast<unsigned>(v.threads),
                              .shared_bytes = gpu.shared_bytes_per_block - 1024,
                              .cluster = blocks};
        clusters[blocks] =
            occupancy(reinterpret_cast<const void*>(v.kernel), plan, gpu).resident_clusters;
      } catch (const DoesNotFit&) {  // then k is shared out among fewer, or not
      }
  return known.emplace(gpu.index, clusters).first->second;
}

KernelLaunch tf32x3_launch(int m, int n, int k) { return staged_launch<TwoOfTf32>(m, n, k); }
void tf32x3(const Gemm& gemm, cudaStream_t stream) { staged<TwoOfTf32>(product_of(gemm), stream); }

KernelLaunch bf16x6_launch(int m, int n, int k) {
  if (!is_short(m, n, k)) return staged_launch<ThreeOfBf16>(m, n, k);
  return {reinterpret_cast<const void*>(short_kernel(k % 4 == 0, n % 4 == 0)), short_plan(m, n)};
}

void bf16x6(const Gemm& gemm, cudaStream_t stream) {
  const AlignedGemm p = product_of(gemm);
  if (!is_short(p.m, p.n, p.k)) return staged<ThreeOfBf16>(p, stream);
  const auto kernel = short_kernel(p.wide_a, p.wide_b);
  const LaunchPlan plan = short_plan(p.m, p.n);
  allow(reinterpret_cast<const void*>(kernel), plan);
  launch(plan, stream, kernel, p);
}

}  // namespace ladders
