// SPDX-License-Identifier: MIT
//
// Kernels with flags, groups and asynchronous copies, and nothing wrong: results are right, no
// fault is found, and figures are the same, whatever the order of threads and the number of
// workers.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>

#include "correct.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

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
  expect_results_everywhere(list_of(40, [](int i) { return i + 1; }), [](int* data) {
    const DeviceArray<int> ready(40);
    return launch({40, 32}, produced_by_the_block_before, data, ready);
  });
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
  expect_results_everywhere(list_of(32, [](int i) { return 31 - i; }), [](int* out) {
    const DeviceArray<int> data(32), ready(1);
    return launch({1, 64}, produced_by_another_warp, data, ready, out);
  });
}

__global__ void passed_on_by_the_next_warp(volatile int* turn, int* out, int rounds) {
  const int warps = static_cast<int>(blockDim.x / 32), warp = static_cast<int>(threadIdx.x / 32);
  if (threadIdx.x % 32 != 0) return;
  for (int i = 0; i < rounds; ++i) {
    while (*turn % warps != warp) {
    }
    __threadfence();
    *out += 1;
    __threadfence();
    *turn = *turn + 1;
  }
}
TEST(Correct, TurnsOfWarps) {
  expect_results_everywhere({20}, [](int* out) {
    const DeviceArray<int> turn(1);
    return launch({1, 128}, passed_on_by_the_next_warp, turn, out, 5);
  });
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
  const Ints in = counting(64 * 30);
  const DeviceArray<int> device_in(in);
  Ints expected(in.size());
  std::partial_sum(in.begin(), in.end(), expected.begin());
  expect_results_everywhere(expected, [&](int* out) {
    const DeviceArray<int> state(30);
    const DeviceArray<unsigned> next(1);
    return launch({30, 64}, look_back_scan, out, device_in, next, state);
  });
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
  expect_results_everywhere(
      Ints(16, 1), [](int* out) { return launch_clusters(4, {16, 32}, flag_after_flag, out); });
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
template <int size>
void expect_tiles() {
  const DeviceArray<int> in(counting(64));
  const auto sum_of_tile = [](int i) { return size * (i / size * size) + size * (size - 1) / 2; };
  expect_everywhere(list_of(64, sum_of_tile),
                    [&](int* out) { return launch({1, 64}, reduced_by_tiles<size>, out, in); });
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
  expect_everywhere(list_of(32, [](int i) { return i < 16 ? 4999 : 45; }),
                    [](int* out) { return launch({1, 32}, tiles_of_different_speed, out); });
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
  for (const int cluster : {2, 4, 8}) {
    const Ints keys = list_of(2000, [=](int i) { return i * 7 % (16 * cluster); });
    const DeviceArray<int> device_keys(keys);
    const auto count_of = [&](int key) { return static_cast<int>(std::ranges::count(keys, key)); };
    expect_everywhere(list_of(16 * cluster, count_of), [&](int* bins) {
      const auto blocks = static_cast<unsigned>(cluster);
      return launch_clusters(blocks, {3 * blocks, 64}, shared_by_a_cluster, bins, device_keys,
                             2000);
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
  expect_everywhere(list_of(8 * 40, [](int i) { return i / 40; }),
                    [](int* out) { return launch_clusters(4, {8, 40, 160}, round_the_ring, out); });
}

// Each block adds what the one before it left, round after round.
__global__ void sums_of_neighbours(int* sums, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned before = (blockIdx.x + gridDim.x - 1) % gridDim.x;
  for (int i = 0; i < rounds; ++i) {
    const int theirs = sums[before * blockDim.x + threadIdx.x];
    cg::sync(grid);
    sums[grid.thread_rank()] += theirs;
    grid.sync();
  }
}
TEST(Correct, GridSync) {
  everywhere([] {
    const DeviceArray<int> sums(list_of(20 * 40, [](int i) { return i == 0 ? 1 : 0; }));
    int *at = sums, rounds = 4;
    void* arguments[] = {&at, &rounds};
    ASSERT_RUNS(cudaLaunchCooperativeKernel(sums_of_neighbours, 20, 40, arguments));
    Ints expected(20 * 40);
    for (const int i : {0, 1, 2, 3, 4}) expected[40 * i] = Ints{1, 4, 6, 4, 1}[i];
    EXPECT_EQ(sums.values(), expected);
  });
}

// The last block starts, and each waits for the next one's word.
__global__ void pass_on(unsigned* words) {
  if (threadIdx.x != 0) return;
  const unsigned before = (blockIdx.x + 1) % gridDim.x;
  unsigned seen = before + 1;
  if (blockIdx.x + 1 < gridDim.x) do {
      wait_uncounted(words + before, before + 1);
      strong_load(words + before, &seen, sizeof(seen), Strength::relaxed);
    } while (seen != before + 1);
  atomicExch(words + blockIdx.x, blockIdx.x + 1);
}
TEST(Cooperative, BlocksWaitForLaterOnes) {
  expect_everywhere(list_of(20, [](int i) { return i + 1u; }),
                    [](unsigned* words) { return launch_cooperative({20, 32}, pass_on, words); });
}
TEST(Cooperative, AllBlocksMustFitTheGpu) {
  const DeviceArray<unsigned> words(1);
  EXPECT_EQ(launch_cooperative({1 << 16, 32}, pass_on, words), cudaErrorCooperativeLaunchTooLarge);
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
  constexpr int kCount = 4 * kTile * 15;
  const DeviceArray<int> in(counting(kCount));
  const auto turned_in_its_tile = [](int i) {
    const int vector = i / 4, last = kTile - 1;
    return 4 * (vector / kTile * kTile + last - vector % kTile) + i % 4;
  };
  expect_everywhere(list_of(kCount, turned_in_its_tile), [&](int* out) {
    return launch({3, kTile}, tiles_ahead, reinterpret_cast<int4*>(out),
                  reinterpret_cast<const int4*>(in.data()), 5);
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
  const DeviceArray<int> in(counting(1500 * 8));
  const auto sum_of_the_last = [](int t) {
    int sum = 0;
    for (int i = 1484; i < 1500; i += 2) sum += i * 8 + (t ^ 1) - 8;
    return sum;
  };
  expect_everywhere(list_of(8, sum_of_the_last), [&](int* out) {
    return launch({2, 8, 1500 * 8 * 4}, deep_pipeline, out, in, 1500, 7);
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
    SCOPED_TRACE(n);
    const DeviceArray<int> in(counting(n));
    const auto vectors_reversed = [=](int i) {
      const int from = (39 - i / 4) * 4 + i % 4;
      return from < n ? from : 0;
    };
    expect_everywhere(list_of(160, vectors_reversed),
                      [&](int* out) { return launch({1, 40}, zeros_at_the_end, out, in, n); });
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
  const DeviceArray<unsigned> in(std::vector<unsigned>{0x44332211});
  expect_everywhere<unsigned>({0x44332211, 0x332211, 0x2211, 0x11, 0}, [&](unsigned* out) {
    return launch({1, 5}, zeros_in_a_word, out, in);
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
  const DeviceArray<int> in(counting(64));
  expect_everywhere(list_of(64, [](int i) { return 63 - i; }),
                    [&](int* out) { return launch({6, 64}, copies_left_behind, out, in); });
}

}  // namespace
}  // namespace emulator
