// SPDX-License-Identifier: MIT
//
// mbarriers and bulk copies: what they do, what is counted of them, and their faults.
#include <emulator/bulk_copies.hpp>

#include <algorithm>
#include <regex>

#include "correct.hpp"
#include "faults.hpp"
#include "figures.hpp"

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
  everywhere(
      [] {
        const DeviceArray<int> out(1);
        ASSERT_RUNS(launch({1, 64}, take_turns, out));
        EXPECT_EQ(out.values()[0], 111110);
      },
      Same::results);
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
  everywhere([] {
    const DeviceArray<int> out(64);
    ASSERT_RUNS(launch({1, 64}, wait_for_the_phase_before, out));
    EXPECT_EQ(sum(out.values()), 64);
  });
}

// ---- copies of bytes

__global__ void there_and_back(int* out, const int* in, unsigned count) {
  __shared__ __align__(16) int stage[1024];
  __shared__ MBarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    arrive_expect_tx(full, int(count * sizeof(int)));
    bulk_load(stage, in, count * sizeof(int), full);
  }
  __syncthreads();
  wait(full, 0);
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) stage[i] *= 2;
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(out, stage, count * sizeof(int));
    bulk_wait_group();
  }
}
TEST(BulkCopies, ThereAndBack) {
  everywhere([] {
    const DeviceArray<int> in(counting(1024)), out(1024);
    ASSERT_RUNS(launch({1, 64}, there_and_back, out, in, 1024));
    std::vector<int> expected = counting(1024);
    for (int& value : expected) value *= 2;
    EXPECT_EQ(out.values(), expected);
  });
}
TEST(BulkCopies, AreOneRequestEach) {
  const DeviceArray<int> in(counting(1024)), out(1024);
  const Report report = counted_launch({1, 64}, there_and_back, out.data(), in.data(), 1024u);
  for (const Operation operation : {kLoad, kStore}) {
    const Traffic bulk = report.total(Space::bulk, operation);
    EXPECT_EQ(bulk.requests, 1u);
    EXPECT_EQ(bulk.bytes, 4096u);
    EXPECT_EQ(bulk.transactions, 128u);
    EXPECT_EQ(bulk.ideal, 128u);
    EXPECT_EQ(report.total(kGlobal, operation).requests, 0u);
  }
  EXPECT_EQ(report.total(kShared, kLoad).requests, 32u);
  EXPECT_EQ(report.compulsory_read, 4096u);
  EXPECT_EQ(report.compulsory_written, 4096u);
}

// Two groups of one thread: the first wait is for all.
__global__ void two_copies_out(int* out) {
  __shared__ __align__(16) int stage[64];
  stage[threadIdx.x] = int(threadIdx.x);
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  bulk_store(out, stage, 128);
  bulk_store(out + 32, stage + 32, 128);
  bulk_wait_group_read();
  stage[0] = -1;
}
TEST(BulkCopies, AreDoneWhenTheirThreadExits) {
  everywhere([] {
    const DeviceArray<int> out(64);
    ASSERT_RUNS(launch({1, 64}, two_copies_out, out));
    EXPECT_EQ(out.values(), counting(64));
  });
}

// ---- boxes

CUtensorMap map_of(int* data, int matrices, int rows, int columns, int box_matrices, int box_rows,
                   int box_columns, int swizzle) {
  return {
      .data = data,
      .sizes = {std::uint64_t(columns), std::uint64_t(rows), std::uint64_t(std::max(matrices, 1))},
      .strides = {4ull * columns, 4ull * columns * rows},
      .box = {unsigned(box_columns), unsigned(box_rows), unsigned(box_matrices)},
      .element_bytes = 4,
      .dimensions = matrices ? 3u : 2u,
      .swizzle = unsigned(swizzle)};
}

template <bool cube>
__global__ void read_box(int* out, CUtensorMap map, int words, int matrix, int row, int column) {
  auto* box = static_cast<int*>(dynamic_shared());
  __shared__ MBarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    arrive_expect_tx(full, 4 * words);
    if (cube)
      tma_load(box, map, matrix, row, column, full);
    else
      tma_load(box, map, row, column, full);
  }
  __syncthreads();
  wait(full, 0);
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = box[i];
}

// Element by element: where an element of a box lies, and what is there.
void expect_box(int matrices, int rows, int columns, int depth, int height, int width, int swizzle,
                int matrix, int row, int column) {
  SCOPED_TRACE(std::to_string(matrix) + ", " + std::to_string(row) + ", " + std::to_string(column) +
               " by " + std::to_string(swizzle));
  const DeviceArray<int> in(counting(std::size_t(std::max(matrices, 1)) * rows * columns));
  const int words = depth * height * width;
  std::vector<int> expected(words);
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const int m = matrix + z, r = row + y, c = column + x;
        const bool inside =
            m >= 0 && m < std::max(matrices, 1) && r >= 0 && r < rows && c >= 0 && c < columns;
        const int line = z * height + y;
        const int chunk = swizzle == 128  ? x / 4 ^ line % 8
                          : swizzle == 64 ? x / 4 ^ line / 2 % 4
                                          : x / 4;
        expected[line * width + chunk * 4 + x % 4] = inside ? (m * rows + r) * columns + c : 0;
      }
  const DeviceArray<int> out(words);
  const CUtensorMap map = map_of(in.data(), matrices, rows, columns, depth, height, width, swizzle);
  ASSERT_EQ(refusal(map), nullptr);
  const Settings settings({.check = true});
  ASSERT_RUNS(launch({1, 64, unsigned(4 * words)}, matrices ? read_box<true> : read_box<false>, out,
                     map, words, matrix, row, column));
  EXPECT_EQ(out.values(), expected);
}
TEST(BulkCopies, ReadBoxes) {
  for (const int swizzle : {0, 64, 128}) {
    const int width = swizzle ? swizzle / 4 : 20;
    for (const int row : {-3, 0, 5, 29, 40})
      for (const int column : {-8, 0, 4, 60, 100}) {
        expect_box(0, 33, 68, 1, 16, width, swizzle, 0, row, column);
        expect_box(3, 33, 68, 2, 8, width, swizzle, row % 4, row, column);
      }
  }
}

__global__ void write_box(CUtensorMap map, int words, int row, int column) {
  auto* box = static_cast<int*>(dynamic_shared());
  for (int i = threadIdx.x; i < words; i += blockDim.x) box[i] = i + 1;
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) tma_store(map, row, column, box);
}
TEST(BulkCopies, WriteBoxes) {
  everywhere([] {
    const DeviceArray<int> out(std::vector<int>(12 * 36, -1));
    ASSERT_RUNS(launch({1, 32, 8 * 128}, write_box, map_of(out.data(), 0, 12, 36, 1, 8, 32, 128),
                       8 * 32, 6, 20));
    std::vector<int> expected(12 * 36, -1);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 32; ++x)
        if (6 + y < 12 && 20 + x < 36)
          expected[(6 + y) * 36 + 20 + x] = y * 32 + (x / 4 ^ y) * 4 + x % 4 + 1;
    EXPECT_EQ(out.values(), expected);
  });
}

TEST(BulkCopies, TakeMapsAsHardwareDoes) {
  const DeviceArray<int> data(4096);
  EXPECT_EQ(refusal(map_of(data, 0, 32, 64, 1, 8, 32, 128)), nullptr);
  EXPECT_NE(refusal(map_of(data.data() + 1, 0, 32, 64, 1, 8, 32, 0)), nullptr);
  EXPECT_NE(refusal(map_of(data, 0, 0, 64, 1, 8, 32, 0)), nullptr);
  EXPECT_NE(refusal(map_of(data, 0, 32, 63, 1, 8, 32, 0)), nullptr);
  EXPECT_NE(refusal(map_of(data, 0, 32, 64, 1, 257, 32, 0)), nullptr);
  EXPECT_NE(refusal(map_of(data, 0, 32, 64, 1, 8, 30, 0)), nullptr);
  EXPECT_NE(refusal(map_of(data, 0, 32, 64, 1, 8, 32, 64)), nullptr);
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
  everywhere([] {
    const DeviceArray<int> out(1);
    ASSERT_RUNS(launch_clusters(4, {4, 32}, sum_in_first_block, out));
    EXPECT_EQ(out.values()[0], 150);
  });
}

// ---- blocks that wait for each other

__global__ void pass_on(unsigned* words) {
  if (threadIdx.x != 0) return;
  const unsigned before = (blockIdx.x + 1) % gridDim.x;  // the last block starts
  unsigned seen = before + 1;
  if (blockIdx.x + 1 < gridDim.x) do {
      wait_uncounted(words + before, before + 1);
      strong_load(words + before, &seen, sizeof(seen), Strength::relaxed);
    } while (seen != before + 1);
  atomicExch(words + blockIdx.x, blockIdx.x + 1);
}
TEST(Together, BlocksWaitForLaterOnes) {
  everywhere([] {
    const DeviceArray<unsigned> words(20);
    cudaLaunchAttribute attribute{.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    cudaLaunchConfig_t config;
    config.gridDim = 20;
    config.blockDim = 32;
    config.attrs = &attribute;
    config.numAttrs = 1;
    ASSERT_RUNS(cudaLaunchKernelEx(&config, pass_on, words.data()));
    for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(words.values()[i], i + 1);
    config.gridDim = 1 << 16;
    EXPECT_EQ(cudaLaunchKernelEx(&config, pass_on, words.data()),
              cudaErrorCooperativeLaunchTooLarge);
    cudaGetLastError();
  });
}

// ---- a ring with one thing wrong

enum class Wrong {
  nothing,
  parity,                 // the readers' phase bit
  freed_before_read,      // readers arrive, then read
  too_few_bytes,          // expected
  no_wait_before_refill,  //
  too_few_readers,        // of the empty barriers
  too_many_readers,       //
  source_overwritten,     // of a copy out
  no_wait_before_read,    //
};

template <Wrong wrong>
__global__ void ring(int* out, const int* in) {
  constexpr int kStages = 2, kSteps = 7, kWords = 64;
  __shared__ __align__(16) int stages[kStages][kWords], sums[2][kWords];
  __shared__ MBarrier full[kStages], empty[kStages];
  if (threadIdx.x == 0)
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(full[s], 1);
      mbarrier_init(empty[s], wrong == Wrong::too_few_readers    ? kWords / 2
                              : wrong == Wrong::too_many_readers ? kWords + 1
                                                                 : kWords);
      fence_mbarrier_init();
    }
  __syncthreads();
  if (threadIdx.x >= kWords) {
    if (threadIdx.x > kWords) return;
    for (int step = 0; step < kSteps; ++step) {
      const int s = step % kStages, bytes = kWords * sizeof(int);
      if (wrong != Wrong::no_wait_before_refill) wait(empty[s], (step / kStages + 1) % 2);
      arrive_expect_tx(full[s], wrong == Wrong::too_few_bytes ? bytes - 16 : bytes);
      bulk_load(stages[s], in + step * kWords, bytes, full[s]);
    }
    return;
  }
  for (int step = 0; step < kSteps; ++step) {
    const int s = step % kStages, parity = step / kStages % 2;
    if (wrong != Wrong::no_wait_before_read)
      wait(full[s], wrong == Wrong::parity ? 1 - parity : parity);
    if (wrong == Wrong::freed_before_read) arrive(empty[s]);
    const int value = stages[s][kWords - 1 - threadIdx.x];
    if (wrong != Wrong::freed_before_read) arrive(empty[s]);
    sums[step % 2][threadIdx.x] = value;
    fence_proxy_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      bulk_store(out + step * kWords + threadIdx.x, &sums[step % 2][threadIdx.x], 128);
      if (wrong != Wrong::source_overwritten) bulk_wait_group_read();
    }
    __syncwarp();
  }
}
std::vector<int> turned_around() {
  std::vector<int> values;
  for (int i = 0; i < 7 * 64; ++i) values.push_back(i / 64 * 64 + 63 - i % 64);
  return values;
}
template <Wrong wrong>
void expect_found(const char* what) {
  for (const Order order : kOrders) {
    SCOPED_TRACE(name(order));
    const Settings settings({.order = order, .check = true});
    const DeviceArray<int> in(counting(7 * 64)), out(7 * 64);
    const cudaError_t error = launch({1, 96}, ring<wrong>, out, in);
    const std::string text = last_fault();
    clear_fault();
    cudaGetLastError();
    if (error == cudaErrorLaunchFailure)
      EXPECT_TRUE(std::regex_search(text, std::regex(what))) << text;
    else  // what was read is of another step
      EXPECT_NE(out.values(), turned_around()) << "accepted";
  }
}
// With checks, lanes that get out of step at mbarriers count one by one.
TEST(BulkRing, IsRight) {
  everywhere(
      [] {
        const DeviceArray<int> in(counting(7 * 64)), out(7 * 64);
        ASSERT_RUNS(launch({1, 96}, ring<Wrong::nothing>, out, in));
        EXPECT_EQ(out.values(), turned_around());
      },
      Same::results);
}
constexpr char kTooEarly[] =
    "(read before the wait for an asynchronous copy|uninitialised shared|write after read of "
    "stages)";
TEST(BulkRing, WithAWrongParity) { expect_found<Wrong::parity>(kTooEarly); }
TEST(BulkRing, FreedBeforeItIsRead) {
  expect_found<Wrong::freed_before_read>("race between warps: write after read of stages");
}
TEST(BulkRing, ReadWithoutAWait) { expect_found<Wrong::no_wait_before_read>(kTooEarly); }
TEST(BulkRing, ThatExpectsTooFewBytes) {
  expect_found<Wrong::too_few_bytes>("mbarrier: copies bring 16 bytes more than its phase expects");
}
TEST(BulkRing, FilledWithoutAWait) {
  expect_found<Wrong::no_wait_before_refill>(
      "mbarrier: more arrivals than the 1 of a phase, whose copies nobody has waited for");
}
TEST(BulkRing, WithTooFewReaders) {
  expect_found<Wrong::too_few_readers>(
      "(before the wait for an asynchronous copy|mbarrier: more arrivals|deadlock)");
}
TEST(BulkRing, WithTooManyReaders) {
  expect_found<Wrong::too_many_readers>(
      "deadlock.*threads wait for phase 0 of the mbarrier empty, which lacks 1 arrivals and 0 "
      "bytes, "
      "at bulk_copies_test.cpp");
}
TEST(BulkRing, WhoseWayOutIsOverwritten) {
  expect_found<Wrong::source_overwritten>("its source was written before it was read");
}

// ---- other faults

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

__global__ void bad_copy(int* data, int which) {
  __shared__ __align__(128) int s[64];
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  fence_mbarrier_init();
  arrive_expect_tx(barrier, 32);
  if (which == 0) bulk_load(s, data, 12, barrier);          // fault
  if (which == 1) bulk_load(s + 1, data, 32, barrier);      // fault
  if (which == 2) bulk_load(s, data + 1, 32, barrier);      // fault
  if (which == 3) bulk_load(data + 32, data, 32, barrier);  // fault
  if (which == 4) bulk_load(s, s + 16, 32, barrier);        // fault
  if (which == 5) bulk_load(s, data + 60, 32, barrier);     // fault
  if (which == 6) bulk_store(data + 60, s, 32);             // fault
  if (which == 7) bulk_store(data, data + 32, 32);          // fault
  if (which == 8) bulk_store(data, s, 32);                  // fault
}
void expect_bad_copy(int which, const char* what) {
  SCOPED_TRACE(which);
  expect_fault(__FILE__, "bad_copy", bad_copy, Planted{what}, Named::one_line, which);
}
TEST(Faults, BulkCopies) {
  expect_bad_copy(0, "bulk copy of 12 bytes: only multiples of 16 can be copied");
  expect_bad_copy(1, "bulk copy of 32 bytes: its destination is misaligned");
  expect_bad_copy(2, "bulk copy of 32 bytes: its source is misaligned");
  expect_bad_copy(3, "its destination is not the block's shared memory");
  expect_bad_copy(4, "its source is not global memory");
  expect_bad_copy(5, "out-of-bounds global load: byte 271 of a buffer of 256");
  expect_bad_copy(6, "out-of-bounds global store: byte 271 of a buffer of 256");
  expect_bad_copy(7, "its source is not the block's shared memory");
  expect_bad_copy(8, "uninitialised shared memory: load of s");
}

__global__ void leave_a_copy(int* data) {
  __shared__ __align__(128) int s[64];
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  fence_mbarrier_init();
  arrive_expect_tx(barrier, 32);
  bulk_load(s, data, 32, barrier);  // fault
}
TEST(Faults, BulkCopyThatNobodyWaitsFor) {
  EXPECT_FAULT(leave_a_copy, "a block exits while 32 bytes are under way to its memory");
}

__global__ void box_of_a_cube(int*, CUtensorMap map) {
  __shared__ __align__(1024) int s[2048];
  __shared__ MBarrier barrier;
  if (threadIdx.x > 0) return;
  mbarrier_init(barrier, 1);
  fence_mbarrier_init();
  tma_load(s, map, 0, 0, 0, barrier);  // fault
}
TEST(Faults, BoxOfOtherDimensions) {
  const DeviceArray<int> in(1024);
  expect_fault(__FILE__, "box_of_a_cube", box_of_a_cube,
               Planted{"bulk copy of a box of 3 dimensions: its map has 2"}, Named::one_line,
               map_of(in.data(), 0, 32, 32, 1, 8, 32, 128));
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
