// SPDX-License-Identifier: MIT
//
// Kernels with nothing wrong: results are right, no fault is found, and figures are the same,
// whatever the order of threads and the number of workers.
#include <algorithm>

#include "correct.hpp"

namespace emulator {
namespace {

// ---- reductions

int sum_from(int first, int end) { return (end - first) * (first + end - 1) / 2; }

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
  const DeviceArray<int> in(counting(3000));
  const auto sum_of_block = [](int b) { return sum_from(256 * b, std::min(256 * b + 256, 3000)); };
  expect_everywhere(list_of(12, sum_of_block),
                    [&](int* out) { return launch({12, 256}, tree_reduction, out, in, 3000); });
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
  const DeviceArray<int> in(counting(1024));
  const auto sum_of_block = [](int b) { return sum_from(128 * b, 128 * b + 128); };
  expect_everywhere(list_of(8, sum_of_block), [&](int* out) {
    return launch({8, 128, 512}, interleaved_reduction, out, in);
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
  const DeviceArray<int> in(counting(5001));
  expect_everywhere({sum_from(0, 5001)},
                    [&](int* out) { return launch({5, 192}, shuffle_reduction, out, in, 5001); });
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
  const DeviceArray<int> in(counting(128));
  const auto sum_of_quarter = [](int w) { return sum_from(32 * w, 32 * w + 32); };
  expect_everywhere(list_of(4, sum_of_quarter), [&](int* out) {
    return launch({1, 128}, warp_synchronous_reduction, out, in);
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
    __threadfence();
    int total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += sums[i];
    *out = total;
  }
}
TEST(Correct, LastBlockReduction) {
  const DeviceArray<int> in(counting(640));
  expect_everywhere({sum_from(0, 640)}, [&](int* out) {
    const DeviceArray<int> sums(10);
    const DeviceArray<unsigned> done(1);
    return launch({10, 64}, last_block_reduction, sums, done, out, in);
  });
}

// ---- shapes

__global__ void early_return(int* out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(n)) return;
  out[i] = static_cast<int>(i);
}
TEST(Correct, EarlyReturnWithoutBarrier) {
  expect_everywhere(counting(1000), [](int* out) {
    return launch({blocks_for(1000, 96), 96}, early_return, out, 1000);
  });
}

__global__ void reversed(int* out) {
  int* s = static_cast<int*>(dynamic_shared());
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
TEST(Correct, BlocksOfOddSizes) {
  for (const int threads : {1, 7, 31, 33, 45, 100, 1000, 1023, 1024})
    expect_everywhere(list_of(threads, [=](int i) { return threads - 1 - i; }), [=](int* out) {
      return launch({1, static_cast<unsigned>(threads), threads * 4}, reversed, out);
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
  const auto blocks_of = [](int i) { return i / 105 % 2 + 10 * (i / 210 % 3); };
  expect_everywhere(list_of(2 * 3 * 2 * 105, blocks_of), [](int* out) {
    return launch({{2, 3, 2}, {7, 3, 5}}, blocks_in_three_dimensions, out);
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
  const DeviceArray<int> in(counting(32));
  expect_everywhere(
      {1}, [&](int* out) { return launch({1, 32}, several_lanes_of_one_store, out, in, 5); });
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
  const DeviceArray<int> in(counting(64 * 5));
  const auto sum_of_column = [](int t) { return 64 * (0 + 1 + 2 + 3 + 4) + 5 * (63 - t); };
  expect_everywhere(list_of(64, sum_of_column),
                    [&](int* out) { return launch({1, 64}, double_buffered, out, in, 5); });
}

__global__ void bytes_of_one_word(unsigned char* out) {
  __shared__ unsigned char s[128];
  s[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
TEST(Correct, BytesOfOneWord) {
  using Byte = unsigned char;
  expect_everywhere(list_of(128, [](int i) { return Byte(i ^ 1); }),
                    [](Byte* out) { return launch({1, 128}, bytes_of_one_word, out); });
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
  expect_everywhere<float>({1, 3, 0, 6, 3},
                           [](float* out) { return launch({1, 1}, vectors_in_braces, out); });
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
  expect_everywhere(std::vector(32, 6.5f), [](float* out) {
    return launch({1, 32}, of_the_source::least_and_most, out, 3, 0.5f);
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
  const auto in = list_of(64, [](int i) { return make_float4(4.0f * i, 1, 2, 3); });
  everywhere([&] {
    const DeviceArray<float4> device_in(in), out(64);
    ASSERT_RUNS(launch({1, 64}, vectors_in_shared_memory, out, device_in));
    const std::vector<float4> values = out.values();
    for (int i = 0; i < 64; ++i) {
      const auto [x, y, z, w] = values[i];
      ASSERT_EQ(std::tuple(x, y, z, w), std::tuple(3.0f, 2.0f, 1.0f, 4.0f * i));
    }
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
    expect_everywhere(Ints(45, answer),
                      [=](int* out) { return launch({1, 45}, votes_of_a_block, out, n); });
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
  const Ints keys = list_of(128, [](int i) { return i * i % 8; });
  const DeviceArray<int> device_keys(keys);
  const auto count_of = [&](int key) { return static_cast<int>(std::ranges::count(keys, key)); };
  expect_everywhere(list_of(8, count_of), [&](int* bins) {
    return launch({1, 128}, matched_histogram, bins, device_keys);
  });
}

__global__ void locked(int* lock, volatile int* total) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *total = *total + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
TEST(Correct, SpinLock) {
  expect_results_everywhere({160}, [](int* total) {
    const DeviceArray<int> lock(1);
    return launch({4, 40}, locked, lock, total);
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
  const int doubled[] = {2, 4, 6, 8}, numbers[] = {0, 1, 1, 2, 3, 5, 8, 13};
  ASSERT_EQ(cudaMemcpyToSymbol(factors, doubled, sizeof(doubled)), cudaSuccess);
  const auto product = [&](int i) { return doubled[i % 4] * numbers[i % 8]; };
  expect_everywhere(list_of(40, product), [](int* out) {
    calls = 0;
    const cudaError_t launched = launch({1, 40}, variables_and_calls, out);
    EXPECT_EQ(calls, 40);
    return launched;
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
