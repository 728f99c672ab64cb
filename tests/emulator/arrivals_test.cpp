// SPDX-License-Identifier: MIT
//
// Lanes of a warp that arrive at an mbarrier at different times: legal programs, and the same with
// one thing wrong.
#include <emulator/bulk_copies.hpp>

#include "correct.hpp"
#include "faults.hpp"

#include <cooperative_groups.h>

namespace emulator {
namespace {

// Lane 0 of each writing warp waits for what the others let the reading warp do.
template <bool wrong>
__global__ void leave_a_lane_behind(int* out) {
  __shared__ int data[64];
  __shared__ MBarrier most, go, all;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    mbarrier_init(most, 62);
    mbarrier_init(go, 1);
    mbarrier_init(all, 2);
  }
  __syncthreads();
  if (threadIdx.x >= 64) {
    wait(most, 0);
    if (lane > 0) out[lane] = data[lane] + data[32 + lane];
    __syncwarp();
    if (lane > 0) return;
    arrive(go);
    wait(all, 0);
    out[0] = data[0] + data[32];
  } else if (lane == 0) {
    wait(go, 0);
    data[threadIdx.x] = int(threadIdx.x);
    arrive(all);
  } else {
    if (wrong) arrive(most);
    data[threadIdx.x] = int(threadIdx.x);
    if (!wrong) arrive(most);
  }
}

// Each lane waits for the one before it.
template <bool wrong>
__global__ void take_turns_in_a_warp(int* out) {
  __shared__ int sum;
  __shared__ MBarrier over[32];
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) mbarrier_init(over[lane], 1);
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    wait(over[31], 0);
    out[lane] = sum;
    return;
  }
  for (unsigned i = 0; i < 32; ++i)
    if (lane == i) {
      if (i > 0) wait(over[i - 1], 0);
      if (wrong) arrive(over[i]);
      sum += int(i);
      if (!wrong) arrive(over[i]);
    }
}

// The two halves meet in different branches, and one lane of each arrives before the others go on.
template <bool wrong>
__global__ void meet_and_arrive(int* out) {
  __shared__ int low[16], high[16], sums[32];
  __shared__ MBarrier first, go, last;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    mbarrier_init(first, 2);
    mbarrier_init(go, 1);
    mbarrier_init(last, 32);
  }
  __syncthreads();
  if (threadIdx.x >= 32) {
    wait(first, 0);
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += low[i] + high[i];
    __syncwarp();
    if (lane == 0) arrive(go);
    wait(last, 0);
    out[lane] = sum + sums[lane];
  } else if (lane < 16) {
    low[lane] = int(lane);
    if (wrong && lane == 3) arrive(first);
    __syncwarp();
    if (!wrong && lane == 3) arrive(first);
    sums[lane] = high[lane];
    wait(go, 0);
    arrive(last);
  } else {
    high[lane - 16] = int(lane);
    if (wrong && lane == 20) arrive(first);
    __syncwarp();
    sums[lane] = low[lane - 16];
    if (!wrong && lane == 20) arrive(first);
    wait(go, 0);
    arrive(last);
  }
}

// Lane 0 fills what another lane of its warp waits for, in whichever branch comes first.
template <bool wrong>
__global__ void copy_for_another_lane(int* out, const int* in) {
  __shared__ __align__(16) int stages[2][4];
  __shared__ MBarrier full[2];
  const unsigned lane = threadIdx.x;
  if (lane < 2) mbarrier_init(full[lane], 1);
  fence_mbarrier_init();
  __syncwarp();
  if (lane == 0) {
    arrive_expect_tx(full[0], 16);
    bulk_load(stages[0], in, 16, full[0]);
  } else if (lane == 1) {
    if (!wrong) wait(full[0], 0);
    for (int i = 0; i < 4; ++i) out[i] = stages[0][i];
  }
  if (lane == 2) {
    wait(full[1], 0);
    for (int i = 0; i < 4; ++i) out[4 + i] = stages[1][i];
  } else if (lane == 3) {
    arrive_expect_tx(full[1], 16);
    bulk_load(stages[1], in + 4, 16, full[1]);
  }
  if (lane == 0 && wrong) wait(full[0], 0);
}

// A stage is copied out, and the next warp fills it again once its reader has arrived.
template <bool wrong>
__global__ void copy_through(int* out, const int* in) {
  __shared__ __align__(16) int stage[4];
  __shared__ MBarrier full, empty;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (unsigned step = 0; step < 4; ++step) {
    if (threadIdx.x == 32) {
      wait(empty, (step + 1) % 2);
      arrive_expect_tx(full, 16);
      bulk_load(stage, in + 4 * step, 16, full);
    } else if (threadIdx.x == 0) {
      wait(full, step % 2);
      bulk_store(out + 4 * step, stage, 16);
      if (wrong) arrive(empty);
      bulk_wait_group_read();
      if (!wrong) arrive(empty);
    }
  }
}

// Lane 0 of the second block waits for what the others let the first block do.
template <bool wrong>
__global__ void store_at_different_times(int* out) {
  __shared__ unsigned long long parts[32];
  __shared__ MBarrier most, go, all;
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned lane = threadIdx.x;
  if (lane == 0) {
    mbarrier_init(most, 1);
    mbarrier_init(go, 1);
    mbarrier_init(all, 1);
  }
  cluster.sync();
  if (cluster.block_rank() == 0) {
    if (lane == 0) {
      arrive_expect_tx(most, 31 * 8);
      arrive_expect_tx(all, 8);
    }
    __syncwarp();
    if (lane > 0 || wrong) {
      wait_acquire_cluster(most, 0);
      out[lane] = int(parts[lane]);
    }
    __syncwarp();
    if (lane == 0) arrive_remote(go, 1);
    wait_acquire_cluster(all, 0);
    if (lane == 0) out[0] = int(parts[0]);
  } else if (lane == 0) {
    wait_acquire_cluster(go, 0);
    st_async(&parts[0], 0ull, all, 0);
  } else {
    st_async(&parts[lane], (unsigned long long)(lane), most, 0);
  }
  cluster.sync();
}

TEST(LanesThatArriveAtDifferentTimes, OneIsLeftBehind) {
  expect_results_everywhere(list_of(32, [](int lane) { return 2 * lane + 32; }), [](int* out) {
    return launch({1, 96}, leave_a_lane_behind<false>, out);
  });
}
TEST(LanesThatArriveAtDifferentTimes, OneAfterTheOther) {
  expect_results_everywhere(
      Ints(32, 496), [](int* out) { return launch({1, 64}, take_turns_in_a_warp<false>, out); });
}
TEST(LanesThatArriveAtDifferentTimes, MeetInTwoBranches) {
  const Ints expected = list_of(32, [](int lane) { return 496 + (lane + 16) % 32; });
  expect_results_everywhere(expected,
                            [](int* out) { return launch({1, 64}, meet_and_arrive<false>, out); });
}
TEST(LanesThatArriveAtDifferentTimes, CopyForEachOther) {
  const DeviceArray<int> in(counting(8));
  expect_results_everywhere(counting(8), [&](int* out) {
    return launch({1, 32}, copy_for_another_lane<false>, out, in);
  });
}
TEST(LanesThatArriveAtDifferentTimes, CopyOutWhatTheNextWarpFills) {
  const DeviceArray<int> in(counting(16));
  expect_results_everywhere(
      counting(16), [&](int* out) { return launch({1, 64}, copy_through<false>, out, in); });
}
TEST(LanesThatArriveAtDifferentTimes, StoreToAnotherBlock) {
  expect_results_everywhere(counting(32), [](int* out) {
    return launch_clusters(2, {2, 32}, store_at_different_times<false>, out);
  });
}

// Which access comes second, and is named, depends on the order.
template <class... A>
void expect_race(const char* name, void (*kernel)(int*, A...), const Planted& planted,
                 std::type_identity_t<A>... arguments) {
  expect_fault(__FILE__, name, kernel, planted, Named::no_line, arguments...);
}
constexpr char kRace[] = "race between warps: (read after write|write after read) of ";
TEST(Faults, LaneThatArrivesBeforeItsStore) {
  expect_race("leave_a_lane_behind", leave_a_lane_behind<true>, {kRace, {1, 96}});
}
TEST(Faults, LanesThatPassTheTurnTooEarly) {
  expect_race("take_turns_in_a_warp", take_turns_in_a_warp<true>,
              {"race (between warps|inside a warp): .* of sum"});
}
TEST(Faults, LaneThatArrivesBeforeItsWarpHasMet) {
  expect_race("meet_and_arrive", meet_and_arrive<true>, {kRace});
}
TEST(Faults, LaneThatReadsAnothersCopyTooEarly) {
  const DeviceArray<int> in(counting(8));
  expect_race("copy_for_another_lane", copy_for_another_lane<true>,
              {"(before the wait for an asynchronous copy|uninitialised shared|race)", {1, 32}},
              in);
}
TEST(Faults, StageThatIsFilledAgainBeforeItIsCopiedOut) {
  const DeviceArray<int> in(counting(16));
  expect_race("copy_through", copy_through<true>,
              {"(race between warps: (read after write|write after read) of stage|its "
               "source was written before it was read)"},
              in);
}
TEST(Faults, LaneThatReadsAnotherBlocksStoreTooEarly) {
  expect_race("store_at_different_times", store_at_different_times<true>,
              {"(race between blocks of the cluster|uninitialised shared)", {2, 32}, 2});
}

}  // namespace
}  // namespace emulator
