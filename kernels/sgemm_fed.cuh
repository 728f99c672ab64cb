// SPDX-License-Identifier: MIT
//
// How the kernels that producers feed are launched: producer_warps, stream_k, split_k, strassen.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>

#include "launch.hpp"
#include "sgemm_problem.cuh"
#include "sgemm_producers.cuh"
#include "sgemm_split_k.cuh"
#include "sgemm_strassen.cuh"
#include "sgemm_stream_k.cuh"

namespace ladders {
namespace {

// A kernel of sgemm_producers.cuh, how it is launched, and how long it takes.
template <class... More>
struct FedKernel {
  void (*function)(const float*, TensorMap, float*, int, int, int, float, float, Raster, More...);
  int rows, columns, depth;  // of a tile
  LaunchPlan plan;           // of one tile
  double pace;               // time an output and k beside that of the others, see split_k_at()

  Raster raster(int64_t m, int64_t n) const {
    return {.rows = static_cast<int>(ceil_div<int64_t>(m, rows)),
            .columns = static_cast<int>(ceil_div<int64_t>(n, columns)),
            .band = 8};
  }
  unsigned blocks(const Case& c) const { return raster(c["m"], c["n"]).tiles() * plan.cluster; }
  // The blocks of a wave end together, and each takes a while to begin and to end.
  double time(const Case& c, int sms) const {
    constexpr int kStart = 128;  // steps of k
    const int64_t steps = ceil_div<int64_t>(ceil_div<int64_t>(c["k"], depth), plan.cluster);
    return pace * ceil_div<int>(blocks(c), sms) * rows * columns * (steps * depth + kStart);
  }
};

template <class Tiles, int stages, class... More>
FedKernel<More...> persistent_kernel(decltype(FedKernel<More...>::function) function) {
  return {function,
          Tiles::kRows,
          Tiles::kColumns,
          Tiles::kDepth,
          {.block = Tiles::kThreads,
           .shared_bytes = sizeof(float) * (stages * Tiles::kWords + Tiles::kWarps * 8 * 64)},
          1};
}

template <class Tiles, int stages>
FedKernel<> split_kernel(unsigned parts, double pace) {
  return {split_k<Tiles, stages>,
          Tiles::kRows,
          Tiles::kColumns,
          Tiles::kDepth,
          {.block = Tiles::kThreads,
           .shared_bytes = sizeof(float) * stages * Tiles::kWords,
           .cluster = parts},
          pace};
}

// A matrix with rows that start on 16 bytes: itself or a copy.
struct Aligned {
  const float* data;
  int pitch;
};
Aligned aligned(Sgemm& p, const float* data, int rows, int columns, cudaStream_t stream) {
  const int pitch = ceil_div(columns, 4) * 4;
  if (pitch == columns) return {data, columns};
  float* copy = p.room_for_copy(size_t(rows) * pitch);
  launch({.grid = 1024, .block = 256}, stream, pad_rows, data, copy, rows, columns, pitch);
  return {copy, pitch};
}

// As many blocks as tiles (times those of a cluster), no more than SMs, or no more than SMs that
// share out the steps of k.
enum class Grid { tiles, persistent, shares };
constexpr int kLeastShare = 128;  // of k: a tile is cut into no more parts than it has of these

// `more(problem, plan)` gives the arguments that only this kernel has.
template <class... More>
Implementation fed(
    const FedKernel<More...>& kernel, Grid grid,
    std::type_identity_t<std::function<std::tuple<More...>(Sgemm&, const LaunchPlan&)>> more =
        [](auto&&...) { return std::tuple(); }) {
  return {
      .kernel = reinterpret_cast<const void*>(kernel.function),
      .plan =
          [=](const Case& c, const Device& device, const void*) {
            LaunchPlan plan = kernel.plan;
            unsigned blocks = kernel.blocks(c);
            if (grid == Grid::shares) blocks *= std::max<int64_t>(1, c["k"] / kLeastShare);
            plan.grid = grid == Grid::tiles ? blocks : std::min<unsigned>(blocks, device.sms);
            return plan;
          },
      .launch =
          [=](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            auto& p = static_cast<Sgemm&>(problem);
            const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
            const auto [b_rows, b_pitch] = aligned(p, b, k, n, stream);
            const TensorMap b_map = tensor_map(
                {b_rows, 4, k, n, kernel.depth, kernel.columns, 0, 4 * int64_t{b_pitch}});
            std::apply(
                [&, a = a, c = c, m = m, n = n, k = k, alpha = alpha, beta = beta](auto... own) {
                  launch(plan, {.together = grid == Grid::shares}, stream, kernel.function, a,
                         b_map, c, m, n, k, alpha, beta, kernel.raster(m, n), own...);
                },
                more(p, plan));
          }};
}

template <class Tiles>
Handover<Tiles> handover_of(Sgemm& p, size_t blocks) {
  const auto [sums, counts] = p.room_for_handover(blocks * Tiles::kRows * Tiles::kColumns, blocks);
  return {reinterpret_cast<float4*>(sums), counts};
}

using FedLarge = FedTiles<128, 256>;

Implementation producer_warps_at(const Case&) {
  return fed(persistent_kernel<FedLarge, 4>(producer_warps<FedLarge, 4>), Grid::persistent);
}

Implementation stream_k_at(const Case&) {
  using Tiles = FedLarge;
  return fed(persistent_kernel<Tiles, 4, Handover<Tiles>>(stream_k<Tiles, 4>), Grid::shares,
             [](Sgemm& p, const LaunchPlan& plan) {
               return std::tuple(handover_of<Tiles>(p, plan.grid.x));
             });
}

Implementation strassen_at(const Case& c) {
  using Tiles = FedTiles<128, 256, 1, 32, 88>;  // producers that add load twice as much
  const auto half = Halves::of(c["m"], c["n"], c["k"], Tiles::kDepth);
  const auto one = persistent_kernel<Tiles, 4, Handover<Tiles>>(nullptr);
  const auto function = 2 * half.k == c["k"] ? strassen<Tiles, 4, true> : strassen<Tiles, 4, false>;
  return {.kernel = reinterpret_cast<const void*>(function),
          .plan =
              [=](const Case&, const Device& device, const void*) {
                const int64_t tiles = kHalfProducts * one.raster(half.m, half.n).tiles();
                LaunchPlan plan = one.plan;
                plan.grid =
                    std::min<int64_t>(tiles * std::max(1, half.k / kLeastShare), device.sms);
                return plan;
              },
          .launch =
              [=](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
                auto& p = static_cast<Sgemm&>(problem);
                const auto [a, b, c, m, n, k, alpha, beta] = p.arguments();
                float* operands = p.room_for_copy(half.operands() + half.products());
                float* products = operands + half.operands();
                const LaunchPlan simple{.grid = 1024, .block = 256};
                launch(simple, stream, add_quarters, b, reinterpret_cast<float4*>(operands), k, n,
                       half);
                const TensorMap map = tensor_map({operands, 4, int64_t{kHalfProducts} * half.k,
                                                  half.n, Tiles::kDepth, Tiles::kColumns, 0});
                launch(plan, {.early = true, .together = true}, stream, function, a, map, products,
                       m, k, alpha, 0.0f, half, one.raster(half.m, half.n),
                       handover_of<Tiles>(p, plan.grid.x));
                launch(simple, {.early = true}, stream, add_products,
                       reinterpret_cast<const float4*>(products), c, m, n, beta, half);
              }};
}

// Paces are of an H200 at 1024, 2048 and 128 x 8192 x 8192.
Implementation split_k_at(const Case& c) {
  const FedKernel<> kernels[] = {split_kernel<FedTiles<128, 128, 2, 64>, 3>(2, 1.08),
                                 split_kernel<FedTiles<64, 128, 4, 64>, 4>(1, 1.12),
                                 split_kernel<FedTiles<64, 64, 8, 64>, 6>(2, 1.25)};
  const int sms = current_gpu().sms;
  return fed(*std::min_element(std::begin(kernels), std::end(kernels),
                               [&](const FedKernel<>& a, const FedKernel<>& b) {
                                 return a.time(c, sms) < b.time(c, sms);
                               }),
             Grid::tiles);
}

}  // namespace
}  // namespace ladders
