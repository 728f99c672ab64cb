// SPDX-License-Identifier: MIT
//
// How 08_strassen.cuh is launched: a source of its own, since kernels of this size take a compiler
// long.
#include "sgemm/08_strassen.cuh"
#include "sgemm/ladder.hpp"

namespace ladders::sgemm {
Implementation strassen_at(const Case& c, const Device&) {
  // Producers load twice as much, so they keep the default number of registers.
  using Tiles = WarpSpecializedTiles<WarpSpecializedShape{.rows = 128, .columns = 256}>;
  const int m = c["m"], n = c["n"], k = c["k"], depth = Tiles::kDepth;
  const HalfSizes half{ceil_div(m, 2), ceil_div(n, 8) * 4, ceil_div(k, 2 * depth) * depth};
  const Raster one = raster_of<Tiles>(half.m, half.n);
  const auto function = 2 * half.k == k ? strassen<Tiles, true> : strassen<Tiles, false>;
  const auto plan = [=](const Case&, const Device& device, const void*) {
    return persistent_plan<Tiles>(kHalfProducts * one.tiles(), most_blocks_per_tile(half.k),
                                  device);
  };
  return launches<Sgemm>(function, plan, [=](Sgemm& p, const LaunchPlan& plan, auto stream) {
    const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
    float* operands = p.room_for_copy(half.operands() + half.products());
    float* products = operands + half.operands();
    const LaunchPlan simple{.grid = 1024, .block = 256};
    launch(simple, stream, add_quarters, b, reinterpret_cast<float4*>(operands), k, n, half);
    const TensorMap map = tensor_map(
        {operands, 4, int64_t{kHalfProducts} * half.k, half.n, Tiles::kDepth, Tiles::kColumns, 0});
    launch(plan, {.programmatic = true, .cooperative = true}, stream, function, a, map, products, m,
           k, alpha, 0.0f, half, one, fixup_of<Tiles>(p, plan.grid.x));
    launch(simple, {.programmatic = true}, stream, add_products,
           reinterpret_cast<const float4*>(products), c, m, n, beta, half);
  });
}

}  // namespace ladders::sgemm
