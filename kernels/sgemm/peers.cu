// SPDX-License-Identifier: MIT
#include "sgemm/problem.cuh"
#ifdef __CUDACC__
#include <cuda_fp16.h>

#include <cmath>

#include "common/cublas.hpp"
#endif

namespace ladders::sgemm {
#ifdef __CUDACC__
// A matrix in FP16, in rows that start on 16 bytes, times a power of two that makes its largest
// element 2^14 at least.
struct Fp16Matrix {
  int pitch, power;
  DeviceBuffer<__half> elements;
};
struct Fp16Operands {
  Fp16Matrix a, b;
};

namespace {

// cuBLAS is column major: a row-major matrix is its transpose there, with the same memory.
void by_cublas(const Gemm& g, cublasMath_t mode, cudaStream_t stream) {
  check(cublasSgemm(cublas_handle(stream, mode), CUBLAS_OP_N, CUBLAS_OP_N, g.n, g.m, g.k, &g.alpha,
                    g.b, leading(g.ldb), g.a, leading(g.lda), &g.beta, g.c, leading(g.ldc)),
        "cublasSgemm");
}

Implementation by_cublas(cublasMath_t mode) {
  return library<Sgemm>(
      [mode](Sgemm& problem, cudaStream_t stream) { by_cublas(problem.gemm(), mode, stream); });
}

Fp16Matrix in_halves(const float* from, int64_t rows, int64_t columns) {
  const int64_t pitch = ceil_div(columns, 8) * 8;
  const auto size = [from] __device__(size_t i) { return fabs(double(from[i])); };
  const double largest = reduce(rows * columns, size).largest;
  Fp16Matrix made{int(pitch), largest > 0 ? 14 - std::ilogb(largest) : 0,
                  DeviceBuffer<__half>(rows * pitch)};
  const float scale = std::ldexp(1.0f, made.power);
  const auto element = [=] __device__(size_t i) {
    const size_t row = i / pitch, column = i % pitch;
    return __float2half(column < columns ? scale * from[row * columns + column] : 0);
  };
  generate(made.elements.data(), made.elements.size(), element);
  return made;
}

// Three of these products are what fp16x3 computes, at the pace of a library.
void by_cublas_fp16(Sgemm& problem, cudaStream_t stream) {
  const Gemm g = problem.gemm();
  if (!problem.fp16_operands())
    problem.fp16_operands() =
        std::make_shared<Fp16Operands>(in_halves(g.a, g.m, g.k), in_halves(g.b, g.k, g.n));
  const auto& [a, b] = *problem.fp16_operands();
  const float alpha = std::ldexp(g.alpha, -a.power - b.power);
  check(cublasGemmEx(cublas_handle(stream, CUBLAS_DEFAULT_MATH), CUBLAS_OP_N, CUBLAS_OP_N, g.n, g.m,
                     g.k, &alpha, b.elements.data(), CUDA_R_16F, leading(b.pitch),
                     a.elements.data(), CUDA_R_16F, leading(a.pitch), &g.beta, g.c, CUDA_R_32F,
                     leading(g.ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

std::string no_bound(const Case& c, const Device&) {
  if (c["n"] % 4 != 0) return "cuBLAS is no bound where rows of C do not start on 16 bytes";
  return c["k"] < 16 ? "rows of few elements may all be below the range of FP16" : "";
}

}  // namespace

void library_product(const Gemm& gemm, cudaStream_t stream) {
  by_cublas(gemm, CUBLAS_PEDANTIC_MATH, stream);
}
#endif

std::vector<Rung> peers() {
  return {{.name = "cublas",
           .idea = "cublasSgemm held to FP32 throughout (CUBLAS_PEDANTIC_MATH).",
           .implementation = LADDERS_GPU_ONLY(by_cublas(CUBLAS_PEDANTIC_MATH)),
           .role = Role::peer},
          {.name = "cublas_tf32",
           .idea = "cublasSgemm on tensor cores, inputs rounded to TF32: another precision.",
           .implementation = LADDERS_GPU_ONLY(by_cublas(CUBLAS_TF32_TENSOR_OP_MATH)),
           .role = Role::peer,
           .precision = "tf32",
           .error_limit = 2e-3},
          {.name = "cublas_fp16",
           .idea = "cublasGemmEx on matrices in FP16, sums in FP32: a third bounds fp16x3.",
           .implementation = LADDERS_GPU_ONLY(library<Sgemm>(by_cublas_fp16)),
           .role = Role::ceiling,
           .needs = kTensorCores,
           .skip = LADDERS_GPU_ONLY(no_bound),
           .precision = "fp16",
           .error_limit = 2e-3}};
}

}  // namespace ladders::sgemm
