// SPDX-License-Identifier: MIT
//
// Faults of asynchronous copies.
#include <cuda_pipeline.h>

#include "faults.hpp"

namespace emulator {
namespace {

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
               "race between warps: read before the wait for an asynchronous copy of s .byte .*. "
               "with thread "
               R"(\(\d+, 0, 0\) at copy_faults_test\.cpp:\d+;)");
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
  __pipeline_memcpy_async(&s[threadIdx.x], &data[threadIdx.x], 4);  // fault
  __pipeline_commit();
  __pipeline_wait_prior(0);
  data[threadIdx.x] = s[31 - threadIdx.x];  // fault
}
TEST(Faults, NoWarpBarrierAfterTheWait) {
  EXPECT_FAULT(no_warp_barrier_after_the_wait,
               "race inside a warp: (read after write|write after read) of s", {1, 32});
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
  expect_fault(__FILE__, "copy_from_beyond_the_end", copy_from_beyond_the_end,
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
  EXPECT_FAULT(
      copy_beyond_dynamic_shared,
      R"(out-of-bounds shared store at byte 2[45]\d of 240 bytes of dynamic shared memory)",
      {1, 64, 240}, 1);
}

}  // namespace
}  // namespace emulator
