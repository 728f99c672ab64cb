// SPDX-License-Identifier: MIT
//
// Kernels that are each wrong in one way. Every fault must be found, in whatever order threads run,
// and reported with its kind, kernel, source line, block and thread. The lines that may be named
// are those marked "fault"; where threads wait for each other all of them must be.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "support.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

constexpr int kInts = 64;  // of the buffer that the kernels are given

template <class... A>
void expect_fault(const char* kernel, void (*function)(int*, A...), const Planted& planted,
                  Named named, A... arguments) {
  expect_planted(__FILE__, kernel, planted, named, [&] {
    const DeviceArray<int> data(kInts);
    return planted.cluster == 1 ? launch(planted.shape, function, data.data(), arguments...)
                                : launch_clusters(planted.cluster, planted.shape, function,
                                                  data.data(), arguments...);
  });
}

// The fault is at one of the marked lines.
#define EXPECT_FAULT(kernel, ...) \
  expect_fault(#kernel, kernel, Planted{__VA_ARGS__}, Named::one_line)
// Threads wait at all of the marked lines.
#define EXPECT_STUCK(kernel, ...) \
  expect_fault(#kernel, kernel, Planted{__VA_ARGS__}, Named::all_lines)

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
  expect_fault("barrier_against_shuffle", barrier_against_shuffle, {"deadlock"}, Named::all_lines);
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

// ---- warp functions

__global__ void shuffle_mask_without_the_caller(int* data) {
  if (threadIdx.x < 8) data[threadIdx.x] = __shfl_sync(0xF0u, 1, 4);  // fault
}
TEST(Faults, ShuffleMaskWithoutTheCaller) {
  EXPECT_FAULT(shuffle_mask_without_the_caller, "calling lane is not in its own mask", {1, 32});
}

__global__ void shuffle_from_outside_the_mask(int* data) {
  if (threadIdx.x < 8) data[threadIdx.x] = __shfl_sync(0xFFu, 1, 8);  // fault
}
TEST(Faults, ShuffleFromOutsideTheMask) {
  EXPECT_FAULT(shuffle_from_outside_the_mask, "reads lane 8, which is not in the mask", {1, 32});
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
  EXPECT_FAULT(race_write_after_write, "race between warps: write after write of s with thread");
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
  s[threadIdx.x] = 1;
  data[threadIdx.x] = s[31 - threadIdx.x];  // fault
}
TEST(Faults, RaceInsideAWarp) {
  EXPECT_FAULT(race_inside_a_warp, "race inside a warp: read after write of s", {1, 32});
}

__global__ void race_of_warp_synchronous_reduction(int* data) {
  __shared__ int s[64];
  volatile int* v = s;
  s[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 32) {
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 32];
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 16];  // fault
    v[threadIdx.x] = v[threadIdx.x] + v[threadIdx.x + 8];
  }
  if (threadIdx.x == 0) data[0] = s[0];
}
TEST(Faults, RaceOfWarpSynchronousReduction) {
  EXPECT_FAULT(race_of_warp_synchronous_reduction, "race inside a warp: read after write of s");
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
  data[0] = s;
}
__global__ void lanes_disagree_in_global(int* data) {
  data[threadIdx.x / 8] = threadIdx.x == 9;  // fault
}
TEST(Faults, LanesOfOneInstructionThatStoreDifferentValues) {
  EXPECT_FAULT(lanes_disagree_in_shared, "write of another value by the same instruction", {1, 32});
  EXPECT_FAULT(lanes_disagree_in_global, "lanes 8 and 9 of one instruction store different values",
               {1, 32});
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
  tile[threadIdx.y][threadIdx.x] = 1;                  // fault
  data[threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // fault
}
TEST(Faults, TileWithoutBarrier) {
  EXPECT_FAULT(tile_without_barrier,
               "race between warps: (write after read|read after write)"
               R"( of tile with thread \(\d+, \d+, 0\) at faults_test\.cpp:\d+;)",
               {1, {32, 32}});
}

// What was read leads on to another fault, before anybody has stored.
__global__ void index_without_barrier(int* data) {
  __shared__ int index;
  if (threadIdx.x == 63) data[kInts + index] = 1;  // fault
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
  data[threadIdx.x] = s[threadIdx.x];  // fault
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

// ---- asynchronous copies

__global__ void copy_without_wait(int* data) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  data[threadIdx.x] = s[63 - threadIdx.x];  // fault
}
TEST(Faults, CopyWithoutWait) {
  EXPECT_FAULT(copy_without_wait,
               "race between warps: read before the wait for an asynchronous copy of s with thread "
               R"(\(\d+, 0, 0\) at faults_test.cpp:\d+;)");
}

__global__ void own_copy_without_wait(int* data) {
  __shared__ int s[64];
  s[threadIdx.x] = 0;
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_commit();
  data[threadIdx.x] = s[threadIdx.x];  // fault
}
TEST(Faults, OwnCopyWithoutWait) {
  EXPECT_FAULT(own_copy_without_wait,
               "race inside a warp: read before the wait for an asynchronous copy of s");
}

__global__ void wait_for_all_but_too_many(int* data) {
  __shared__ int s[2][64];
  for (int i = 0; i < 2; ++i) {
    __pipeline_memcpy_async(&s[i][threadIdx.x], &data[threadIdx.x], 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  __syncthreads();
  const int first = s[0][63 - threadIdx.x];
  data[threadIdx.x] = first + s[1][63 - threadIdx.x];  // fault
}
TEST(Faults, WaitForAllButTooMany) {
  EXPECT_FAULT(wait_for_all_but_too_many, "read before the wait for an asynchronous copy of s");
}

__global__ void copy_that_is_not_committed(int* data) {
  __shared__ int s[64];
  __pipeline_commit();
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_wait_prior(0);
  __syncthreads();
  data[threadIdx.x] = s[63 - threadIdx.x];  // fault
}
TEST(Faults, CopyThatIsNotCommitted) {
  EXPECT_FAULT(copy_that_is_not_committed, "read before the wait for an asynchronous copy of s");
}

__global__ void no_barrier_after_the_wait(int* data) {
  __shared__ int s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);  // fault
  __pipeline_commit();
  __pipeline_wait_prior(0);
  data[threadIdx.x] = s[63 - threadIdx.x];  // fault
}
TEST(Faults, NoBarrierAfterTheWait) {
  EXPECT_FAULT(no_barrier_after_the_wait,
               "race between warps: (read after write|write after read)");
}

// The issue is long over for everyone, the arrival is not.
__global__ void barrier_before_the_wait_only(int* data) {
  __shared__ int s[32];
  if (threadIdx.x < 32) __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
  if (threadIdx.x >= 32) data[threadIdx.x] = s[threadIdx.x - 32];  // fault
}
TEST(Faults, BarrierBeforeTheWaitOnly) {
  EXPECT_FAULT(barrier_before_the_wait_only,
               "race between warps: read (after write|before the wait for an asynchronous copy)");
}

__global__ void no_warp_barrier_after_the_wait(int* data) {
  __shared__ int s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  data[threadIdx.x] = s[31 - threadIdx.x];  // fault
}
TEST(Faults, NoWarpBarrierAfterTheWait) {
  EXPECT_FAULT(no_warp_barrier_after_the_wait, "race inside a warp: read after write of s",
               {1, 32});
}

// The next copy goes where others may still read.
__global__ void no_barrier_before_the_next_copy(int* data) {
  __shared__ int s[64];
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);  // fault
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[63 - threadIdx.x];  // fault
  }
  data[threadIdx.x] = sum;
}
TEST(Faults, NoBarrierBeforeTheNextCopy) {
  EXPECT_FAULT(no_barrier_before_the_next_copy,
               "race between warps: (write after read|read (after write|before the wait))");
}

// There is a barrier before it arrives, but none before it is under way.
__global__ void copy_that_is_issued_too_early(int* data) {
  __shared__ int s[32];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x < 32)
    data[threadIdx.x] = s[threadIdx.x];  // fault
  else
    __pipeline_memcpy_async(&s[threadIdx.x - 32], &data[threadIdx.x], 4);  // fault
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
}
TEST(Faults, CopyThatIsIssuedTooEarly) {
  EXPECT_FAULT(copy_that_is_issued_too_early,
               "race between warps: (write after read|read before the wait)");
}

__global__ void store_under_a_copy(int* data) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);
  __pipeline_commit();
  s[threadIdx.x] = 0;  // fault
  __pipeline_wait_prior(0);
  data[threadIdx.x] = s[threadIdx.x];
}
TEST(Faults, StoreUnderACopy) {
  EXPECT_FAULT(store_under_a_copy,
               "race inside a warp: write before the wait for an asynchronous copy of s");
}

__global__ void two_copies_to_one_place(int* data) {
  __shared__ int s[32];
  __pipeline_memcpy_async(&s[threadIdx.x % 32], &data[threadIdx.x], 4);  // fault
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x % 32];
}
TEST(Faults, TwoCopiesToOnePlace) {
  EXPECT_FAULT(two_copies_to_one_place, "race between warps: write (after write|before the wait)");
}

__global__ void copy_of_a_bad_size(int* data) {
  __shared__ __align__(16) int s[4 * 64];
  __pipeline_memcpy_async(&s[4 * threadIdx.x], data, 12);  // fault
}
TEST(Faults, CopyOfABadSize) {
  EXPECT_FAULT(copy_of_a_bad_size, "copy of 12 bytes: only 4, 8 and 16 can be copied");
}

__global__ void copy_with_too_many_zeros(int* data) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], data, 4, 8);  // fault
}
TEST(Faults, CopyWithTooManyZeros) {
  EXPECT_FAULT(copy_with_too_many_zeros, "copy of 4 bytes: zfill is more than that");
}

__global__ void copy_to_a_misaligned_place(int* data) {
  __shared__ __align__(16) int s[66];
  __pipeline_memcpy_async(&s[threadIdx.x + 1], data, 8);  // fault
}
TEST(Faults, CopyToAMisalignedPlace) {
  EXPECT_FAULT(copy_to_a_misaligned_place, "copy of 8 bytes: its destination is misaligned");
}

__global__ void copy_from_a_misaligned_place(int* data) {
  __shared__ int4 s[16];
  __pipeline_memcpy_async(&s[threadIdx.x], data + threadIdx.x + 1, 16);  // fault
}
TEST(Faults, CopyFromAMisalignedPlace) {
  EXPECT_FAULT(copy_from_a_misaligned_place, "copy of 16 bytes: its source is misaligned", {1, 3});
}

__global__ void copy_to_global_memory(int* data) {
  __pipeline_memcpy_async(&data[threadIdx.x + 32], &data[threadIdx.x], 4);  // fault
}
TEST(Faults, CopyToGlobalMemory) {
  EXPECT_FAULT(copy_to_global_memory, "its destination is not the block's shared memory", {1, 32});
}

__global__ void copy_from_shared_memory(int* data) {
  __shared__ int s[64], t[64];
  s[threadIdx.x] = data[threadIdx.x];
  __pipeline_memcpy_async(&t[threadIdx.x], &s[threadIdx.x], 4);  // fault
}
TEST(Faults, CopyFromSharedMemory) {
  EXPECT_FAULT(copy_from_shared_memory, "copy of 4 bytes: its source is not global memory");
}

__global__ void copy_from_a_local_variable(int* data) {
  __shared__ int s[64];
  const int local = data[threadIdx.x];
  __pipeline_memcpy_async(&s[threadIdx.x], &local, 4);  // fault
}
TEST(Faults, CopyFromALocalVariable) {
  EXPECT_FAULT(copy_from_a_local_variable, "copy of 4 bytes: its source is not global memory");
}

__constant__ int constants[64];
__global__ void copy_from_a_constant(int*) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &constants[threadIdx.x], 4);  // fault
}
TEST(Faults, CopyFromAConstant) {
  EXPECT_FAULT(copy_from_a_constant, "copy of 4 bytes: its source is not global memory");
}

// Zeros for one value too few.
__global__ void copy_from_beyond_the_end(int*, const int* in, int n) {
  __shared__ int4 s[16];
  const int t = static_cast<int>(threadIdx.x), there = min(4, n + 1 - 4 * t);
  __pipeline_memcpy_async(&s[t], &in[4 * t], 16, 16 - 4 * there);  // fault
}
TEST(Faults, CopyFromBeyondTheEnd) {
  const DeviceArray<int> in(61);
  expect_fault("copy_from_beyond_the_end", copy_from_beyond_the_end,
               {.what = "out-of-bounds global load: byte 247 of a buffer of 244",
                .shape = {1, 16},
                .who = R"(block \(0, 0, 0\) thread \(15, 0, 0\))"},
               Named::one_line, static_cast<const int*>(in.data()), 61);
}

__global__ void copy_from_far_away(int* data) {
  __shared__ int s[64];
  const int* there = data + (std::size_t{1} << 40);
  __pipeline_memcpy_async(&s[threadIdx.x], &there[threadIdx.x], 4);  // fault
}
TEST(Faults, CopyFromFarAway) {
  EXPECT_FAULT(copy_from_far_away, "out-of-bounds global load: not device memory");
}

__global__ void copy_beyond_dynamic_shared(int* data) {
  int* s = static_cast<int*>(dynamic_shared());
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);  // fault
}
TEST(Faults, CopyBeyondDynamicShared) {
  EXPECT_FAULT(copy_beyond_dynamic_shared,
               "out-of-bounds shared store at byte 240 of 240 bytes of dynamic shared memory",
               {1, 64, 240}, 1);
}

// ---- out of bounds, global

__global__ void one_past_the_end(int* data) {
  data[threadIdx.x + 1] = 1;  // fault
}
TEST(Faults, OnePastTheEnd) {
  EXPECT_FAULT(one_past_the_end, "out-of-bounds global store: byte 25[69] of a buffer of 256",
               {1, 64}, 1, R"(block \(0, 0, 0\) thread \(63, 0, 0\))");
}

__global__ void wrong_block_index(int* data) {
  data[blockIdx.x * 64 + threadIdx.x / 2] = 1;  // fault
}
TEST(Faults, WrongBlockIndex) {
  EXPECT_FAULT(wrong_block_index, "out-of-bounds global store", {2, {64, 2}}, 1,
               R"(block \(1, 0, 0\) thread)");
}

__global__ void far_away(int* data) {
  data[threadIdx.x + (std::size_t{1} << 40)] += 1;  // fault
}
TEST(Faults, FarAway) { EXPECT_FAULT(far_away, "out-of-bounds global load: not device memory"); }

__global__ void null_pointer(int* data) {
  int* nothing = data == nullptr ? data : reinterpret_cast<int*>(threadIdx.x * 4u);
  *nothing = 1;  // fault
}
TEST(Faults, NullPointer) { EXPECT_FAULT(null_pointer, "out-of-bounds global store"); }

__global__ void one_before_the_start(int* data) {
  data[static_cast<int>(threadIdx.x) - 1] = 1;  // fault
}
TEST(Faults, OneBeforeTheStart) {
  EXPECT_FAULT(one_before_the_start, "out-of-bounds global store", {1, 64}, 1,
               R"(block \(0, 0, 0\) thread \(0, 0, 0\))");
}

__global__ void beyond_the_page(int* data) {
  data[threadIdx.x + 1024] = 1;  // fault
}
TEST(Faults, BeyondThePage) { EXPECT_FAULT(beyond_the_page, "out-of-bounds global store"); }

__global__ void elsewhere(int* data, int* other) {
  data[threadIdx.x] = other[threadIdx.x];  // fault
}
TEST(Faults, FreedBuffer) {
  int* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  expect_fault("elsewhere", elsewhere,
               {"out-of-bounds global load: of a buffer that has been freed"}, Named::one_line,
               freed);
}
TEST(Faults, HostPointer) {
  std::vector<int> host(kInts);
  expect_fault("elsewhere", elsewhere, {"out-of-bounds global load: not device memory"},
               Named::one_line, host.data());
}

__global__ void wide_access_at_the_end(int* data) {
  if (threadIdx.x == 0)
    *reinterpret_cast<int4*>(data + kInts - 2) = make_int4(1, 2, 3, 4);  // fault
}
TEST(Faults, WideAccessAtTheEnd) {
  EXPECT_FAULT(wide_access_at_the_end, "out-of-bounds global store|misaligned", {1, 32});
}

__global__ void misaligned(int* data) {
  if (threadIdx.x == 0) *reinterpret_cast<int2*>(data + 1) = make_int2(1, 2);  // fault
}
TEST(Faults, Misaligned) { EXPECT_FAULT(misaligned, "misaligned", {1, 32}); }

// 21 of them fit.
__global__ void vector_of_three_at_the_end(int* data) {
  auto* vectors = reinterpret_cast<float3*>(data);
  vectors[threadIdx.x] = vectors[0];  // fault
}
TEST(Faults, VectorOfThreeAtTheEnd) {
  EXPECT_FAULT(vector_of_three_at_the_end, "out-of-bounds global store: byte 256 of a buffer",
               {1, 22}, 1, "thread .21, 0, 0.");
}

__global__ void copy_far_away(int* data) {
  const int* there = data + (std::size_t{1} << 40);
  memcpy(data + 3 * threadIdx.x, there, 12);  // fault
}
TEST(Faults, CopyFarAway) {
  EXPECT_FAULT(copy_far_away, "out-of-bounds global load: not device memory", {1, 16});
}

__global__ void atomic_out_of_bounds(int* data) {
  atomicAdd(&data[kInts + threadIdx.x], 1);  // fault
}
TEST(Faults, AtomicOutOfBounds) {
  EXPECT_FAULT(atomic_out_of_bounds, "out-of-bounds global atomic");
}

__global__ void somebody_elses_local_variable(int* data) {
  __shared__ int* pointer;
  int local = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 0) pointer = &local;
  __syncthreads();
  data[threadIdx.x] = *pointer;  // fault
  __syncthreads();
  data[0] += local;
}
TEST(Faults, SomebodyElsesLocalVariable) {
  EXPECT_FAULT(somebody_elses_local_variable, "local memory of another thread");
}

// ---- out of bounds, shared

__global__ void beyond_dynamic_shared(int* data) {
  int* s = static_cast<int*>(dynamic_shared());
  s[threadIdx.x] = 1;  // fault
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x];
}
TEST(Faults, BeyondDynamicShared) {
  EXPECT_FAULT(beyond_dynamic_shared,
               "out-of-bounds shared store at byte 240 of 240 bytes of dynamic shared memory",
               {1, 64, 240}, 1);
}

__global__ void beyond_static_shared(int* data) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  // The next variable of this kernel, if there were one, would be taken for the one meant.
  data[threadIdx.x] = s[threadIdx.x * 1024];  // fault
}
TEST(Faults, BeyondStaticShared) {
  EXPECT_FAULT(beyond_static_shared, "out-of-bounds|not device memory|uninitialised");
}

// ---- clusters

__global__ void remote_access_before_barrier(int* data) {
  __shared__ int s;
  s = 1;
  __syncthreads();
  data[0] = *cg::this_cluster().map_shared_rank(&s, 1 - cg::this_cluster().block_rank());  // fault
}
TEST(Faults, RemoteAccessBeforeBarrier) {
  EXPECT_FAULT(remote_access_before_barrier, "may not have started", {2, 1}, 2);
}

__global__ void remote_access_after_exit(int* data) {
  __shared__ int s;
  cg::cluster_group cluster = cg::this_cluster();
  s = 7;
  cluster.sync();
  if (cluster.block_rank() == 1) data[0] = *cluster.map_shared_rank(&s, 0);  // fault
}
TEST(Faults, RemoteAccessAfterExit) {
  EXPECT_FAULT(remote_access_after_exit,
               "which has exited|a block exits while another may still be", {2, 1}, 2,
               R"(block \(1, 0, 0\) thread)");
}

__global__ void missing_last_cluster_barrier(int* data) {
  __shared__ int s;
  cg::cluster_group cluster = cg::this_cluster();
  s = 7;
  cluster.sync();
  data[0] = *cluster.map_shared_rank(&s, 1 - cluster.block_rank());  // fault
}
TEST(Faults, MissingLastClusterBarrier) {
  EXPECT_FAULT(missing_last_cluster_barrier,
               "which has exited|a block exits while another may still be", {2, 1}, 2);
}

__global__ void rank_out_of_range(int* data) {
  __shared__ int s;
  s = 7;
  cg::this_cluster().sync();
  data[0] = *cg::this_cluster().map_shared_rank(&s, 2);  // fault
  cg::this_cluster().sync();
}
TEST(Faults, RankOutOfRange) {
  EXPECT_FAULT(rank_out_of_range, "map_shared_rank: there is no block 2 in a cluster of 2", {2, 1},
               2);
}

__global__ void uninitialised_remote(int* data) {
  __shared__ int s[2];
  cg::cluster_group cluster = cg::this_cluster();
  s[0] = 7;
  cluster.sync();
  data[0] = cluster.map_shared_rank(s, 1 - cluster.block_rank())[1];  // fault
  cluster.sync();
}
TEST(Faults, UninitialisedRemote) {
  EXPECT_FAULT(uninitialised_remote, "uninitialised distributed memory: load of s of block", {2, 1},
               2);
}

__global__ void beyond_remote_dynamic(int* data) {
  int* s = static_cast<int*>(dynamic_shared());
  cg::cluster_group cluster = cg::this_cluster();
  s[0] = 7;
  cluster.sync();
  data[0] = cluster.map_shared_rank(s, 1 - cluster.block_rank())[64];  // fault
  cluster.sync();
}
TEST(Faults, BeyondRemoteDynamic) {
  EXPECT_FAULT(beyond_remote_dynamic, "out-of-bounds distributed", {2, 1, 256}, 2);
}

__global__ void race_across_the_cluster(int* data) {
  __shared__ int s;
  cg::cluster_group cluster = cg::this_cluster();
  s = 1;
  cluster.sync();
  *cluster.map_shared_rank(&s, 1 - cluster.block_rank()) = 2;  // fault
  data[0] = s;                                                 // fault
  cluster.sync();
}
TEST(Faults, RaceAcrossTheCluster) {
  EXPECT_FAULT(race_across_the_cluster, "race between blocks of the cluster", {2, 1}, 2);
}

__global__ void race_of_two_visitors(int* data) {
  __shared__ int s;
  cg::cluster_group cluster = cg::this_cluster();
  s = 1;
  cluster.sync();
  if (cluster.block_rank() > 0) *cluster.map_shared_rank(&s, 0) = blockIdx.x;  // fault
  cluster.sync();
  data[0] = s;
}
TEST(Faults, RaceOfTwoVisitors) {
  EXPECT_FAULT(race_of_two_visitors, "race between blocks of the cluster", {4, 1}, 4);
}

// Block 1 reads, and block 0 writes after a barrier that is only its own; that its own warps have
// read in between hides nothing.
__global__ void race_with_an_earlier_visitor(int* data) {
  __shared__ int s;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) s = 1;
  cluster.sync();
  if (cluster.block_rank() == 1) {
    data[threadIdx.x] = *cluster.map_shared_rank(&s, 0);  // fault
  } else {
    data[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) s = 2;  // fault
  }
  cluster.sync();
}
TEST(Faults, RaceWithAnEarlierVisitor) {
  EXPECT_FAULT(race_with_an_earlier_visitor, "race between blocks of the cluster", {2, 64}, 2);
}

// ---- no end

__global__ void flag_that_nobody_sets(int* data) {
  volatile int* flag = data + 63;
  if (threadIdx.x == 0)
    while (*flag == 0) {  // fault
    }
  if (threadIdx.x < 60) data[threadIdx.x] = 1;
}
TEST(Faults, FlagThatNobodySets) { EXPECT_STUCK(flag_that_nobody_sets, "spin without progress"); }

__global__ void vote_that_never_ends(int* data) {
  volatile int* flag = data + threadIdx.x;
  while (!__all_sync(~0u, *flag != 0)) {  // fault
  }
  data[0] = 1;
}
TEST(Faults, VoteThatNeverEnds) {
  EXPECT_STUCK(vote_that_never_ends, "spin without progress", {2, 32});
}

__global__ void flag_that_is_set_after_a_barrier(int* data) {
  volatile int* flag = data;
  if (threadIdx.x == 0)
    while (flag[1] == 0) {  // fault
    }
  __syncthreads();  // fault
  if (threadIdx.x == 40) flag[1] = 1;
}
TEST(Faults, FlagThatIsSetAfterABarrier) {
  EXPECT_STUCK(flag_that_is_set_after_a_barrier, "spin without progress.*63 threads wait");
}

__global__ void lock_that_is_never_released(int* data) {
  while (atomicCAS(data, 0, 1) != 0) {  // fault
  }
  data[1] += 1;
}
TEST(Faults, LockThatIsNeverReleased) {
  EXPECT_STUCK(lock_that_is_never_released, "spin without progress");
}

__global__ void flag_that_no_block_of_the_cluster_sets(int* data) {
  __shared__ int flag;
  cg::cluster_group cluster = cg::this_cluster();
  flag = 0;
  cluster.sync();
  int* theirs = cluster.map_shared_rank(&flag, 1 - cluster.block_rank());
  while (atomicAdd(theirs, 0) == 0) {  // fault
  }
  data[0] = 1;
  cluster.sync();
}
TEST(Faults, FlagThatNoBlockOfTheClusterSets) {
  EXPECT_STUCK(flag_that_no_block_of_the_cluster_sets, "spin without progress", {4, 1}, 2);
}

// It is found in launches that nobody records, too.
TEST(Faults, SpinThatNobodyLooksAt) {
  const DeviceArray<int> data(kInts);
  EXPECT_EQ(launch({1, 64}, flag_that_nobody_sets, data.data()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(last_fault().find("spin without progress"), 0u) << last_fault();
  forgive();
  cudaGetLastError();
}

// ---- what the processor traps

__global__ void division_by_zero(int* data) {
  data[threadIdx.x] = 100 / data[threadIdx.x];  // fault
}
TEST(Faults, DivisionByZero) {
#ifndef __x86_64__
  GTEST_SKIP() << "this processor does not trap it";
#endif
  EXPECT_FAULT(division_by_zero, "division of an integer by zero");
}

__device__ __attribute__((noinline)) int deep(int n) {
  volatile int local[1024];
  for (int i = 0; i < 1024; ++i) local[i] = n;
  return n == 0 ? 0 : deep(n - 1) + local[n];
}
__global__ void stack_overflow(int* data) {
  data[threadIdx.x] = deep(100);
  __syncthreads();
}
TEST(Faults, StackOverflow) {
  expect_fault("stack_overflow", stack_overflow, {"needs more than 128 KiB of local memory"},
               Named::no_line);
}

}  // namespace
}  // namespace emulator
