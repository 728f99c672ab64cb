// SPDX-License-Identifier: MIT
//
// SGEMM for callers: FP32 matrices in the memory of `device`, which is current, wherever they start
// and however far their rows are apart, multiplied to FP32's accuracy. Row major throughout.
#pragma once

#include <utility>

#include "model/cuda_check.hpp"
#include "model/launch.hpp"

namespace ladders::sgemm {
/// C = alpha A B + beta C: A of m x k, B of k x n, C of m x n; rows are lda, ldb, ldc floats apart
/// (at least k, n and n). m and n are at most 2^31 - 256, k at most 2^30. C is not read if beta is
/// 0, nor A and B if alpha is.
struct Gemm {
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  int m, n, k;
  float alpha, beta;
};

/// Memory of one device that products need besides their operands, one product at a time. It grows
/// when a product needs more: that allocates, synchronises and releases what it had. So before
/// products are captured into a graph, run the largest of them once; later growth makes the graph
/// invalid.
struct Workspace {
  DeviceBuffer<unsigned char> parts;  ///< of matrices that are split
  DeviceBuffer<float4> sums;          ///< that blocks pass to others
  DeviceBuffer<unsigned> counts;      ///< all zero between products

  /// Throws DoesNotFit.
  unsigned* room_for_counts(size_t count) {
    if (counts.size() < count) {
      counts = zeros<unsigned>(count);
      check(cudaDeviceSynchronize(), "cudaMemset");
    }
    return counts.data();
  }
  std::pair<float4*, unsigned*> room_for_partials(size_t quads, size_t count) {
    return {sums.room_for(quads), room_for_counts(count)};
  }
};

/// The kernel that takes most of the time, and its launch.
struct KernelLaunch {
  const void* kernel;
  LaunchPlan plan;
};

/// Three TF32 products in one kernel. Needs compute capability 8.0. Elements err by up to 2^-23 of
/// themselves, below 2^-113 by up to 2^-136. Sums that are not finite, or below 2^-110 and
/// not zero, are computed again in FP64, each by one thread: that is slow. Two runs on one GPU give
/// the same bits. Throws CudaError.
void tf32x3(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream);
KernelLaunch tf32x3_launch(int m, int n, int k, const Device& device);

/// Six BF16 products, of three parts per element. Needs compute capability 8.0. Elements are exact
/// down to 2^-110, and below that err by up to 2^-134; otherwise as tf32x3.
void bf16x6(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream);
KernelLaunch bf16x6_launch(int m, int n, int k, const Device& device);
/// Its time by the model that chooses its tiles, in units of 1.2 ns.
double bf16x6_time(const Gemm& gemm, const Device& device);

/// Three FP16 products of matrices that a first kernel has scaled and split. Needs Hopper. Elements
/// err by up to 2^-23 of themselves or 2^-39 of the largest of their row of A or column of B. Sums
/// overflow only if that of A B does, or, where k is long relative to m and n, beta C and a part of
/// it. Outputs whose row or column is not all finite are infinite or NaN as in exact arithmetic.
/// Two runs give the same bits. Throws CudaError.
void fp16x3(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream);
KernelLaunch fp16x3_launch(int m, int n, const Device& device);

/// Which kernels are the fastest among those about as accurate as an FP32 library, as measured on
/// an H200 and an H100. (How much more they may err: docs/splitting.md.)
enum class Scheme {
  thin,         ///< FMAs, for C of at most 8 rows or columns, but not 5 to 8 columns if A is large
  few_tiles,    ///< FMAs, for C of few 32 x 32 tiles per SM, if k is short for their number
  few_terms,    ///< FMAs, for a k up to 32
  small_tiles,  ///< FMAs, for a k from 33 to 255, if rows of B or C do not all start on 16 bytes
                ///< and a model says that this is faster than bf16x6
  tf32x3,
  bf16x6,
  fp16x3
};
Scheme scheme_for(const Gemm& gemm, const Device& device);

/// The product by that scheme. Throws CudaError.
void multiply(const Gemm& gemm, const Device& device, Workspace& workspace, cudaStream_t stream);

}  // namespace ladders::sgemm
