// SPDX-License-Identifier: MIT
//
// FP32 products by tensor cores. A row of A (a column of B) times a power of two lies within FP16's
// range, and there x = high + low in two FP16 numbers to 22 bits, so that
//   A B = A_high B_low + A_low B_high + A_high B_high
// to about FP32's accuracy: three FP16 products, each at 15 times the throughput of FP32. One
// kernel splits A and B, another multiplies.
#ifdef __CUDACC__
#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/cuda_check.hpp"
#include "sgemm/11_fp16x3_split.cuh"
#include "sgemm/12_fp16x3_multiply.cuh"
#include "sgemm/ladder.hpp"

namespace ladders::sgemm {
namespace {

int64_t round_up(int64_t x, int64_t unit) { return ceil_div(x, unit) * unit; }

// Where the parts are in a workspace, in bytes.
struct Layout {
  size_t a_high, a_low, b_high, b_low, row_powers, column_powers, bytes;
};
Layout layout(int64_t m, int64_t n, int64_t k) {
  size_t end = 0;
  const auto take = [&end](int64_t bytes) {
    return std::exchange(end, end + static_cast<size_t>(round_up(bytes, 256)));
  };
  const int64_t a = m * round_up(k, 8) * 2, b = round_up(n, kChunk) * k * 2;
  Layout l{};
  l.a_high = take(a), l.a_low = take(a), l.b_high = take(b), l.b_low = take(b);
  l.row_powers = take(m * 4);
  l.column_powers = take((round_up(n, kStrip) + kColumns) * 4);  // tiles reach past the edge
  l.bytes = end;
  return l;
}
constexpr int kTicketWords = 32;  // what follows is aligned
size_t counters(int64_t n) { return kTicketWords + (kStrip + 2) * ceil_div<int64_t>(n, kStrip); }

}  // namespace

/// The counters of the splitting kernel are apart: they are zero before each product, and again
/// after, whatever its size.
class Fp16x3Workspace {
 public:
  Fp16x3Workspace(int m, int n, int k) : parts_(layout(m, n, k).bytes), counters_(counters(n)) {
    check(cudaMemset(counters_.data(), 0, counters_.bytes()), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
  }
  unsigned char* parts(const Layout& l) const {
    if (l.bytes > parts_.bytes()) throw CudaError("the workspace of fp16x3 is too small");
    return parts_.data();
  }
  unsigned* counters_for(int n) const {
    if (counters(n) > counters_.size()) throw CudaError("the workspace of fp16x3 is too small");
    return counters_.data();
  }

 private:
  DeviceBuffer<unsigned char> parts_;
  DeviceBuffer<unsigned> counters_;
};

std::shared_ptr<Fp16x3Workspace> make_fp16x3_workspace(int m, int n, int k) {
  return std::make_shared<Fp16x3Workspace>(m, n, k);
}

namespace {

// Fills the workspace with the parts of A and B.
void start_splitting(const Gemm& g, const Fp16x3Workspace& workspace, const Device& device,
                     cudaStream_t stream) {
  const Layout l = layout(g.m, g.n, g.k);
  unsigned char* base = workspace.parts(l);
  const auto half_at = [base](size_t offset) { return reinterpret_cast<__half*>(base + offset); };
  const auto quads = [](const float* data, int64_t pitch, int columns) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && pitch % 4 == 0 && columns % 4 == 0;
  };
  SplitPlan plan{};
  plan.a_high = half_at(l.a_high), plan.a_low = half_at(l.a_low);
  plan.b_high = half_at(l.b_high), plan.b_low = half_at(l.b_low);
  plan.row_powers = reinterpret_cast<int*>(base + l.row_powers);
  plan.column_powers = reinterpret_cast<int*>(base + l.column_powers);
  plan.a_pitch = round_up(g.k, 8);
  plan.slabs = ceil_div(g.k, kSlab), plan.strips = ceil_div(g.n, kStrip);
  const int64_t strips = kTuning.fp16x3_panel_bytes / (int64_t{kStrip} * 4 * g.k);
  plan.panel = static_cast<int>(std::clamp<int64_t>(strips, 1, plan.strips));
  plan.panels = ceil_div(plan.strips, plan.panel);
  plan.panel = ceil_div(plan.strips, plan.panels);  // all about as wide
  plan.ticket = workspace.counters_for(g.n);
  plan.largest = plan.ticket + kTicketWords;
  plan.found = plan.largest + int64_t{plan.strips} * kStrip, plan.split = plan.found + plan.strips;
  const int held = 32 * 4 * kHeld;  // by a warp
  plan.team = g.k <= held ? 1 : g.k <= 4 * held ? 4 : kWarps;
  plan.a_tasks = ceil_div(g.m, kWarps / plan.team);
  plan.a_quads = quads(g.a, g.lda, g.k), plan.b_quads = quads(g.b, g.ldb, g.n);
  launch({.grid = static_cast<unsigned>(std::min(kSplitBlocks * device.sms, plan.tasks())),
          .block = kSplitThreads},
         stream, split_operands, plan, g);
}

// One sum after the other of all of k rounds often, and cuBLAS, where outputs are few beside k,
// adds up parts of it. On wide inputs some elements show that, so there it is parts here, too: to
// C, whose traffic is little then.
int steps_a_part(int m, int n, int k) {
  const bool long_k = double(k) * k > kTuning.fp16x3_parts_above_aspect * double(m) * n;
  const int parts = long_k ? std::clamp(k / kTuning.fp16x3_part, 1, kTuning.fp16x3_parts) : 1;
  return ceil_div(k, parts * kPromoteEvery * kDepth) * kPromoteEvery;
}

Raster pairs_of(int m, int n) {
  return {.rows = ceil_div(m, kCluster * kRows),
          .columns = ceil_div(n, kColumns),
          .band = int64_t{m} * n >= kTuning.fp16x3_wide_band ? 8 : 4};
}

LaunchPlan multiply_plan(int m, int n, const Device& device) {
  const int pairs = std::clamp(pairs_of(m, n).tiles(), 1, std::max(1, device.sms / kCluster));
  return {.grid = static_cast<unsigned>(kCluster * pairs),
          .block = kMultiplyThreads,
          .shared_bytes = kRingBytes,
          .cluster = kCluster};
}

// The product of the parts in the workspace. Starts up while the kernel before ends.
void multiply_parts(const Gemm& g, const Fp16x3Workspace& workspace, const Device& device,
                    cudaStream_t stream) {
  const Layout l = layout(g.m, g.n, g.k);
  const unsigned char* base = workspace.parts(l);
  const auto a_map = [&](size_t offset) {
    return tensor_map({.data = base + offset,
                       .element_bytes = 2,
                       .rows = g.m,
                       .columns = g.k,
                       .box_rows = kRows,
                       .box_columns = kDepth,
                       .swizzle = 64,
                       .row_bytes = 2 * round_up(g.k, 8)});
  };
  const auto b_map = [&](size_t offset) {
    return tensor_map({.data = base + offset,
                       .element_bytes = 2,
                       .rows = g.k,
                       .columns = kChunk,
                       .box_rows = kDepth / kCluster,
                       .box_columns = kChunk,
                       .swizzle = 128,
                       .matrices = ceil_div(g.n, kChunk),
                       .box_matrices = kColumns / kChunk});
  };
  const LaunchPlan plan = multiply_plan(g.m, g.n, device);
  allow(reinterpret_cast<const void*>(fp16_products), plan);
  launch(plan, {.early = true}, stream, fp16_products, a_map(l.a_high), a_map(l.a_low),
         b_map(l.b_high), b_map(l.b_low), reinterpret_cast<const int*>(base + l.row_powers),
         reinterpret_cast<const int*>(base + l.column_powers), g, steps_a_part(g.m, g.n, g.k),
         pairs_of(g.m, g.n));
}

}  // namespace

KernelLaunch fp16x3_launch(int m, int n, const Device& device) {
  return {reinterpret_cast<const void*>(fp16_products), multiply_plan(m, n, device)};
}

void fp16x3(const Gemm& g, const Device& device, Fp16x3Workspace& workspace, cudaStream_t stream) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0 || g.alpha == 0) {
    const int64_t blocks = std::min<int64_t>(ceil_div<int64_t>(int64_t{g.m} * g.n, 256), 4096);
    launch({.grid = static_cast<unsigned>(blocks), .block = 256}, stream, scale_outputs, g);
    return;
  }
  start_splitting(g, workspace, device, stream);
  multiply_parts(g, workspace, device, stream);
}

}  // namespace ladders::sgemm
#endif
