// SPDX-License-Identifier: MIT
//
// Clusters: warps exchange their sums through distributed shared memory instead of the L2.
#pragma once

#include <cooperative_groups.h>

#include "common/mbarrier.cuh"
#include "reduction/03_flags.cuh"

namespace ladders::reduction {
constexpr unsigned kCluster = 8;

// Every warp stores its sum to the first block of its cluster, where an mbarrier counts the bytes:
// only that block waits. Clusters then go on as blocks do.
template <class Op, int kThreads, int kLoads>
__global__ void __launch_bounds__(kThreads)
    cluster_reduce(const Value<Op>* __restrict__ in, size_t count, Division division,
                   Slot<Op>* slots, Result<Op>* result) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr unsigned kWarps = kThreads / 32, kSums = kCluster * kWarps;
  __shared__ Wide<Op> sums[kSums];
  const unsigned rank = cooperative_groups::this_cluster().block_rank();
  const unsigned index = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
  // No block may access the shared memory of one that has not started: hence a barrier of the
  // cluster, whose wait comes after the loads.
  __shared__ MBarrier full;
  if (rank == 0 && threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  cluster_arrive_relaxed();
  if (rank == 0) prefetch_slots<kThreads>(slots, index, clusters, result);
  Wide<Op> sum = sum_in_lane_0(part_sum<Op, kThreads, kLoads>(in, count, division));
  Wide<Op>* mine = &sums[rank * kWarps + threadIdx.x / 32];
  cluster_wait();
  if (rank == 0 && threadIdx.x == 0) arrive_expect_tx(full, kSums * sizeof(sum));
  if (threadIdx.x % 32 == 0) st_async(mine, sum, full, 0);
  if (rank != 0) return;
  if (threadIdx.x < 32) {
    wait_acquire_cluster(full, 0);
    sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kSums; i += 32) sum += sums[i + threadIdx.x];
    sum = sum_in_lane_0(sum);
  }
  finish_flagged<kThreads, true, Op>(sum, index, clusters, slots, result);
#endif
}

template <class Op>
Implementation clusters() {
  return kernel<Reduction<Op>>(
      cluster_reduce<Op, 512, 4>,
      even_blocks({.block = 512, .cluster = kCluster}, {.loads_per_thread = 4, .blocks_per_sm = 0}),
      flag_arguments<Op, 512 * 4>);
}

}  // namespace ladders::reduction
