// SPDX-License-Identifier: MIT
//
// Accesses out of bounds and in clusters, loops without end, and what the processor traps.
#include <cooperative_groups.h>

#include "faults.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

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
  expect_fault(__FILE__, "elsewhere", elsewhere,
               {"out-of-bounds global load: of a buffer that has been freed"}, Named::one_line,
               freed);
}
TEST(Faults, HostPointer) {
  std::vector<int> host(kInts);
  expect_fault(__FILE__, "elsewhere", elsewhere, {"out-of-bounds global load: not device memory"},
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

__global__ void misaligned_vector(int* data) {
  if (threadIdx.x == 0) *reinterpret_cast<float4*>(data + 1) = float4(1, 2, 3, 4);  // fault
}
TEST(Faults, MisalignedVector) {
  EXPECT_FAULT(misaligned_vector, "^misaligned store of 16 bytes; kernel", {1, 32});
}

// 21 of them fit.
__global__ void vector_of_three_at_the_end(int* data) {
  auto* vectors = reinterpret_cast<float3*>(data);
  vectors[threadIdx.x] = make_float3(1, 2, 3);  // fault
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

// Not called a race, though lanes store in one place.
__global__ void all_beyond_dynamic_shared(int* data) {
  int* s = static_cast<int*>(dynamic_shared());
  s[60 + threadIdx.x / 2] = static_cast<int>(threadIdx.x);  // fault
  __threadfence_block();
  __syncthreads();
  data[threadIdx.x] = s[threadIdx.x % 32];
}
TEST(Faults, AllBeyondDynamicShared) {
  EXPECT_FAULT(all_beyond_dynamic_shared,
               R"(out-of-bounds shared store at byte [23]\d\d of 240 bytes of dynamic shared)",
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
  data[blockIdx.x] = s;                                        // fault
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
    data[threadIdx.x / 2] = *cluster.map_shared_rank(&s, 0);  // fault
  } else {
    data[32 + threadIdx.x / 2] = s;
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
  clear_fault();
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
  expect_fault(__FILE__, "stack_overflow", stack_overflow,
               {"needs more than 128 KiB of local memory"}, Named::no_line);
}

}  // namespace
}  // namespace emulator
