// SPDX-License-Identifier: MIT
//
// How fast bytes come and go: DRAM, L2, shared memory, that of other blocks.
#pragma once

#include "roof.cuh"

namespace ladders {
namespace {

// ---- DRAM -------------------------------------------------------------------------------------
// A block takes tile after tile of neighbouring vectors, kFlight of them a thread and all loaded
// before the first is used. With a block for each tile the hardware deals tiles out in order, and
// what is in flight stays close together in memory; resident blocks save the launching.

template <int kBytes, int kFlight>
__global__ void dram_copy(const unsigned* __restrict__ in, size_t words,
                          unsigned* __restrict__ out) {
  using V = Vector<kBytes>;
  const auto* from = reinterpret_cast<const V*>(in);
  auto* to = reinterpret_cast<V*>(out);
  const size_t count = 4 * words / kBytes, tile = size_t{blockDim.x} * kFlight;
  for (size_t first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
    const size_t i = first + threadIdx.x;
    V v[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) v[j] = from[i + j * blockDim.x];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) to[i + j * blockDim.x] = v[j];
  }
}

template <int kBytes, int kFlight>
__global__ void dram_write(size_t words, unsigned* out) {
  using V = Vector<kBytes>;
  auto* to = reinterpret_cast<V*>(out);
  const size_t count = 4 * words / kBytes, tile = size_t{blockDim.x} * kFlight;
  for (size_t first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
    const size_t i = first + threadIdx.x;
#pragma unroll
    for (int j = 0; j < kFlight; ++j)
      to[i + j * blockDim.x] =
          numbered<V>(static_cast<unsigned>((i + j * blockDim.x) * (kBytes / 4)));
  }
}

// A sum goes out for each warp, so that no load can be dropped.
template <int kBytes, int kFlight>
__global__ void dram_read(const unsigned* __restrict__ in, size_t words, unsigned* sums) {
  using V = Vector<kBytes>;
  const auto* from = reinterpret_cast<const V*>(in);
  const size_t count = 4 * words / kBytes, tile = size_t{blockDim.x} * kFlight;
  unsigned sum = 0;
  for (size_t first = blockIdx.x * tile; first < count; first += gridDim.x * tile) {
    const size_t i = first + threadIdx.x;
    V v[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) v[j] = from[i + j * blockDim.x];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) sum += sum_of(v[j]);
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * size_t{blockDim.x} + threadIdx.x) / 32] = sum;
}

enum Grid { per_tile, resident };
const std::vector<Sweep> kDramSweeps = {
    {.axis = {"bytes"}, .measured = {4, 16}, .tested = {4, 16}, .small = {16}},
    {.axis = {"in_flight"}, .measured = {1, 4}, .tested = {1, 4}, .small = {4}},
    {.axis = {"threads"}, .measured = {128, 512}, .tested = {128}, .small = {128}},
    {.axis = {"grid", {"per_tile", "resident"}},
     .measured = {per_tile, resident},
     .tested = {per_tile, resident},
     .small = {per_tile}}};

LaunchPlan tiles(const Case& c, const Device& device, const void*) {
  const auto block = static_cast<unsigned>(c["threads"]);
  const double tile = double(c["bytes"]) * double(c["in_flight"]) * block;
  const double grid = c["grid"] == resident ? threads(device) / block : bytes(c) / tile;
  return {.grid = static_cast<unsigned>(grid), .block = block};
}

Implementation dram_copy_at(const Case& c) {
  return pick<4, 16>(c["bytes"], [&](auto width) {
    return pick<1, 4>(c["in_flight"], [=](auto flight) {
      return kernel<Roof>(dram_copy<width(), flight()>, tiles,
                          [](Roof& r) { return std::tuple(r.in(), r.words, r.out.data()); });
    });
  });
}

Implementation dram_write_at(const Case& c) {
  return pick<4, 16>(c["bytes"], [&](auto width) {
    return pick<1, 4>(c["in_flight"], [=](auto flight) {
      return kernel<Roof>(dram_write<width(), flight()>, tiles,
                          [](Roof& r) { return std::tuple(r.words, r.out.data()); });
    });
  });
}

Implementation dram_read_at(const Case& c) {
  return pick<4, 16>(c["bytes"], [&](auto width) {
    return pick<1, 4>(c["in_flight"], [=](auto flight) {
      return kernel<Roof>(dram_read<width(), flight()>, tiles, [](Roof& r, const LaunchPlan& plan) {
        r.sums = size_t{plan.grid.x} * plan.block.x / 32;
        return std::tuple(r.in(), r.words, r.out.data());
      });
    });
  });
}

void copy(Roof& roof, cudaStream_t stream) {
  check(
      cudaMemcpyAsync(roof.out.data(), roof.in(), 4 * roof.words, cudaMemcpyDeviceToDevice, stream),
      "cudaMemcpyAsync");
}

Verdict check_copy(const Roof& roof) {
  return {.wrong = first_difference("word", roof.out.data(), roof.words, Bits{})};
}

Verdict check_write(const Roof& roof) {
  return {.wrong = first_difference("word", roof.out.data(), roof.words,
                                    [] __device__(size_t i) { return static_cast<unsigned>(i); })};
}

Verdict check_read(const Roof& roof) {
  if (sum_modulo(roof.words, Bits{}) != sum_modulo(roof.sums, Words{roof.out.data()}))
    return {.wrong = "sum of all words"};
  return {};
}

// ---- L2 ---------------------------------------------------------------------------------------
// Each block walks the working set tile by tile, as many tiles on each time as there are blocks: no
// two blocks read a tile at about the same time, which the network below the L2 would answer once.

constexpr int kL2Flight = 8;
constexpr unsigned kL2Block = 128;
__global__ void l2_read(const unsigned* __restrict__ in, unsigned tiles, int repetitions,
                        unsigned* sums) {
  const auto* from = reinterpret_cast<const uint4*>(in) + threadIdx.x;
  const unsigned step = gridDim.x % tiles;
  unsigned tile = blockIdx.x % tiles, sum = 0;
  for (int r = 0; r < repetitions; ++r) {
    const uint4* mine = from + size_t{tile} * kL2Flight * kL2Block;
    uint4 v[kL2Flight];
#pragma unroll
    for (int j = 0; j < kL2Flight; ++j) v[j] = __ldcg(mine + j * kL2Block);  // not from the L1
#pragma unroll
    for (int j = 0; j < kL2Flight; ++j) sum += sum_of(v[j]);
    tile += step;
    if (tile >= tiles) tile -= tiles;
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * kL2Block + threadIdx.x) / 32] = sum;
}

constexpr size_t kL2TileWords = size_t{4} * kL2Flight * kL2Block;
int l2_repetitions(double iterations) { return std::max(1, static_cast<int>(iterations) / 16); }
size_t set_words(const Case& c) { return c["mebibytes"] * kMiB / 4; }

LaunchPlan l2_blocks(const Case& c, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(c["blocks"] * device.sms), .block = kL2Block};
}

Implementation l2_read_at(const Case& c) {
  const size_t words = set_words(c);
  Implementation read = kernel<Roof>(l2_read, l2_blocks, [words](Roof& r, const LaunchPlan& plan) {
    r.blocks = static_cast<int>(plan.grid.x);
    return std::tuple(r.in(), static_cast<unsigned>(words / kL2TileWords),
                      l2_repetitions(r.iterations), r.out.data());
  });
  // Tiles come in turn, so that each is read as often as any other, or once more.
  read.check = [words](const Problem& p) -> Verdict {
    const auto& roof = static_cast<const Roof&>(p);
    if (roof.blocks == 0) return kNothingRan;
    const size_t reads = size_t(roof.blocks) * l2_repetitions(roof.iterations);
    const size_t tiles = words / kL2TileWords, once_more = reads % tiles * kL2TileWords;
    const uint32_t expected = static_cast<uint32_t>(reads / tiles) * sum_modulo(words, Bits{}) +
                              sum_modulo(once_more, Bits{});
    const size_t warps = size_t(roof.blocks) * kL2Block / 32;
    if (expected == sum_modulo(warps, Words{roof.out.data()})) return {};
    return {.wrong = "sum of all words"};
  };
  return read;
}

// ---- Shared memory ----------------------------------------------------------------------------

// A load from shared memory that is neither moved nor merged with another of the same address.
// C++ has no volatile vectors.
template <class T>
__device__ __forceinline__ T load_again(const T* p) {
#ifdef __CUDA_ARCH__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(p));
  T v;
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
  else if constexpr (sizeof(T) == 8)
    asm volatile("ld.volatile.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  else
    asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
  return v;
#else
  asm volatile("" ::: "memory");
  return *p;
#endif
}

// Every warp loads 32 neighbouring vectors again and again: 128 bytes a wavefront. So often, for an
// iteration, that to begin and to end takes a thousandth of the time.
constexpr int kSharedLoads = 4;
template <int kBytes>
__global__ void shared_memory(unsigned* out, int loads) {
  using V = Vector<kBytes>;
  __shared__ V vectors[kBlock];
  V* mine = vectors + threadIdx.x;
  *mine = numbered<V>(threadIdx.x);
  unsigned sum = 0;
#pragma unroll 32
  for (int i = 0; i < loads; ++i) sum += sum_of(load_again(mine));
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
}

template <int kBytes>
Verdict check_shared(const Roof& roof) {
  const std::vector<unsigned> sums = to_host(roof.out.data(), size_t(roof.blocks) * kBlock);
  if (sums.empty()) return kNothingRan;
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != unsigned(kSharedLoads * roof.iterations) * numbered_sum<kBytes>(i % kBlock))
      return {.wrong = "thread " + std::to_string(i)};
  return {};
}

Implementation shared_memory_at(const Case& c) {
  return pick<4, 8, 16>(c["bytes"], [](auto width) {
    return checked(kernel<Roof>(shared_memory<width()>, blocks_per_sm,
                                [](Roof& r, const LaunchPlan& plan) {
                                  r.blocks = static_cast<int>(plan.grid.x);
                                  return std::tuple(r.out.data(), kSharedLoads * r.iterations);
                                }),
                   check_shared<width()>);
  });
}

// Each block loads from the others of its cluster in turn, over the SM-to-SM network.
constexpr int kRemoteFlight = 4;
constexpr unsigned kRemoteBlock = 1024;
template <int kBytes>
__global__ void distributed_shared_memory(unsigned* out, unsigned rounds) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  using V = Vector<kBytes>;
  V* vectors = dynamic_shared<V>();
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  for (unsigned i = threadIdx.x; i < kRemoteFlight * kRemoteBlock; i += kRemoteBlock)
    vectors[i] = numbered<V>(rank * kRemoteBlock + i);
  cluster.sync();
  unsigned sum = 0, other = rank;
  // However many clusters there are, they share the rounds.
  for (unsigned i = blockIdx.x / blocks; i < rounds; i += gridDim.x / blocks) {
    other = other + 1 < blocks ? other + 1 : 0;
    if (other == rank) other = other + 1 < blocks ? other + 1 : 0;
    const V* theirs = cluster.map_shared_rank(vectors, other) + threadIdx.x;
    V v[kRemoteFlight];
#pragma unroll
    for (int j = 0; j < kRemoteFlight; ++j) v[j] = theirs[j * kRemoteBlock];
#pragma unroll
    for (int j = 0; j < kRemoteFlight; ++j) sum += sum_of(v[j]);
  }
  cluster.sync();  // the memory of a block that has ended is nobody's to read
  out[blockIdx.x * kRemoteBlock + threadIdx.x] = sum;
#endif
}

LaunchPlan clusters(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = {.block = kRemoteBlock,
                     .shared_bytes = static_cast<size_t>(c["bytes"]) * kRemoteFlight * kRemoteBlock,
                     .cluster = static_cast<unsigned>(c["cluster"])};
  return fill_device(plan, kernel, device);
}

template <int kBytes>
Verdict check_remote(const Roof& roof, unsigned cluster) {
  if (roof.blocks == 0) return kNothingRan;
  const auto blocks = static_cast<unsigned>(roof.blocks), clusters = blocks / cluster;
  const unsigned rounds = remote_rounds(roof.sms, cluster, roof.iterations);
  const std::vector<unsigned> sums = to_host(roof.out.data(), size_t{blocks} * kRemoteBlock);
  for (unsigned block = 0; block < blocks; ++block) {
    const unsigned id = block / cluster, rank = block % cluster;
    std::vector<unsigned> loads(cluster);  // from each of the others
    for (unsigned i = 0; id + i * clusters < rounds; ++i)
      ++loads[(rank + 1 + i % (cluster - 1)) % cluster];
    for (unsigned thread = 0; thread < kRemoteBlock; ++thread) {
      unsigned expected = 0;
      for (unsigned other = 0; other < cluster; ++other)
        for (int j = 0; j < kRemoteFlight; ++j)
          expected +=
              loads[other] * numbered_sum<kBytes>(other * kRemoteBlock + thread + j * kRemoteBlock);
      if (sums[size_t{block} * kRemoteBlock + thread] != expected)
        return {.wrong = "thread " + std::to_string(thread) + " of block " + std::to_string(block)};
    }
  }
  return {};
}

Implementation distributed_at(const Case& c) {
  const auto cluster = static_cast<unsigned>(c["cluster"]);
  return pick<4, 16>(c["bytes"], [&](auto width) {
    constexpr int kBytes = width();
    Implementation remote = kernel<Roof>(
        distributed_shared_memory<kBytes>, clusters, [cluster](Roof& r, const LaunchPlan& plan) {
          r.blocks = static_cast<int>(plan.grid.x);
          return std::tuple(r.out.data(), remote_rounds(r.sms, cluster, r.iterations));
        });
    remote.check = [cluster](const Problem& p) {
      return check_remote<kBytes>(static_cast<const Roof&>(p), cluster);
    };
    return remote;
  });
}

}  // namespace
}  // namespace ladders
