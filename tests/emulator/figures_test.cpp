// SPDX-License-Identifier: MIT
//
// Figures of kernels for which they can be told with pencil and paper, and which compilers like to
// change: they are the source's, and must not depend on compiler or optimisation level. One warp
// unless it says otherwise.
#include "figures.hpp"

namespace emulator {
namespace {

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
  expect_figures(loop_as_long_as_the_lane, 64,
                 {{kGlobal, kLoad, 4, 1, 32, 4},
                  {kShared, kStore, 4, 1, 32, 1},
                  {kShared, kLoad, 4, 31, 31 * 16, 31},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  expect_figures(condition_in_a_loop, 64,
                 {{kShared, kStore, 4, 32, 1024, 32},
                  {kShared, kLoad, 4, 32, 512, 32},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  expect_figures(if_and_else, 64,
                 {{kGlobal, kLoad, 4, 2, 48, 6},
                  {kShared, kStore, 4, 1, 32, 1},
                  {kShared, kLoad, 4, 1, 16, 1},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  expect_figures(together_after_divergence, 64,
                 {{kGlobal, kLoad, 4, 1, 32, 4},
                  {kShared, kStore, 4, 1, 32, 1},
                  {kShared, kLoad, 4, 2, 48, 2},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  // Lanes below 20 - i in turn i, twice: 2 * (20 + 19 + ... + 13).
  expect_figures(continue_and_break, 64,
                 {{kGlobal, kLoad, 4, 1, 32, 4},
                  {kShared, kStore, 4, 1, 32, 1},
                  {kShared, kLoad, 4, 16, 264, 16},
                  {kGlobal, kStore, 4, 1, 32, 4}},
                 20);
}

__global__ void vectors(float4* g) {
  __shared__ float4 s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t + 32] = s[31 - t];
}
TEST(Figures, Vectors) {
  expect_figures(vectors, 64,
                 {{kGlobal, kLoad, 16, 1, 32, 16},
                  {kGlobal, kStore, 16, 1, 32, 16},
                  {kShared, kLoad, 16, 1, 32, 4},
                  {kShared, kStore, 16, 1, 32, 4}});
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
  expect_figures(local_array, 32, {{kGlobal, kStore, 4, 1, 32, 4}}, 3);
}

template <class V>
__global__ void copies_of_three(V* g) {
  __shared__ V s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t + 32] = s[31 - t];
}
TEST(Figures, StructuresAreCopiedWordByWord) {
  const Figures expected = {{kGlobal, kLoad, 4, 3, 96, 36},
                            {kGlobal, kStore, 4, 3, 96, 36},
                            {kShared, kLoad, 4, 3, 96, 3},
                            {kShared, kStore, 4, 3, 96, 3}};
  expect_figures(copies_of_three<ThreeFloats>, 64, expected);
  expect_figures(copies_of_three<float3>, 64, expected);
}

__global__ void structures_of_eight(EightFloats* g) {
  const int t = threadIdx.x;
  g[t + 32] = g[t];
}
TEST(Figures, LargeStructures) {
  expect_figures(structures_of_eight, 64,
                 {{kGlobal, kLoad, 4, 8, 256, 256}, {kGlobal, kStore, 4, 8, 256, 256}});
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
  expect_figures(loop_to_make_a_memset, 32,
                 {{kShared, kStore, 4, 8, 256, 64},
                  {kShared, kLoad, 4, 1, 32, 1},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  expect_figures(adjacent_stores, 32,
                 {{kShared, kStore, 4, 2, 64, 4},
                  {kShared, kLoad, 4, 1, 32, 1},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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
  expect_figures(volatile_accesses, 32,
                 {{kGlobal, kLoad, 4, 1, 32, 4},
                  {kShared, kStore, 4, 2, 64, 2},
                  {kShared, kLoad, 4, 3, 96, 3},
                  {kGlobal, kStore, 4, 1, 32, 4}});
}

__global__ void doubles(double* g) {
  __shared__ double s[32];
  const int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  g[t] = s[t ^ 1];
}
TEST(Figures, Doubles) {
  expect_figures(doubles, 32,
                 {{kGlobal, kLoad, 8, 1, 32, 8},
                  {kShared, kStore, 8, 1, 32, 2},
                  {kShared, kLoad, 8, 1, 32, 2},
                  {kGlobal, kStore, 8, 1, 32, 8}});
}

__global__ void bytes(unsigned char* g) {
  __shared__ unsigned char s[128];
  const int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) s[i * 32 + t] = g[t];
  __syncthreads();
  g[t + 32] = s[t] + s[(t * 4) & 127];
}
TEST(Figures, Bytes) {
  expect_figures(bytes, 64,
                 {{kGlobal, kLoad, 1, 4, 128, 4},
                  {kShared, kStore, 1, 4, 128, 4},
                  {kShared, kLoad, 1, 2, 64, 2},
                  {kGlobal, kStore, 1, 1, 32, 1}});
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
  expect_figures(floats_as_a_vector, 128,
                 {{kGlobal, kLoad, 4, 4, 128, 16},
                  {kShared, kStore, 4, 4, 128, 4},
                  {kShared, kLoad, 16, 1, 32, 4},
                  {kGlobal, kStore, 4, 1, 32, 4}});
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

}  // namespace
}  // namespace emulator
