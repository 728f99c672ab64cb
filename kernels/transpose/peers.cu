// SPDX-License-Identifier: MIT
#include "transpose/ladder.hpp"
#include "transpose/problem.cuh"
#ifdef __CUDACC__
#include "common/cublas.hpp"
#endif

namespace ladders::transpose {
#ifdef __CUDACC__
namespace {

// For column-major cuBLAS, a row-major matrix is its transpose.
template <class T, class U, class Geam>
Implementation transposed_by(Geam geam) {
  return library<Transpose<U>>([geam](Transpose<U>& problem, cudaStream_t stream) {
    const auto [out, in, rows, columns] = problem.arguments();
    const T one = 1, zero = 0;
    auto* to = reinterpret_cast<T*>(out);
    check(geam(cublas_handle(stream, CUBLAS_DEFAULT_MATH), CUBLAS_OP_T, CUBLAS_OP_N, rows, columns,
               &one, reinterpret_cast<const T*>(in), leading(columns), &zero, to, leading(rows), to,
               leading(rows)),
          "cublasSgeam or cublasDgeam");
  });
}

Implementation geam(const Case& c, const Device&) {
  return c["element"] == 8 ? transposed_by<double, uint64_t>(cublasDgeam)
                           : transposed_by<float, uint32_t>(cublasSgeam);
}

}  // namespace
#endif

std::vector<Rung> peers() {
  return {{.name = "cublas_geam",
           .idea = "cublasSgeam (8-byte elements: cublasDgeam) with alpha 1 and beta 0.",
           .role = Role::peer,
           .skip =
               [](const Case& c, const Device&) {
                 return c["element"] == 2 ? "cuBLAS has no geam for 2-byte elements" : "";
               },
           .choose = LADDERS_GPU_ONLY(geam)}};
}

}  // namespace ladders::transpose
