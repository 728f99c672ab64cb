// SPDX-License-Identifier: MIT
//
// Stale values: a load may read what was there before the last store, if nothing has told its
// thread of that store. Outcomes that CUDA forbids are found under no schedule, the others under
// one. (All words are atomic, so none of this is a race.)
#include <cuda/atomic>

#include "schedules.hpp"

namespace emulator {
namespace {

using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
enum Strong { relaxed, fenced, released, only_acquired, only_released };
constexpr auto kRelaxed = cuda::memory_order_relaxed;

__device__ void store(unsigned* word, Strong how) {
  if (how == fenced) __threadfence();
  const bool releases = how == released || how == only_released;
  Word(*word).store(1, releases ? cuda::memory_order_release : kRelaxed);
}
__device__ unsigned load(unsigned* word, Strong how) {
  const bool acquires = how == released || how == only_acquired;
  const unsigned value = Word(*word).load(acquires ? cuda::memory_order_acquire : kRelaxed);
  if (how == fenced) __threadfence();
  return value;
}

// Each of two blocks stores a word and loads the other's: without fences both may come first.
template <Strong how>
__global__ void store_buffering(unsigned* words, unsigned* seen) {
  store(&words[blockIdx.x], relaxed);
  if (how == fenced) __threadfence();
  seen[blockIdx.x] = load(&words[1 - blockIdx.x], relaxed);
}
bool one_sees_the_other(const std::vector<unsigned>& seen) { return seen[0] + seen[1] > 0; }

// Data that are atomic themselves, and a flag.
template <Strong how>
__global__ void message(unsigned* words, unsigned* seen) {
  if (blockIdx.x == 0) {
    store(&words[0], relaxed);
    store(&words[1], how);
  } else {
    seen[0] = load(&words[1], how);
    seen[1] = load(&words[0], relaxed);
  }
}
bool data_come_first(const std::vector<unsigned>& seen) { return seen[1] >= seen[0]; }

// The same, but the message goes through a block in between.
template <Strong how>
__global__ void chain(unsigned* words, unsigned* seen) {
  if (blockIdx.x == 0) store(&words[0], how);
  if (blockIdx.x == 1 && load(&words[0], how) == 1) store(&words[1], how);
  if (blockIdx.x == 2) {
    seen[0] = load(&words[1], how);
    seen[1] = load(&words[0], relaxed);
  }
}

// Once a thread has read the new value, neither it nor those that it tells read the old one.
template <bool by_atomic>
__global__ void one_word(unsigned* words, unsigned* seen) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) store(&words[0], relaxed);
    return;
  }
  if (threadIdx.x == 0) {
    seen[0] = by_atomic ? atomicCAS(&words[0], 2u, 3u) : load(&words[0], relaxed);
    seen[1] = load(&words[0], relaxed);
  }
  __syncthreads();
  if (threadIdx.x == 32) seen[2] = load(&words[0], relaxed);
}
bool never_older(const std::vector<unsigned>& seen) {
  return seen[1] >= seen[0] && seen[2] >= seen[1];
}

// Neither do parts of it, nor the whole after a part, whoever stores.
enum Sizes { stored_whole, stored_half, stored_by_itself, stored_plainly };
template <Sizes sizes>
__global__ void halves(unsigned* words, unsigned* seen) {
  using Whole = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
  const Whole both(*reinterpret_cast<unsigned long long*>(words));
  const auto high = [](unsigned long long value) { return static_cast<unsigned>(value >> 32); };
  constexpr auto kBoth = 1ull << 32 | 1;
  if (sizes == stored_plainly) {
    if (blockIdx.x == 0) {
      atomicAdd(&words[0], 1u);
      atomicAdd(&words[1], 1u);
    } else if (atomicAdd(&words[1], 0u) == 1) {
      words[0] = seen[0] = 2;
      seen[1] = load(&words[0], relaxed);
    }
  } else if (blockIdx.x == 0) {
    sizes == stored_half ? store(&words[1], relaxed) : both.store(kBoth, kRelaxed);
  } else if (sizes == stored_half) {
    seen[0] = high(both.load(kRelaxed));
    seen[1] = load(&words[1], relaxed);
  } else {
    if (sizes == stored_by_itself) store(&words[1], relaxed);
    seen[0] = sizes == stored_by_itself ? 1 : load(&words[1], relaxed);
    seen[1] = high(both.load(kRelaxed));
  }
}
bool never_older_parts(const std::vector<unsigned>& seen) { return seen[1] >= seen[0]; }

// What a flag in shared memory tells of.
__global__ void through_shared(unsigned* words, unsigned* seen) {
  __shared__ unsigned flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) store(&words[0], relaxed);
  } else if (threadIdx.x == 0) {
    seen[0] = load(&words[0], relaxed);
    store(&flag, released);
  } else if (threadIdx.x == 32) {
    while (load(&flag, released) == 0) {
    }
    seen[1] = load(&words[0], relaxed);
  }
}

// A store that changes nothing hides no older value.
__global__ void stored_again(unsigned* words, unsigned* seen) {
  if (blockIdx.x == 0) {
    store(&words[0], relaxed);
    atomicAdd(&words[0], 0u);
    store(&words[1], relaxed);
  } else {
    seen[0] = load(&words[1], relaxed);
    seen[1] = load(&words[0], relaxed);
  }
}

// An atomic always changes the last value.
__global__ void count(unsigned* words, unsigned*) {
  atomicAdd(&words[0], 1u);
  load(&words[0], relaxed);
  atomicAdd(&words[0], 1u);
}

std::function<bool()> litmus(void (*kernel)(unsigned*, unsigned*), unsigned blocks,
                             unsigned threads, bool (*allowed)(const std::vector<unsigned>&)) {
  return [=] {
    const DeviceArray<unsigned> words(2), seen(3);
    return launch({blocks, threads}, kernel, words, seen) == cudaSuccess && allowed(seen.values());
  };
}

// Outcomes that CUDA allows are found, those that it forbids are not.
#define ALLOWED(name, ...) \
  TEST(StaleAllowed, name) { expect_found(litmus(__VA_ARGS__)); }
#define FORBIDDEN(name, ...) \
  TEST(StaleForbidden, name) { expect_clean(litmus(__VA_ARGS__)); }

ALLOWED(StoresAfterLoads, store_buffering<relaxed>, 2, 1, one_sees_the_other)
FORBIDDEN(StoresAfterLoadsBehindFences, store_buffering<fenced>, 2, 1, one_sees_the_other)

ALLOWED(DataOlderThanTheirFlag, message<relaxed>, 2, 1, data_come_first)
ALLOWED(DataOlderThanAnAcquiredFlag, message<only_acquired>, 2, 1, data_come_first)
ALLOWED(DataOlderThanAReleasedFlag, message<only_released>, 2, 1, data_come_first)
FORBIDDEN(DataOlderThanAFencedFlag, message<fenced>, 2, 1, data_come_first)
FORBIDDEN(DataOlderThanAReleasedAndAcquiredFlag, message<released>, 2, 1, data_come_first)

ALLOWED(DataOlderThanWhatTheyCaused, chain<relaxed>, 3, 1, data_come_first)
FORBIDDEN(DataOlderThanWhatTheyCausedByFences, chain<fenced>, 3, 1, data_come_first)
FORBIDDEN(DataOlderThanWhatTheyCausedByReleases, chain<released>, 3, 1, data_come_first)

FORBIDDEN(WordThatGoesBack, one_word<false>, 2, 64, never_older)
FORBIDDEN(WordThatGoesBackAfterAnAtomic, one_word<true>, 2, 64, never_older)
FORBIDDEN(WholeOlderThanItsPart, halves<stored_whole>, 2, 1, never_older_parts)
FORBIDDEN(PartOlderThanTheWhole, halves<stored_half>, 2, 1, never_older_parts)
FORBIDDEN(WholeOlderThanItsOwnStore, halves<stored_by_itself>, 2, 1, never_older_parts)
FORBIDDEN(WordOlderThanItsOwnPlainStore, halves<stored_plainly>, 2, 1, never_older_parts)
FORBIDDEN(WordOlderThanAFlagInSharedMemoryTells, through_shared, 2, 64, never_older_parts)

ALLOWED(ValueOlderThanAStoreThatChangesNothing, stored_again, 2, 1, data_come_first)

TEST(StaleForbidden, AtomicOfAnOldValue) {
  expect_clean([] {
    const DeviceArray<unsigned> words(2), seen(1);
    return launch({3, 1}, count, words, seen) == cudaSuccess && words.values()[0] == 6;
  });
}

}  // namespace
}  // namespace emulator
