// SPDX-License-Identifier: MIT
//
// reduction/05_bulk_ring.cuh and its copies: bulk copies fill a ring in shared memory.
#include "reduction.hpp"
#include "reduction/05_bulk_ring/as_written.cuh"
#include "reduction/05_bulk_ring/filled_without_a_wait.cuh"
#include "reduction/05_bulk_ring/freed_too_early.cuh"
#include "reduction/05_bulk_ring/too_few_bytes.cuh"
#include "reduction/05_bulk_ring/wrong_phase.cuh"

namespace ladders::reduction {
namespace {

// Each block fills its stages several times.
constexpr int kBlocks = 3, kThreads = 64, kStages = 2, kCount = 3000;

template <class Kernel>
auto sums(Kernel kernel) {
  return sums_with(kCount, [=](const int* in, auto* slots, auto* result) {
    const emulator::Shape shape{kBlocks, kThreads, kStages * kThreads * sizeof(int4)};
    return emulator::launch(shape, kernel, in, size_t{kCount}, divide(kCount, kThreads, kBlocks),
                            slots, result);
  });
}
#define SUMS(copy) sums(copy::bulk_ring<SumOfSquares, kThreads, 1, kStages>)

CLEAN(ReductionRing, AsWritten, SUMS(as_written))
FOUND(ReductionRing, FilledWithoutAWait, SUMS(filled_without_a_wait),
      "write after read of dynamic shared memory")
FOUND(ReductionRing, FreedTooEarly, SUMS(freed_too_early),
      "write after read of dynamic shared memory")
FOUND(ReductionRing, WrongPhase, SUMS(wrong_phase), "read before the wait for an asynchronous copy")
FOUND(ReductionRing, TooFewBytes, SUMS(too_few_bytes),
      "copies bring 16 bytes more than its phase expects")

}  // namespace
}  // namespace ladders::reduction
