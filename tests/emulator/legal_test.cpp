// SPDX-License-Identifier: MIT
//
// Legal code that looks like a fault: it runs, and gives the same result in every order of threads.
#include <cooperative_groups.h>

#include <algorithm>
#include <numeric>

#include "correct.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

// ---- arguments by value

struct Scaled {
  float4 factors;
  float4 more[2];
  int scale;
};
__global__ void takes_vectors(int* out, Scaled by) {
  out[threadIdx.x] = static_cast<int>(by.factors.y + by.more[1].w) * by.scale;
}

struct Copied {
  int value = 0;
  explicit Copied(int v) : value(v) {}
  Copied(const Copied& other) : value(other.value) {}
  Copied& operator=(const Copied&) = default;
};
__global__ void takes_copied(int* out, Copied value) { out[threadIdx.x] = value.value; }

TEST(Legal, ArgumentsOfVectors) {
  const Scaled by{{1, 2, 3, 4}, {{0, 0, 0, 0}, {0, 0, 0, 5}}, 3};
  expect_everywhere(Ints(64, 21),
                    [&](int* out) { return launch({1, 64}, takes_vectors, out, by); });
}
TEST(Legal, ArgumentsWithACopyConstructor) {
  const Copied seven(7);
  expect_everywhere(Ints(64, 7),
                    [&](int* out) { return launch({1, 64}, takes_copied, out, seven); });
}

// On the device no constructor of an argument runs, and no destructor.
struct Allocated {
  int* data = nullptr;
  Allocated() { cudaMallocManaged(&data, sizeof(int)); }
  Allocated(const Allocated& other) : Allocated() { *data = *other.data; }
  ~Allocated() { cudaFree(data); }
};
__global__ void takes_allocated(int* out, Allocated value, int more) {
  out[threadIdx.x] = *value.data + more;
}
TEST(Legal, ArgumentsThatAllocate) {
  const Allocated seven;
  *seven.data = 7;
  expect_everywhere(Ints(64, 9),
                    [&](int* out) { return launch({1, 64}, takes_allocated, out, seven, 2); });
}

__managed__ int counted_together;
__global__ void counts_by_reference(int* out, int& counter, const int& limit) {
  out[threadIdx.x] = atomicAdd(&counter, 1) < limit;
}
TEST(Legal, ArgumentsByReference) {
  expect_everywhere(Ints(64, 1), [&](int* out) {
    int* limit = nullptr;
    cudaMallocManaged(&limit, sizeof(int));
    *limit = 64;
    counted_together = 0;
    const cudaError_t error = launch({1, 64}, counts_by_reference, out, counted_together, *limit);
    EXPECT_EQ(counted_together, 64);
    cudaFree(limit);
    return error;
  });
}

// ---- threads that have exited

__global__ void shuffles_after_exits(int* out) {
  if (threadIdx.x >= 20) return;
  const int sum = __shfl_sync(~0u, static_cast<int>(threadIdx.x), 3);
  const unsigned here = __ballot_sync(~0u, 1);
  __syncwarp();
  out[threadIdx.x] = sum + (here == 0xFFFFFu ? 100 : 0);
}
TEST(Legal, MasksMayNameLanesThatHaveExited) {
  expect_everywhere(Ints(20, 103),
                    [](int* out) { return launch({1, 32}, shuffles_after_exits, out); });
}

__global__ void exits_after_a_partner_waits(int* out) {
  if (threadIdx.x % 2 == 1) return;
  out[threadIdx.x / 2] = __shfl_down_sync(~0u, static_cast<int>(threadIdx.x), 2);
}
TEST(Legal, ShufflesOfEveryOtherLane) {
  const Ints expected = list_of(16, [](int i) { return std::min(2 * i + 2, 30); });
  expect_everywhere(expected,
                    [](int* out) { return launch({1, 32}, exits_after_a_partner_waits, out); });
}

// Lanes 16 to 31 of the second warp do not exist: what comes from there is no number.
__global__ void sums_of_a_partial_warp(int* out, bool bounded) {
  const unsigned lane = threadIdx.x % 32, lanes = threadIdx.x < 32 ? 32 : 16;
  int sum = 1;
  for (unsigned d = 16; d > 0; d /= 2) {
    const int more = __shfl_down_sync(~0u, sum, d);
    if (!bounded || lane + d < lanes) sum += more;
  }
  if (lane == 0) out[threadIdx.x / 32] = sum;
}
TEST(Legal, FullMaskInAPartialWarp) {
  expect_everywhere({32, 16},
                    [](int* out) { return launch({1, 48}, sums_of_a_partial_warp, out, true); });
  const DeviceArray<int> out(2);
  ASSERT_RUNS(launch({1, 48}, sums_of_a_partial_warp, out.data(), false));
  EXPECT_NE(out.values()[1], 16) << "lanes that are not there gave numbers";
}

// The last step of many reductions: lanes from 8 on add what comes from outside the mask, but
// nobody uses their sums.
__global__ void sums_of_the_lanes_in_a_mask(int* out) {
  const unsigned mask = __ballot_sync(~0u, threadIdx.x < 16);
  if (threadIdx.x >= 16) return;
  int sum = 1;
  for (unsigned d = 8; d > 0; d /= 2) sum += __shfl_down_sync(mask, sum, d);
  if (threadIdx.x == 0) out[0] = sum;
  out[1] = __shfl_sync(mask, 1, 16);
}
TEST(Legal, ShufflesFromOutsideTheMask) {
  expect_everywhere({16, -1},
                    [](int* out) { return launch({1, 32}, sums_of_the_lanes_in_a_mask, out); });
}

__global__ void returns_before_the_barrier(int* out, int n) {
  __shared__ int s[64];
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  s[i] = i;
  __syncthreads();
  out[i] = s[n - 1 - i] + __syncthreads_count(1);
}
TEST(Legal, ReturnBeforeABarrier) {
  for (const int n : {1, 31, 32, 48}) {
    const Ints expected = list_of(n, [=](int i) { return n - 1 - i + n; });
    expect_everywhere(
        expected, [n](int* out) { return launch({1, 64}, returns_before_the_barrier, out, n); });
  }
}

__global__ void a_warp_stays_longer(int* out) {
  for (unsigned i = 0; i < 2 + threadIdx.x / 32; ++i) {
    out[threadIdx.x] += 1;
    __syncthreads();
  }
}
TEST(Legal, BarriersAfterAnotherWarpHasExited) {
  const Ints expected = list_of(64, [](int t) { return t < 32 ? 2 : 3; });
  expect_everywhere(expected, [](int* out) { return launch({1, 64}, a_warp_stays_longer, out); });
}

__global__ void exits_before_the_cluster_barrier(int* out) {
  if (threadIdx.x == 5) return;
  if (blockIdx.x == 0) cg::this_cluster().sync();
  out[64 * blockIdx.x + threadIdx.x] = 1;
}
TEST(Legal, ExitBeforeAClusterBarrier) {
  const Ints expected = list_of(128, [](int i) { return i % 64 == 5 ? 0 : 1; });
  expect_everywhere(expected, [](int* out) {
    return launch_clusters(2, {2, 64}, exits_before_the_cluster_barrier, out);
  });
}

// ---- what orders, or needs no order

__global__ void warps_store_one_value(int* out) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x % 3 == 0) flag = 7;
  __syncthreads();
  out[threadIdx.x] = flag;
}
TEST(Legal, TheSameValueStoredByManyThreads) {
  expect_everywhere(Ints(96, 7),
                    [](int* out) { return launch({1, 96}, warps_store_one_value, out); });
}

__global__ void all_raise_a_volatile_flag(int* out) {
  __shared__ volatile int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (threadIdx.x % 3 == 0) found = 1;
  *static_cast<volatile int*>(out) = 1;
  __syncthreads();
  out[threadIdx.x] = found;
}
TEST(Legal, VolatileStoresOfOneValue) {
  expect_everywhere(Ints(64, 1),
                    [](int* out) { return launch({1, 64}, all_raise_a_volatile_flag, out); });
}

// A volatile variable of a thread is nobody else's.
__attribute__((noinline)) void set_both(int& shared, int number, volatile int& local) {
  shared = number;
  local = 2;
}
__global__ void volatile_local(int* out) {
  __shared__ int s[32];
  volatile int local = 0;
  set_both(s[threadIdx.x], static_cast<int>(threadIdx.x), local);
  __syncwarp();
  out[threadIdx.x] = s[31 - threadIdx.x] + local;
}
TEST(Legal, VolatileVariablesOfAThread) {
  const Ints expected = list_of(32, [](int i) { return 31 - i + 2; });
  expect_everywhere(expected, [](int* out) { return launch({1, 32}, volatile_local, out); });
}

// What is overwritten was read before the shuffle that passes it on.
__global__ void rotates_in_place(int* out) {
  __shared__ int s[32];
  const unsigned lane = threadIdx.x;
  s[lane] = static_cast<int>(lane);
  __syncwarp();
  for (int step = 0; step < 3; ++step) {
    const int mine = s[lane];
    const int next = __shfl_sync(~0u, mine, static_cast<int>((lane + 1) % 32));
    s[(lane + 5) % 32] = next;
    __syncwarp();
  }
  out[lane] = s[lane];
}
TEST(Legal, ValuesThatAShuffleOrders) {
  const Ints expected = list_of(32, [](int i) { return (i + 32 - 3 * 4) % 32; });
  expect_everywhere(expected, [](int* out) { return launch({1, 32}, rotates_in_place, out); });
}

// Lanes may meet from different branches.
__global__ void meets_from_two_branches(int* out) {
  __shared__ int s[32];
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    if (lane < 16) {
      s[lane] = static_cast<int>(lane) + round;
      __syncwarp();
      out[lane] = s[lane + 16];
      __syncwarp();
    } else {
      s[lane] = static_cast<int>(lane) + round;
      __syncwarp();
      out[lane] = s[lane - 16];
      __syncwarp();
    }
  }
}
TEST(Legal, LanesThatMeetFromTwoBranches) {
  const Ints expected = list_of(32, [](int i) { return (i + 16) % 32 + 2; });
  expect_everywhere(expected,
                    [](int* out) { return launch({1, 32}, meets_from_two_branches, out); });
}

// Structures have gaps that nothing writes.
struct Gaps {
  char small;
  int middle;
  long large;
};
__global__ void writes_members(Gaps* out) {
  out[threadIdx.x].small = 1;
  out[threadIdx.x].middle = 2;
  out[threadIdx.x].large = 3;
}
__global__ void copies_structures(int* out, Gaps* from, Gaps* to) {
  to[threadIdx.x] = from[threadIdx.x];
  out[threadIdx.x] = static_cast<int>(to[threadIdx.x].large);
}
TEST(Legal, CopiesOfStructuresWithGaps) {
  Gaps *from = nullptr, *to = nullptr;
  ASSERT_EQ(cudaMalloc(&from, 32 * sizeof(Gaps)), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&to, 32 * sizeof(Gaps)), cudaSuccess);
  expect_everywhere(Ints(32, 3), [&](int* out) {
    const cudaError_t error = launch({1, 32}, writes_members, from);
    return error == cudaSuccess ? launch({1, 32}, copies_structures, out, from, to) : error;
  });
  cudaFree(from);
  cudaFree(to);
}

// ---- a sum by comparing and swapping: what the plain load finds is compared before it counts

__device__ void add(double* sum, double value) {
  auto* const bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    const double changed = __longlong_as_double(static_cast<long long>(assumed)) + value;
    old = atomicCAS(bits, assumed, static_cast<unsigned long long>(__double_as_longlong(changed)));
  } while (assumed != old);
}
// More often than a log has room for.
__global__ void sums_by_swaps(int* out, double* all) {
  __shared__ double own;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  for (int i = 0; i < 1000; ++i) add(&own, 1);
  for (int i = 0; i < 1000; ++i) add(all + i % 7, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<int>(own);
}
TEST(Legal, SumsByCompareAndSwap) {
  const auto sums = [](int* out) {
    const DeviceArray<double> all(7);
    const cudaError_t launched = launch({3, 64}, sums_by_swaps, out, all.data());
    const std::vector<double> parts = all.values();
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0.0), 3 * 64'000);
    return launched;
  };
  // How often a swap fails differs from run to run.
  expect_results_everywhere(Ints(3, 64'000), sums);
}

// ---- names of the host's own

__attribute__((noinline)) unsigned sum_of(const uint3& v) { return v.x + v.y + v.z; }
__global__ void passes_built_in_variables(int* out) {
  const uint3& size = out ? blockDim : gridDim;
  out[threadIdx.x] = static_cast<int>(sum_of(threadIdx) + (&size.x)[0]);
}
TEST(Legal, BuiltInVariablesByReference) {
  const Ints expected = list_of(32, [](int t) { return 32 + t; });
  expect_everywhere(expected,
                    [](int* out) { return launch({1, 32}, passes_built_in_variables, out); });
}

__global__ void adds_one(int* out) { out[threadIdx.x] += 1; }
struct Sizes {
  int gridDim = 2, threadIdx = 3;
};
int twice(int threadIdx) { return 2 * threadIdx; }
TEST(Legal, HostNamesLikeBuiltInVariables) {
  const dim3 blockDim(32), gridDim(1);
  const DeviceArray<int> out(Ints(32, 0));
  ASSERT_RUNS(launch({gridDim, blockDim}, adds_one, out.data()));
  EXPECT_EQ(out.values(), Ints(32, 1));
  EXPECT_EQ(twice(Sizes{}.threadIdx) + Sizes{}.gridDim, 8);
}

// What CUDA had before compute capability 7.0, as programs define it for themselves.
template <class T>
__device__ T __shfl_down(T value, unsigned lanes, int width = 32) {
  return __shfl_down_sync(~0u, value, lanes, width);
}
__global__ void takes_from_above(int* out) {
  out[threadIdx.x] = __shfl_down(static_cast<int>(threadIdx.x), 1);
}
TEST(Legal, OwnFunctionsByNamesThatAreNotEmulated) {
  // Of the last lane: its own.
  const Ints next = list_of(32, [](int lane) { return std::min(lane + 1, 31); });
  expect_everywhere(next, [](int* out) { return launch({1, 32}, takes_from_above, out); });
}

}  // namespace
}  // namespace emulator
