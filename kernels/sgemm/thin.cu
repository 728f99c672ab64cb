// SPDX-License-Identifier: MIT
//
// How 13_thin.cuh and 14_few_terms.cuh are launched: a source of its own, since so many kernels
// take a compiler long.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "sgemm/13_thin.cuh"
#include "sgemm/14_few_terms.cuh"

namespace ladders::sgemm {
namespace {

// The number among 1, 2, 4 and 8 that holds `count`, as a template argument of `make`.
template <int number = 1, class Make>
GemmLaunch rounded_up(int count, Make make) {
  if constexpr (number < kThin)
    if (count > number) return rounded_up<2 * number>(count, make);
  return make(std::integral_constant<int, number>());
}
// The same, with a flag.
template <class Make>
GemmLaunch rounded_up(int count, bool yes, Make make) {
  return rounded_up(
      count, [&](auto n) { return yes ? make(n, std::true_type{}) : make(n, std::false_type{}); });
}

// The blocks per cluster of thin_rows, which divide the k of a tile: the next larger power of two
// that takes a tenth less time, by a model, than the best so far. The blocks of an SM run one after
// the other. Each takes as long as its rows of B, and `once` more.
unsigned cluster_size_of_thin_rows(unsigned tiles, int rows, int k, const Device& device) {
  const int once = 550 + 70 * rows;
  const auto time = [&](unsigned cluster_size) {
    return double(ceil_div(tiles * cluster_size, device.sms)) * (k / cluster_size + once);
  };
  unsigned best = 1;
  for (unsigned cluster_size = 2; k >= 1024 && cluster_size <= largest_cluster(8, device);
       cluster_size *= 2)
    if (time(cluster_size) < 0.9 * time(best)) best = cluster_size;
  return best;
}

}  // namespace

GemmLaunch thin_launch(const Gemm& g, const Device& device) {
  // The longer the sums, the more columns or rows must be there for a thread to take one alone. The
  // kernels that share sums out are slower for 5 to 8 rows or columns, so half as many suffice.
  // Up to four columns they load rows of more than 64 terms well.
  const auto in_blocks = [](int threads) {
    return LaunchPlan{.grid = unsigned(ceil_div(threads, kShortThreads)), .block = kShortThreads};
  };
  const int64_t terms = int64_t{g.k} * device.sms, thick = std::min(g.m, g.n) > 4 ? 2 : 1;
  if (g.n <= g.m && g.k <= kTermsOfColumns / 2 * thick &&
      kTuning.thin_alone_rows * terms <= thick * g.m)
    return rounded_up(g.n, [&](auto columns) -> GemmLaunch {
      return {short_columns<columns()>, in_blocks(g.m)};
    });
  if (g.n > g.m && g.k <= kTermsOfRows && kTuning.thin_alone_columns * terms <= thick * g.n)
    return rounded_up(
        g.m, [&](auto rows) -> GemmLaunch { return {short_rows<rows()>, in_blocks(g.n)}; });
  // A block of thin_columns loads a short k at once; thin_rows would begin later.
  if (g.n <= g.m || (g.n <= kThin && g.k <= 1024)) {
    const bool wide = std::has_single_bit(unsigned(g.n)) && g.ldb == g.n &&
                      is_float4_aligned(g.b, 0) && vector_width(g.a, g.lda, g.k) >= 4 / g.n;
    return rounded_up(g.n, wide, [&](auto columns, auto is_wide) -> GemmLaunch {
      const int64_t teams = ceil_div(g.m, kRowsPerTeam<columns()>);
      const unsigned split =
          k_splits(teams, 32 * device.sms, 64 * kOwnTerms<columns(), is_wide()>, g.k);
      return {thin_columns<columns(), is_wide()>,
              {.grid = unsigned(ceil_div(teams, 8 / split)), .block = dim3(32, split, 8 / split)}};
    });
  }
  return rounded_up(
      g.m, is_float4_aligned(g.b, g.ldb, g.n), [&](auto rows, auto wide) -> GemmLaunch {
        const unsigned tiles = g.m > 0 ? ceil_div(g.n, kThinWidth) : 0;
        const unsigned cluster_size = cluster_size_of_thin_rows(tiles, rows(), g.k, device);
        const auto launch = [&](auto stages) -> GemmLaunch {
          return {thin_rows<rows(), wide(), stages()>,
                  {.grid = tiles * cluster_size,
                   .block = 256,
                   .shared_bytes = stages() * sizeof(ThinStage<rows()>),
                   .cluster = cluster_size}};
        };
        // Copies of words pass through the L1. Two blocks per SM with five stages of four rows
        // would leave it too little.
        const std::integral_constant<int, !wide() && rows() == 4 ? 4 : 5> many;
        const bool fits = many() * sizeof(ThinStage<rows()>) + sizeof(ThinSums<rows()>) <=
                          device.shared_bytes_per_block;
        return fits ? launch(many) : launch(std::integral_constant<int, 2>());
      });
}

GemmLaunch few_terms_launch(const Gemm& g, const Device& device) {
  const int words = std::min(vector_width(g.b, g.ldb, g.n), vector_width(g.c, g.ldc));
  const int64_t tiles = Tiles64x128::count(g.m, g.n);
  if (tiles >= kTuning.large_tiles_from * device.sms)
    return {words == 4   ? few_terms<8, 4, 4>
            : words == 2 ? few_terms<8, 4, 2>
                         : few_terms<8, 4, 1>,
            {.grid = unsigned(tiles), .block = 256}};
  return {words > 1 ? few_terms<4, 2, 2> : few_terms<4, 2, 1>,
          {.grid = unsigned(ceil_div(g.m, 32)) * ceil_div(g.n, 64), .block = 256}};
}

}  // namespace ladders::sgemm
