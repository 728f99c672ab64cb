// SPDX-License-Identifier: MIT
//
// reduction/03_flags.cuh and its copies: the last block polls words of 16 bytes.
#include "reduction.hpp"
#include "reduction/03_flags/as_written.cuh"
#include "reduction/03_flags/flag_before_data.cuh"
#include "reduction/03_flags/next_slot_reset.cuh"
#include "reduction/03_flags/no_barrier.cuh"
#include "reduction/03_flags/polled_once.cuh"
#include "reduction/03_flags/relaxed_flag.cuh"
#include "reduction/03_flags/slots_not_reset.cuh"

namespace ladders::reduction {
namespace {

constexpr int kBlocks = 3, kThreads = 64, kCount = 3000;

template <class Kernel>
auto sums(Kernel kernel) {
  return sums_with(kCount, [=](const int* in, auto* slots, auto* result) {
    return emulator::launch({kBlocks, kThreads}, kernel, in, size_t{kCount},
                            divide(kCount, kThreads, kBlocks), slots, result);
  });
}
#define SUMS(copy) sums(copy::flagged<SumOfSquares, kThreads, 1, true>)

CLEAN(ReductionFlags, AsWritten, SUMS(as_written))
FOUND(ReductionFlags, FlagBeforeData, SUMS(flag_before_data), "the result is wrong")
FOUND(ReductionFlags, RelaxedFlag, SUMS(relaxed_flag), "global-memory race between blocks")
FOUND(ReductionFlags, NextSlotReset, SUMS(next_slot_reset), "the result is wrong")
FOUND(ReductionFlags, SlotsNotReset, SUMS(slots_not_reset), "the result is wrong")
FOUND(ReductionFlags, PolledOnce, SUMS(polled_once), "the result is wrong")
FOUND(ReductionFlags, NoBarrier, SUMS(no_barrier),
      "shared-memory race between warps: write after read of warps")

}  // namespace
}  // namespace ladders::reduction
