// SPDX-License-Identifier: MIT
//
// scan/03_single_pass.cuh and its copies: blocks exchange sums by words in global memory.
#include "scan.hpp"
#include "scan/03_single_pass/as_written.cuh"
#include "scan/03_single_pass/epoch_raised_early.cuh"
#include "scan/03_single_pass/flag_before_data.cuh"
#include "scan/03_single_pass/no_barrier.cuh"
#include "scan/03_single_pass/own_sum_as_whole.cuh"
#include "scan/03_single_pass/word_of_an_earlier_launch.cuh"

namespace ladders::scan {
namespace {

constexpr int kBlocks = 3, kThreads = 64, kTile = 4 * kThreads;

template <class Kernel>
auto scans(Kernel kernel) {
  return scans_with(kBlocks * kTile, [=](const unsigned* in, unsigned* out, Exchange exchange) {
    return emulator::launch({kBlocks, kThreads}, kernel, in, size_t{kBlocks * kTile}, out,
                            exchange);
  });
}
#define SCANS(copy, prefix) scans(copy::single_pass<Ints, kThreads, 1, copy::prefix>)

CLEAN(ScanWords, Chain, SCANS(as_written, Chain))
CLEAN(ScanWords, LookBack, SCANS(as_written, LookBack))
CLEAN(ScanWords, Groups, SCANS(as_written, Groups))
FOUND(ScanWords, OwnSumAsWhole, SCANS(own_sum_as_whole, LookBack), "the result is wrong")
FOUND(ScanWords, FlagBeforeData, SCANS(flag_before_data, Chain), "the result is wrong")
FOUND(ScanWords, WordOfAnEarlierLaunch, SCANS(word_of_an_earlier_launch, Chain),
      "global-memory race between blocks")
FOUND(ScanWords, EpochRaisedEarly, SCANS(epoch_raised_early, LookBack),
      "global-memory race between blocks")
FOUND(ScanWords, NoBarrier, SCANS(no_barrier, Chain), "read after write of before")

}  // namespace
}  // namespace ladders::scan
