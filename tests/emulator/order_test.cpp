// SPDX-License-Identifier: MIT
//
// Orders between blocks: protocols of the ladders' kernels, each with faults planted. A search over
// schedules finds every fault, and nothing in the protocol as it should be.
#include <cooperative_groups.h>

#include <cuda/atomic>
#include <numeric>

#include "schedules.hpp"

namespace emulator {
namespace {

using Count = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

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
PROTOCOL(LastBlock, last_block, sums_of)
PROTOCOL(LastBlockOfWarps, last_block_of_warps, sums_of)
PLANTED(NoFenceBeforeTheTicket, last_block, no_fence_before, sums_of)
PLANTED(NoFenceAfterTheTicket, last_block, no_fence_after, sums_of)
PLANTED(TicketBeforeTheSum, last_block, flag_first, sums_of)
PLANTED(NoBarrierBeforeTheTicket, last_block_of_warps, no_barrier, sums_of)

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
PROTOCOL(Flagged, flagged, flags_of)
PLANTED(HalvesOfAWord, flagged, two_halves, flags_of)
PLANTED(RelaxedFlagOfSeparateData, flagged, relaxed_store, flags_of)
PLANTED(ResetOfTheNextWord, flagged, reset_early, flags_of)

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
PROTOCOL(LookBack, look_back, scans_of)
PLANTED(TagOfTheWholeSumOnTheOwn, look_back, wrong_tag, scans_of)
PLANTED(TagOfAnEarlierLaunch, look_back, one_too_few, scans_of)
PLANTED(EpochRaisedTooEarly, look_back, raised_early, scans_of)

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
    return out.values().back() == 4;
  };
}
PROTOCOL(ChainOfThreeBlocks, chain, chains_of)
PLANTED(FlagBeforeItsData, chain, flag_first, chains_of)
PLANTED(RelaxedStoreOfAFlag, chain, relaxed_store, chains_of)
PLANTED(RelaxedLoadOfAFlag, chain, relaxed_load, chains_of)
PLANTED(FlagOfAnotherBlock, chain, wrong_flag, chains_of)
PLANTED(NoBarrierBeforeTheFlag, chain, no_barrier, chains_of)

// ---- sgemm/05_stream_k.cuh: each warp stores its partial sums and counts itself

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
    return out.values().back() == static_cast<int>(kThreads) - 1;
  };
}
PROTOCOL(Fixup, fixup, fixups_of)
PLANTED(NoSyncwarpBeforeTheCount, fixup, no_barrier, fixups_of)
PLANTED(RelaxedCount, fixup, relaxed_store, fixups_of)
PLANTED(OneWarpTooFew, fixup, one_too_few, fixups_of)

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
PROTOCOL(Meeting, meeting, meetings_of)
PLANTED(ZeroedBeforeTheZeros, meeting, flag_first, meetings_of)
PLANTED(NoSyncwarpAfterTheZeros, meeting, no_barrier, meetings_of)
PLANTED(RelaxedPollOfZeroed, meeting, relaxed_load, meetings_of)
PLANTED(ResetByTheWrongBlock, meeting, reset_early, meetings_of)

// ---- clusters

template <Wrong wrong>
__global__ void cluster_sum(int* out) {
  namespace cg = cooperative_groups;
  __shared__ int sum;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = block_sum();
  cluster.sync();
  if (threadIdx.x == 0) {
    int all = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) all += *cluster.map_shared_rank(&sum, r);
    out[blockIdx.x] = all;
  }
  if (wrong != no_barrier) cluster.sync();
}
auto clusters_of(void (*kernel)(int*)) {
  return [=] {
    const DeviceArray<int> out(8);
    if (launch_clusters(2, {4, kThreads}, kernel, out) != cudaSuccess) return false;
    return true;
  };
}
template <Wrong wrong>
__global__ void cluster_halves(int* out) {
  namespace cg = cooperative_groups;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) out[2 * blockIdx.x] = block_sum();
  if (wrong != no_barrier) cluster.sync();
  if (threadIdx.x == 0) out[2 * blockIdx.x + 1] = out[2 * (blockIdx.x ^ 1)];
}
PROTOCOL(ClusterSums, cluster_sum, clusters_of)
PROTOCOL(ClusterBarrier, cluster_halves, clusters_of)
PLANTED(NoClusterBarrier, cluster_halves, no_barrier, clusters_of)
PLANTED(NoClusterBarrierBeforeTheEnd, cluster_sum, no_barrier, clusters_of)

// ---- a barrier of the grid

template <Wrong wrong>
__global__ void grid_barrier(int* data, unsigned* arrived, int* out) {
  data[blockIdx.x * kThreads + threadIdx.x] = 1;
  if (wrong != no_barrier) __syncthreads();
  if (threadIdx.x == 0) {
    if (wrong != no_fence_before) __threadfence();
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
    }
    if (wrong != no_fence_after) __threadfence();
  }
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] =
      data[(blockIdx.x + 1) % gridDim.x * kThreads + threadIdx.x];
}
auto grids_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    const DeviceArray<unsigned> arrived(1);
    if (launch({kBlocks, kThreads}, kernel, data, arrived, out) != cudaSuccess) return false;
    return out.values() == std::vector(kBlocks * kThreads, 1);
  };
}
PROTOCOL(GridBarrier, grid_barrier, grids_of)
PLANTED(GridBarrierNoBarrier, grid_barrier, no_barrier, grids_of)
PLANTED(GridBarrierNoFenceBefore, grid_barrier, no_fence_before, grids_of)
PLANTED(GridBarrierNoFenceAfter, grid_barrier, no_fence_after, grids_of)

template <Wrong wrong>
__global__ void grid_sync(int* data, int* out, int rounds) {
  const auto grid = cooperative_groups::this_grid();
  const auto own = grid.thread_rank(), other = (own + kThreads) % grid.num_threads();
  for (int i = 0; i < rounds; ++i) {
    data[own] = i;
    if (wrong == no_barrier)
      __syncthreads();
    else
      grid.sync();
    out[own] += data[other] == i;
    if (wrong != reset_early) grid.sync();
  }
}
auto grid_syncs_of(void (*kernel)(int*, int*, int)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads), out(kBlocks * kThreads);
    int *data_at = data, *out_at = out, rounds = 3;
    void* arguments[] = {&data_at, &out_at, &rounds};
    for (int i = 1; i <= 2; ++i) {
      if (cudaLaunchCooperativeKernel(kernel, kBlocks, kThreads, arguments) != cudaSuccess)
        return false;
      if (out.values() != std::vector(kBlocks * kThreads, i * rounds)) return false;
    }
    return true;
  };
}
PROTOCOL(GridSync, grid_sync, grid_syncs_of)
PLANTED(BlocksSyncForTheGrid, grid_sync, no_barrier, grid_syncs_of)
PLANTED(NoGridSyncAtTheEndOfALoop, grid_sync, reset_early, grid_syncs_of)

// ---- flags in global memory of data in shared memory: of the own block, or of another's

__device__ unsigned wait_for(const unsigned* flag, Strength strength) {
  unsigned there = 0;
  while (there == 0) strong_load(flag, &there, 4, strength);
  return there;
}
template <Wrong wrong>
__global__ void between_warps(unsigned* flags, int* out) {
  __shared__ int s;
  const unsigned one = 1, t = threadIdx.x;
  if (t == 0) {
    s = 7;
    strong_store(flags + blockIdx.x, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
    if (wrong == flag_first) s = 7 + static_cast<int>(blockIdx.x) + 1;
  }
  if (t != 32) return;
  wait_for(flags + blockIdx.x, wrong == relaxed_load ? Strength::relaxed : Strength::acquire);
  out[blockIdx.x] = s;
}
template <Wrong wrong>
__global__ void between_clusters(unsigned* flags, int* out) {
  namespace cg = cooperative_groups;
  __shared__ int s;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned one = 1, t = threadIdx.x, other = cluster.block_rank() ^ 1;
  cluster.sync();
  if (t == 0) {
    s = 7;
    strong_store(flags + blockIdx.x, &one, 4,
                 wrong == relaxed_store ? Strength::relaxed : Strength::release);
    wait_for(flags + (blockIdx.x ^ 1), Strength::acquire);
    out[blockIdx.x] = *cluster.map_shared_rank(&s, other);
  }
  cluster.sync();
}
template <unsigned blocks, unsigned cluster>
auto shared_of(void (*kernel)(unsigned*, int*)) {
  return [=] {
    const DeviceArray<unsigned> flags(blocks);
    const DeviceArray<int> out(blocks);
    const Shape shape{blocks, kThreads};
    if (launch_clusters(cluster, shape, kernel, flags, out) != cudaSuccess) return false;
    return out.values() == std::vector(blocks, 7);
  };
}
constexpr auto shared_of_one = shared_of<1, 1>;
constexpr auto shared_of_two = shared_of<2, 1>;
constexpr auto shared_of_clusters = shared_of<4, 2>;
PROTOCOL(SharedDataOfOneBlock, between_warps, shared_of_one)
PROTOCOL(SharedData, between_warps, shared_of_two)
PROTOCOL(SharedDataOfClusters, between_clusters, shared_of_clusters)
PLANTED(RelaxedStoreAfterSharedData, between_warps, relaxed_store, shared_of_two)
PLANTED(RelaxedLoadBeforeSharedData, between_warps, relaxed_load, shared_of_one)
PLANTED(SharedDataAfterItsFlag, between_warps, flag_first, shared_of_one)
PLANTED(RelaxedStoreInAClusterBeforeItsEnd, between_clusters, relaxed_store, shared_of_clusters)

// ---- a lock

template <Wrong wrong>
__global__ void locked(int* lock, unsigned*, int* total) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  if (wrong != no_fence_after) __threadfence();
  *total += 1;
  if (wrong != no_fence_before) __threadfence();
  atomicExch(lock, 0);
}
auto locks_of(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> lock(1), total(1);
    if (launch({kBlocks, kThreads}, kernel, lock, nullptr, total) != cudaSuccess) return false;
    return total.values()[0] == static_cast<int>(kBlocks);
  };
}
PROTOCOL(Lock, locked, locks_of)
PLANTED(LockNoFenceBefore, locked, no_fence_before, locks_of)
PLANTED(LockNoFenceAfter, locked, no_fence_after, locks_of)

// ---- no flags at all

template <Wrong wrong>
__global__ void shifted(int* data, unsigned* counts, int*) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  atomicAdd(counts, 1u);
  counts[1] = 1;  // by all, the same
  if (wrong == no_barrier)
    data[i] = data[(i + 1) % (kBlocks * kThreads)] + 1;
  else
    data[i] = data[i] + 1;
}
auto own_elements(void (*kernel)(int*, unsigned*, int*)) {
  return [=] {
    const DeviceArray<int> data(kBlocks * kThreads);
    const DeviceArray<unsigned> counts(2);
    return launch({kBlocks, kThreads}, kernel, data, counts, nullptr) == cudaSuccess;
  };
}
PROTOCOL(OwnElements, shifted, own_elements)
PLANTED(ElementsOfOthers, shifted, no_barrier, own_elements)

}  // namespace
}  // namespace emulator
