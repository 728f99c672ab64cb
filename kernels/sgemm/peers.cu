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
           .error_limit = 2e-3}};
}

}  // namespace ladders::sgemm
