// SPDX-License-Identifier: MIT
#include "sgemm/problem.cuh"
#ifdef __CUDACC__
#include "common/cublas.hpp"
#endif

namespace ladders::sgemm {
#ifdef __CUDACC__
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

// Three of these products are what fp16x3 computes, at the pace of a library.
void by_cublas_fp16(Sgemm& problem, cudaStream_t stream) {
  const Gemm g = problem.gemm();
  const auto& [a, b] = problem.halves();
  const float alpha = std::ldexp(g.alpha, -a.power - b.power);
  check(cublasGemmEx(cublas_handle(stream, CUBLAS_DEFAULT_MATH), CUBLAS_OP_N, CUBLAS_OP_N, g.n, g.m,
                     g.k, &alpha, b.elements.data(), CUDA_R_16F, int(b.pitch), a.elements.data(),
                     CUDA_R_16F, int(a.pitch), &g.beta, g.c, CUDA_R_32F, leading(g.ldc),
                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
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
