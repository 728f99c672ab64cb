// SPDX-License-Identifier: MIT
//
// Protocols between the blocks of the ladders' kernels, a section for each file of kernels/ that
// has one. As it should be, each is clean under every schedule of a search; with a fault planted,
// it is found out under one.
#include <cuda/atomic>

#include "correct.hpp"
#include "schedules.hpp"

namespace emulator {
namespace {

// What is wrong with a protocol. Each has some of these.
enum Wrong {
  nothing,
  no_fence_before,
  no_fence_after,
  flag_first,
  no_barrier,
  relaxed_store,
  relaxed_load,
  wrong_flag,
  wrong_tag,
  reset_early,
  two_halves,
  one_too_few,
  raised_early
};

constexpr unsigned kBlocks = 3, kThreads = 64;
constexpr int kSum = static_cast<int>(kBlocks * kThreads * (kBlocks * kThreads - 1) / 2);

__device__ int block_sum() {
  const int first = static_cast<int>(blockIdx.x * kThreads), n = static_cast<int>(kThreads);
  return first * n + n * (n - 1) / 2;
}

// ---- reduction/02_last_block.cuh

template <Wrong wrong>
__global__ void last_block(int* slots, unsigned* ticket, int* result) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    const auto take = [&] { last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1; };
    if (wrong == flag_first) take();
    slots[blockIdx.x] = block_sum();
    if (wrong != no_fence_before) __threadfence();
    if (wrong != flag_first) take();
  }
  __syncthreads();
  if (!last) return;
  if (wrong != no_fence_after) __threadfence();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += __ldcg(&slots[i]);
  *result = sum;
}
// Each warp has a slot.
template <Wrong wrong>
__global__ void last_block_of_warps(int* slots, unsigned* ticket, int* result) {
  __shared__ bool last;
  if (threadIdx.x % 32 == 0) slots[blockIdx.x * 2 + threadIdx.x / 32] = block_sum() / 2;
  if (wrong != no_barrier) __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < 2 * gridDim.x; ++i) sum += __ldcg(&slots[i]);
  *result = sum;
}
auto sums_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> slots(2 * kBlocks), result(1);
    const DeviceArray<unsigned> ticket(1);
    if (launch({kBlocks, kThreads}, kernel, slots, ticket, result) != cudaSuccess) return false;
    return result.values()[0] == kSum;
  };
}
CLEAN(LadderProtocol, LastBlock, sums_of(last_block<nothing>))
CLEAN(LadderProtocol, LastBlockOfWarps, sums_of(last_block_of_warps<nothing>))
FOUND(LadderProtocol, NoFenceBeforeTheTicket, sums_of(last_block<no_fence_before>))
FOUND(LadderProtocol, NoFenceAfterTheTicket, sums_of(last_block<no_fence_after>))
FOUND(LadderProtocol, TicketBeforeTheSum, sums_of(last_block<flag_first>))
FOUND(LadderProtocol, NoBarrierBeforeTheTicket, sums_of(last_block_of_warps<no_barrier>))

// ---- reduction/03_flags.cuh

struct alignas(16) Slot {
  double sum;
  unsigned there, unused;
};
template <Wrong wrong>
__global__ void flagged(Slot* slots, int* result) {
  const unsigned last = gridDim.x - 1;
  if (threadIdx.x != 0) return;
  if (blockIdx.x < last) {
    const Slot slot = {static_cast<double>(block_sum()), 1, 0};
    Slot* to = slots + blockIdx.x;
    if (wrong == two_halves) {
      strong_store(&to->there, &slot.there, 8, Strength::relaxed);
      strong_store(&to->sum, &slot.sum, 8, Strength::relaxed);
    } else if (wrong == relaxed_store) {
      to->sum = slot.sum;
      strong_store(&to->there, &slot.there, 4, Strength::relaxed);
    } else {
      strong_store(to, &slot, 16, Strength::relaxed);
    }
    return;
  }
  double sum = block_sum();
  for (unsigned i = 0; i < last; ++i) {
    Slot slot;
    const Slot none = {};
    do {
      strong_load(slots + i, &slot, 16, Strength::relaxed);
    } while (slot.there == 0);
    const unsigned resets = wrong == reset_early ? i + 1 : i;
    strong_store(slots + resets, &none, 16, Strength::relaxed);
    sum += slot.sum;
  }
  *result = static_cast<int>(sum);
}
auto flags_of(void (*kernel)(Slot*, int*)) {
  return [=] {
    const DeviceArray<Slot> slots(kBlocks);
    const DeviceArray<int> result(1);
    for (int i = 0; i < 2; ++i) {
      if (launch({kBlocks, kThreads}, kernel, slots, result) != cudaSuccess) return false;
      if (result.values()[0] != kSum) return false;
    }
    return true;
  };
}
CLEAN(LadderProtocol, Flagged, flags_of(flagged<nothing>))
FOUND(LadderProtocol, HalvesOfAWord, flags_of(flagged<two_halves>))
FOUND(LadderProtocol, RelaxedFlagOfSeparateData, flags_of(flagged<relaxed_store>))
FOUND(LadderProtocol, ResetOfTheNextWord, flags_of(flagged<reset_early>))

// ---- scan/03_single_pass.cuh

using Word = unsigned long long;
__device__ Word pack(int sum, unsigned tag) { return Word{tag} << 32 | static_cast<unsigned>(sum); }
__device__ Word poll(const Word* word) {
  Word value;
  strong_load(word, &value, 8, Strength::relaxed);
  return value;
}
__device__ void publish(Word* word, Word value) {
  strong_store(word, &value, 8, Strength::relaxed);
}

template <Wrong wrong>
__global__ void look_back(Word* words, unsigned* epoch, int* out) {
  if (threadIdx.x != 0) return;
  const unsigned tile = blockIdx.x, launches = *epoch;
  if (wrong == raised_early && tile == 0) *epoch = launches + 1;
  const unsigned own = 2 * launches + 2, all = own + 1;
  publish(words + tile, pack(block_sum(), tile == 0 || wrong == wrong_tag ? all : own));
  int before = 0;
  for (unsigned i = tile; i-- > 0;) {
    Word word;
    do word = poll(words + i);
    while (wrong == one_too_few ? word >> 32 == 0 : word >> 32 < own);
    before += static_cast<int>(word);
    if (word >> 32 == all) break;
  }
  if (tile > 0) publish(words + tile, pack(before + block_sum(), all));
  if (wrong != raised_early && tile + 1 == gridDim.x) *epoch = launches + 1;
  out[tile] = before;
}
auto scans_of(void (*kernel)(Word*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<Word> words(kBlocks);
    const DeviceArray<unsigned> epoch(1);
    const int n = static_cast<int>(kThreads);
    for (int i = 0; i < 2; ++i) {
      const DeviceArray<int> out(kBlocks);
      if (launch({kBlocks, kThreads}, kernel, words, epoch, out) != cudaSuccess) return false;
      if (out.values() != std::vector{0, n * (n - 1) / 2, n * (2 * n - 1)}) return false;
    }
    return true;
  };
}
CLEAN(LadderProtocol, LookBack, scans_of(look_back<nothing>))
FOUND(LadderProtocol, TagOfTheWholeSumOnTheOwn, scans_of(look_back<wrong_tag>))
FOUND(LadderProtocol, TagOfAnEarlierLaunch, scans_of(look_back<one_too_few>))
FOUND(LadderProtocol, EpochRaisedTooEarly, scans_of(look_back<raised_early>))

// A chain whose data, written by all threads, is apart from the flags.
template <Wrong wrong>
__global__ void chain(int* data, unsigned* flags, int* out) {
  const unsigned b = blockIdx.x, t = threadIdx.x;
  const auto wait_for = [&](unsigned block) {
    unsigned there = 0;
    while (there == 0)
      strong_load(flags + block, &there, 4,
                  wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
  };
  const auto raise = [&] {
    const unsigned one = 1;
    strong_store(flags + b, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
  };
  if (b > 0 && t == 0) wait_for(wrong == wrong_flag && b > 1 ? b - 2 : b - 1);
  __syncthreads();
  if (wrong == flag_first && t == 0) raise();
  data[b * kThreads + t] = 1 + (b > 0 ? data[(b - 1) * kThreads + t] : 0);
  if (wrong != no_barrier) __syncthreads();
  if (wrong != flag_first && t == 0) raise();
  // What the first block wrote is known through those in between.
  out[b * kThreads + t] = b == 2 ? data[kThreads - 1 - t] + data[b * kThreads + t] : 0;
}
auto chains_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    const DeviceArray<unsigned> flags(kBlocks);
    if (launch({kBlocks, kThreads}, kernel, data, flags, out) != cudaSuccess) return false;
    // The last block adds up the first one's 1 and its own 3.
    return out.values() == list_of(kBlocks * kThreads, [](int i) { return i < 2 * 64 ? 0 : 4; });
  };
}
CLEAN(LadderProtocol, ChainOfThreeBlocks, chains_of(chain<nothing>))
FOUND(LadderProtocol, FlagBeforeItsData, chains_of(chain<flag_first>))
FOUND(LadderProtocol, RelaxedStoreOfAFlag, chains_of(chain<relaxed_store>))
FOUND(LadderProtocol, RelaxedLoadOfAFlag, chains_of(chain<relaxed_load>))
FOUND(LadderProtocol, FlagOfAnotherBlock, chains_of(chain<wrong_flag>))
FOUND(LadderProtocol, NoBarrierBeforeTheFlag, chains_of(chain<no_barrier>))

// ---- sgemm/05_stream_k.cuh: each warp stores its partial sums and counts itself

using Count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

template <Wrong wrong>
__global__ void fixup(int* parts, unsigned* there, int* out) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x > 0) {
    parts[t] = static_cast<int>(t);
    if (wrong != no_barrier) __syncwarp();
    if (t % 32 == 0)
      Count(*there).fetch_add(
          1, wrong == relaxed_store ? cuda::memory_order_relaxed : cuda::memory_order_release);
    return;
  }
  const unsigned warps = wrong == one_too_few ? 1 : kThreads / 32;
  if (t == 0) {
    const Count count(*there);
    while (count.load(cuda::memory_order_acquire) < warps) {
    }
    count.store(0, cuda::memory_order_relaxed);
  }
  __syncthreads();
  out[t] = parts[t];
}
auto fixups_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> parts(kThreads), out(kThreads);
    const DeviceArray<unsigned> there(1);
    if (launch({2, kThreads}, kernel, parts, there, out) != cudaSuccess) return false;
    return out.values() == counting(kThreads);
  };
}
CLEAN(LadderProtocol, Fixup, fixups_of(fixup<nothing>))
FOUND(LadderProtocol, NoSyncwarpBeforeTheCount, fixups_of(fixup<no_barrier>))
FOUND(LadderProtocol, RelaxedCount, fixups_of(fixup<relaxed_store>))
FOUND(LadderProtocol, OneWarpTooFew, fixups_of(fixup<one_too_few>))

// ---- byte_histogram/02_always_reading.cuh: the first block zeroes, the last resets

struct Meeting {
  unsigned blocks, zeroed;
};
template <Wrong wrong>
__global__ void meeting(unsigned* bins, Meeting* meeting, int*) {
  const unsigned t = threadIdx.x, one = 1;
  const unsigned came = t == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
  if (t < 32 && __shfl_sync(~0u, came, 0) == 0) {
    if (wrong == flag_first && t == 0) strong_store(&meeting->zeroed, &one, 4, Strength::release);
    bins[t] = 0;
    if (wrong != no_barrier) __syncwarp();
    if (t == 0) strong_store(&meeting->zeroed, &one, 4, Strength::release);
    __syncwarp();
  }
  if (t < 32) {
    unsigned zeroed = 0;
    do
      strong_load(&meeting->zeroed, &zeroed, 4,
                  wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
    while (!__all_sync(~0u, zeroed != 0));
    atomicAdd(bins + t, 1u);
  }
  __syncthreads();
  const unsigned left = t == 0 ? atomicAdd(&meeting->blocks, 1u) : 0;
  if (t == 0 && left == (wrong == reset_early ? gridDim.x : 2 * gridDim.x - 1))
    meeting->blocks = meeting->zeroed = 0;
}
auto meetings_of(void (*kernel)(unsigned*, Meeting*, int*)) {
  return [=] {
    const DeviceArray<unsigned> bins(32);
    const DeviceArray<Meeting> state(1);
    for (int i = 0; i < 2; ++i) {
      if (launch({kBlocks, kThreads}, kernel, bins, state, nullptr) != cudaSuccess) return false;
      if (bins.values() != std::vector(32, kBlocks)) return false;
    }
    return true;
  };
}
CLEAN(LadderProtocol, Meeting, meetings_of(meeting<nothing>))
FOUND(LadderProtocol, ZeroedBeforeTheZeros, meetings_of(meeting<flag_first>))
FOUND(LadderProtocol, NoSyncwarpAfterTheZeros, meetings_of(meeting<no_barrier>))
FOUND(LadderProtocol, RelaxedPollOfZeroed, meetings_of(meeting<relaxed_load>))
FOUND(LadderProtocol, ResetByTheWrongBlock, meetings_of(meeting<reset_early>))

}  // namespace
}  // namespace emulator
