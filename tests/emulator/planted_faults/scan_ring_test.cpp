// SPDX-License-Identifier: MIT
//
// scan/04_bulk_ring.cuh and its copies: bulk copies move tiles through a ring in shared memory.
#include "scan.hpp"
#include "scan/04_bulk_ring/as_written.cuh"
#include "scan/04_bulk_ring/freed_too_early.cuh"
#include "scan/04_bulk_ring/no_init_fence.cuh"
#include "scan/04_bulk_ring/no_proxy_fence.cuh"
#include "scan/04_bulk_ring/too_few_bytes.cuh"
#include "scan/04_bulk_ring/wrong_phase.cuh"

namespace ladders::scan {
namespace {

// Blocks that poll take their time where schedules are explored.
constexpr emulator::Effort kEffort{.schedules = 2, .seeds = 0};

// More tiles than the blocks have stages, and the last one is not whole.
constexpr int kBlocks = 2, kThreads = 64, kStages = 2, kTile = 4 * kThreads, kCount = 6 * kTile - 3;
constexpr unsigned kWarpsBesides = kStages + 2;

template <class Kernel>
auto scans(Kernel kernel) {
  return scans_with(kCount, [=](const unsigned* in, unsigned* out, Exchange exchange) {
    const emulator::Shape shape{kBlocks, kThreads + 32 * kWarpsBesides,
                                kStages * kTile * sizeof(unsigned)};
    return emulator::launch_cooperative(shape, kernel, in, size_t{kCount}, out,
                                        make_schedule(kCount, kTile, kBlocks, kStages), exchange);
  });
}
#define SCANS(copy) scans(copy::bulk_ring<Ints, kThreads, 1, kStages>)

CLEAN(ScanRing, AsWritten, SCANS(as_written), kEffort)
FOUND(ScanRing, NoProxyFence, SCANS(no_proxy_fence), "a bulk copy reads what no fence has shown it",
      kEffort)
FOUND(ScanRing, NoInitFence, SCANS(no_init_fence),
      "no fence has shown it that its mbarrier is initialised", kEffort)
FOUND(ScanRing, WrongPhase, SCANS(wrong_phase), "read before the wait for an asynchronous copy",
      kEffort)
FOUND(ScanRing, FreedTooEarly, SCANS(freed_too_early), "its source was written before it was read",
      kEffort)
FOUND(ScanRing, TooFewBytes, SCANS(too_few_bytes),
      "copies bring 16 bytes more than its phase expects", kEffort)

}  // namespace
}  // namespace ladders::scan
