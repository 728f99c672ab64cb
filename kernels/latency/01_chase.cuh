// SPDX-License-Identifier: MIT
//
// One thread follows the chain. All threads of its block bring it into the cache before (not for
// DRAM).
#pragma once

#include <cooperative_groups.h>

#include "latency/problem.cuh"

namespace ladders::latency {
constexpr unsigned kBlock = 1024;

// ---- Global memory ----------------------------------------------------------------------------
enum Level { l1, l2, dram };

template <Level level>
__device__ __forceinline__ const Line* next(const Line* line) {
  return reinterpret_cast<const Line*>(level == l1 ? __ldca(&line->next) : __ldcg(&line->next));
}

template <Level level>
__global__ void chase(const Line* lines, unsigned count, unsigned loads, unsigned* position,
                      unsigned* way) {
  if (level != dram) {
    size_t loaded = 0;
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < count; i += kBlock) loaded |= size_t(next<level>(lines + i));
    if (loaded == 1) *way = 0;  // never, since lines are aligned: keeps the loads
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  const unsigned start = *position % count;
  const Line* at = lines + start;
#pragma unroll 16
  for (unsigned i = 0; i < loads; ++i) at = next<level>(at);
  way[0] = start, way[1] = *position = unsigned(at - lines);
}

template <Level level>
Implementation through_global() {
  const auto plan = [](const Case&, const Device&, const void*) {
    return LaunchPlan{.block = kBlock};
  };
  const auto arguments = [](Chase& c) {
    const auto count = unsigned(c.lines.size());
    return std::tuple<const Line*, unsigned, unsigned, unsigned*, unsigned*>(
        c.lines.data(), count, c.loads, c.position.data(), c.way.data());
  };
  return checked<Chase>(kernel<Chase>(chase<level>, plan, arguments),
                        [](const Chase& c) { return c.compare_among<Line>(); });
}

// ---- Shared memory ----------------------------------------------------------------------------
// An element is the offset of the next in bytes: a load adds the start of the array at no cost.
inline __global__ void chase_shared(unsigned words, unsigned loads, unsigned* position,
                                    unsigned* way) {
  auto* const bytes = dynamic_shared<char>();
  for (unsigned i = threadIdx.x; i < words; i += kBlock)
    reinterpret_cast<unsigned*>(bytes)[i] = 4 * successor(i, words);
  __syncthreads();
  if (threadIdx.x > 0) return;
  const unsigned start = *position % words;
  unsigned at = 4 * start;
#pragma unroll 16
  for (unsigned i = 0; i < loads; ++i) at = *reinterpret_cast<const unsigned*>(bytes + at);
  way[0] = start, way[1] = *position = at / 4;
}

// Of a cluster of two blocks, the first follows a chain in the memory of the second.
struct Word {
  const Word* next;
};
inline __global__ void chase_distributed(unsigned words, unsigned loads, unsigned* position,
                                         unsigned* way) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // clusters
  const auto cluster = cooperative_groups::this_cluster();
  Word* const theirs = cluster.map_shared_rank(dynamic_shared<Word>(), 1);
  cluster.sync();  // the other block has started
  if (cluster.block_rank() == 0) {
    for (unsigned i = threadIdx.x; i < words; i += kBlock)
      theirs[i].next = theirs + successor(i, words);
    __syncthreads();
    if (threadIdx.x == 0) {
      const unsigned start = *position % words;
      const Word* at = theirs + start;
#pragma unroll 16
      for (unsigned i = 0; i < loads; ++i) at = at->next;
      way[0] = start, way[1] = *position = unsigned(at - theirs);
    }
  }
  cluster.sync();  // no block may end while its memory is read
#endif
}

template <class Element, unsigned blocks, class Kernel>
Implementation through_shared(Kernel* kernel) {
  const auto plan = [](const Case& c, const Device&, const void*) {
    return LaunchPlan{.grid = blocks, .block = kBlock, .shared_bytes = bytes(c), .cluster = blocks};
  };
  const auto arguments = [](Chase& c) {
    const auto elements = unsigned(c.bytes / sizeof(Element));
    return std::tuple(elements, c.loads, c.position.data(), c.way.data());
  };
  return checked<Chase>(ladders::kernel<Chase>(kernel, plan, arguments),
                        [](const Chase& c) { return c.compare_among<Element>(); });
}

}  // namespace ladders::latency
