// SPDX-License-Identifier: MIT
//
// A ring of stages in shared memory that bulk copies fill: right, and with one thing wrong.
#include <emulator/bulk_copies.hpp>

#include "correct.hpp"

namespace emulator {
namespace {

// What is wrong with a ring.
enum Wrong {
  nothing,
  wrong_parity,           // the readers' phase bit
  freed_before_read,      // readers arrive, then read
  too_few_bytes,          // expected
  no_wait_before_refill,  //
  too_few_readers,        // of the empty barriers
  too_many_readers,       //
  source_overwritten,     // of a copy out
  no_wait_before_read,    //
};

// Turns each 64 words round.
__global__ void ring(int* out, const int* in, Wrong wrong) {
  constexpr int kStages = 2, kSteps = 7, kWords = 64;
  __shared__ __align__(16) int stages[kStages][kWords], sums[2][kWords];
  __shared__ MBarrier full[kStages], empty[kStages];
  if (threadIdx.x == 0)
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(full[s], 1);
      mbarrier_init(empty[s], wrong == too_few_readers    ? kWords / 2
                              : wrong == too_many_readers ? kWords + 1
                                                          : kWords);
      fence_mbarrier_init();
    }
  __syncthreads();
  if (threadIdx.x >= kWords) {
    if (threadIdx.x > kWords) return;
    for (int step = 0; step < kSteps; ++step) {
      const int s = step % kStages, bytes = kWords * sizeof(int);
      if (wrong != no_wait_before_refill) wait(empty[s], (step / kStages + 1) % 2);
      arrive_expect_tx(full[s], wrong == too_few_bytes ? bytes - 16 : bytes);
      bulk_load(stages[s], in + step * kWords, bytes, full[s]);
    }
    return;
  }
  for (int step = 0; step < kSteps; ++step) {
    const int s = step % kStages, parity = step / kStages % 2;
    if (wrong != no_wait_before_read) wait(full[s], wrong == wrong_parity ? 1 - parity : parity);
    if (wrong == freed_before_read) arrive(empty[s]);
    const int value = stages[s][kWords - 1 - threadIdx.x];
    if (wrong != freed_before_read) arrive(empty[s]);
    sums[step % 2][threadIdx.x] = value;
    fence_proxy_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      bulk_store(out + step * kWords + threadIdx.x, &sums[step % 2][threadIdx.x], 128);
      if (wrong != source_overwritten) bulk_wait_group_read();
    }
    __syncwarp();
  }
  bulk_wait_group_read();
}

// With checks, lanes that get out of step at mbarriers count one by one.
TEST(BulkRing, TurnsWordsRound) {
  const DeviceArray<int> in(counting(7 * 64));
  const Ints expected = list_of(7 * 64, [](int i) { return i / 64 * 64 + 63 - i % 64; });
  expect_results_everywhere(expected,
                            [&](int* out) { return launch({1, 96}, ring, out, in, nothing); });
}

struct Fault {
  Wrong wrong;
  const char *name, *what;  // a regular expression
};
constexpr char kTooEarly[] =
    "(read before the wait for an asynchronous copy|uninitialised shared|write after read of "
    "stages)";
const Fault kFaults[] = {
    {wrong_parity, "WrongParity", kTooEarly},
    {no_wait_before_read, "ReadWithoutAWait", kTooEarly},
    {freed_before_read, "FreedBeforeItIsRead", "race between warps: write after read of stages"},
    {too_few_bytes, "TooFewBytesExpected",
     "mbarrier: copies bring 16 bytes more than its phase expects"},
    {no_wait_before_refill, "FilledWithoutAWait",
     "mbarrier: more arrivals than the 1 of a phase, whose copies nobody has waited for"},
    {too_few_readers, "TooFewReaders",
     "(before the wait for an asynchronous copy|mbarrier: more arrivals|deadlock)"},
    {too_many_readers, "TooManyReaders",
     "deadlock.*threads wait for phase 0 of the mbarrier empty, which lacks 1 arrivals and 0 "
     "bytes, at bulk_ring_test.cpp"},
    {source_overwritten, "WayOutOverwritten", "its source was written before it was read"},
};
class BulkRingFaults : public ::testing::TestWithParam<Fault> {};
TEST_P(BulkRingFaults, AreFound) {
  const DeviceArray<int> in(counting(7 * 64));
  const Planted planted{GetParam().what, {1, 96}};
  expect_planted(__FILE__, "ring", planted, Named::no_line, [&] {
    const DeviceArray<int> out(7 * 64);
    return launch(planted.shape, ring, out, in, GetParam().wrong);
  });
}
INSTANTIATE_TEST_SUITE_P(, BulkRingFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace emulator
