// SPDX-License-Identifier: MIT
//
// mbarriers: phases, arrivals from other blocks of the cluster, and their faults.
#include <emulator/bulk_copies.hpp>

#include "correct.hpp"
#include "faults.hpp"

#include <cooperative_groups.h>

namespace emulator {
namespace {

// ---- phases

// Each phase ends when its last thread has arrived, and the barrier starts over.
__global__ void take_turns(int* out) {
  __shared__ MBarrier turn[2];
  __shared__ int value;
  if (threadIdx.x == 0) {
    mbarrier_init(turn[0], 32);
    mbarrier_init(turn[1], 1);
    value = 0;
  }
  __syncthreads();
  const unsigned warp = threadIdx.x / 32;
  for (unsigned round = 0; round < 5; ++round) {
    if (warp == 0) {
      if (round > 0) wait(turn[1], (round - 1) % 2);
      if (threadIdx.x == 0) value += 1;
      arrive(turn[0]);
    } else if (threadIdx.x == 32) {
      wait(turn[0], round % 2);
      value *= 10;
      arrive(turn[1]);
    }
  }
  if (threadIdx.x == 32) *out = value;
}
TEST(MBarriers, AlternateBetweenPhases) {
  expect_results_everywhere({111110}, [](int* out) { return launch({1, 64}, take_turns, out); });
}

// The phase before the first counts as over.
__global__ void wait_for_the_phase_before(int* out) {
  __shared__ MBarrier barrier;
  if (threadIdx.x == 0) mbarrier_init(barrier, 1);
  __syncthreads();
  wait(barrier, 1);
  out[threadIdx.x] = 1;
}
TEST(MBarriers, StartAfterAPhaseOfParityOne) {
  expect_everywhere(Ints(64, 1),
                    [](int* out) { return launch({1, 64}, wait_for_the_phase_before, out); });
}

// ---- other blocks of the cluster

__global__ void sum_in_first_block(int* out) {
  __shared__ unsigned long long parts[4];
  __shared__ MBarrier full, seen;
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = int(cluster.block_rank());
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(seen, 1);
  }
  cluster.sync();
  if (threadIdx.x != 0) return;
  if (rank == 0) arrive_expect_tx(full, sizeof(parts));
  st_async(&parts[rank], 10ull << rank, full, 0);
  if (rank == 0) {
    wait_acquire_cluster(full, 0);
    *out = int(parts[0] + parts[1] + parts[2] + parts[3]);
    for (int block = 1; block < 4; ++block) arrive_remote(seen, block);
  } else {
    wait_acquire_cluster(seen, 0);
  }
}
TEST(MBarriers, CountStoresAndArrivalsOfOtherBlocks) {
  expect_everywhere({150},
                    [](int* out) { return launch_clusters(4, {4, 32}, sum_in_first_block, out); });
}

// Each warp's first lane stores, and waits with the others of its warp.
__global__ void sum_of_own_stores(int* out) {
  __shared__ unsigned long long parts[2];
  __shared__ MBarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    arrive_expect_tx(full, sizeof(parts));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) st_async(&parts[threadIdx.x / 32], 10ull + threadIdx.x, full, 0);
  wait_acquire_cluster(full, 0);
  out[threadIdx.x] = int(parts[0] + parts[1]);
}
TEST(MBarriers, StoresToTheOwnBlockAreDistributed) {
  const DeviceArray<int> out(64);
  const Recording recording;
  for (const Order order : kOrders) {
    const Settings settings({.order = order});
    ASSERT_RUNS(launch({1, 64}, sum_of_own_stores, out.data()));
    EXPECT_EQ(out.values(), Ints(64, 52));
  }
  const Report report = recording.report();
  EXPECT_EQ(report.total(Space::distributed, Operation::store).requests, 3 * 2u);
  EXPECT_EQ(report.total(Space::shared, Operation::store).requests, 0u);
  EXPECT_EQ(report.total(Space::global, Operation::store).requests, 3 * 2u);  // whole warps
}

// ---- faults

__global__ void use_before_initialisation(int*) {
  __shared__ MBarrier barrier;
  arrive(barrier);  // fault
}
TEST(Faults, MBarrierThatIsNotInitialised) {
  EXPECT_FAULT(use_before_initialisation, "mbarrier: used before it was initialised");
}

__global__ void initialise_twice(int*) {
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  mbarrier_init(barrier, 1);  // fault
}
TEST(Faults, MBarrierThatIsInitialisedTwice) {
  EXPECT_FAULT(initialise_twice, "mbarrier: initialised while it is in use");
}

__global__ void initialise_with_none(int*) {
  __shared__ MBarrier barrier;
  mbarrier_init(barrier, 0);  // fault
}
TEST(Faults, MBarrierOfNoArrivals) {
  EXPECT_FAULT(initialise_with_none, "mbarrier: 0 arrivals, 1 to 1048575 can be");
}

__global__ void store_over_a_barrier(int* data) {
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  barrier.state = std::uint64_t(data[0]);
  arrive(barrier);  // fault
}
TEST(Faults, MBarrierThatIsOverwritten) {
  EXPECT_FAULT(store_over_a_barrier, "mbarrier: something was stored where it lies");
}

__global__ void expect_too_much(int*) {
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 3);
  arrive_expect_tx(barrier, 1 << 19);
  arrive_expect_tx(barrier, 1 << 19);  // fault
}
TEST(Faults, MBarrierOfTooManyBytes) {
  EXPECT_FAULT(expect_too_much, "mbarrier: 1048576 bytes expected in a phase, at most 1048575");
}

__global__ void wait_for_bytes_that_never_come(int*) {
  __shared__ MBarrier barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    arrive_expect_tx(barrier, 48);
  }
  __syncthreads();
  wait(barrier, 0);  // fault
}
TEST(Faults, WaitForBytesThatNeverCome) {
  EXPECT_STUCK(
      wait_for_bytes_that_never_come,
      "deadlock.*64 threads wait for phase 0 of the mbarrier barrier, which lacks 0 arrivals "
      "and 48 bytes");
}

__global__ void arrive_where_nobody_runs(int*) {
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  arrive_remote(barrier, 1 - int(cooperative_groups::this_cluster().block_rank()));  // fault
}
TEST(Faults, ArrivalAtABlockThatMayNotRun) {
  EXPECT_FAULT(arrive_where_nobody_runs, "mbarrier: block [01] of the cluster may not have started",
               {2, 32}, 2);
}

}  // namespace
}  // namespace emulator
