// SPDX-License-Identifier: MIT
//
// The vendor's libraries run on a GPU only: their rows are skipped, and nobody calls these.
#include "peers.hpp"

namespace ladders::peers {
namespace {

[[noreturn]] void unavailable() { throw CudaError("a library call: needs a GPU"); }

}  // namespace

void cublas_transpose(float*, const float*, int, int, cudaStream_t) { unavailable(); }
void cublas_transpose(double*, const double*, int, int, cudaStream_t) { unavailable(); }
void cublas_sgemm(const float*, const float*, float*, int, int, int, float, float, Precision,
                  cudaStream_t) {
  unavailable();
}
void cub_sum_of_squares(Problem&, const int*, size_t, unsigned long long*, cudaStream_t) {
  unavailable();
}
void cub_sum_of_squares(Problem&, const float*, size_t, float*, cudaStream_t) { unavailable(); }
void cub_sum(Problem&, const float*, size_t, float*, cudaStream_t) { unavailable(); }
void cub_inclusive_sum(Problem&, const unsigned*, size_t, unsigned*, cudaStream_t) {
  unavailable();
}
void cub_inclusive_sum(Problem&, const float*, size_t, float*, cudaStream_t) { unavailable(); }
void cub_histogram(Problem&, const int*, size_t, unsigned*, int, cudaStream_t) { unavailable(); }
void cub_histogram(Problem&, const unsigned char*, size_t, unsigned*, cudaStream_t) {
  unavailable();
}
void thrust_gather(const int*, size_t, const unsigned*, unsigned*, cudaStream_t) { unavailable(); }

}  // namespace ladders::peers
