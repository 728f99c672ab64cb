// SPDX-License-Identifier: MIT
//
// reduction/02_last_block.cuh and its copies: the block that takes the last ticket adds up.
#include "reduction.hpp"
#include "reduction/02_last_block/as_written.cuh"
#include "reduction/02_last_block/no_fence_after_the_ticket.cuh"
#include "reduction/02_last_block/no_fence_before_the_ticket.cuh"
#include "reduction/02_last_block/ticket_before_the_sum.cuh"

namespace ladders::reduction {
namespace {

constexpr int kBlocks = 3, kThreads = 64, kCount = 3000;

template <class Kernel, class Division>
auto sums(Kernel kernel, Division division) {
  return [=] {
    const DeviceArray<unsigned> ticket(1);
    return sums_with(kCount, [&](const int* in, auto* slots, auto* result) {
      return emulator::launch({kBlocks, kThreads}, kernel, in, size_t{kCount}, division, slots,
                              ticket, result);
    })();
  };
}
#define SUMS(copy) \
  sums(copy::in_flight<SumOfSquares, kThreads, 1>, copy::divide(kCount, kThreads, kBlocks))

CLEAN(ReductionLastBlock, AsWritten, SUMS(as_written))
FOUND(ReductionLastBlock, NoFenceBeforeTheTicket, SUMS(no_fence_before_the_ticket),
      "global-memory race between blocks")
FOUND(ReductionLastBlock, NoFenceAfterTheTicket, SUMS(no_fence_after_the_ticket),
      "global-memory race between blocks")
FOUND(ReductionLastBlock, TicketBeforeTheSum, SUMS(ticket_before_the_sum),
      "global-memory race between blocks")

}  // namespace
}  // namespace ladders::reduction
