// SPDX-License-Identifier: MIT
//
// reduction/04_clusters.cuh and its copies: blocks of a cluster store sums to the first of them.
#include "reduction.hpp"
#include "reduction/04_clusters/as_written.cuh"
#include "reduction/04_clusters/no_cluster_barrier.cuh"
#include "reduction/04_clusters/no_init_fence.cuh"
#include "reduction/04_clusters/too_few_bytes.cuh"
#include "reduction/04_clusters/wrong_phase.cuh"

namespace ladders::reduction {
namespace {

constexpr int kClusters = 2, kClusterBlocks = 8, kBlocks = kClusters * kClusterBlocks;
constexpr int kThreads = 128, kCount = 9000;

template <class Kernel>
auto sums(Kernel kernel) {
  return sums_with(kCount, [=](const int* in, auto* slots, auto* result) {
    return emulator::launch_clusters(kClusterBlocks, {kBlocks, kThreads}, kernel, in,
                                     size_t{kCount}, divide(kCount, kThreads, kBlocks), slots,
                                     result);
  });
}
#define SUMS(copy) sums(copy::cluster_reduce<SumOfSquares, kThreads, 1>)

CLEAN(ReductionClusters, AsWritten, SUMS(as_written))
FOUND(ReductionClusters, NoClusterBarrier, SUMS(no_cluster_barrier),
      "nothing orders its initialisation before its use")
FOUND(ReductionClusters, NoInitFence, SUMS(no_init_fence),
      "nothing orders its initialisation before its use")
FOUND(ReductionClusters, WrongPhase, SUMS(wrong_phase),
      "race between warps: write after read of sums")
FOUND(ReductionClusters, TooFewBytes, SUMS(too_few_bytes),
      "copies bring 8 bytes more than its phase expects")

}  // namespace
}  // namespace ladders::reduction
