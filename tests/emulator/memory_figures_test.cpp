// SPDX-License-Identifier: MIT
//
// Figures of each kind of memory: banks, sectors, atomics, other blocks' memory; and the lines that
// they are told for.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>

#include "figures.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

// ---- shared memory: bank conflicts

template <class T, int rows, int columns, int pad>
__global__ void rows_in_columns_out(T* out) {
  __shared__ T tile[rows][columns + pad];
  for (unsigned y = threadIdx.y; y < rows; y += blockDim.y) tile[y][threadIdx.x] = T(y);  // store
  __syncthreads();
  // A warp reads down a column.
  const unsigned i = threadIdx.y * blockDim.x + threadIdx.x;
  out[i] = tile[i % rows][i / rows];  // load
}
template <class T, int rows, int columns, int pad>
void expect_tile(unsigned store, unsigned load) {
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns) + " + " + std::to_string(pad) +
               " of " + std::to_string(sizeof(T)));
  const DeviceArray<T> out(rows * columns);
  const Report report =
      counted_launch({1, {columns, rows}}, rows_in_columns_out<T, rows, columns, pad>, out);
  const Traffic stores = report.total(kShared, kStore), loads = report.total(kShared, kLoad);
  EXPECT_EQ(stores.requests, rows * columns / 32u);
  EXPECT_EQ(stores.transactions, store * stores.requests);
  EXPECT_EQ(loads.requests, rows * columns / 32u);
  EXPECT_EQ(loads.transactions, load * loads.requests);
  EXPECT_EQ(loads.worst, load);
}
TEST(Banks, ColumnsOfATile) {
  expect_tile<float, 32, 32, 0>(1, 32);
  expect_tile<float, 32, 32, 1>(1, 1);
  expect_tile<float, 32, 32, 2>(1, 2);
  // Rectangular: a warp stores two rows of 16.
  expect_tile<float, 32, 16, 0>(1, 16);
  // 8-byte words: half a warp at a time, 16 banks' worth each.
  expect_tile<double, 32, 32, 0>(2, 32);
  expect_tile<double, 32, 32, 1>(2, 2);
}

__global__ void dynamic_columns(float* out, int pitch) {
  float* tile = static_cast<float*>(dynamic_shared());
  tile[threadIdx.y * pitch + threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x * pitch + threadIdx.y];
}
TEST(Banks, DynamicTile) {
  const DeviceArray<float> out(1024);
  for (const int pitch : {32, 33}) {
    const Report report =
        counted_launch({1, {32, 32}, std::size_t(32 * pitch) * 4}, dynamic_columns, out, pitch);
    EXPECT_EQ(report.total(kShared, kLoad).transactions, pitch == 32 ? 1024u : 32u);
    EXPECT_EQ(report.total(kShared, kStore).transactions, 32u);
    EXPECT_EQ(report.total(kShared, kLoad).ideal, 32u);
  }
}

template <class T>
__global__ void strided(T* out, int stride, int mask) {
  __shared__ T s[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) s[i] = T();
  __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x & mask) * stride];
}
template <class T>
unsigned wavefronts(int stride, int mask = 31) {
  const DeviceArray<T> out(32);
  return static_cast<unsigned>(
      counted_launch({1, 32}, strided<T>, out, stride, mask).total(kShared, kLoad).transactions);
}
TEST(Banks, Strides) {
  EXPECT_EQ(wavefronts<float>(0), 1u);  // one word for all
  EXPECT_EQ(wavefronts<float>(1), 1u);
  EXPECT_EQ(wavefronts<float>(2), 2u);
  EXPECT_EQ(wavefronts<float>(3), 1u);
  EXPECT_EQ(wavefronts<float>(4), 4u);
  EXPECT_EQ(wavefronts<float>(16), 16u);
  EXPECT_EQ(wavefronts<float>(31), 1u);
  EXPECT_EQ(wavefronts<float>(32), 32u);
  EXPECT_EQ(wavefronts<float>(32, 7), 8u);  // the same eight words four times
  EXPECT_EQ(wavefronts<double>(1), 2u);
  EXPECT_EQ(wavefronts<double>(16), 32u);
  EXPECT_EQ(wavefronts<float4>(1), 4u);
  EXPECT_EQ(wavefronts<float4>(2), 8u);
  EXPECT_EQ(wavefronts<float4>(8), 32u);
  EXPECT_EQ(wavefronts<unsigned char>(1), 1u);
  EXPECT_EQ(wavefronts<unsigned short>(1), 1u);
  EXPECT_EQ(wavefronts<unsigned char>(4), 1u);
  EXPECT_EQ(wavefronts<unsigned char>(8), 2u);
}

__global__ void one_word_for_all(float* out, double* wide, float4* wider) {
  __shared__ float s[32];
  __shared__ double d[32];
  __shared__ float4 v[32];
  const unsigned t = threadIdx.x;
  s[t] = 1;
  d[t] = 1;
  v[t] = make_float4(1, 1, 1, 1);
  __syncthreads();
  out[t] = s[7];
  wide[t] = d[7];
  wider[t] = v[7];
}
TEST(Banks, Broadcast) {
  const DeviceArray<float> out(32);
  const DeviceArray<double> wide(32);
  const DeviceArray<float4> wider(32);
  const Report report = counted_launch({1, 32}, one_word_for_all, out, wide, wider);
  std::map<int, std::uint64_t> loads;
  for (const Line& line : report.lines)
    if (line.space == kShared && line.operation == kLoad)
      loads[line.bytes] += line.traffic.transactions;
  // Lanes in pairs at one address are served together.
  EXPECT_EQ(loads, (std::map<int, std::uint64_t>{{4, 1}, {8, 1}, {16, 2}}));
}

// ---- global memory: sectors

template <class T>
__global__ void copied(T* out, const T* in, int stride, int offset) {
  out[threadIdx.x] = in[threadIdx.x * stride + offset];
}
template <class T>
unsigned sectors(int stride, int offset) {
  const DeviceArray<T> in(2048), out(32);
  return static_cast<unsigned>(counted_launch({1, 32}, copied<T>, out, in, stride, offset)
                                   .total(kGlobal, kLoad)
                                   .transactions);
}
TEST(Sectors, StridesAndOffsets) {
  EXPECT_EQ(sectors<float>(1, 0), 4u);
  EXPECT_EQ(sectors<float>(1, 1), 5u);
  EXPECT_EQ(sectors<float>(1, 8), 4u);
  EXPECT_EQ(sectors<float>(2, 0), 8u);
  EXPECT_EQ(sectors<float>(8, 0), 32u);
  EXPECT_EQ(sectors<float>(32, 0), 32u);
  EXPECT_EQ(sectors<float>(0, 3), 1u);
  EXPECT_EQ(sectors<double>(1, 0), 8u);
  EXPECT_EQ(sectors<float2>(1, 0), 8u);
  EXPECT_EQ(sectors<float4>(1, 0), 16u);
  EXPECT_EQ(sectors<float4>(1, 1), 17u);
  EXPECT_EQ(sectors<unsigned char>(1, 0), 1u);
  EXPECT_EQ(sectors<unsigned char>(1, 1), 2u);
  EXPECT_EQ(sectors<unsigned short>(1, 0), 2u);
}

struct Particle {
  float x, y, z, mass;
};
__global__ void masses_of_structures(float* out, const Particle* in) {
  out[threadIdx.x] = in[threadIdx.x].mass;
}
__global__ void two_words_of_structures(float* out, const Particle* in) {
  out[threadIdx.x] = in[threadIdx.x].x + in[threadIdx.x].mass;
}
TEST(Sectors, ArrayOfStructures) {
  const DeviceArray<Particle> in(32);
  const DeviceArray<float> out(32);
  const Traffic one = counted_launch({1, 32}, masses_of_structures, out, in).total(kGlobal, kLoad);
  EXPECT_EQ(one.transactions, 16u);
  EXPECT_EQ(one.ideal, 4u);
  const Traffic two =
      counted_launch({1, 32}, two_words_of_structures, out, in).total(kGlobal, kLoad);
  EXPECT_EQ(two.requests, 2u);
  EXPECT_EQ(two.transactions, 32u);
}

TEST(Sectors, CompulsoryBytesCountOnce) {
  const DeviceArray<float> in(2048), out(32);
  const Settings settings({});
  const Recording recording;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch({1, 32}, copied<float>, out, in, 2, 0), cudaSuccess);
  const Report report = recording.report();
  EXPECT_EQ(report.launches, 3u);
  EXPECT_EQ(report.total(kGlobal, kLoad).bytes, 3u * 128);
  EXPECT_EQ(report.total(kGlobal, kLoad).transactions, 3u * 8);
  EXPECT_EQ(report.compulsory_read, 8u * 32);
  EXPECT_EQ(report.compulsory_written, 4u * 32);
}

TEST(Sectors, RecordingsStartAtNothing) {
  const DeviceArray<float> in(2048), out(32);
  for (int i = 0; i < 2; ++i) {
    const Report report = counted_launch({1, 32}, copied<float>, out, in, 1, 0);
    EXPECT_EQ(report.launches, 1u);
    EXPECT_EQ(report.compulsory_read, 128u);
  }
}

// ---- asynchronous copies: loads from global memory, and nothing in shared memory

__global__ void copied_ahead(float4* out, const float4* in, int tiles) {
  __shared__ float4 s[2][64];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], &in[t], 16);  // first
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles)
      __pipeline_memcpy_async(&s[(i + 1) % 2][t], &in[(i + 1) * 64 + t], 16);  // next
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[i * 64 + t] = s[i % 2][63 - t];
    __syncthreads();
  }
}
TEST(Copies, AreGlobalLoads) {
  const DeviceArray<float4> in(5 * 64), out(5 * 64);
  const Report report = counted_launch({1, 64}, copied_ahead, out, in, 5);
  EXPECT_EQ(text_of(report), text_of({{kGlobal, kLoad, 16, 10, 320, 160},
                                      {kGlobal, kStore, 16, 10, 320, 160},
                                      {kShared, kLoad, 16, 10, 320, 40}}));
  EXPECT_EQ(report.compulsory_read, 5u * 64 * 16);
  EXPECT_EQ(report.barriers, 10u);
  std::map<int, std::uint64_t> loads;
  for (const Line& line : report.lines)
    if (line.space == kGlobal && line.operation == kLoad) loads[line.line] = line.traffic.requests;
  EXPECT_EQ(loads, (std::map<int, std::uint64_t>{
                       {marked_lines(__FILE__, "copied_ahead", "first").at(0), 2},
                       {marked_lines(__FILE__, "copied_ahead", "next").at(0), 8}}));
}

// Lanes stay together whatever they read, and however many copies they wait for.
template <class T>
__global__ void copied_with_zeros(T* out, const T* in, int n) {
  __shared__ T s[32];
  const int t = static_cast<int>(threadIdx.x);
  const int there = max(0, min(int(sizeof(T)), n - t * int(sizeof(T))));
  __pipeline_memcpy_async(&s[t], &in[t], sizeof(T), sizeof(T) - there);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = s[t];
}
template <class T>
std::string with_zeros(int n) {
  const DeviceArray<T> out(32);
  const DeviceArray<char> in(n);
  const Report report =
      counted_launch({1, 32}, copied_with_zeros<T>, out, reinterpret_cast<const T*>(in.data()), n);
  EXPECT_EQ(report.active_lanes(), 32);
  return text_of(report);
}
TEST(Copies, ReadNoZeros) {
  EXPECT_EQ(with_zeros<float>(128), text_of({{kGlobal, kLoad, 4, 1, 32, 4},
                                             {kGlobal, kStore, 4, 1, 32, 4},
                                             {kShared, kLoad, 4, 1, 32, 1}}));
  EXPECT_EQ(with_zeros<float>(33), text_of({{kGlobal, kLoad, 4, 1, 9, 2},
                                            {kGlobal, kStore, 4, 1, 32, 4},
                                            {kShared, kLoad, 4, 1, 32, 1}}));
  EXPECT_EQ(with_zeros<float4>(100), text_of({{kGlobal, kLoad, 16, 1, 7, 4},
                                              {kGlobal, kStore, 16, 1, 32, 16},
                                              {kShared, kLoad, 16, 1, 32, 4}}));
  EXPECT_EQ(with_zeros<double>(8), text_of({{kGlobal, kLoad, 8, 1, 1, 1},
                                            {kGlobal, kStore, 8, 1, 32, 8},
                                            {kShared, kLoad, 8, 1, 32, 2}}));
}
__global__ void copied_by_some(float* out, const float* in) {
  __shared__ float s[32];
  if (threadIdx.x < 12)
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
  else
    s[threadIdx.x] = 1;
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = s[threadIdx.x];
}
TEST(Copies, BySomeLanes) {
  const DeviceArray<float> in(32), out(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, copied_by_some, out, in)),
            text_of({{kGlobal, kLoad, 4, 1, 12, 2},
                     {kGlobal, kStore, 4, 1, 32, 4},
                     {kShared, kStore, 4, 1, 20, 1},
                     {kShared, kLoad, 4, 1, 32, 1}}));
}

// ---- atomics, clusters, barriers

__global__ void atomics(int* bins, const int* keys) { atomicAdd(&bins[keys[threadIdx.x]], 1); }
__global__ void shared_additions(int* out, const int* keys, int addend) {
  __shared__ int bins[64];
  bins[threadIdx.x] = bins[threadIdx.x + 32] = 0;
  __syncwarp();
  atomicAdd(&bins[keys[threadIdx.x]], addend);
  __syncwarp();
  out[threadIdx.x] = bins[threadIdx.x];
}
TEST(Atomics, TakeTurnsOnOneAddress) {
  const auto serialised = [](int (*key)(int)) {
    std::vector<int> keys(32);
    for (int i = 0; i < 32; ++i) keys[i] = key(i);
    const DeviceArray<int> device_keys(keys), bins(64);
    const Traffic global =
        counted_launch({1, 32}, atomics, bins, device_keys).total(kGlobal, kAtomic);
    const Traffic shared =
        counted_launch({1, 32}, shared_additions, bins, device_keys, 1).total(kShared, kAtomic);
    EXPECT_EQ(global.requests, 1u);
    EXPECT_EQ(global.lanes, 32u);
    EXPECT_EQ(global.serialised, shared.serialised);
    return std::tuple(global.serialised, global.transactions, shared.transactions);
  };
  EXPECT_EQ(serialised([](int t) { return t; }), std::tuple(1u, 4u, 1u));
  EXPECT_EQ(serialised([](int) { return 0; }), std::tuple(32u, 32u, 1u));
  EXPECT_EQ(serialised([](int t) { return t / 8; }), std::tuple(8u, 8u, 1u));
  EXPECT_EQ(serialised([](int t) { return t % 2 * 32; }), std::tuple(16u, 32u, 2u));
}

TEST(Atomics, OfOtherThanOneTakeTurnsInSharedMemory) {
  const auto wavefronts = [](int (*key)(int), int addend) {
    std::vector<int> keys(32);
    for (int i = 0; i < 32; ++i) keys[i] = key(i);
    const DeviceArray<int> device_keys(keys), bins(64);
    return counted_launch({1, 32}, shared_additions, bins, device_keys, addend)
        .total(kShared, kAtomic)
        .transactions;
  };
  EXPECT_EQ(wavefronts([](int) { return 0; }, 1), 1u);
  EXPECT_EQ(wavefronts([](int) { return 0; }, 2), 32u);
  EXPECT_EQ(wavefronts([](int t) { return t; }, 2), 1u);
  EXPECT_EQ(wavefronts([](int t) { return t / 8; }, 2), 8u);
  EXPECT_EQ(wavefronts([](int t) { return t % 2 * 32; }, 2), 32u);
}

__global__ void neighbours(int* out) {
  __shared__ int s[64];
  const cg::cluster_group cluster = cg::this_cluster();
  s[threadIdx.x] = static_cast<int>(cluster.block_rank());
  cluster.sync();
  const int* theirs = cluster.map_shared_rank(s, (cluster.block_rank() + 1) % cluster.num_blocks());
  out[blockIdx.x * 64 + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}
TEST(Clusters, DistributedAccesses) {
  const DeviceArray<int> out(8 * 64);
  const Settings settings({.check = true});
  const Recording recording;
  ASSERT_EQ(launch_clusters(4, {8, 64}, neighbours, out), cudaSuccess) << last_fault();
  const Report report = recording.report();
  EXPECT_EQ(text_of(report), text_of({{kShared, kStore, 4, 16, 512, 16},
                                      {Space::distributed, kLoad, 4, 16, 512, 64},
                                      {kGlobal, kStore, 4, 16, 512, 64}}));
  EXPECT_EQ(report.cluster_barriers, 16u);
  EXPECT_EQ(report.barriers, 0u);
}

__global__ void barriers_and_shuffles(int* out, int rounds) {
  int value = static_cast<int>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    value += __shfl_xor_sync(~0u, value, 1);
  }
  if (__any_sync(~0u, value > 0)) __syncwarp();
  out[threadIdx.x] = value;
}
TEST(Barriers, AreCountedOnceABlock) {
  const DeviceArray<int> out(96);
  const Report report = counted_launch({3, 96}, barriers_and_shuffles, out, 5);
  EXPECT_EQ(report.barriers, 3u * 5);
  EXPECT_EQ(report.warp_operations, 3u * 3 * (5 + 2));
  EXPECT_EQ(report.blocks, 3u);
  EXPECT_EQ(report.threads, 288u);
}

__constant__ float coefficients[32];
__global__ void constants(float* out) {
  out[threadIdx.x] = coefficients[threadIdx.x % 4] * coefficients[5];
}
TEST(Constants, AreNotGlobalTraffic) {
  const DeviceArray<float> out(32);
  const Report report = counted_launch({1, 32}, constants, out);
  EXPECT_EQ(report.total(Space::constant, kLoad).requests, 2u);
  EXPECT_EQ(report.total(kGlobal, kLoad).requests, 0u);
}

// ---- lines

__device__ __forceinline__ float inlined(const float* p, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += p[i];  // inlined
  return sum;
}
__device__ __attribute__((noinline)) void not_inlined(float* p, float value) {
  *p = value;  // not inlined
}
template <class T>
__global__ void attributed(T* out, const T* in, int count) {
  __shared__ T s[32];
  s[threadIdx.x] = inlined(in, count);  // shared store
  __syncthreads();
  const float2 pair = *reinterpret_cast<float2*>(&s[threadIdx.x & 30]);  // vector
  not_inlined(out + threadIdx.x,
              pair.x + __ldg(in));       // hint
  atomicAdd(out + threadIdx.x, pair.y);  // atomic
}
TEST(Lines, AreTheInnermostOfTheUsersSource) {
  const DeviceArray<float> in(32), out(32);
  const Report report = counted_launch({1, 32}, attributed<float>, out, in, 3);
  const auto only = [](const std::string& function, const std::string& mark) {
    const std::vector<int> lines = marked_lines(__FILE__, function, mark);
    EXPECT_EQ(lines.size(), 1u) << mark;
    return lines.empty() ? 0 : lines.front();
  };
  using Key = std::tuple<int, Space, Operation, int>;
  std::vector<Key> found, expected = {{only("inlined", "inlined"), kGlobal, kLoad, 4},
                                      {only("not_inlined", "not inlined"), kGlobal, kStore, 4},
                                      {only("attributed", "shared store"), kShared, kStore, 4},
                                      {only("attributed", "vector"), kShared, kLoad, 8},
                                      {only("attributed", "hint"), kGlobal, kLoad, 4},
                                      {only("attributed", "atomic"), kGlobal, kAtomic, 4}};
  for (const Line& line : report.lines) {
    EXPECT_EQ(line.kernel, "attributed<float>");
    EXPECT_EQ(line.file, "memory_figures_test.cpp");
    found.emplace_back(line.line, line.space, line.operation, line.bytes);
  }
  std::ranges::sort(found);
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
}

TEST(Lines, ShowTheWorstRequest) {
  const DeviceArray<float> out(1024);
  const Report report = counted_launch({1, {32, 32}}, rows_in_columns_out<float, 32, 32, 0>, out);
  const auto loads = std::ranges::find_if(report.lines, [](const Line& line) {
    return line.space == kShared && line.operation == kLoad;
  });
  ASSERT_NE(loads, report.lines.end());
  Addresses column;
  for (int i = 0; i < 32; ++i) column[i] = i * 128;
  EXPECT_EQ(loads->worst, column);
}

}  // namespace
}  // namespace emulator
