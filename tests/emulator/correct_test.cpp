// SPDX-License-Identifier: MIT
//
// Kernels with nothing wrong: results are right, no fault is found, and figures are the same,
// whatever the order of threads and the number of workers.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <numeric>

#include "support.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

std::vector<int> counting(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}
int sum(const std::vector<int>& values) { return std::accumulate(values.begin(), values.end(), 0); }
unsigned blocks_for(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

// ---- reductions

__global__ void tree_reduction(int* out, const int* in, int n) {
  __shared__ int s[256];
  const unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < static_cast<unsigned>(n) ? in[i] : 0;
  __syncthreads();
  for (unsigned k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
TEST(Correct, TreeReduction) {
  const std::vector<int> in = counting(3000);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(12);
    ASSERT_RUNS(launch({12, 256}, tree_reduction, out, device_in, 3000));
    EXPECT_EQ(sum(out.values()), sum(in));
  });
}

__global__ void interleaved_reduction(int* out, const int* in) {
  int* s = static_cast<int*>(dynamic_shared());
  const unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  for (unsigned k = 1; k < blockDim.x; k *= 2) {
    __syncthreads();
    if (t % (2 * k) == 0) s[t] += s[t + k];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
TEST(Correct, InterleavedReduction) {
  const std::vector<int> in = counting(1024);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(8);
    ASSERT_RUNS(launch({8, 128, 512}, interleaved_reduction, out, device_in));
    EXPECT_EQ(sum(out.values()), sum(in));
  });
}

__device__ int sum_of_warp(int value) {
  for (int k = 16; k > 0; k /= 2) value += __shfl_down_sync(~0u, value, k);
  return value;
}
__global__ void shuffle_reduction(int* out, const int* in, int n) {
  __shared__ int sums[32];
  int value = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(n);
       i += gridDim.x * blockDim.x)
    value += in[i];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = sum_of_warp(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0);
    if (threadIdx.x == 0) atomicAdd(out, value);
  }
}
TEST(Correct, ShuffleReduction) {
  const std::vector<int> in = counting(5001);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(1);
    ASSERT_RUNS(launch({5, 192}, shuffle_reduction, out, device_in, 5001));
    EXPECT_EQ(out.values()[0], sum(in));
  });
}

__global__ void warp_synchronous_reduction(int* out, const int* in) {
  __shared__ int s[4][32];
  const unsigned lane = threadIdx.x % 32;
  int* mine = s[threadIdx.x / 32];
  int value = in[threadIdx.x];
  mine[lane] = value;
  __syncwarp();
  for (unsigned k = 16; k > 0; k /= 2) {
    if (lane < k) value += mine[lane + k];
    __syncwarp();
    if (lane < k) mine[lane] = value;
    __syncwarp();
  }
  if (lane == 0) out[threadIdx.x / 32] = value;
}
TEST(Correct, WarpSynchronousReduction) {
  const std::vector<int> in = counting(128);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(4);
    ASSERT_RUNS(launch({1, 128}, warp_synchronous_reduction, out, device_in));
    EXPECT_EQ(sum(out.values()), sum(in));
  });
}

// From the CUDA C++ Programming Guide, "Memory Fence Functions".
__global__ void last_block_reduction(int* sums, unsigned* done, int* out, const int* in) {
  __shared__ int s[64];
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  for (unsigned k = 32; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) {
    sums[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  if (t == 0) {
    int total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += sums[i];
    *out = total;
  }
}
TEST(Correct, LastBlockReduction) {
  const std::vector<int> in = counting(640);
  everywhere([&] {
    const DeviceArray<int> device_in(in), sums(10), out(1);
    const DeviceArray<unsigned> done(1);
    ASSERT_RUNS(launch({10, 64}, last_block_reduction, sums, done, out, device_in));
    EXPECT_EQ(out.values()[0], sum(in));
  });
}

// ---- shapes

__global__ void early_return(int* out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(n)) return;
  out[i] = static_cast<int>(i);
}
TEST(Correct, EarlyReturnWithoutBarrier) {
  everywhere([&] {
    const DeviceArray<int> out(1000);
    ASSERT_RUNS(launch({blocks_for(1000, 96), 96}, early_return, out, 1000));
    EXPECT_EQ(out.values(), counting(1000));
  });
}

__global__ void reversed(int* out) {
  int* s = static_cast<int*>(dynamic_shared());
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
TEST(Correct, BlocksOfOddSizes) {
  for (const unsigned threads : {1u, 7u, 31u, 33u, 45u, 100u, 1000u, 1023u, 1024u})
    everywhere([&] {
      const DeviceArray<int> out(threads);
      ASSERT_RUNS(launch({1, threads, threads * 4}, reversed, out));
      std::vector<int> expected = counting(threads);
      std::ranges::reverse(expected);
      EXPECT_EQ(out.values(), expected);
    });
}

__global__ void blocks_in_three_dimensions(int* out) {
  __shared__ int s[5][3][7];
  s[threadIdx.z][threadIdx.y][threadIdx.x] = static_cast<int>(blockIdx.x + 10 * blockIdx.y);
  __syncthreads();
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * 105 + thread] = s[4 - threadIdx.z][2 - threadIdx.y][6 - threadIdx.x];
}
TEST(Correct, BlocksInThreeDimensions) {
  everywhere([&] {
    const DeviceArray<int> out(2 * 3 * 2 * 105);
    ASSERT_RUNS(launch({{2, 3, 2}, {7, 3, 5}}, blocks_in_three_dimensions, out));
    const std::vector<int> values = out.values();
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<int>(i / 105 % 2 + 10 * (i / 210 % 3)));
  });
}

template <int pad>
__global__ void transpose(float* out, const float* in, int width, int height) {
  __shared__ float tile[32][32 + pad];
  unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (unsigned j = 0; j < 32; j += 8)
    if (x < static_cast<unsigned>(width) && y + j < static_cast<unsigned>(height))
      tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (unsigned j = 0; j < 32; j += 8)
    if (x < static_cast<unsigned>(height) && y + j < static_cast<unsigned>(width))
      out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
TEST(Correct, TransposesOfPartialTiles) {
  constexpr int kWidth = 70, kHeight = 45;
  std::vector<float> in(kWidth * kHeight);
  std::iota(in.begin(), in.end(), 0.0f);
  for (const auto kernel : {transpose<0>, transpose<1>})
    everywhere([&] {
      const DeviceArray<float> device_in(in), out(in.size());
      ASSERT_RUNS(launch({{3, 2}, {32, 8}}, kernel, out, device_in, kWidth, kHeight));
      const std::vector<float> values = out.values();
      for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) ASSERT_EQ(values[x * kHeight + y], in[y * kWidth + x]);
    });
}

// ---- shared memory

__global__ void several_lanes_of_one_store(int* out, const int* in, int wanted) {
  __shared__ bool found;
  if (threadIdx.x == 0) found = false;
  __syncthreads();
  if (in[threadIdx.x] % wanted == 0) found = true;
  __syncthreads();
  if (threadIdx.x == 0) *out = found;
}
TEST(Correct, SeveralLanesOfOneStore) {
  const std::vector<int> in = counting(32);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(1);
    ASSERT_RUNS(launch({1, 32}, several_lanes_of_one_store, out, device_in, 5));
    EXPECT_EQ(out.values()[0], 1);
  });
}

__global__ void double_buffered(int* out, const int* in, int steps) {
  __shared__ int s[2][64];
  int total = 0;
  s[0][threadIdx.x] = in[threadIdx.x];
  for (int i = 0; i < steps; ++i) {
    __syncthreads();
    if (i + 1 < steps) s[(i + 1) % 2][threadIdx.x] = in[(i + 1) * 64 + threadIdx.x];
    total += s[i % 2][63 - threadIdx.x];
  }
  out[threadIdx.x] = total;
}
TEST(Correct, DoubleBuffering) {
  const std::vector<int> in = counting(64 * 5);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(64);
    ASSERT_RUNS(launch({1, 64}, double_buffered, out, device_in, 5));
    EXPECT_EQ(sum(out.values()), sum(in));
  });
}

__global__ void bytes_of_one_word(unsigned char* out) {
  __shared__ unsigned char s[128];
  s[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
TEST(Correct, BytesOfOneWord) {
  everywhere([&] {
    const DeviceArray<unsigned char> out(128);
    ASSERT_RUNS(launch({1, 128}, bytes_of_one_word, out));
    const auto values = out.values();
    for (int i = 0; i < 128; ++i) ASSERT_EQ(values[i], i ^ 1);
  });
}

// Fewer values than there are elements, as in CUDA, whose vectors are aggregates.
__global__ void vectors_in_braces(float* out) {
  const float2 two = {1};
  const float3 three = {1, 2};
  float4 four[2] = {{0}, {1, 2, 3}};
  const uchar4 bytes = {1, 2, 3};
  out[0] = two.x + two.y;
  out[1] = three.x + three.y + three.z;
  out[2] = four[0].x + four[0].y + four[0].z + four[0].w;
  out[3] = four[1].x + four[1].y + four[1].z + four[1].w;
  out[4] = static_cast<float>(bytes.z + bytes.w);
}
TEST(Correct, VectorsInBraces) {
  static_assert(!std::is_convertible_v<float, float4> && !std::is_convertible_v<int, uchar4>);
  everywhere([] {
    const DeviceArray<float> out(5);
    ASSERT_RUNS(launch({1, 1}, vectors_in_braces, out));
    EXPECT_EQ(out.values(), (std::vector<float>{1, 3, 0, 6, 3}));
  });
}

namespace of_the_source {
using namespace std;
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
__global__ void least_and_most(float* out, int three, float half) {
  out[threadIdx.x] = static_cast<float>(max(three, 2) + min(three, 7)) + max(half, 0.25f);
}
}  // namespace of_the_source
TEST(Correct, MaxNextToThatOfTheSource) {
  everywhere([] {
    const DeviceArray<float> out(32);
    ASSERT_RUNS(launch({1, 32}, of_the_source::least_and_most, out, 3, 0.5f));
    EXPECT_EQ(out.values(), std::vector<float>(32, 6.5f));
  });
}

__global__ void vectors_in_shared_memory(float4* out, const float4* in) {
  __shared__ float4 s[64];
  __shared__ float2 halves[64];
  s[threadIdx.x] = in[threadIdx.x];
  halves[threadIdx.x] = make_float2(s[threadIdx.x].x, s[threadIdx.x].y);
  __syncthreads();
  const float4 v = s[63 - threadIdx.x];
  const float2 h = halves[threadIdx.x];
  out[threadIdx.x] = make_float4(v.w, v.z, h.y, h.x);
}
TEST(Correct, VectorsInSharedMemory) {
  std::vector<float4> in(64);
  for (int i = 0; i < 64; ++i) in[i] = make_float4(4.0f * i, 1, 2, 3);
  everywhere([&] {
    const DeviceArray<float4> device_in(in), out(64);
    ASSERT_RUNS(launch({1, 64}, vectors_in_shared_memory, out, device_in));
    for (int i = 0; i < 64; ++i) ASSERT_EQ(out.values()[i].w, 4.0f * i);
  });
}

__global__ void votes_of_a_block(int* out, int n) {
  const bool below = threadIdx.x < static_cast<unsigned>(n);
  const int count = __syncthreads_count(below);
  const int all = __syncthreads_and(below);
  const int any = __syncthreads_or(below);
  out[threadIdx.x] = count * 100 + (all != 0) * 10 + (any != 0);
}
TEST(Correct, VotesOfABlock) {
  const auto expect_votes = [](int n, int answer) {
    everywhere([&] {
      const DeviceArray<int> out(45);
      ASSERT_RUNS(launch({1, 45}, votes_of_a_block, out, n));
      EXPECT_EQ(out.values(), std::vector<int>(45, answer));
    });
  };
  expect_votes(0, 0);
  expect_votes(40, 4001);
  expect_votes(45, 4511);
}

// ---- atomics

__global__ void atomics_on_one_address(int* out, float* sum) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  atomicAdd(&s, 1);
  atomicAdd(sum, 0.5f);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(out, s);
}
TEST(Correct, AtomicsOnOneAddress) {
  everywhere([&] {
    const DeviceArray<int> out(1);
    const DeviceArray<float> sum(1);
    ASSERT_RUNS(launch({6, 100}, atomics_on_one_address, out, sum));
    EXPECT_EQ(out.values()[0], 100);
    EXPECT_EQ(sum.values()[0], 300);
  });
}

// From NVIDIA's "Using CUDA Warp-Level Primitives".
__device__ int add_aggregated(int* counter) {
  const unsigned active = __activemask();
  const unsigned before = __popc(active & ((1u << threadIdx.x % 32) - 1));
  const int leader = __ffs(static_cast<int>(active)) - 1;
  int first = 0;
  if (before == 0) first = atomicAdd(counter, __popc(active));
  return __shfl_sync(active, first, leader) + static_cast<int>(before);
}
__global__ void compacted(int* out, int* counter, const int* in) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (value % 3 == 0) out[add_aggregated(counter)] = value;
}
TEST(Correct, AggregatedAtomics) {
  const std::vector<int> in = counting(384);
  everywhere(
      [&] {
        const DeviceArray<int> device_in(in), out(128), counter(1);
        ASSERT_RUNS(launch({4, 96}, compacted, out, counter, device_in));
        EXPECT_EQ(counter.values()[0], 128);
        std::vector<int> values = out.values();
        std::ranges::sort(values);
        for (int i = 0; i < 128; ++i) ASSERT_EQ(values[i], 3 * i);
      },
      Same::results);  // where in `out` a warp writes is how many sectors it takes
}

__global__ void matched_histogram(int* bins, const int* keys) {
  const int key = keys[threadIdx.x];
  const unsigned same = __match_any_sync(~0u, key);
  if (__ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % 32))
    atomicAdd(&bins[key], __popc(same));
}
TEST(Correct, MatchedHistogram) {
  std::vector<int> keys(128), expected(8);
  for (int i = 0; i < 128; ++i) ++expected[keys[i] = i * i % 8];
  everywhere([&] {
    const DeviceArray<int> device_keys(keys), bins(8);
    ASSERT_RUNS(launch({1, 128}, matched_histogram, bins, device_keys));
    EXPECT_EQ(bins.values(), expected);
  });
}

__global__ void locked(int* lock, volatile int* total) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      *total = *total + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
TEST(Correct, SpinLock) {
  everywhere(
      [&] {
        const DeviceArray<int> lock(1), total(1);
        ASSERT_RUNS(launch({4, 40}, locked, lock, total));
        EXPECT_EQ(total.values()[0], 160);
      },
      Same::results);
}

// ---- flags

__global__ void produced_by_the_block_before(volatile int* data, volatile int* ready) {
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0)
      while (ready[blockIdx.x - 1] == 0) {
      }
    data[blockIdx.x] = (blockIdx.x > 0 ? data[blockIdx.x - 1] : 0) + 1;
    __threadfence();
    ready[blockIdx.x] = 1;
  }
}
TEST(Correct, FlagsBetweenBlocks) {
  everywhere(
      [&] {
        const DeviceArray<int> data(40), ready(40);
        ASSERT_RUNS(launch({40, 32}, produced_by_the_block_before, data, ready));
        EXPECT_EQ(data.values()[39], 40);
      },
      Same::results);
}

__global__ void produced_by_another_warp(volatile int* data, volatile int* ready, int* out) {
  const unsigned warp = threadIdx.x / 32;
  if (warp == 0) {
    data[threadIdx.x] = static_cast<int>(threadIdx.x);
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) *ready = 1;
  } else {
    while (*ready == 0) {
    }
    __threadfence_block();
    out[threadIdx.x - 32] = data[63 - threadIdx.x];
  }
}
TEST(Correct, FlagsWithinABlock) {
  everywhere(
      [&] {
        const DeviceArray<int> data(32), ready(1), out(32);
        ASSERT_RUNS(launch({1, 64}, produced_by_another_warp, data, ready, out));
        EXPECT_EQ(out.values()[0], 31);
      },
      Same::results);
}

__global__ void passed_on_by_the_next_warp(volatile int* turn, int* out, int rounds) {
  const int warps = static_cast<int>(blockDim.x / 32), warp = static_cast<int>(threadIdx.x / 32);
  if (threadIdx.x % 32 != 0) return;
  for (int i = 0; i < rounds; ++i) {
    while (*turn % warps != warp) {
    }
    *out += 1;
    __threadfence();
    *turn = *turn + 1;
  }
}
TEST(Correct, TurnsOfWarps) {
  everywhere(
      [&] {
        const DeviceArray<int> turn(1), out(1);
        ASSERT_RUNS(launch({1, 128}, passed_on_by_the_next_warp, turn, out, 5));
        EXPECT_EQ(out.values()[0], 20);
      },
      Same::results);
}

// Scan with decoupled look-back: a block takes a number, publishes its sum, and adds up what the
// blocks before it have published.
__global__ void look_back_scan(int* out, const int* in, unsigned* next, volatile int* state) {
  enum { kNothing = 0, kSum = 1, kPrefix = 2 };  // state = value * 4 + one of these
  __shared__ unsigned number;
  __shared__ int s[64], before;
  if (threadIdx.x == 0) number = atomicAdd(next, 1u);
  __syncthreads();
  const unsigned block = number, t = threadIdx.x;
  s[t] = in[block * 64 + t];
  for (unsigned k = 1; k < 64; k *= 2) {
    __syncthreads();
    const int left = t >= k ? s[t - k] : 0;
    __syncthreads();
    s[t] += left;
  }
  __syncthreads();
  if (t == 0) {
    const int sum = s[63];
    state[block] = block == 0 ? sum * 4 + kPrefix : sum * 4 + kSum;
    int prefix = 0;
    for (unsigned b = block; b-- > 0;) {
      int found = kNothing;
      while ((found = state[b]) == kNothing) {
      }
      prefix += found / 4;
      if (found % 4 == kPrefix) break;
    }
    __threadfence();
    state[block] = (prefix + sum) * 4 + kPrefix;
    before = prefix;
  }
  __syncthreads();
  out[block * 64 + t] = before + s[t];
}
TEST(Correct, LookBackScan) {
  const std::vector<int> in = counting(64 * 30);
  std::vector<int> expected(in.size());
  std::partial_sum(in.begin(), in.end(), expected.begin());
  everywhere(
      [&] {
        const DeviceArray<int> device_in(in), out(in.size()), state(30);
        const DeviceArray<unsigned> next(1);
        ASSERT_RUNS(launch({30, 64}, look_back_scan, out, device_in, next, state));
        EXPECT_EQ(out.values(), expected);
      },
      Same::results);
}

// Long enough for lanes to make way for others, whether they are recorded or not.
__global__ void long_loop(int* out, int rounds) {
  volatile int* count = out + threadIdx.x;
  for (int i = 0; i < rounds; ++i) *count = *count + 1;
}
TEST(Correct, LongLoopThatNobodyRecords) {
  const DeviceArray<int> out(64);
  ASSERT_RUNS(launch({1, 64}, long_loop, out.data(), 200000));
  EXPECT_EQ(out.values(), std::vector<int>(64, 200000));
}

// The last block of a cluster lights the first one's flag, which lights the next one's ...
__global__ void flag_after_flag(int* out) {
  __shared__ int flag;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), last = cluster.num_blocks() - 1;
  if (threadIdx.x == 0) flag = 0;
  cluster.sync();
  if (threadIdx.x == 0) {
    if (rank != last)
      while (atomicAdd(&flag, 0) == 0) {
      }
    atomicExch(cluster.map_shared_rank(&flag, rank == last ? 0 : rank + 1), 1);
  }
  cluster.sync();
  out[blockIdx.x] = flag;
}
TEST(Correct, FlagsBetweenTheBlocksOfACluster) {
  everywhere(
      [] {
        const DeviceArray<int> out(16);
        ASSERT_RUNS(launch_clusters(4, {16, 32}, flag_after_flag, out.data()));
        ASSERT_EQ(out.values(), std::vector<int>(16, 1));
      },
      Same::results);
}

// ---- cooperative groups

template <unsigned size>
__global__ void reduced_by_tiles(int* out, const int* in) {
  __shared__ int s[64];
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<size> tile = cg::tiled_partition<size>(block);
  int value = in[block.thread_rank()];
  for (unsigned k = tile.size() / 2; k > 0; k /= 2) value += tile.shfl_down(value, k);
  if (tile.thread_rank() == 0) s[tile.meta_group_rank()] = value;
  tile.sync();
  // Only its own tile's: no barrier of the block.
  out[block.thread_rank()] = s[tile.meta_group_rank()];
}
template <unsigned size>
void expect_tiles() {
  const std::vector<int> in = counting(64);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(64);
    ASSERT_RUNS(launch({1, 64}, reduced_by_tiles<size>, out, device_in));
    const std::vector<int> values = out.values();
    for (int i = 0; i < 64; ++i) {
      const int first = i / static_cast<int>(size) * static_cast<int>(size);
      ASSERT_EQ(values[i], static_cast<int>(size * first + size * (size - 1) / 2));
    }
  });
}
TEST(Correct, Tiles) {
  expect_tiles<4>();
  expect_tiles<8>();
  expect_tiles<16>();
  expect_tiles<32>();
}

__global__ void tiles_of_different_speed(int* out) {
  __shared__ int s[32];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const unsigned lane = tile.thread_rank();
  volatile int* slow = out;
  if (threadIdx.x < 16)
    for (int i = 0; i < 5000; ++i) slow[threadIdx.x] = i;
  else
    for (int i = 0; i < 10; ++i) {
      s[threadIdx.x] = i;
      tile.sync();
      out[threadIdx.x] += s[16 + (lane + 1) % 16];
      tile.sync();
    }
}
TEST(Correct, TilesOfDifferentSpeed) {
  everywhere([&] {
    const DeviceArray<int> out(32);
    ASSERT_RUNS(launch({1, 32}, tiles_of_different_speed, out));
    EXPECT_EQ(out.values()[0], 4999);
    EXPECT_EQ(out.values()[31], 45);
  });
}

__global__ void shared_by_a_cluster(int* bins, const int* keys, int n) {
  __shared__ int part[16];
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 16) part[threadIdx.x] = 0;
  cluster.sync();
  const unsigned threads = cluster.num_threads();
  const unsigned first = blockIdx.x / cluster.num_blocks() * threads + cluster.thread_rank();
  for (unsigned i = first; i < static_cast<unsigned>(n);
       i += gridDim.x / cluster.num_blocks() * threads) {
    const unsigned key = static_cast<unsigned>(keys[i]);
    atomicAdd(cluster.map_shared_rank(&part[key % 16], key / 16), 1);
  }
  cluster.sync();
  if (threadIdx.x < 16)
    atomicAdd(&bins[cluster.block_rank() * 16 + threadIdx.x], part[threadIdx.x]);
}
TEST(Correct, ClusterHistogram) {
  for (const unsigned cluster : {2u, 4u, 8u}) {
    const int count = static_cast<int>(16 * cluster);
    std::vector<int> keys(2000), expected(count);
    for (int i = 0; i < 2000; ++i) ++expected[keys[i] = i * 7 % count];
    everywhere([&] {
      const DeviceArray<int> device_keys(keys), bins(count);
      ASSERT_RUNS(launch_clusters(cluster, {3 * cluster, 64}, shared_by_a_cluster, bins,
                                  device_keys, 2000));
      EXPECT_EQ(bins.values(), expected);
    });
  }
}

__global__ void round_the_ring(int* out) {
  int* s = static_cast<int*>(dynamic_shared());
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  s[threadIdx.x] = static_cast<int>(blockIdx.x);
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) {
    cluster.sync();
    const int value = s[threadIdx.x];
    cluster.sync();
    cluster.map_shared_rank(s, next)[threadIdx.x] = value;
  }
  cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}
TEST(Correct, RingExchange) {
  everywhere([&] {
    const DeviceArray<int> out(8 * 40);
    ASSERT_RUNS(launch_clusters(4, {8, 40, 160}, round_the_ring, out));
    const std::vector<int> values = out.values();
    for (int i = 0; i < 8 * 40; ++i) ASSERT_EQ(values[i], i / 40);
  });
}

// ---- asynchronous copies

constexpr int kTile = 64;
// Turns tiles round; while one is turned the next is under way.
__global__ void tiles_ahead(int4* out, const int4* in, int tiles) {
  __shared__ int4 s[2][kTile];
  const int t = static_cast<int>(threadIdx.x), first = static_cast<int>(blockIdx.x) * tiles;
  __pipeline_memcpy_async(&s[0][t], &in[first * kTile + t], 16);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles)
      __pipeline_memcpy_async(&s[(i + 1) % 2][t], &in[(first + i + 1) * kTile + t], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[(first + i) * kTile + t] = s[i % 2][kTile - 1 - t];
    __syncthreads();
  }
}
TEST(Correct, TilesAhead) {
  const std::vector<int> in = counting(4 * kTile * 15);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(in.size());
    ASSERT_RUNS(launch({3, kTile}, tiles_ahead, reinterpret_cast<int4*>(out.data()),
                       reinterpret_cast<const int4*>(device_in.data()), 5));
    const std::vector<int> values = out.values();
    for (int i = 0; i < 15 * kTile; ++i)
      for (int k = 0; k < 4; ++k)
        ASSERT_EQ(values[4 * i + k], 4 * (i / kTile * kTile + kTile - 1 - i % kTile) + k);
  });
}

// More copies under way than a log has room for, of which some arrive at each wait.
__global__ void deep_pipeline(int* out, const int* in, int count, int ahead) {
  int* s = static_cast<int*>(dynamic_shared());
  const int t = static_cast<int>(threadIdx.x), n = static_cast<int>(blockDim.x);
  for (int i = 0; i < count; ++i) {
    __pipeline_memcpy_async(&s[i * n + t], &in[i * n + t], 4);
    if (i % 2 == 1) __pipeline_commit();
  }
  int sum = 0;
  for (int left = ahead; left >= 0; --left) {
    __pipeline_wait_prior(left);
    const int first = (count / 2 - left - 1) * 2;
    sum += s[first * n + t] - s[(first + 1) * n + t];
    __syncwarp();
    sum += s[first * n + (t ^ 1)];
  }
  out[t] = sum;
}
TEST(Correct, DeepPipeline) {
  const std::vector<int> in = counting(1500 * 8);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(8);
    ASSERT_RUNS(launch({2, 8, 1500 * 8 * 4}, deep_pipeline, out, device_in, 1500, 7));
    const std::vector<int> values = out.values();
    for (int t = 0; t < 8; ++t) {
      int expected = 0;
      for (int i = 1484; i < 1500; i += 2) expected += i * 8 + (t ^ 1) - 8;
      ASSERT_EQ(values[t], expected);
    }
  });
}

// The rest of a row that is no multiple of four: zeros, and nothing beyond it is read.
__global__ void zeros_at_the_end(int* out, const int* in, int n) {
  __shared__ int4 s[40];
  const int t = static_cast<int>(threadIdx.x), there = max(0, min(4, n - 4 * t));
  // What is not read need not be anywhere.
  const int* from = there == 0 ? reinterpret_cast<const int*>(~std::uintptr_t{0}) : in + 4 * t;
  __pipeline_memcpy_async(&s[t], from, 16, 16 - 4 * there);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const int4 v = s[39 - t];
  out[4 * t] = v.x;
  out[4 * t + 1] = v.y;
  out[4 * t + 2] = v.z;
  out[4 * t + 3] = v.w;
}
TEST(Correct, ZerosAtTheEnd) {
  for (const int n : {1, 2, 77, 100, 160}) {
    std::vector<int> in = counting(n);
    everywhere([&] {
      const DeviceArray<int> device_in(in), out(160);
      ASSERT_RUNS(launch({1, 40}, zeros_at_the_end, out, device_in, n));
      const std::vector<int> values = out.values();
      for (int i = 0; i < 160; ++i) {
        const int from = (39 - i / 4) * 4 + i % 4;
        ASSERT_EQ(values[i], from < n ? from : 0) << n << " values, at " << i;
      }
    });
  }
}

// Single bytes too.
__global__ void zeros_in_a_word(unsigned* out, const unsigned* in) {
  __shared__ unsigned s[5];
  __pipeline_memcpy_async(&s[threadIdx.x], in, 4, threadIdx.x);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = s[threadIdx.x];
}
TEST(Correct, ZerosInAWord) {
  everywhere([&] {
    const DeviceArray<unsigned> in(std::vector<unsigned>{0x44332211}), out(5);
    ASSERT_RUNS(launch({1, 5}, zeros_in_a_word, out, in));
    EXPECT_EQ(out.values(), (std::vector<unsigned>{0x44332211, 0x332211, 0x2211, 0x11, 0}));
  });
}

// What nobody waits for and nobody reads does no harm, to this block or the next.
__global__ void copies_left_behind(int* out, const int* in) {
  __shared__ int s[64];
  if (blockIdx.x % 2 == 0) {
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    if (threadIdx.x % 2 == 0) __pipeline_commit();
  } else {
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
  }
}
TEST(Correct, CopiesLeftBehind) {
  const std::vector<int> in = counting(64);
  everywhere([&] {
    const DeviceArray<int> device_in(in), out(64);
    ASSERT_RUNS(launch({6, 64}, copies_left_behind, out, device_in));
    std::vector<int> expected(in.rbegin(), in.rend());
    EXPECT_EQ(out.values(), expected);
  });
}

// ---- the rest

__constant__ int factors[4] = {1, 2, 3, 4};
__device__ int calls;

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void variables_and_calls(int* out) {
  out[threadIdx.x] = factors[threadIdx.x % 4] * fibonacci(static_cast<int>(threadIdx.x % 8));
  atomicAdd(&calls, 1);
}
TEST(Correct, VariablesAndCalls) {
  everywhere([&] {
    calls = 0;
    const int doubled[] = {2, 4, 6, 8};
    ASSERT_EQ(cudaMemcpyToSymbol(factors, doubled, sizeof(doubled)), cudaSuccess);
    const DeviceArray<int> out(40);
    ASSERT_RUNS(launch({1, 40}, variables_and_calls, out));
    EXPECT_EQ(out.values()[39], 8 * 13);
    EXPECT_EQ(calls, 40);
  });
}

// Much work on nothing new is not a thread that spins.
__global__ void long_computation(unsigned* out, const unsigned* in, int steps) {
  unsigned value = threadIdx.x, walk = 0;
  for (int i = 0; i < steps; ++i) value = value * 1664525u + 1013904223u;
  for (int i = 0; i < steps; ++i) walk = in[walk];
  out[threadIdx.x] = value + walk;
}
TEST(Correct, LongComputation) {
  constexpr int kSteps = 2'000'000;
  unsigned expected = 0;
  for (int i = 0; i < kSteps; ++i) expected = expected * 1664525u + 1013904223u;
  const Settings settings({.check = true});
  const DeviceArray<unsigned> in(std::vector<unsigned>{1, 2, 0}), out(2);
  ASSERT_RUNS(launch({1, 2}, long_computation, out, in, kSteps));
  EXPECT_EQ(out.values()[0], expected + kSteps % 3);
}

}  // namespace
}  // namespace emulator
