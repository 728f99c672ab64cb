// SPDX-License-Identifier: MIT
//
// Figures of kernels for which they can be told with pencil and paper. They are the source's, and
// must not depend on compiler or optimisation level.
#include <cooperative_groups.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "support.hpp"

namespace cg = cooperative_groups;

namespace emulator {
namespace {

constexpr Space kGlobal = Space::global, kShared = Space::shared;
constexpr Operation kLoad = Operation::load, kStore = Operation::store, kAtomic = Operation::atomic;

// All requests of a kind.
struct Figure {
  Space space;
  Operation operation;
  int bytes;
  std::uint64_t requests, lanes, transactions;
};
using Figures = std::vector<Figure>;

// A text a line, so that failures show all of both sides.
std::string text_of(const Figures& figures) {
  std::map<std::tuple<Space, Operation, int>, Traffic> sums;
  for (const Figure& f : figures)
    sums[{f.space, f.operation, f.bytes}] +=
        {.requests = f.requests, .lanes = f.lanes, .transactions = f.transactions};
  std::string text;
  for (const auto& [kind, t] : sums) {
    const auto& [space, operation, bytes] = kind;
    text += std::string(name(space)) + " " + std::string(name(operation)) + " of " +
            std::to_string(bytes) + ": " + std::to_string(t.requests) + " requests, " +
            std::to_string(t.lanes) + " lanes, " + std::to_string(t.transactions) +
            " transactions\n";
  }
  return text;
}
std::string text_of(const Report& report) {
  Figures figures;
  for (const Line& line : report.lines)
    figures.push_back({line.space, line.operation, line.bytes, line.traffic.requests,
                       line.traffic.lanes, line.traffic.transactions});
  return text_of(figures);
}

template <class... P, class... A>
Report counted_launch(const Shape& shape, void (*kernel)(P...), A&&... arguments) {
  const Settings settings({.check = true});
  const Recording recording;
  EXPECT_EQ(launch(shape, kernel, std::forward<A>(arguments)...), cudaSuccess) << last_fault();
  return recording.report();
}

std::vector<int> random_numbers(std::size_t count, int bound) {
  std::mt19937 random(1);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random() % static_cast<unsigned>(bound));
  return values;
}

// ---- what compilers like to change. 32 threads unless it says otherwise.

struct ThreeFloats {
  float a, b, c;
};
struct EightFloats {
  float v[8];
};

__global__ void read_modify_write(float* g) {  // 256 threads
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  s[t] += 2.f;
  __syncthreads();
  s[(t + 32) % 256] *= 3.f;
  __syncthreads();
  g[t] = s[t];
}
TEST(Figures, ReadModifyWrite) {
  const DeviceArray<float> g(256);
  EXPECT_EQ(text_of(counted_launch({1, 256}, read_modify_write, g)),
            text_of({{kGlobal, kLoad, 4, 8, 256, 32},
                     {kGlobal, kStore, 4, 8, 256, 32},
                     {kShared, kLoad, 4, 24, 768, 24},
                     {kShared, kStore, 4, 24, 768, 24}}));
}

__global__ void loop_as_long_as_the_lane(float* g) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  float a = 0;
  for (int i = 0; i < t; ++i) a += s[i];
  g[t] = a;
}
TEST(Figures, LoopAsLongAsTheLane) {
  const DeviceArray<float> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, loop_as_long_as_the_lane, g)),
            text_of({{kGlobal, kLoad, 4, 1, 32, 4},
                     {kShared, kStore, 4, 1, 32, 1},
                     {kShared, kLoad, 4, 31, 31 * 16, 31},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void condition_in_a_loop(float* g) {
  __shared__ float s[1024];
  const int t = threadIdx.x;
  for (int i = 0; i < 32; ++i) s[i * 32 + t] = i;
  __syncthreads();
  float a = 0;
  for (int i = 0; i < 32; ++i) {
    if ((i + t) & 1) a += s[i * 32 + t];
    a = a * 1.5f;
  }
  g[t] = a;
}
TEST(Figures, ConditionInALoop) {
  const DeviceArray<float> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, condition_in_a_loop, g)),
            text_of({{kShared, kStore, 4, 32, 1024, 32},
                     {kShared, kLoad, 4, 32, 512, 32},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void if_and_else(float* g) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  float a;
  if (t < 16)
    a = s[t] * 2.f;
  else
    a = g[t + 32] + 1.f;
  g[t] = a;
}
TEST(Figures, IfAndElse) {
  const DeviceArray<float> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, if_and_else, g)),
            text_of({{kGlobal, kLoad, 4, 2, 48, 6},
                     {kShared, kStore, 4, 1, 32, 1},
                     {kShared, kLoad, 4, 1, 16, 1},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void together_after_divergence(float* g) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  float a = 1;
  if (t < 16)
    a = s[t + 1];
  else if (t < 20)
    a = 5.f;
  float b = s[t];
  if (t < 16) b += a;
  g[t] = a + b;
}
TEST(Figures, TogetherAfterDivergence) {
  const DeviceArray<float> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, together_after_divergence, g)),
            text_of({{kGlobal, kLoad, 4, 1, 32, 4},
                     {kShared, kStore, 4, 1, 32, 1},
                     {kShared, kLoad, 4, 2, 48, 2},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void continue_and_break(float* g, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    if (t + i >= n) continue;
    sum += s[t + i];
    if (sum > 1e9f) break;
    sum += s[(t * 2) % 32];
  }
  g[t] = sum;
}
TEST(Figures, ContinueAndBreak) {
  const DeviceArray<float> g(64);
  // Lanes below 20 - i in turn i, twice: 2 * (20 + 19 + ... + 13).
  EXPECT_EQ(text_of(counted_launch({1, 32}, continue_and_break, g, 20)),
            text_of({{kGlobal, kLoad, 4, 1, 32, 4},
                     {kShared, kStore, 4, 1, 32, 1},
                     {kShared, kLoad, 4, 16, 264, 16},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void vectors(float4* g) {
  __shared__ float4 s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t + 32] = s[31 - t];
}
TEST(Figures, Vectors) {
  const DeviceArray<float4> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, vectors, g)),
            text_of({{kGlobal, kLoad, 16, 1, 32, 16},
                     {kGlobal, kStore, 16, 1, 32, 16},
                     {kShared, kLoad, 16, 1, 32, 4},
                     {kShared, kStore, 16, 1, 32, 4}}));
}

template <class V>
__global__ void vector_and_parts(V* out, const V* in) {
  const V v = in[threadIdx.x];
  V w = v;
  w.x = v.y;
  w.y = v.x;
  out[threadIdx.x] = w;
}
template <class V>
void expect_one_access() {
  const DeviceArray<V> in(32), out(32);
  const auto sectors = sizeof(V);  // * 32 lanes / 32 bytes
  const int bytes = static_cast<int>(sizeof(V));
  EXPECT_EQ(
      text_of(counted_launch({1, 32}, vector_and_parts<V>, out, in)),
      text_of({{kGlobal, kLoad, bytes, 1, 32, sectors}, {kGlobal, kStore, bytes, 1, 32, sectors}}));
}
TEST(Figures, VectorsAreOneAccess) {
  expect_one_access<char2>();
  expect_one_access<uchar4>();
  expect_one_access<short2>();
  expect_one_access<ushort4>();
  expect_one_access<int2>();
  expect_one_access<uint4>();
  expect_one_access<float2>();
  expect_one_access<float4>();
  expect_one_access<double2>();
  expect_one_access<ulonglong2>();
}

__global__ void local_array(float* g, int k) {
  float l[8];
  for (int i = 0; i < 8; ++i) l[i] = i * k;
  float a = 0;
  for (int i = 0; i < 8; ++i) a += l[(i * k + threadIdx.x) & 7];
  g[threadIdx.x] = a;
}
TEST(Figures, LocalArraysAreNobodysTraffic) {
  const DeviceArray<float> g(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, local_array, g, 3)),
            text_of({{kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void structures_of_three(ThreeFloats* g) {
  __shared__ ThreeFloats s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t + 32] = s[31 - t];
}
TEST(Figures, StructuresAreCopiedWordByWord) {
  const DeviceArray<ThreeFloats> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, structures_of_three, g)),
            text_of({{kGlobal, kLoad, 4, 3, 96, 36},
                     {kGlobal, kStore, 4, 3, 96, 36},
                     {kShared, kLoad, 4, 3, 96, 3},
                     {kShared, kStore, 4, 3, 96, 3}}));
}

__global__ void structures_of_eight(EightFloats* g) {
  const int t = threadIdx.x;
  g[t + 32] = g[t];
}
TEST(Figures, LargeStructures) {
  const DeviceArray<EightFloats> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, structures_of_eight, g)),
            text_of({{kGlobal, kLoad, 4, 8, 256, 256}, {kGlobal, kStore, 4, 8, 256, 256}}));
}

__global__ void vectors_of_three(float3* g) {
  __shared__ float3 s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t + 32] = s[31 - t];
}
TEST(Figures, VectorsOfThreeAreCopiedWordByWord) {
  const DeviceArray<float3> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, vectors_of_three, g)),
            text_of({{kGlobal, kLoad, 4, 3, 96, 36},
                     {kGlobal, kStore, 4, 3, 96, 36},
                     {kShared, kLoad, 4, 3, 96, 3},
                     {kShared, kStore, 4, 3, 96, 3}}));
}

__global__ void copies_and_fills(float* g, int bytes) {
  const int t = threadIdx.x;
  memcpy(g + 3 * (t + 32), g + 3 * t, 12);
  memmove(g + 3 * t, g + 3 * (t + 32), static_cast<size_t>(bytes));
  memset(g + 3 * t, 0, 2);
}
TEST(Figures, CallsThatCopyAndFill) {
  const DeviceArray<float> g(3 * 64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, copies_and_fills, g, 8)),
            text_of({{kGlobal, kLoad, 4, 3 + 2, 5 * 32, 5 * 12},
                     {kGlobal, kStore, 4, 3 + 2, 5 * 32, 5 * 12},
                     {kGlobal, kStore, 1, 2, 64, 24}}));
}

__global__ void loop_to_vectorise(const float* __restrict__ in, float* __restrict__ out) {
  const int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) out[t * 8 + i] = in[t * 8 + i];
}
TEST(Figures, LoopToVectorise) {
  const DeviceArray<float> in(256), out(256);
  EXPECT_EQ(text_of(counted_launch({1, 32}, loop_to_vectorise, in, out)),
            text_of({{kGlobal, kLoad, 4, 8, 256, 256}, {kGlobal, kStore, 4, 8, 256, 256}}));
}

__global__ void loop_to_make_a_memset(float* g) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) s[t * 8 + i] = 0;
  __syncthreads();
  g[t] = s[t];
}
TEST(Figures, LoopToMakeAMemset) {
  const DeviceArray<float> g(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, loop_to_make_a_memset, g)),
            text_of({{kShared, kStore, 4, 8, 256, 64},
                     {kShared, kLoad, 4, 1, 32, 1},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void adjacent_stores(float* g) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[2 * t] = 1.f;
  s[2 * t + 1] = 2.f;
  __syncthreads();
  g[t] = s[t];
}
TEST(Figures, AdjacentStoresStayTwo) {
  const DeviceArray<float> g(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, adjacent_stores, g)),
            text_of({{kShared, kStore, 4, 2, 64, 4},
                     {kShared, kLoad, 4, 1, 32, 1},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void volatile_accesses(float* g) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  volatile float* v = s;
  v[t] = g[t];
  v[t] = v[t] + v[t];
  g[t] = v[t];
}
TEST(Figures, VolatileAccessesAllHappen) {
  const DeviceArray<float> g(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, volatile_accesses, g)),
            text_of({{kGlobal, kLoad, 4, 1, 32, 4},
                     {kShared, kStore, 4, 2, 64, 2},
                     {kShared, kLoad, 4, 3, 96, 3},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void doubles(double* g) {
  __shared__ double s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t] = s[t ^ 1];
}
TEST(Figures, Doubles) {
  const DeviceArray<double> g(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, doubles, g)),
            text_of({{kGlobal, kLoad, 8, 1, 32, 8},
                     {kShared, kStore, 8, 1, 32, 2},
                     {kShared, kLoad, 8, 1, 32, 2},
                     {kGlobal, kStore, 8, 1, 32, 8}}));
}

__global__ void bytes(unsigned char* g) {
  __shared__ unsigned char s[128];
  const int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) s[i * 32 + t] = g[t];
  __syncthreads();
  g[t + 32] = s[t] + s[(t * 4) & 127];
}
TEST(Figures, Bytes) {
  const DeviceArray<unsigned char> g(64);
  EXPECT_EQ(text_of(counted_launch({1, 32}, bytes, g)), text_of({{kGlobal, kLoad, 1, 4, 128, 4},
                                                                 {kShared, kStore, 1, 4, 128, 4},
                                                                 {kShared, kLoad, 1, 2, 64, 2},
                                                                 {kGlobal, kStore, 1, 1, 32, 1}}));
}

__global__ void loop_invariant(const float* __restrict__ g, float* out) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  const float factor = s[5];
  float a = 0;
  for (int k = 0; k < 64; ++k) a += factor * g[k * 32 + t];
  out[t] = a;
}
TEST(Figures, LoopInvariant) {
  const DeviceArray<float> g(2048), out(32);
  EXPECT_EQ(text_of(counted_launch({1, 32}, loop_invariant, g, out)),
            text_of({{kShared, kStore, 4, 1, 32, 1},
                     {kShared, kLoad, 4, 1, 32, 1},
                     {kGlobal, kLoad, 4, 64, 2048, 256},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void floats_as_a_vector(float* g) {
  __shared__ __align__(16) float s[128];
  const int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) s[t + 32 * i] = g[t + 32 * i];
  __syncthreads();
  const float4 v = *reinterpret_cast<float4*>(&s[t * 4]);
  g[t] = v.x + v.y * v.z - v.w;
}
TEST(Figures, FloatsAsAVector) {
  const DeviceArray<float> g(128);
  EXPECT_EQ(text_of(counted_launch({1, 32}, floats_as_a_vector, g)),
            text_of({{kGlobal, kLoad, 4, 4, 128, 16},
                     {kShared, kStore, 4, 4, 128, 4},
                     {kShared, kLoad, 16, 1, 32, 4},
                     {kGlobal, kStore, 4, 1, 32, 4}}));
}

__global__ void unrolled(const float* __restrict__ g, float* out) {
  __shared__ float s[32][33];
  const int t = threadIdx.x;
  for (int i = 0; i < 32; ++i) s[i][t] = g[i * 32 + t];
  __syncthreads();
  float sums[4] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) sums[i & 3] += s[t][i];
  for (int i = 0; i < 4; ++i) out[i * 32 + t] = sums[i];
}
TEST(Figures, UnrolledLoop) {
  const DeviceArray<float> g(1024), out(128);
  EXPECT_EQ(text_of(counted_launch({1, 32}, unrolled, g, out)),
            text_of({{kGlobal, kLoad, 4, 32, 1024, 128},
                     {kShared, kStore, 4, 32, 1024, 32},
                     {kShared, kLoad, 4, 32, 1024, 32},
                     {kGlobal, kStore, 4, 4, 128, 16}}));
}

// ---- divergence: loads of `a` are counted by a model on the host

// Requests and lanes of the loads of one warp: every call is one instruction, for the lanes whose
// flag is set.
struct Model {
  std::uint64_t requests = 0, lanes = 0;
  template <class F>
  std::vector<bool> instruction(F active) {
    std::vector<bool> flags(32);
    for (int t = 0; t < 32; ++t) flags[t] = active(t);
    const auto count = std::ranges::count(flags, true);
    requests += count > 0;
    lanes += static_cast<std::uint64_t>(count);
    return flags;
  }
};
void expect_loads(const Report& report, const Model& model) {
  const Traffic loads = report.total(kGlobal, kLoad);
  EXPECT_EQ(loads.requests, model.requests);
  EXPECT_EQ(loads.lanes, model.lanes);
}

__global__ void sparse_rows(const int* starts, const float* values, const float* x, float* y,
                            int rows) {
  const int row = threadIdx.x;
  if (row >= rows) return;
  const int end = starts[row + 1];
  float sum = 0;
  for (int j = starts[row]; j < end; ++j) sum += values[j] * x[j % 64];
  y[row] = sum;
}
TEST(Divergence, SparseRows) {
  std::vector<int> starts(33);
  const std::vector<int> lengths = random_numbers(32, 9);
  for (int i = 0; i < 32; ++i) starts[i + 1] = starts[i] + lengths[i];
  const DeviceArray<int> device_starts(starts);
  const DeviceArray<float> values(300), x(64), y(32);
  const Report report = counted_launch({1, 32}, sparse_rows, device_starts, values, x, y, 28);
  Model model;
  for (int i = 0; i < 2; ++i) model.instruction([](int t) { return t < 28; });
  for (int j = 0; j < 9; ++j)
    for (int i = 0; i < 2; ++i) model.instruction([&](int t) { return t < 28 && j < lengths[t]; });
  expect_loads(report, model);
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
  EXPECT_EQ(report.total(kGlobal, kStore).lanes, 28u);
}

__global__ void binary_search(const int* a, const int* keys, int* out, int n) {
  const int t = threadIdx.x, key = keys[t];
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2, value = a[middle];
    if (value == key) {
      low = middle;
      break;
    }
    if (value < key)
      low = middle + 1;
    else
      high = middle;
  }
  out[t] = low;
}
TEST(Divergence, BinarySearch) {
  std::vector<int> sorted(1000);
  for (int i = 0; i < 1000; ++i) sorted[i] = 3 * i;
  const std::vector<int> keys = random_numbers(32, 3000);
  std::vector<int> steps(32);
  for (int t = 0; t < 32; ++t)
    for (int low = 0, high = 1000; low < high;) {
      ++steps[t];
      const int middle = (low + high) / 2;
      if (sorted[middle] == keys[t]) break;
      (sorted[middle] < keys[t] ? low : high) = middle + (sorted[middle] < keys[t]);
    }
  Model model;
  model.instruction([](int) { return true; });
  for (int i = 0; i < 10; ++i) model.instruction([&](int t) { return i < steps[t]; });
  const DeviceArray<int> a(sorted), device_keys(keys), out(32);
  const Report report = counted_launch({1, 32}, binary_search, a, device_keys, out, 1000);
  expect_loads(report, model);
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
}

__global__ void nested_loops(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < (t & 3) + 1; ++i) {
    sum += a[i];
    for (int j = 0; j < ((t + i) & 7); ++j) {
      if (a[64 + j * 32 + t] == 3) continue;
      sum += a[j];
    }
    sum ^= a[t + i];
  }
  out[t] = sum;
}
TEST(Divergence, NestedLoops) {
  const std::vector<int> a = random_numbers(1024, 6);
  Model model;
  for (int i = 0; i < 4; ++i) {
    const auto in_outer = [&](int t) { return i < (t & 3) + 1; };
    model.instruction(in_outer);
    for (int j = 0; j < 8; ++j) {
      const auto in_inner = [&](int t) { return in_outer(t) && j < ((t + i) & 7); };
      model.instruction(in_inner);
      model.instruction([&](int t) { return in_inner(t) && a[64 + j * 32 + t] != 3; });
    }
    model.instruction(in_outer);
  }
  const DeviceArray<int> device_a(a), out(32);
  expect_loads(counted_launch({1, 32}, nested_loops, device_a, out), model);
}

__global__ void switch_in_a_loop(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 8; ++i) {
    switch ((t + i) & 3) {
      case 0:
        sum += a[t];
        break;
      case 1:
        sum -= a[t + 32];
        break;
      case 2:
        sum ^= a[t + 64];
        break;
      default:
        sum += 3;
    }
    sum += a[i + 96];
  }
  out[t] = sum;
}
TEST(Divergence, SwitchInALoop) {
  const DeviceArray<int> a(random_numbers(128, 6)), out(32);
  const Report report = counted_launch({1, 32}, switch_in_a_loop, a, out);
  expect_loads(report, {.requests = 8 * 4, .lanes = 8 * (3 * 8 + 32)});
}

__global__ void short_circuit(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 16; ++i)
    if (a[t + i] > 2 && (a[t + i + 64] > 3 || a[t + i + 128] < 2)) sum += a[i + 192];
  out[t] = sum;
}
TEST(Divergence, ShortCircuit) {
  const std::vector<int> a = random_numbers(256, 6);
  Model model;
  for (int i = 0; i < 16; ++i) {
    const auto first = [&](int t) { return a[t + i] > 2; };
    const auto second = [&](int t) { return a[t + i + 64] > 3; };
    const auto third = [&](int t) { return a[t + i + 128] < 2; };
    model.instruction([](int) { return true; });
    model.instruction(first);
    model.instruction([&](int t) { return first(t) && !second(t); });
    // The body belongs to both ways into it: they meet behind it, not before.
    model.instruction([&](int t) { return first(t) && second(t); });
    model.instruction([&](int t) { return first(t) && !second(t) && third(t); });
  }
  const DeviceArray<int> device_a(a), out(32);
  expect_loads(counted_launch({1, 32}, short_circuit, device_a, out), model);
}

__global__ void several_returns(const int* a, int* out) {
  const int t = threadIdx.x;
  if (t < 8) {
    out[t] = a[t];
    return;
  }
  int sum = a[t + 32];
  if (t & 1) {
    sum += a[t + 64];
    out[t] = sum;
    return;
  }
  out[t] = sum + a[96];
}
TEST(Divergence, SeveralReturns) {
  const DeviceArray<int> a(random_numbers(128, 6)), out(32);
  const Report report = counted_launch({1, 32}, several_returns, a, out);
  EXPECT_EQ(text_of(report), text_of({{kGlobal, kLoad, 4, 1, 8, 1},
                                      {kGlobal, kLoad, 4, 1, 24, 3},
                                      {kGlobal, kLoad, 4, 1, 12, 3},
                                      {kGlobal, kLoad, 4, 1, 12, 1},
                                      {kGlobal, kStore, 4, 1, 8, 1},
                                      {kGlobal, kStore, 4, 2, 24, 6}}));
}

// The log of a lane holds a few thousand records: what is longer is replayed piece by piece.
__global__ void long_divergent_loop(const int* a, int* out) {
  const int t = threadIdx.x, rounds = t < 8 ? 20000 : 100;
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum += a[(i + t) % 64];
  out[t] = sum;
}
TEST(Divergence, LongLoop) {
  const DeviceArray<int> a(64), out(32);
  const Report report = counted_launch({1, 32}, long_divergent_loop, a, out);
  expect_loads(report, {.requests = 20000, .lanes = 8 * 20000 + 24 * 100});
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
}

__global__ void half_of_the_lanes(float* g, int rounds) {
  float value = threadIdx.x;
  if (threadIdx.x % 2 == 0)
    for (int i = 0; i < rounds; ++i) {
      value = value * value;
      g[threadIdx.x] = value;
    }
}
TEST(Divergence, ActiveLanes) {
  const DeviceArray<float> g(32);
  EXPECT_NEAR(counted_launch({1, 32}, half_of_the_lanes, g, 1000).active_lanes(), 16, 1);
}

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

// ---- atomics, clusters, barriers

__global__ void atomics(int* bins, const int* keys) { atomicAdd(&bins[keys[threadIdx.x]], 1); }
__global__ void shared_atomics(int* out, const int* keys) {
  __shared__ int bins[64];
  bins[threadIdx.x] = bins[threadIdx.x + 32] = 0;
  __syncwarp();
  atomicAdd(&bins[keys[threadIdx.x]], 1);
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
        counted_launch({1, 32}, shared_atomics, bins, device_keys).total(kShared, kAtomic);
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
              pair.x + __ldg(in));  // hint
  atomicAdd(out, pair.y);           // atomic
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
    EXPECT_EQ(line.file, "figures_test.cpp");
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
