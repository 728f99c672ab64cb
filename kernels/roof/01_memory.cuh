// SPDX-License-Identifier: MIT
//
// The bandwidth of DRAM, L2, shared memory and the shared memory of other blocks.
#pragma once

#include "common/sums.cuh"
#include "roof/problem.cuh"

namespace ladders::roof {
// ---- DRAM -------------------------------------------------------------------------------------
// A block takes tiles of neighbouring vectors, kFlight per thread, all loaded before the first is
// used. One block per tile keeps the accesses in flight close together; resident blocks save their
// launch.
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
      to[i + j * blockDim.x] = iota<V>(unsigned((i + j * blockDim.x) * (kBytes / 4)));
  }
}

// Each warp stores a sum, so that no load can be dropped.
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
  sum = sum_in_all_lanes(sum);
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * size_t{blockDim.x} + threadIdx.x) / 32] = sum;
}

inline LaunchPlan tiles(const Case& c, const Device& device, const void*) {
  const auto block = unsigned(c["threads"]);
  const double tile = double(c["bytes"]) * double(c["in_flight"]) * block;
  const double grid = c["grid"] == resident ? threads(device) / block : bytes(c) / tile;
  return {.grid = unsigned(grid), .block = block};
}

// `make` of the template arguments of a DRAM kernel.
template <class Make>
Implementation of_vectors(const Case& c, Make make) {
  return pick<4, 16>(c["bytes"], [&](auto width) {
    return pick<1, 4>(c["in_flight"], [&](auto flight) { return make(width, flight); });
  });
}

inline auto in_and_out(Roof& r) { return std::tuple(r.in(), r.words, r.out.data()); }

inline Verdict check_copy(const Roof& roof) {
  return {.wrong = first_difference("word", roof.out.data(), roof.words, Bits{})};
}
inline Implementation dram_copy_at(const Case& c, const Device&) {
  return of_vectors(c, [](auto width, auto flight) {
    return verified(dram_copy<width(), flight()>, tiles, in_and_out, check_copy);
  });
}
inline Implementation memcpy_of_all() {
  const auto copy = [](Roof& roof, cudaStream_t stream) {
    const size_t bytes = 4 * roof.words;
    check(cudaMemcpyAsync(roof.out.data(), roof.in(), bytes, cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
  };
  return checked<Roof>(library<Roof>(copy), check_copy);
}

inline Verdict check_write(const Roof& roof) {
  return {.wrong = first_difference("word", roof.out.data(), roof.words,
                                    [] __device__(size_t i) { return unsigned(i); })};
}
inline Implementation dram_write_at(const Case& c, const Device&) {
  return of_vectors(c, [](auto width, auto flight) {
    const auto arguments = [](Roof& r) { return std::tuple(r.words, r.out.data()); };
    return verified(dram_write<width(), flight()>, tiles, arguments, check_write);
  });
}

inline Implementation dram_read_at(const Case& c, const Device&) {
  return of_vectors(c, [](auto width, auto flight) {
    return verified(dram_read<width(), flight()>, tiles, in_and_out, [](const Roof& r) {
      return compare_sum(r, r.launched / 32, sum_modulo(r.words, Bits{}));
    });
  });
}

// ---- L2 ---------------------------------------------------------------------------------------
// A block reads every stride-th tile of the working set and leaves the others to its neighbours:
// the network would merge loads of one tile by two blocks at the same time.
constexpr unsigned kL2Loads = 32;  // per thread
inline __global__ void l2_read(const unsigned* __restrict__ in, unsigned stride, unsigned* sums) {
  const auto* from = reinterpret_cast<const uint4*>(in) + threadIdx.x;
  const unsigned first = blockIdx.x % stride;
  unsigned sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kL2Loads; ++i)
    sum += sum_of(__ldcg(from + (size_t{i} * stride + first) * kBlock));  // bypasses L1
  sum = sum_in_all_lanes(sum);
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * kBlock + threadIdx.x) / 32] = sum;
}

// The number of blocks that read the working set once, and how many times it is read.
inline unsigned l2_blocks_per_round(const Case& c) {
  return unsigned(c["mebibytes"] * kMiB / (sizeof(uint4) * kBlock * kL2Loads));
}
inline unsigned l2_rounds(const Case& c) {
  return std::max(1u, unsigned(5 * c["size"]) / l2_blocks_per_round(c));
}
inline Implementation l2_read_at(const Case& c, const Device&) {
  const auto plan = [](const Case& c, const Device&, const void*) {
    return LaunchPlan{.grid = l2_blocks_per_round(c) * l2_rounds(c), .block = kBlock};
  };
  const auto arguments = [stride = l2_blocks_per_round(c)](Roof& r) {
    return std::tuple(r.in(), stride, r.out.data());
  };
  const auto check = [words = c["mebibytes"] * kMiB / 4, rounds = l2_rounds(c)](const Roof& r) {
    return compare_sum(r, r.launched / 32, rounds * sum_modulo(words, Bits{}));
  };
  return verified(l2_read, plan, arguments, check);
}

// ---- Shared memory ----------------------------------------------------------------------------
constexpr int kSharedLoads = 4;
template <int kBytes>
__global__ void shared_memory(unsigned* out, int loads) {
  using V = Vector<kBytes>;
  __shared__ V vectors[kBlock];
  V* mine = vectors + threadIdx.x;
  *mine = iota<V>(threadIdx.x);
  unsigned sum = 0;
#pragma unroll 32
  for (int i = 0; i < loads; ++i) sum += sum_of(load_volatile(mine));
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
}

inline Implementation shared_memory_at(const Case& c, const Device&) {
  return pick<4, 8, 16>(c["bytes"], [loads = kSharedLoads * iterations(c)](auto width) {
    return verified(shared_memory<width()>, blocks_per_sm<>, out_and(loads), [=](const Roof& r) {
      return compare<unsigned>(r, r.launched,
                               [=](size_t i) { return loads * iota_sum<width()>(i % kBlock); });
    });
  });
}

constexpr int kRemoteFlight = 4;
template <int kBytes>
__global__ void distributed_shared_memory(unsigned* out, unsigned rounds) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // clusters
  using V = Vector<kBytes>;
  V* vectors = dynamic_shared<V>();
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  for (unsigned i = threadIdx.x; i < kRemoteFlight * kBlock; i += kBlock)
    vectors[i] = iota<V>(rank * kBlock + i);
  cluster.sync();
  unsigned sum = 0, other = rank;
  for (unsigned i = blockIdx.x / blocks; i < rounds; i += gridDim.x / blocks) {
    other = other + 1 < blocks ? other + 1 : 0;
    if (other == rank) other = other + 1 < blocks ? other + 1 : 0;
    const V* theirs = cluster.map_shared_rank(vectors, other) + threadIdx.x;
    V v[kRemoteFlight];
#pragma unroll
    for (int j = 0; j < kRemoteFlight; ++j) v[j] = theirs[j * kBlock];
#pragma unroll
    for (int j = 0; j < kRemoteFlight; ++j) sum += sum_of(v[j]);
  }
  cluster.sync();  // no block may end while its memory is read
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
#endif
}

inline Implementation distributed_at(const Case& c, const Device& device) {
  const auto cluster = unsigned(c["cluster"]);
  const unsigned rounds = cluster_rounds(c, device, 16), others = cluster - 1;
  return pick<4, 16>(c["bytes"], [=](auto width) {
    const auto check = [=](const Roof& r) {
      const unsigned clusters = r.launched / kBlock / cluster;
      return compare<unsigned>(r, r.launched, [=](size_t i) {
        const unsigned thread = i % kBlock, rank = i / kBlock % cluster;
        const unsigned mine = ceil_div(rounds - unsigned(i / kBlock / cluster), clusters);
        unsigned sum = 0;
        for (unsigned k = 0; k < others; ++k)  // the k-th block after this one
          for (int j = 0; j < kRemoteFlight; ++j)
            sum += (mine / others + (k < mine % others)) *
                   iota_sum<width()>(((rank + 1 + k) % cluster + j) * kBlock + thread);
        return sum;
      });
    };
    const auto plan = clusters(size_t{width()} * kRemoteFlight * kBlock);
    return verified(distributed_shared_memory<width()>, plan, out_and(rounds), check);
  });
}

}  // namespace ladders::roof
