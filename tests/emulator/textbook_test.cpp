// SPDX-License-Identifier: MIT
//
// Kernels as one finds them in tutorials and libraries, in their own styles: what has to be changed
// for the emulator is the launch and the declaration of dynamic shared memory, nothing else. They
// run with every check on, and their results are held against plain host code.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>
#include <random>

#include "support.hpp"

namespace emulator {
namespace {

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

// Small integers: sums of products are exact in any order.
std::vector<float> small_integers(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}

class Textbook : public ::testing::TestWithParam<Order> {
 private:
  const Settings settings_{{.order = GetParam(), .check = true}};
};
INSTANTIATE_TEST_SUITE_P(Orders, Textbook, ::testing::ValuesIn(kOrders),
                         [](const auto& info) { return name(info.param); });

// ---- matrix product, in the style of S. Boehm's "How to Optimize a CUDA Matmul Kernel"

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void sgemmVectorize(int M, int N, int K, float alpha, float* A, float* B, float beta,
                               float* C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const int threadCol = threadIdx.x % (BN / TN);
  const int threadRow = threadIdx.x / (BN / TN);

  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];

  A += cRow * BM * K;
  B += cCol * BN;
  C += cRow * BM * N + cCol * BN;

  const uint innerRowA = threadIdx.x / (BK / 4);
  const uint innerColA = threadIdx.x % (BK / 4);
  const uint innerRowB = threadIdx.x / (BN / 4);
  const uint innerColB = threadIdx.x % (BN / 4);

  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0};
  float regN[TN] = {0.0};

  for (uint bkIdx = 0; bkIdx < static_cast<uint>(K); bkIdx += BK) {
    float4 tmp = reinterpret_cast<float4*>(&A[innerRowA * K + innerColA * 4])[0];
    As[(innerColA * 4 + 0) * BM + innerRowA] = tmp.x;
    As[(innerColA * 4 + 1) * BM + innerRowA] = tmp.y;
    As[(innerColA * 4 + 2) * BM + innerRowA] = tmp.z;
    As[(innerColA * 4 + 3) * BM + innerRowA] = tmp.w;

    reinterpret_cast<float4*>(&Bs[innerRowB * BN + innerColB * 4])[0] =
        reinterpret_cast<float4*>(&B[innerRowB * N + innerColB * 4])[0];
    __syncthreads();

    A += BK;
    B += BK * N;

    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) {
        regM[i] = As[dotIdx * BM + threadRow * TM + i];
      }
      for (uint i = 0; i < TN; ++i) {
        regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      }
      for (uint resIdxM = 0; resIdxM < TM; ++resIdxM) {
        for (uint resIdxN = 0; resIdxN < TN; ++resIdxN) {
          threadResults[resIdxM * TN + resIdxN] += regM[resIdxM] * regN[resIdxN];
        }
      }
    }
    __syncthreads();
  }

  for (uint resIdxM = 0; resIdxM < TM; resIdxM += 1) {
    for (uint resIdxN = 0; resIdxN < TN; resIdxN += 4) {
      float4 tmp = reinterpret_cast<float4*>(
          &C[(threadRow * TM + resIdxM) * N + threadCol * TN + resIdxN])[0];
      tmp.x = alpha * threadResults[resIdxM * TN + resIdxN] + beta * tmp.x;
      tmp.y = alpha * threadResults[resIdxM * TN + resIdxN + 1] + beta * tmp.y;
      tmp.z = alpha * threadResults[resIdxM * TN + resIdxN + 2] + beta * tmp.z;
      tmp.w = alpha * threadResults[resIdxM * TN + resIdxN + 3] + beta * tmp.w;
      reinterpret_cast<float4*>(&C[(threadRow * TM + resIdxM) * N + threadCol * TN + resIdxN])[0] =
          tmp;
    }
  }
}

TEST_P(Textbook, MatrixProduct) {
  constexpr int M = 128, N = 192, K = 64;
  const std::vector<float> a = small_integers(M * K), b = small_integers(K * N, 2),
                           c = small_integers(M * N, 3);
  std::vector<float> expected(M * N);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[i * K + k] * b[k * N + j];
      expected[i * N + j] = 2 * sum - c[i * N + j];
    }
  const DeviceArray<float> A(a), B(b), C(c);
  const dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 64)), block(64);
  ASSERT_RUNS(
      launch({grid, block}, sgemmVectorize<64, 64, 4, 8, 8>, M, N, K, 2.0f, A, B, -1.0f, C));
  EXPECT_EQ(C.values(), expected);
}

// ---- reductions, in the style of M. Harris' "Optimizing Parallel Reduction in CUDA" and of the
// CUDA samples

namespace cg = cooperative_groups;

template <unsigned int blockSize, bool nIsPow2>
__global__ void reduce6(int* g_idata, int* g_odata, unsigned int n) {
  cg::thread_block cta = cg::this_thread_block();
  int* sdata = static_cast<int*>(emulator::dynamic_shared());

  unsigned int tid = threadIdx.x;
  unsigned int gridSize = blockSize * gridDim.x;
  int mySum = 0;

  if (nIsPow2) {
    unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
    gridSize = gridSize << 1;
    while (i < n) {
      mySum += g_idata[i];
      if ((i + blockSize) < n) {
        mySum += g_idata[i + blockSize];
      }
      i += gridSize;
    }
  } else {
    unsigned int i = blockIdx.x * blockSize + threadIdx.x;
    while (i < n) {
      mySum += g_idata[i];
      i += gridSize;
    }
  }

  sdata[tid] = mySum;
  cg::sync(cta);

  if ((blockSize >= 512) && (tid < 256)) {
    sdata[tid] = mySum = mySum + sdata[tid + 256];
  }
  cg::sync(cta);
  if ((blockSize >= 256) && (tid < 128)) {
    sdata[tid] = mySum = mySum + sdata[tid + 128];
  }
  cg::sync(cta);
  if ((blockSize >= 128) && (tid < 64)) {
    sdata[tid] = mySum = mySum + sdata[tid + 64];
  }
  cg::sync(cta);

  cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
  if (cta.thread_rank() < 32) {
    if (blockSize >= 64) mySum += sdata[tid + 32];
    for (int offset = tile32.size() / 2; offset > 0; offset /= 2) {
      mySum += tile32.shfl_down(mySum, offset);
    }
  }
  if (cta.thread_rank() == 0) g_odata[blockIdx.x] = mySum;
}

TEST_P(Textbook, Reduction) {
  std::vector<int> in(5000);
  std::iota(in.begin(), in.end(), -1000);
  const int expected = std::accumulate(in.begin(), in.end(), 0);
  const DeviceArray<int> data(in), sums(8);
  ASSERT_RUNS(launch({8, 256, 1024}, reduce6<256, true>, data, sums, 5000u));
  std::vector<int> parts = sums.values();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), expected);
  ASSERT_RUNS(launch({8, 512, 2048}, reduce6<512, false>, data, sums, 5000u));
  parts = sums.values();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), expected);
}

// ---- convolution, in the style of D. Kirk's and W. Hwu's "Programming Massively Parallel
// Processors"

#define FILTER_RADIUS 2
#define IN_TILE_DIM 32
#define OUT_TILE_DIM ((IN_TILE_DIM) - 2 * (FILTER_RADIUS))
__constant__ float F_c[2 * FILTER_RADIUS + 1][2 * FILTER_RADIUS + 1];

__global__ void convolution_tiled_2D_const_mem_kernel(float* N, float* P, int width, int height) {
  int col = blockIdx.x * OUT_TILE_DIM + threadIdx.x - FILTER_RADIUS;
  int row = blockIdx.y * OUT_TILE_DIM + threadIdx.y - FILTER_RADIUS;
  __shared__ float N_s[IN_TILE_DIM][IN_TILE_DIM];
  if (row >= 0 && row < height && col >= 0 && col < width) {
    N_s[threadIdx.y][threadIdx.x] = N[row * width + col];
  } else {
    N_s[threadIdx.y][threadIdx.x] = 0.0;
  }
  __syncthreads();
  int tileCol = threadIdx.x - FILTER_RADIUS;
  int tileRow = threadIdx.y - FILTER_RADIUS;
  if (col >= 0 && col < width && row >= 0 && row < height) {
    if (tileCol >= 0 && tileCol < OUT_TILE_DIM && tileRow >= 0 && tileRow < OUT_TILE_DIM) {
      float Pvalue = 0.0f;
      for (int fRow = 0; fRow < 2 * FILTER_RADIUS + 1; fRow++) {
        for (int fCol = 0; fCol < 2 * FILTER_RADIUS + 1; fCol++) {
          Pvalue += F_c[fRow][fCol] * N_s[tileRow + fRow][tileCol + fCol];
        }
      }
      P[row * width + col] = Pvalue;
    }
  }
}

TEST_P(Textbook, Convolution) {
  constexpr int kWidth = 70, kHeight = 40;
  const std::vector<float> image = small_integers(kWidth * kHeight), filter = small_integers(25, 2);
  const DeviceArray<float> in(image), out(image.size());
  ASSERT_EQ(cudaMemcpyToSymbol(F_c, filter.data(), 25 * sizeof(float)), cudaSuccess);
  const dim3 grid(CEIL_DIV(kWidth, OUT_TILE_DIM), CEIL_DIV(kHeight, OUT_TILE_DIM));
  ASSERT_RUNS(launch({grid, {IN_TILE_DIM, IN_TILE_DIM}}, convolution_tiled_2D_const_mem_kernel, in,
                     out, kWidth, kHeight));
  const std::vector<float> result = out.values();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      float sum = 0;
      for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx)
          if (y + dy >= 0 && y + dy < kHeight && x + dx >= 0 && x + dx < kWidth)
            sum += filter[(dy + 2) * 5 + dx + 2] * image[(y + dy) * kWidth + x + dx];
      ASSERT_EQ(result[y * kWidth + x], sum);
    }
}

// ---- scan, in the style of GPU Gems 3, chapter 39

#define NUM_BANKS 32
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)

__global__ void prescan(float* g_odata, float* g_idata, int n) {
  float* temp = static_cast<float*>(emulator::dynamic_shared());
  int thid = threadIdx.x;
  int offset = 1;

  int ai = thid;
  int bi = thid + (n / 2);
  int bankOffsetA = CONFLICT_FREE_OFFSET(ai);
  int bankOffsetB = CONFLICT_FREE_OFFSET(bi);
  temp[ai + bankOffsetA] = g_idata[ai];
  temp[bi + bankOffsetB] = g_idata[bi];

  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      ai += CONFLICT_FREE_OFFSET(ai);
      bi += CONFLICT_FREE_OFFSET(bi);
      temp[bi] += temp[ai];
    }
    offset *= 2;
  }

  if (thid == 0) {
    temp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)] = 0;
  }

  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      ai += CONFLICT_FREE_OFFSET(ai);
      bi += CONFLICT_FREE_OFFSET(bi);
      float t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  __syncthreads();
  g_odata[ai] = temp[ai + bankOffsetA];
  g_odata[bi] = temp[bi + bankOffsetB];
}

TEST_P(Textbook, Scan) {
  constexpr int kCount = 1024;
  const std::vector<float> values = small_integers(kCount);
  std::vector<float> expected(kCount);
  std::exclusive_scan(values.begin(), values.end(), expected.begin(), 0.0f);
  const DeviceArray<float> in(values), out(kCount);
  const std::size_t shared = (kCount + CONFLICT_FREE_OFFSET(kCount)) * sizeof(float);
  ASSERT_RUNS(launch({1, kCount / 2, shared}, prescan, out, in, kCount));
  EXPECT_EQ(out.values(), expected);
}

// ---- bitonic sort, in the style of the CUDA samples

__device__ inline void Comparator(uint& keyA, uint& keyB, uint dir) {
  uint t;
  if ((keyA > keyB) == dir) {
    t = keyA;
    keyA = keyB;
    keyB = t;
  }
}

template <uint SHARED_SIZE_LIMIT>
__global__ void bitonicSortShared(uint* d_DstKey, uint* d_SrcKey, uint arrayLength, uint dir) {
  cg::thread_block cta = cg::this_thread_block();
  __shared__ uint s_key[SHARED_SIZE_LIMIT];

  d_SrcKey += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
  d_DstKey += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
  s_key[threadIdx.x + 0] = d_SrcKey[0];
  s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_SrcKey[(SHARED_SIZE_LIMIT / 2)];

  for (uint size = 2; size < arrayLength; size <<= 1) {
    uint ddd = dir ^ ((threadIdx.x & (size / 2)) != 0);
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      cg::sync(cta);
      uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      Comparator(s_key[pos + 0], s_key[pos + stride], ddd);
    }
  }
  for (uint stride = arrayLength / 2; stride > 0; stride >>= 1) {
    cg::sync(cta);
    uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    Comparator(s_key[pos + 0], s_key[pos + stride], dir);
  }

  cg::sync(cta);
  d_DstKey[0] = s_key[threadIdx.x + 0];
  d_DstKey[(SHARED_SIZE_LIMIT / 2)] = s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
}

TEST_P(Textbook, BitonicSort) {
  std::mt19937 random(1);
  std::vector<uint> keys(2 * 512);
  for (uint& key : keys) key = static_cast<uint>(random());
  const DeviceArray<uint> in(keys), out(keys.size());
  ASSERT_RUNS(launch({2, 256}, bitonicSortShared<512>, out, in, 512u, 1u));
  std::sort(keys.begin(), keys.begin() + 512);
  std::sort(keys.begin() + 512, keys.end());
  EXPECT_EQ(out.values(), keys);
}

// ---- N bodies, in the style of GPU Gems 3, chapter 31

#define EPS2 0.01f

__device__ float3 bodyBodyInteraction(float4 bi, float4 bj, float3 ai) {
  float3 r;
  r.x = bj.x - bi.x;
  r.y = bj.y - bi.y;
  r.z = bj.z - bi.z;
  float distSqr = r.x * r.x + r.y * r.y + r.z * r.z + EPS2;
  float distSixth = distSqr * distSqr * distSqr;
  float invDistCube = 1.0f / sqrtf(distSixth);
  float s = bj.w * invDistCube;
  ai.x += r.x * s;
  ai.y += r.y * s;
  ai.z += r.z * s;
  return ai;
}

__device__ float3 tile_calculation(float4* shPosition, float4 myPosition, float3 accel) {
  for (uint i = 0; i < blockDim.x; i++) {
    accel = bodyBodyInteraction(myPosition, shPosition[i], accel);
  }
  return accel;
}

__global__ void calculate_forces(void* devX, void* devA, int N, int p) {
  float4* shPosition = static_cast<float4*>(emulator::dynamic_shared());
  float4* globalX = (float4*)devX;
  float4* globalA = (float4*)devA;
  float4 myPosition;
  int i, tile;
  float3 acc = {0.0f, 0.0f, 0.0f};
  int gtid = blockIdx.x * blockDim.x + threadIdx.x;
  myPosition = globalX[gtid];
  for (i = 0, tile = 0; i < N; i += p, tile++) {
    int idx = tile * blockDim.x + threadIdx.x;
    shPosition[threadIdx.x] = globalX[idx];
    __syncthreads();
    acc = tile_calculation(shPosition, myPosition, acc);
    __syncthreads();
  }
  float4 acc4 = {acc.x, acc.y, acc.z, 0.0f};
  globalA[gtid] = acc4;
}

TEST_P(Textbook, NBodies) {
  constexpr int kCount = 128, kTile = 64;
  std::vector<float4> bodies(kCount);
  for (int i = 0; i < kCount; ++i)
    bodies[i] = make_float4(std::sin(1.0f * i), std::cos(2.0f * i), std::sin(3.0f * i), 1 + i % 3);
  const DeviceArray<float4> x(bodies), a(kCount);
  ASSERT_RUNS(launch({kCount / kTile, kTile, kTile * sizeof(float4)}, calculate_forces,
                     static_cast<void*>(x), static_cast<void*>(a), kCount, kTile));
  const std::vector<float4> result = a.values();
  for (int i = 0; i < kCount; ++i) {
    double expected = 0;
    for (const float4& other : bodies) {
      const double dx = other.x - bodies[i].x, dy = other.y - bodies[i].y,
                   dz = other.z - bodies[i].z;
      expected += dx * other.w / std::pow(dx * dx + dy * dy + dz * dz + 0.01, 1.5);
    }
    ASSERT_NEAR(result[i].x, expected, 1e-3 * std::max(1.0, std::abs(expected)));
  }
}

// ---- sparse matrix and vector, a warp a row, in the style of N. Bell and M. Garland

__global__ void spmv_csr_vector_kernel(const int num_rows, const int* ptr, const int* indices,
                                       const float* data, const float* x, float* y) {
  volatile float* vals = static_cast<volatile float*>(emulator::dynamic_shared());
  int thread_id = blockDim.x * blockIdx.x + threadIdx.x;
  int warp_id = thread_id / 32;
  int lane = thread_id & (32 - 1);
  int row = warp_id;
  if (row < num_rows) {
    int row_start = ptr[row];
    int row_end = ptr[row + 1];
    float sum = 0;
    for (int jj = row_start + lane; jj < row_end; jj += 32) sum += data[jj] * x[indices[jj]];
    vals[threadIdx.x] = sum;
    __syncwarp();
    // Since Volta warps need to be told.
    for (int k = 16; k > 0; k >>= 1) {
      if (lane < k) sum += vals[threadIdx.x + k];
      __syncwarp();
      if (lane < k) vals[threadIdx.x] = sum;
      __syncwarp();
    }
    if (lane == 0) y[row] += vals[threadIdx.x];
  }
}

TEST_P(Textbook, SparseMatrix) {
  constexpr int kRows = 30, kColumns = 200;
  std::mt19937 random(1);
  std::vector<int> ptr{0}, indices;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column)
      if (random() % (row + 2) == 0) indices.push_back(column);
    ptr.push_back(static_cast<int>(indices.size()));
  }
  const std::vector<float> data = small_integers(indices.size()), x = small_integers(kColumns, 2);
  std::vector<float> expected(kRows);
  for (int row = 0; row < kRows; ++row)
    for (int j = ptr[row]; j < ptr[row + 1]; ++j) expected[row] += data[j] * x[indices[j]];
  const DeviceArray<int> device_ptr(ptr), device_indices(indices);
  const DeviceArray<float> device_data(data), device_x(x), y(kRows);
  ASSERT_RUNS(launch({8, 128, 512}, spmv_csr_vector_kernel, kRows, device_ptr, device_indices,
                     device_data, device_x, y));
  EXPECT_EQ(y.values(), expected);
}

// ---- histogram, in the style of J. Sanders' and E. Kandrot's "CUDA by Example"

__global__ void histo_kernel(unsigned char* buffer, long size, unsigned int* histo) {
  __shared__ unsigned int temp[256];
  temp[threadIdx.x] = 0;
  __syncthreads();

  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int offset = blockDim.x * gridDim.x;
  while (i < size) {
    atomicAdd(&temp[buffer[i]], 1);
    i += offset;
  }

  __syncthreads();
  atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}

TEST_P(Textbook, Histogram) {
  std::mt19937 random(1);
  std::vector<unsigned char> buffer(10000);
  std::vector<unsigned> expected(256);
  for (unsigned char& value : buffer) ++expected[value = static_cast<unsigned char>(random() >> 7)];
  const DeviceArray<unsigned char> data(buffer);
  const DeviceArray<unsigned> histo(256);
  ASSERT_RUNS(launch({4, 256}, histo_kernel, data, 10000L, histo));
  EXPECT_EQ(histo.values(), expected);
}

// ---- softmax, in the style of A. Karpathy's llm.c

__device__ float warpReduceMax(float val) {
  for (int offset = 16; offset > 0; offset /= 2) {
    val = fmaxf(val, __shfl_down_sync(0xFFFFFFFF, val, offset));
  }
  return val;
}
__device__ float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) {
    val += __shfl_down_sync(0xFFFFFFFF, val, offset);
  }
  return val;
}

__global__ void softmax_forward_kernel4(float* out, const float* inp, int N, int C) {
  float* shared = static_cast<float*>(emulator::dynamic_shared());
  int idx = blockIdx.x;
  int tid = threadIdx.x;
  int warpId = threadIdx.x / 32;
  int laneId = threadIdx.x % 32;
  int warpsPerBlock = blockDim.x / 32;
  float* maxvals = shared;
  float* sumvals = &shared[warpsPerBlock];

  const float* x = inp + idx * C;
  float maxval = -INFINITY;
  for (int i = tid; i < C; i += blockDim.x) {
    maxval = fmaxf(maxval, x[i]);
  }
  maxval = warpReduceMax(maxval);
  if (laneId == 0) maxvals[warpId] = maxval;
  __syncthreads();
  if (tid == 0) {
    float val = maxvals[tid];
    for (int i = 1; i < warpsPerBlock; i++) {
      val = fmaxf(val, maxvals[i]);
    }
    maxvals[0] = val;
  }
  __syncthreads();
  float offset = maxvals[0];

  for (int i = tid; i < C; i += blockDim.x) {
    out[idx * C + i] = expf(x[i] - offset);
  }
  x = out + idx * C;
  float sumval = 0.0f;
  for (int i = tid; i < C; i += blockDim.x) {
    sumval += x[i];
  }
  sumval = warpReduceSum(sumval);
  if (laneId == 0) sumvals[warpId] = sumval;
  __syncthreads();
  if (tid == 0) {
    float val = sumvals[tid];
    for (int i = 1; i < warpsPerBlock; ++i) {
      val += sumvals[i];
    }
    sumvals[0] = val;
  }
  __syncthreads();
  float sum = sumvals[0];
  for (int i = tid; i < C; i += blockDim.x) {
    out[idx * C + i] = x[i] / sum;
  }
}

TEST_P(Textbook, Softmax) {
  constexpr int kRows = 6, kColumns = 300;
  std::vector<float> values(kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 5 * std::sin(1.0f * i);
  const DeviceArray<float> in(values), out(values.size());
  ASSERT_RUNS(launch({kRows, 128, 2 * 128 / 32 * sizeof(float)}, softmax_forward_kernel4, out, in,
                     kRows, kColumns));
  const std::vector<float> result = out.values();
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) sum += std::exp(double(values[row * kColumns + i]));
    for (int i = 0; i < kColumns; ++i)
      ASSERT_NEAR(result[row * kColumns + i], std::exp(double(values[row * kColumns + i])) / sum,
                  1e-6);
  }
}

}  // namespace
}  // namespace emulator
