// SPDX-License-Identifier: MIT
//
// What kernels use of the language beside intrinsics: vector types, atomics, cooperative groups,
// assert and printf, and how they are launched. Compiled with and without counting.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>
#include <cstring>

#include "support.hpp"

#undef NDEBUG
#include <cassert>

namespace cg = cooperative_groups;

namespace emulator {
namespace {

// ---- vectors and atomics

static_assert(sizeof(char3) == 3 && alignof(char3) == 1 && sizeof(short3) == 6 &&
              alignof(short3) == 2);
static_assert(sizeof(float3) == 12 && alignof(float3) == 4 && sizeof(double3) == 24);
static_assert(sizeof(double4) == 32 && alignof(double4) == 16 && alignof(longlong4) == 16);
static_assert(sizeof(ulonglong3) == 24 && sizeof(uint4) == 16 && alignof(uchar4) == 4);

template <class T>
__global__ void copy(T* out, const T* in) {
  out[threadIdx.x] = in[threadIdx.x];
}
template <class T>
void expect_copied(const T& first, int parts, int bytes) {
  const DeviceArray<T> in(std::vector<T>(32, first)), out(32);
  const Recording recording;
  ASSERT_RUNS(launch({1, 32}, copy<T>, out, in));
  const std::vector<T> values = out.values();
  EXPECT_EQ(std::memcmp(&values[31], &first, sizeof(T)), 0);
  if (!counted()) return;
  for (const Line& line : recording.report().lines) {
    EXPECT_EQ(line.bytes, bytes);
    EXPECT_EQ(line.traffic.requests, static_cast<std::uint64_t>(parts));
  }
}
TEST(Vectors, AreCopiedInAsManyAccessesAsOnTheDevice) {
  expect_copied(make_float2(1, 2), 1, 8);
  expect_copied(make_float4(1, 2, 3, 4), 1, 16);
  expect_copied(make_uchar4(1, 2, 3, 4), 1, 4);
  expect_copied(make_char3(1, 2, 3), 3, 1);
  expect_copied(make_ushort3(1, 2, 3), 3, 2);
  expect_copied(make_float3(1, 2, 3), 3, 4);
  expect_copied(make_longlong3(1, 2, 3), 3, 8);
  expect_copied(make_double3(1, 2, 3), 3, 8);
  expect_copied(make_double4(1, 2, 3, 4), 2, 16);
  expect_copied(make_ulonglong4(1, 2, 3, 4), 2, 16);
}

__global__ void all_atomics(long long* wide, unsigned long long* bits, int* narrow,
                            unsigned short* half, float4* sums) {
  const int i = static_cast<int>(threadIdx.x) - 100;
  atomicMin(&wide[0], static_cast<long long>(i) << 33);
  atomicMax_block(&wide[1], static_cast<long long>(-i) << 33);
  atomicAnd(&bits[0], ~(1ull << (threadIdx.x % 64)));
  atomicOr_system(&bits[1], 1ull << (threadIdx.x % 64));
  atomicXor(&bits[2], 3ull << 40);
  atomicExch(&bits[3], 7ull << 50);
  atomicAdd_block(&narrow[0], 1);
  atomicAdd_system(&narrow[0], 1);
  atomicCAS_block(&narrow[1], 5, 6);
  for (unsigned short old = half[1], seen = old;; old = seen)
    if ((seen = atomicCAS(&half[1], old, static_cast<unsigned short>(old + 3))) == old) break;
  atomicAdd(sums, make_float4(1, 2, 3, 4));
  atomicAdd(reinterpret_cast<float2*>(sums), make_float2(1, 1));
}
TEST(Atomics, OfAllWidthsAndScopes) {
  const DeviceArray<long long> wide({0, 0});
  const DeviceArray<unsigned long long> bits({~0ull, 0, 0, 0});
  const DeviceArray<int> narrow({0, 5});
  const DeviceArray<unsigned short> half({1, 65000, 2, 3});
  const DeviceArray<float4> sums({make_float4(0, 0, 0, 0)});
  ASSERT_RUNS(launch({1, 255}, all_atomics, wide, bits, narrow, half, sums));
  EXPECT_EQ(wide.values(), (std::vector<long long>{-100ll << 33, 100ll << 33}));
  EXPECT_EQ(bits.values(), (std::vector<unsigned long long>{0, ~0ull, 3ull << 40, 7ull << 50}));
  EXPECT_EQ(narrow.values(), (std::vector<int>{510, 6}));
  EXPECT_EQ(half.values(),
            (std::vector<unsigned short>{1, static_cast<unsigned short>(65000 + 3 * 255), 2, 3}));
  const float4 sum = sums.values()[0];
  EXPECT_EQ(sum.x, 510);
  EXPECT_EQ(sum.y, 765);
  EXPECT_EQ(sum.z, 765);
  EXPECT_EQ(sum.w, 1020);
}

// ---- groups

__global__ void match(unsigned* masks, int* predicates) {
  int all = -1;
  masks[threadIdx.x] = __match_all_sync(~0u, 5, &all);
  predicates[threadIdx.x] = all;
  masks[40 + threadIdx.x] = __match_all_sync(~0u, threadIdx.x == 3, &all);
  predicates[40 + threadIdx.x] = all;
}
TEST(Groups, MatchAll) {
  const DeviceArray<unsigned> masks(80);
  const DeviceArray<int> predicates(80);
  ASSERT_RUNS(launch({1, 40}, match, masks, predicates));
  const auto m = masks.values();
  const auto p = predicates.values();
  EXPECT_EQ(m[0], ~0u);
  EXPECT_EQ(m[39], 0xFFu);  // the second warp has eight lanes
  EXPECT_EQ(p[0], 1);
  EXPECT_EQ(p[39], 1);
  EXPECT_EQ(m[40], 0u);
  EXPECT_EQ(p[40], 0);
  EXPECT_EQ(m[79], 0xFFu);
}

// From the CUDA C++ Programming Guide, "Cooperative Groups": a sum over whatever group.
__device__ int sum_of(const cg::thread_group& group, int* room, int value) {
  const unsigned rank = group.thread_rank();
  for (unsigned i = group.size() / 2; i > 0; i /= 2) {
    room[rank] = value;
    group.sync();
    if (rank < i) value += room[rank + i];
    group.sync();
  }
  return value;
}
__global__ void sums_of_groups(int* out) {
  __shared__ int room[128];
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const auto quarter = cg::tiled_partition<8>(tile);
  const int whole = sum_of(block, room, 1);
  cg::sync(block);
  const int part = sum_of(quarter, &room[threadIdx.x / 8 * 8], static_cast<int>(threadIdx.x));
  if (block.thread_rank() == 0) out[0] = whole;
  if (quarter.thread_rank() == 0) out[1 + block.thread_rank() / 8] = part;
  cg::sync(tile);
  if (threadIdx.x == 77)
    out[20] = static_cast<int>(quarter.meta_group_rank() * 10 + quarter.meta_group_size());
  if (threadIdx.x == 77)
    out[21] = static_cast<int>(tile.meta_group_rank() * 10 + tile.meta_group_size());
}
TEST(Groups, ThreadGroupsSynchronise) {
  for (const Order order : kOrders) {
    const Settings settings({.order = order, .check = true});
    const DeviceArray<int> out(22);
    ASSERT_RUNS(launch({1, 128}, sums_of_groups, out));
    const auto values = out.values();
    EXPECT_EQ(values[0], 128);
    for (int q = 0; q < 16; ++q) EXPECT_EQ(values[1 + q], 8 * 8 * q + 28);
    EXPECT_EQ(values[20], 14);
    EXPECT_EQ(values[21], 24);
  }
}

__global__ void coalesced(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  if (i % 3 != 1) return;
  const cg::coalesced_group group = cg::coalesced_threads();
  out[i] = static_cast<int>(group.thread_rank() * 100 + group.size());
  out[32 + i] = group.shfl(i, 2);
  out[64 + i] = static_cast<int>(group.ballot(i % 2));
  out[96 + i] = group.any(i == 4) * 10 + group.all(i < 31);
  out[128 + i] = cg::reduce(group, i, cg::plus<int>());
  out[160 + i] = cg::reduce(group, i, cg::greater<int>());
  out[192 + i] = group.shfl_up(i, 2);
  out[224 + i] = group.shfl_down(i, 2);
  out[256 + i] = static_cast<int>(group.match_any(i % 2));
}
TEST(Groups, CoalescedThreads) {
  for (const Order order : kOrders) {
    const Settings settings({.order = order});
    const DeviceArray<int> out(288);
    ASSERT_RUNS(launch({1, 32}, coalesced, out));
    const auto values = out.values();
    // 1, 4, 7 ... 31: eleven lanes.
    for (int i = 1; i < 32; i += 3) {
      EXPECT_EQ(values[i], (i - 1) / 3 * 100 + 11);
      EXPECT_EQ(values[32 + i], 7);
      EXPECT_EQ(values[64 + i], 0b10101010101);
      EXPECT_EQ(values[96 + i], 10);
      EXPECT_EQ(values[128 + i], 11 * 16);
      EXPECT_EQ(values[160 + i], 31);
      EXPECT_EQ(values[192 + i], i < 7 ? i : i - 6);
      EXPECT_EQ(values[224 + i], i > 25 ? i : i + 6);
      EXPECT_EQ(values[256 + i], i % 2 == 1 ? 0b10101010101 : 0b01010101010);
    }
  }
}

__global__ void tiles_of_eight(unsigned* out) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_group tile = cg::tiled_partition(block, 8);
  const unsigned i = threadIdx.x;
  out[i] = cg::thread_rank(tile) * 100 + cg::group_size(tile);
  out[64 + i] = cg::tiled_partition<8>(block).match_any(i % 8 / 2);
  const cg::grid_group grid = cg::this_grid();
  out[128 + i] = grid.block_index().x + grid.dim_blocks().x * unsigned(grid.num_blocks());
}
TEST(Groups, TilesOfASizeKnownAtRunTime) {
  const DeviceArray<unsigned> out(192);
  ASSERT_RUNS(launch({1, 64}, tiles_of_eight, out));
  const auto values = out.values();
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i], i % 8 * 100 + 8);
    EXPECT_EQ(values[64 + i], 3u << i % 8 / 2 * 2);
    EXPECT_EQ(values[128 + i], 1u);
  }
}

__global__ void reduced(unsigned* out, unsigned long long* ranks) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const unsigned i = threadIdx.x;
  out[i] = cg::reduce(tile, i, cg::plus<unsigned>());
  out[64 + i] = cg::reduce(tile, i, cg::less<unsigned>());
  out[128 + i] = cg::reduce(tile, i, cg::bit_or<unsigned>());
  const cg::grid_group grid = cg::this_grid();
  ranks[grid.thread_rank()] = grid.size() * 100 + grid.block_rank();
}
TEST(Groups, ReduceTilesAndCountGrids) {
  const DeviceArray<unsigned> out(192);
  const DeviceArray<unsigned long long> ranks(12 * 64);
  ASSERT_RUNS(launch({{3, 2, 2}, 64}, reduced, out, ranks));
  const auto values = out.values();
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned first = i / 16 * 16;
    EXPECT_EQ(values[i], 16 * first + 120);
    EXPECT_EQ(values[64 + i], first);
    EXPECT_EQ(values[128 + i], first | 15);
  }
  const auto all = ranks.values();
  for (unsigned i = 0; i < 12 * 64; ++i) EXPECT_EQ(all[i], 76800 + i / 64);
}

// ---- what ends a launch, and what a kernel prints

__global__ void trapped(int* data) {
  if (threadIdx.x == 5) __trap();  // fault
  data[threadIdx.x] = 1;
}
__global__ void broken_off(int* data) {
  if (threadIdx.x == 5) __brkpt();  // fault
  data[threadIdx.x] = 1;
}
__global__ void asserted(int* data) {
  assert(data[threadIdx.x] >= 0 && "must not be negative");
  assert(threadIdx.x != 5);  // fault
  data[threadIdx.x] = 1;
}
TEST(Ends, NameLineAndThread) {
  const DeviceArray<int> data(32);
  const auto expect = [&](void (*kernel)(int*), const std::string& name, const std::string& what) {
    const std::string place =
        "language_test.cpp:" + std::to_string(marked_lines(__FILE__, name, "fault").at(0));
    EXPECT_EQ(launch({1, 32}, kernel, data), cudaErrorLaunchFailure);
    clear_fault();
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    const std::string fault = last_fault();
    EXPECT_EQ(fault.find(what), 0u) << fault;
    EXPECT_NE(fault.find("kernel " + name + " at " + place + ", block (0, 0, 0) thread (5, 0, 0)"),
              std::string::npos)
        << fault;
  };
  expect(trapped, "trapped", "kernel called __trap;");
  expect(broken_off, "broken_off", "kernel called __brkpt;");
  expect(asserted, "asserted", "assertion failed: threadIdx.x != 5;");
}
TEST(Ends, AssertionsOfTheHostStillAbort) {
  EXPECT_DEATH(assert(1 + 1 == 3), "language_test.cpp:[0-9]+: assertion failed: 1 \\+ 1 == 3");
}

__global__ void prints(int n) {
  if (static_cast<int>(threadIdx.x) == n) printf("thread %d of %u, %.1f\n", n, blockDim.x, 0.5);
}
TEST(Ends, KernelsPrint) {
  ::testing::internal::CaptureStdout();
  const cudaError_t error = launch({1, 32}, prints, 7);
  fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "thread 7 of 32, 0.5\n");
  ASSERT_RUNS(error);
}

__global__ void waits(long long* out) {
  const long long start = clock64();
  while (clock64() - start < 1000);
  out[threadIdx.x] = clock64() - start + (clock() - clock());
}
TEST(Ends, ClocksAdvance) {
  const DeviceArray<long long> out(4);
  ASSERT_RUNS(launch({1, 4}, waits, out));
  EXPECT_GE(out.values()[3], 900);
}

// ---- how kernels are launched

__global__ void optional(int* out, const int* in, float* more) {
  *out = (in != nullptr) * 2 + (more != nullptr);
}
__global__ void twice(int* out, int value) { *out = 2 * value; }
__global__ void twice(int* out, double value) { *out = static_cast<int>(4 * value); }
template <class T, int n = 3>
__global__ void scaled(T* out, T value) {
  *out = n * value;
}
TEST(Launches, TakeArgumentsAsACallDoes) {
  const DeviceArray<int> out(1);
  const double nearly_three = 2.9;
  ASSERT_RUNS(launch({1, 1}, optional, out, 0, NULL));
  EXPECT_EQ(out.values()[0], 0);
  ASSERT_RUNS(launch({1, 1}, optional, out, nullptr, nullptr));
  EXPECT_EQ(out.values()[0], 0);
  ASSERT_RUNS(launch({1, 1}, optional, out, out, 0));
  EXPECT_EQ(out.values()[0], 2);
  ASSERT_RUNS(launch({1, 1}, scaled<int>, out, 'a'));
  EXPECT_EQ(out.values()[0], 3 * 'a');
  ASSERT_RUNS(launch({1, 1}, scaled<int, 5>, out, nearly_three));
  EXPECT_EQ(out.values()[0], 10);
  ASSERT_RUNS(launch({1, 1}, static_cast<void (*)(int*, double)>(twice), out, 2));
  EXPECT_EQ(out.values()[0], 8);
  ASSERT_RUNS(launch({1, 1}, static_cast<void (*)(int*, int)>(twice), out, nearly_three));
  EXPECT_EQ(out.values()[0], 4);
}

}  // namespace
}  // namespace emulator
