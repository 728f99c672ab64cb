// SPDX-License-Identifier: MIT
//
// tf32x3 and bf16x6 for callers: which tiles they use, and how many blocks divide k.
#ifdef __CUDACC__
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sgemm/10_bf16x6.cuh"
#include "sgemm/gemm_launch.cuh"
#include "sgemm/ladder.hpp"

namespace ladders::sgemm {
namespace {

// A configuration, and what the choice depends on.
struct Variant {
  int rows, columns, depth, threads;
  size_t shared_bytes, barrier_bytes;
  int blocks;            // as many as an SM has registers for
  bool for_less_shared;  // than Hopper's SMs have; binaries for Hopper lack these
  double time;           // of one m16n8k8 on a tensor core, in the units of Tuning
  void (*kernel)(AlignedGemm, int cluster_size, int tiles_x, SplitKWorkspace);

  // Blocks on an SM at once: the system takes 1 KiB for each.
  int blocks_on_an_sm(const Device& device) const {
    const size_t bytes = shared_bytes + barrier_bytes;
    if (bytes > device.shared_bytes_per_block) return 0;
    if (for_less_shared && device.shared_bytes_per_sm >= 228 * 1024) return 0;
    return std::min<int>(blocks, device.shared_bytes_per_sm / (bytes + 1024));
  }
};
template <class Parts, StagedShape shape>
constexpr Variant variant(double time) {
  using T = StagedTiles<shape>;
  constexpr size_t kBarriers = 2 * T::kStages * sizeof(MBarrier);
  return {T::kRows,  T::kColumns, T::kDepth,         T::kThreads, T::kShared,
          kBarriers, T::kBlocks,  T::kForLessShared, time,        split_products<T, Parts>};
}
// One large block per SM loads least, and uses each split element most often. Several small ones
// fill the SMs where C is small, and hide each other's waits. Sliced: more warps divide the depth
// of a stage. Deep: a stage is deeper.
constexpr StagedShape k128x128{.rows = 128, .columns = 128, .slices = 1, .stages = 6};
constexpr StagedShape k128x64{.rows = 128, .columns = 64};
constexpr StagedShape k64x64Sliced{
    .rows = 64, .columns = 64, .slices = 4, .groups = 1, .stages = 6};
constexpr StagedShape k64x64{
    .rows = 64, .columns = 64, .warp_rows = 32, .slices = 1, .stages = 3, .blocks = 4};
constexpr StagedShape k64x32{.rows = 64, .columns = 32, .slices = 4, .groups = 1, .blocks = 2};
constexpr StagedShape k32x64{.rows = 32, .columns = 64, .warp_rows = 32, .groups = 1, .blocks = 4};
constexpr StagedShape k32x32{
    .rows = 32, .columns = 32, .warp_rows = 32, .slices = 4, .groups = 1, .stages = 3, .blocks = 4};
constexpr StagedShape k32x32Deep{
    .rows = 32, .columns = 32, .warp_rows = 32, .slices = 8, .groups = 1, .stages = 3, .blocks = 2};
constexpr StagedShape with_stages(StagedShape shape, int stages) {
  shape.stages = stages;
  return shape;
}
constexpr int kMostBlocks = 4, kMostOutputs = 128 * 128;  // on an SM
template <class Parts>
constexpr Variant kVariants[] = {
    variant<Parts, k128x128>(5.0),
    variant<Parts, k128x64>(5.6),
    variant<Parts, k64x64Sliced>(5.9),
    variant<Parts, k64x64>(6.4),
    variant<Parts, k64x32>(6.1),
    variant<Parts, k32x64>(7.0),
    variant<Parts, k32x32>(7.3),
    variant<Parts, k32x32Deep>(7.55),
    // With fewer stages, for SMs with 164 and with 100 KiB.
    variant<Parts, with_stages(k128x128, 5)>(5.0),
    variant<Parts, with_stages(k128x128, 3)>(5.0),
};

static_assert(std::ranges::all_of(kVariants<TwoOfTf32>, [](const Variant& v) {
  return v.blocks <= kMostBlocks && v.blocks * v.rows * v.columns <= kMostOutputs;
}));

// The variant that is fastest by a model of the busiest SM, with its blocks per cluster and
// clusters per tile.
struct Choice {
  const Variant* variant = nullptr;
  int cluster_size = 1, clusters = 1;
  double time = std::numeric_limits<double>::max();

  int64_t tiles(int m, int n) const {
    return int64_t{ceil_div(m, variant->rows)} * ceil_div(n, variant->columns);
  }
};
template <class Parts>
Choice choose_anew(int m, int n, int k, const Device& device) {
  Choice best{&kVariants<Parts>[0], 1, 1};
  for (const Variant& v : kVariants<Parts>)
    for (int cluster_size = 1; cluster_size < std::ssize(device.clusters_at_once); ++cluster_size) {
      const int at_once = device.clusters_at_once[cluster_size], blocks = v.blocks_on_an_sm(device);
      if (at_once == 0 || blocks == 0) continue;
      const double tiles = double(Choice{&v}.tiles(m, n)), outputs = v.rows * v.columns;
      const int all_k_tiles = ceil_div(k, v.depth);
      for (int clusters = 1;;) {
        const int k_tiles = ceil_div(all_k_tiles, cluster_size * clusters);
        const double depth = std::min(double(k_tiles) * v.depth, double(ceil_div(k, 16)) * 16);
        // Products as m16n8k8 of TF32 per tensor core (four per SM). BF16 takes as long.
        const double block_products = outputs * depth * 3 / 4096;
        const double blocks_of_sm = std::ceil(clusters * tiles / at_once);
        const double waves = std::ceil(blocks_of_sm / blocks);
        const double remote_bytes = outputs * 4.0 * (cluster_size - 1) / cluster_size;
        const double exchange =
            cluster_size > 1 ? kTuning.time_of_cluster_sync + remote_bytes / kTuning.bytes_per_unit
                             : 0;
        const double loads = std::ceil(outputs / (4.0 * cluster_size * v.threads)) *
                             ceil_div(clusters, kTogetherLoaded);
        const double fixup =
            clusters > 1 ? kTuning.time_of_fixup + loads * kTuning.time_of_load : 0;
        // Blocks of a cluster store a piece of the tile each, some while others still exchange
        // sums.
        const double storing = kTuning.time_per_output * outputs / (cluster_size * cluster_size);
        const double overhead = waves * (kTuning.time_once + storing + exchange + fixup);
        const double tensor_work =
            std::max(blocks_of_sm, v.blocks > 1 ? kTuning.time_alone : 1) * block_products;
        const double time = tensor_work * v.time + overhead;
        if (time < best.time) best = {&v, cluster_size, clusters, time};
        // More clusters take more overhead. The next number that leaves fewer k tiles to each:
        if (overhead >= best.time || k_tiles <= 1) break;
        clusters = std::max(clusters + 1, ceil_div(all_k_tiles, cluster_size * (k_tiles - 1)));
        if (clusters * tiles > at_once * blocks ||
            ceil_div(all_k_tiles, cluster_size * clusters) * v.depth < kTuning.least_cluster_terms)
          break;
      }
    }
  return best;
}

// The same, cached: a choice takes as long as a small product.
template <class Parts>
Choice choose(int m, int n, int k, const Device& device) {
  using Question =
      std::tuple<int, int, int, int, size_t, size_t, decltype(Device::clusters_at_once)>;
  static thread_local std::pair<Question, Choice> last;
  const Question question{m,
                          n,
                          k,
                          device.sms,
                          device.shared_bytes_per_sm,
                          device.shared_bytes_per_block,
                          device.clusters_at_once};
  if (!last.second.variant || last.first != question)
    last = {question, choose_anew<Parts>(m, n, k, device)};
  return last.second;
}

LaunchPlan plan_of(const Choice& choice, int m, int n) {
  const auto& [v, cluster_size, clusters, time] = choice;
  const int64_t blocks = cluster_size * clusters * choice.tiles(m, n);
  if (blocks > std::numeric_limits<int>::max()) throw DoesNotFit("too many tiles for a grid");
  return {.grid = unsigned(blocks),
          .block = unsigned(v->threads),
          .shared_bytes = v->shared_bytes,
          .cluster = unsigned(cluster_size)};
}

AlignedGemm product_of(const Gemm& gemm) {
  AlignedGemm p{gemm};
  if (p.k <= 0 || p.alpha == 0) p.k = 0, p.alpha = 0;  // neither A nor B counts
  p.words_a = vector_width(p.a, p.lda, p.k), p.words_b = vector_width(p.b, p.ldb, p.n);
  p.wide_c = is_float4_aligned(p.c, p.ldc);
  return p;
}

template <class Parts>
KernelLaunch staged_launch(int m, int n, int k, const Device& device) {
  const Choice choice = choose<Parts>(m, n, k, device);
  return {reinterpret_cast<const void*>(choice.variant->kernel), plan_of(choice, m, n)};
}
template <class Parts>
void staged(const AlignedGemm& p, const Device& device, Workspace& workspace, cudaStream_t stream) {
  if (p.m <= 0 || p.n <= 0) return;
  const Choice choice = choose<Parts>(p.m, p.n, p.k, device);
  const Variant& v = *choice.variant;
  const LaunchPlan plan = plan_of(choice, p.m, p.n);
  SplitKWorkspace split_k{choice.clusters};
  if (split_k.clusters > 1)  // at once as much as any product needs
    std::tie(split_k.sums, split_k.arrived) = workspace.room_for_partials(
        device.sms * size_t{kMostOutputs / 4}, kMostBlocks * device.sms);
  allow(reinterpret_cast<const void*>(v.kernel), plan);
  launch(plan, stream, v.kernel, p, choice.cluster_size, ceil_div(p.n, v.columns), split_k);
}

// The kernels with all of k in shared memory.
struct ShortVariant {
  int depth, threads;
  size_t shared_bytes;
  void (*aligned)(AlignedGemm);
  void (*unaligned_a)(AlignedGemm);
  void (*unaligned)(AlignedGemm);

  auto kernel(bool aligned_a, bool aligned_b_and_c) const {
    return !aligned_b_and_c ? unaligned : aligned_a ? aligned : unaligned_a;
  }
};
template <int slabs, int blocks>
constexpr ShortVariant short_variant() {
  using T = ShortTiles<slabs, blocks>;
  return {T::kDepth,
          T::kThreads,
          T::kShared,
          bf16_products<T, true, true>,
          bf16_products<T, false, true>,
          bf16_products<T, false, false>};
}
constexpr ShortVariant kShortVariants[] = {short_variant<5, 4>(), short_variant<9, 3>(),
                                           short_variant<13, 2>()};
dim3 short_grid(int m, int n) {
  using T = ShortTiles<5, 4>;  // others are as large
  return dim3(ceil_div(n, T::kColumns), ceil_div(m, T::kRows));
}
double time_of_short(int m, int n, int k, bool aligned, const Device& device) {
  const dim3 grid = short_grid(m, n);
  const double tiles = std::ceil(double(grid.x) * grid.y / device.sms);  // of an SM
  return kTuning.time_short_once +
         tiles * (aligned
                      ? kTuning.time_short_tile + kTuning.time_short_term * k
                      : kTuning.time_short_tile_unaligned + kTuning.time_short_term_unaligned * k);
}

double time_of_staged(int m, int n, int k, bool aligned, const Device& device) {
  const double more = aligned ? 0 : kTuning.time_per_unaligned_output * double(m) * n;
  return choose<ThreeOfBf16>(m, n, k, device).time + more;
}

// The first short variant with room for all of k. Null if there is none, if the model says that
// the other kernel is faster, or if C has more rows of tiles than a grid. `aligned`: rows of B and
// C start on 16 bytes.
const ShortVariant* short_variant_for(int m, int n, int k, bool aligned, const Device& device) {
  for (const ShortVariant& v : kShortVariants)
    // 1 KiB is more than the barriers take.
    if (k <= v.depth && v.shared_bytes + 1024 <= device.shared_bytes_per_block) {
      const bool is_faster =
          time_of_short(m, n, k, aligned, device) < time_of_staged(m, n, k, aligned, device);
      return is_faster && short_grid(m, n).y <= kMostGridRows ? &v : nullptr;
    }
  return nullptr;
}
LaunchPlan plan_of(const ShortVariant& v, int m, int n) {
  return {.grid = short_grid(m, n), .block = unsigned(v.threads), .shared_bytes = v.shared_bytes};
}

}  // namespace

double bf16x6_time(const Gemm& g, const Device& device) {
  const bool aligned = are_b_and_c_float4_aligned(g);
  return short_variant_for(g.m, g.n, g.k, aligned, device)
             ? time_of_short(g.m, g.n, g.k, aligned, device)
             : time_of_staged(g.m, g.n, g.k, aligned, device);
}

KernelLaunch tf32x3_launch(int m, int n, int k, const Device& device) {
  return staged_launch<TwoOfTf32>(m, n, k, device);
}
void tf32x3(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream) {
  staged<TwoOfTf32>(product_of(gemm), device, workspace, stream);
}

KernelLaunch bf16x6_launch(int m, int n, int k, const Device& device) {
  const ShortVariant* v = short_variant_for(m, n, k, n % 4 == 0, device);
  if (!v) return staged_launch<ThreeOfBf16>(m, n, k, device);
  return {reinterpret_cast<const void*>(v->kernel(k % 4 == 0, n % 4 == 0)), plan_of(*v, m, n)};
}
void bf16x6(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream) {
  if (gemm.m <= 0 || gemm.n <= 0) return;
  const AlignedGemm p = product_of(gemm);
  const bool aligned = are_b_and_c_float4_aligned(p);
  const ShortVariant* v = short_variant_for(p.m, p.n, p.k, aligned, device);
  if (!v) return staged<ThreeOfBf16>(p, device, workspace, stream);
  const auto kernel = v->kernel(p.words_a == 4, aligned);
  const LaunchPlan plan = plan_of(*v, p.m, p.n);
  allow(reinterpret_cast<const void*>(kernel), plan);
  launch(plan, stream, kernel, p);
}

}  // namespace ladders::sgemm
#endif
