// SPDX-License-Identifier: MIT
//
// Faults of barriers, warp functions and shared memory: races, and words that nobody wrote.
#include <cooperative_groups.h>

#include "faults.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

// ---- barriers

__global__ void barriers_at_different_lines(int* data) {
  if (threadIdx.x < 40) {
    data[threadIdx.x] = 1;
    __syncthreads();  // fault
  } else {
    data[threadIdx.x] = 2;
    __syncthreads();  // fault
  }
}
TEST(Faults, BarriersAtDifferentLines) {
  EXPECT_STUCK(barriers_at_different_lines, "divergent barrier.*: 40 threads.*, 24 threads");
}

__global__ void barrier_against_shuffle(int* data) {
  if (threadIdx.x % 32 < 16)
    data[threadIdx.x] = __shfl_sync(~0u, 1, 0);  // fault
  else
    __syncthreads();  // fault
}
TEST(Faults, BarrierAgainstShuffle) {
  expect_fault(__FILE__, "barrier_against_shuffle", barrier_against_shuffle, {"deadlock"},
               Named::all_lines);
}

__global__ void barrier_against_cluster_barrier(int* data) {
  data[threadIdx.x] = 1;
  if (threadIdx.x < 32)
    cg::this_cluster().sync();  // fault
  else
    __syncthreads();  // fault
}
TEST(Faults, BarrierAgainstClusterBarrier) {
  EXPECT_STUCK(barrier_against_cluster_barrier, "deadlock", {2, 64}, 2);
}

__global__ void grid_that_is_not_cooperative(int* data) {
  data[threadIdx.x] = 1;
  cg::this_grid().sync();  // fault
}
TEST(Faults, GridThatIsNotCooperative) {
  EXPECT_FAULT(grid_that_is_not_cooperative, "grid.sync..: the launch is not cooperative", {2, 64});
}

__global__ void grid_sync_without_all(int* data) {
  if (threadIdx.x == 0) return;
  data[threadIdx.x] = 1;
  cg::this_grid().sync();  // fault
}
TEST(Faults, GridSyncWithoutAll) {
  expect_planted(__FILE__, "grid_sync_without_all",
                 {"grid.sync..: a thread of the block has exited"}, Named::one_line, [] {
                   const DeviceArray<int> data(kInts);
                   return launch_cooperative({2, kInts}, grid_sync_without_all, data);
                 });
}

// ---- warp functions

__global__ void shuffle_mask_without_the_caller(int* data) {
  if (threadIdx.x < 8) data[threadIdx.x] = __shfl_sync(0xF0u, 1, 4);  // fault
}
TEST(Faults, ShuffleMaskWithoutTheCaller) {
  EXPECT_FAULT(shuffle_mask_without_the_caller, "calling lane is not in its own mask", {1, 32});
}

__global__ void shuffle_masks_that_disagree_on_both_sides(int* data) {
  const unsigned mask = threadIdx.x < 16 ? 0x1FFFFu : 0xFFFF8000u;
  data[threadIdx.x] = __shfl_xor_sync(mask, 1, 1);  // fault
}
TEST(Faults, ShuffleMasksThatDisagreeOnBothSides) {
  EXPECT_STUCK(shuffle_masks_that_disagree_on_both_sides, "deadlock", {1, 32});
}

__global__ void shuffle_against_vote(int* data) {
  if (threadIdx.x < 16)
    data[threadIdx.x] = __shfl_sync(~0u, 1, 0);  // fault
  else
    data[threadIdx.x] = __all_sync(~0u, 1);  // fault
}
TEST(Faults, ShuffleAgainstVote) {
  EXPECT_STUCK(shuffle_against_vote, "deadlock.*16 threads.*16 threads", {1, 32});
}

// ---- races. Which access comes second, and is reported, depends on the order.

__global__ void race_read_after_write(int* data) {
  __shared__ int s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32) s[threadIdx.x] = 1;              // fault
  if (threadIdx.x >= 32) data[0] = s[threadIdx.x - 32];  // fault
}
TEST(Faults, RaceReadAfterWrite) {
  EXPECT_FAULT(race_read_after_write,
               "shared-memory race between warps: (read after write|write after read) of s");
}

__global__ void race_write_after_read(int* data) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  const int value = s[63 - threadIdx.x];  // fault
  s[threadIdx.x] = value;                 // fault
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x];
}
TEST(Faults, RaceWriteAfterRead) {
  EXPECT_FAULT(race_write_after_read,
               "race between warps: (read after write|write after read) of s");
}

__global__ void race_write_after_write(int* data) {
  __shared__ int s[32];
  s[threadIdx.x % 32] = static_cast<int>(threadIdx.x);  // fault
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x % 32];
}
TEST(Faults, RaceWriteAfterWrite) {
  EXPECT_FAULT(race_write_after_write,
               "race between warps: write after write of s .byte .*. with thread");
}

__global__ void race_with_an_atomic(int* data) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);                    // fault
  if (threadIdx.x == 63) data[0] = s;  // fault
}
TEST(Faults, RaceWithAnAtomic) { EXPECT_FAULT(race_with_an_atomic, "race (between|inside)"); }

__global__ void race_of_atomic_and_initialisation(int* data) {
  __shared__ int s[4];
  if (threadIdx.x < 4) s[threadIdx.x] = 0;  // fault
  atomicAdd(&s[threadIdx.x % 4], 1);        // fault
  __syncthreads();
  if (threadIdx.x < 4) data[threadIdx.x] = s[threadIdx.x];
}
TEST(Faults, RaceOfAtomicAndInitialisation) {
  EXPECT_FAULT(race_of_atomic_and_initialisation, "race|uninitialised shared memory: atomic of s");
}

__global__ void race_in_tree_reduction(int* data) {
  __shared__ int s[256];
  s[threadIdx.x] = 1;
  __syncthreads();
  for (unsigned k = 128; k > 0; k /= 2)
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];  // fault
  if (threadIdx.x == 0) data[0] = s[0];
}
TEST(Faults, RaceInTreeReduction) {
  EXPECT_FAULT(race_in_tree_reduction, "race (between warps|inside a warp)", {1, 256});
}

__global__ void race_of_double_buffering(int* data) {
  __shared__ int s[2][64];
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    s[0][threadIdx.x] = i;  // fault
    __syncthreads();
    sum += s[0][63 - threadIdx.x];  // fault
    s[1][threadIdx.x] = i;
  }
  __syncthreads();
  data[threadIdx.x] = sum + s[1][threadIdx.x];
}
TEST(Faults, RaceOfDoubleBuffering) {
  EXPECT_FAULT(race_of_double_buffering, "race between warps: (write after read|read after write)");
}

__global__ void race_inside_a_warp(int* data) {
  __shared__ int s[32];
  s[threadIdx.x] = 0;
  __syncwarp();
  s[threadIdx.x] = 1;                       // fault
  data[threadIdx.x] = s[31 - threadIdx.x];  // fault
}
TEST(Faults, RaceInsideAWarp) {
  EXPECT_FAULT(race_inside_a_warp, "race inside a warp: (read after write|write after read) of s",
               {1, 32});
}

__global__ void race_of_warp_synchronous_reduction(int* data) {
  __shared__ int s[64];
  volatile int* v = s;
  s[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 32) {
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 32];  // fault
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 16];  // fault
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 8];   // fault
  }
  if (threadIdx.x == 0) data[0] = s[0];
}
TEST(Faults, RaceOfWarpSynchronousReduction) {
  EXPECT_FAULT(race_of_warp_synchronous_reduction,
               "race inside a warp: (read after write|write after read) of s");
}

__global__ void volatile_flag_between_warps(int* data) {
  __shared__ volatile int flag, value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 5;
    __threadfence_block();
    flag = 1;  // fault
  }
  if (threadIdx.x == 0) {
    while (flag == 0) {  // fault
    }
    __threadfence_block();
    data[0] = value;
  }
}
TEST(Faults, VolatileFlagBetweenWarps) {
  EXPECT_FAULT(volatile_flag_between_warps,
               "race between warps: (read after write|write after read) of flag.*, which nothing "
               "orders .CUDA's volatile is not atomic and orders nothing: __syncthreads.. does, "
               "or make both atomic");
}

__global__ void race_between_bytes_of_one_access(int* data) {
  __shared__ int4 s[16];
  s[threadIdx.x % 16] = make_int4(1, 2, 3, threadIdx.x / 32);  // fault
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x % 16].w;
}
TEST(Faults, RaceOfWideAccesses) {
  EXPECT_FAULT(race_between_bytes_of_one_access, "race between warps: write after write");
}

struct Triple {
  int x, y, z;
};
__global__ void race_of_structures(int* data) {
  __shared__ Triple s[1];
  const Triple mine{data[0], data[1], static_cast<int>(threadIdx.x)};
  if (threadIdx.x % 32 == 0) __builtin_memcpy(s, &mine, sizeof(mine));  // fault
  __syncthreads();
  data[threadIdx.x] = s[0].z;
}
TEST(Faults, RaceOfStructures) {
  EXPECT_FAULT(race_of_structures, "race between warps: write after write");
}

__global__ void lanes_disagree_in_shared(int* data) {
  __shared__ int s;
  s = threadIdx.x % 2;  // fault
  data[threadIdx.x] = s;
}
__global__ void lanes_disagree_in_global(int* data) {
  data[threadIdx.x / 8] = threadIdx.x == 9;  // fault
}
TEST(Faults, LanesOfOneInstructionThatStoreDifferentValues) {
  EXPECT_FAULT(lanes_disagree_in_shared,
               "shared-memory race inside a warp: write after write.*by one instruction", {1, 32});
  EXPECT_FAULT(lanes_disagree_in_global,
               "global-memory race inside a warp: write after write.*by one instruction", {1, 32});
}

// Of what is read as one, only the half that is compared is in order with atomics.
__global__ void reads_more_than_it_compares(int* data) {
  const auto both = *reinterpret_cast<const long long*>(data);  // fault
  atomicCAS(data, static_cast<int>(both), static_cast<int>(threadIdx.x));
  atomicExch(data + 1, static_cast<int>(both >> 32) + 1);  // fault
}
TEST(Faults, ReadsMoreThanItCompares) {
  EXPECT_FAULT(reads_more_than_it_compares, "global-memory race .*or make both atomic", {1, 32});
}

// The last readers are in order with the store; those of the first warp are not.
__global__ void warp_barrier_for_a_block_barrier(int* data) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 1;
  __syncthreads();
  const int value = s;  // fault
  __syncwarp();
  if (threadIdx.x == 32) s = 2;  // fault
  data[threadIdx.x] = value;
}
TEST(Faults, WarpBarrierForABlockBarrier) {
  EXPECT_FAULT(warp_barrier_for_a_block_barrier,
               "race between warps: (write after read|read after write) of s");
}

// That a thread has seen another block's flag orders nothing within its own.
__global__ void flag_of_another_block(int* data) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 1;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) atomicExch(data, 1);
    return;
  }
  const int value = s;  // fault
  if (threadIdx.x == 63) {
    while (atomicAdd(data, 0) == 0) {
    }
    s = 2;  // fault
  }
  if (threadIdx.x > 0) data[threadIdx.x] = value;
}
TEST(Faults, FlagOfAnotherBlockForABarrier) {
  EXPECT_FAULT(flag_of_another_block, "shared-memory race (between|inside)", {2, 64});
}

__global__ void halves_of_words(int* data) {
  __shared__ short s[128];
  s[2 * threadIdx.x] = static_cast<short>(threadIdx.x);  // fault
  s[2 * threadIdx.x + 1] = 2;
  data[threadIdx.x] = s[2 * ((threadIdx.x + 32) % 64)];  // fault
}
TEST(Faults, HalvesOfWords) {
  EXPECT_FAULT(halves_of_words, "race between warps: (write after read|read after write) of s");
}

__global__ void nowhere(int*, volatile int* p) { *p = 1; }  // fault
TEST(Faults, VolatileStoreToNull) {
  expect_fault(__FILE__, "nowhere", nowhere,
               Planted{"out-of-bounds global store: not device memory"}, Named::no_line,
               static_cast<volatile int*>(nullptr));
}

__global__ void race_of_narrow_and_wide(int* data) {
  __shared__ __align__(16) unsigned char s[128];
  if (threadIdx.x < 32) reinterpret_cast<unsigned*>(s)[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 4)
    *reinterpret_cast<int4*>(s + 16 * threadIdx.x) = make_int4(1, 1, 1, 1);  // fault
  if (threadIdx.x == 32) data[0] = s[37];                                    // fault
}
TEST(Faults, RaceOfNarrowAndWide) { EXPECT_FAULT(race_of_narrow_and_wide, "race between warps"); }

// Whichever warp is first reads what nobody has written yet; who writes it then is to be named.
__global__ void tile_without_barrier(int* data) {
  __shared__ int tile[32][32];
  tile[threadIdx.y][threadIdx.x] = 1;                // fault
  const int value = tile[threadIdx.x][threadIdx.y];  // fault
  if (threadIdx.y == 0) data[threadIdx.x] = value;
}
TEST(Faults, TileWithoutBarrier) {
  EXPECT_FAULT(tile_without_barrier,
               "race between warps: (write after read|read after write)"
               R"( of tile .byte \d+. with thread \(\d+, \d+, 0\) at race_faults_test\.cpp:\d+, )",
               {1, {32, 32}});
}

// What was read leads on to another fault, before anybody has stored.
__global__ void index_without_barrier(int* data) {
  __shared__ int index;
  if (threadIdx.x == 63) data[2 * kInts + index] = 1;  // fault
  if (threadIdx.x == 0) index = 0;
}
TEST(Faults, IndexWithoutBarrier) {
  EXPECT_FAULT(index_without_barrier,
               "^(uninitialised shared memory: load of index, which nobody in the block has "
               "written yet|shared-memory race between warps: read after write of index)");
}

// ---- shared memory that nobody wrote

__global__ void uninitialised_static(int* data) {
  __shared__ int s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x];  // fault
}
TEST(Faults, UninitialisedStatic) {
  EXPECT_FAULT(uninitialised_static, "uninitialised shared memory: load of s", {1, 64}, 1,
               R"(block \(0, 0, 0\) thread \((3[2-9]|[45]\d|6[0-3]), 0, 0\))");
}

__global__ void never_written_at_all(int* data) {
  __shared__ int s[64];
  data[threadIdx.x] = s[threadIdx.x];  // fault
}
TEST(Faults, NeverWrittenAtAll) {
  EXPECT_FAULT(never_written_at_all, "uninitialised shared memory: load of s");
}

__global__ void left_over_from_the_last_block(int* data) {
  __shared__ int s[64];
  if (blockIdx.x == 0) s[threadIdx.x] = 1;
  __syncthreads();
  if (s[threadIdx.x] == 2) data[threadIdx.x] = 1;  // fault
}
TEST(Faults, LeftOverFromTheLastBlock) {
  EXPECT_FAULT(left_over_from_the_last_block, "uninitialised shared memory: load of s", {5, 64}, 1,
               R"(block \([1-4], 0, 0\) thread)");
}

__global__ void uninitialised_dynamic(int* data) {
  int* s = static_cast<int*>(dynamic_shared());
  s[threadIdx.x] = 1;
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x + 1];  // fault
}
TEST(Faults, UninitialisedDynamic) {
  EXPECT_FAULT(uninitialised_dynamic, "uninitialised shared memory: load of dynamic shared memory",
               {1, 64, 1024}, 1, R"(block \(0, 0, 0\) thread \(63, 0, 0\))");
}

__global__ void uninitialised_half_of_a_vector(int* data) {
  __shared__ float2 s[64];
  s[threadIdx.x].x = 1;
  __syncthreads();
  const float2 v = s[threadIdx.x];  // fault
  data[threadIdx.x] = static_cast<int>(v.x + v.y);
}
TEST(Faults, UninitialisedHalfOfAVector) {
  EXPECT_FAULT(uninitialised_half_of_a_vector, "uninitialised shared memory: load of s");
}

__global__ void uninitialised_histogram(int* data) {
  __shared__ int bins[8];
  atomicAdd(&bins[threadIdx.x % 8], 1);  // fault
  __syncthreads();
  if (threadIdx.x < 8) data[threadIdx.x] = bins[threadIdx.x];
}
TEST(Faults, UninitialisedHistogram) {
  EXPECT_FAULT(uninitialised_histogram, "uninitialised shared memory: atomic of bins");
}

}  // namespace
}  // namespace emulator
