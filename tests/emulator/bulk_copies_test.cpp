// SPDX-License-Identifier: MIT
//
// Bulk copies of bytes and boxes: what they do, what is counted of them, and their faults.
#include <emulator/bulk_copies.hpp>

#include <algorithm>

#include "correct.hpp"
#include "faults.hpp"
#include "figures.hpp"

namespace emulator {
namespace {

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
  const DeviceArray<int> in(counting(1024));
  expect_everywhere(list_of(1024, [](int i) { return 2 * i; }),
                    [&](int* out) { return launch({1, 64}, there_and_back, out, in, 1024); });
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
  expect_everywhere(counting(64), [](int* out) { return launch({1, 64}, two_copies_out, out); });
}

// ---- boxes

struct Tensor {
  int matrices = 0, rows, columns;  // without matrices: of two dimensions
};
struct Box {
  int depth = 1, height, width, swizzle = 0;  // the latter in bytes
};
CUtensorMap map_of(int* data, const Tensor& tensor, const Box& box) {
  const auto [matrices, rows, columns] = tensor;
  return {
      .data = data,
      .sizes = {std::uint64_t(columns), std::uint64_t(rows), std::uint64_t(std::max(matrices, 1))},
      .strides = {4ull * columns, 4ull * columns * rows},
      .box = {unsigned(box.width), unsigned(box.height), unsigned(box.depth)},
      .element_bytes = 4,
      .dimensions = matrices ? 3u : 2u,
      .swizzle = unsigned(box.swizzle)};
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
void expect_box(const Tensor& tensor, const Box& box, int matrix, int row, int column) {
  SCOPED_TRACE(std::to_string(matrix) + ", " + std::to_string(row) + ", " + std::to_string(column) +
               " by " + std::to_string(box.swizzle));
  const auto [depth, height, width, swizzle] = box;
  const int matrices = std::max(tensor.matrices, 1), words = depth * height * width;
  const DeviceArray<int> in(counting(std::size_t(matrices) * tensor.rows * tensor.columns));
  std::vector<int> expected(words);
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const int m = matrix + z, r = row + y, c = column + x;
        const bool inside =
            m >= 0 && m < matrices && r >= 0 && r < tensor.rows && c >= 0 && c < tensor.columns;
        const int line = z * height + y;
        const int chunk = swizzle == 128  ? x / 4 ^ line % 8
                          : swizzle == 64 ? x / 4 ^ line / 2 % 4
                                          : x / 4;
        expected[line * width + chunk * 4 + x % 4] =
            inside ? (m * tensor.rows + r) * tensor.columns + c : 0;
      }
  const DeviceArray<int> out(words);
  const CUtensorMap map = map_of(in.data(), tensor, box);
  ASSERT_EQ(refusal(map), nullptr);
  const Settings settings({.check = true});
  ASSERT_RUNS(launch({1, 64, unsigned(4 * words)},
                     tensor.matrices ? read_box<true> : read_box<false>, out, map, words, matrix,
                     row, column));
  EXPECT_EQ(out.values(), expected);
}
TEST(BulkCopies, ReadBoxes) {
  for (const int swizzle : {0, 64, 128}) {
    const int width = swizzle ? swizzle / 4 : 20;
    for (const int row : {-3, 0, 5, 29, 40})
      for (const int column : {-8, 0, 4, 60, 100}) {
        expect_box({.rows = 33, .columns = 68}, {.height = 16, .width = width, .swizzle = swizzle},
                   0, row, column);
        expect_box({.matrices = 3, .rows = 33, .columns = 68},
                   {.depth = 2, .height = 8, .width = width, .swizzle = swizzle}, row % 4, row,
                   column);
      }
  }
}

__global__ void write_box(CUtensorMap map, int words, int row, int column) {
  auto* box = static_cast<int*>(dynamic_shared());
  for (int i = threadIdx.x; i < words; i += blockDim.x) box[i] = i + 1;
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  tma_store(map, row, column, box);
  bulk_wait_group_read();
}
TEST(BulkCopies, WriteBoxes) {
  everywhere([] {
    const DeviceArray<int> out(std::vector<int>(12 * 36, -1));
    const CUtensorMap map =
        map_of(out, {.rows = 12, .columns = 36}, {.height = 8, .width = 32, .swizzle = 128});
    ASSERT_RUNS(launch({1, 32, 8 * 128}, write_box, map, 8 * 32, 6, 20));
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
  const Tensor tensor{.rows = 32, .columns = 64};
  const Box box{.height = 8, .width = 32};
  EXPECT_STREQ(refusal(map_of(data, tensor, box)), nullptr);
  EXPECT_STREQ(refusal(map_of(data, tensor, {.height = 8, .width = 32, .swizzle = 128})), nullptr);
  EXPECT_STREQ(refusal(map_of(data.data() + 1, tensor, box)),
               "the tensor does not start on 16 bytes");
  EXPECT_STREQ(refusal(map_of(data, {.rows = 0, .columns = 64}, box)), "it is empty or too large");
  EXPECT_STREQ(refusal(map_of(data, {.rows = 32, .columns = 63}, box)),
               "rows do not start on 16 bytes");
  EXPECT_STREQ(refusal(map_of(data, tensor, {.height = 257, .width = 32})),
               "a side of a box has 1 to 256 elements");
  EXPECT_STREQ(refusal(map_of(data, tensor, {.height = 8, .width = 30})),
               "a row of a box is not a multiple of 16 bytes");
  EXPECT_STREQ(refusal(map_of(data, tensor, {.height = 8, .width = 32, .swizzle = 64})),
               "a row of a box is longer than the swizzle");
}

// ---- faults

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
  bulk_wait_group_read();
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

__global__ void leave_a_store(int* data) {
  __shared__ __align__(128) int s[8];
  if (threadIdx.x >= 8) return;
  s[threadIdx.x] = 1;
  fence_proxy_async_shared();
  __syncwarp();
  if (threadIdx.x == 0) bulk_store(data, s, 32);  // fault
}
TEST(Faults, BulkStoreThatNobodyWaitsFor) {
  EXPECT_FAULT(leave_a_store, "bulk copy of 32 bytes: its thread exits before it is read");
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
               map_of(in, {.rows = 32, .columns = 32}, {.height = 8, .width = 32, .swizzle = 128}));
}

}  // namespace
}  // namespace emulator
