// SPDX-License-Identifier: MIT
//
// Bytes at the rate of DRAM: no bank conflicts, loads always in flight, and one instruction for the
// address of a counter.
#pragma once

#include "byte_histogram/01_textbook.cuh"
#include "common/flags.cuh"
#include "common/sums.cuh"
#include "common/vector.cuh"

namespace ladders::byte_histogram {
// One copy of the bins per lane, in the lane's bank: each increment of a warp is one wavefront.
// With 64 copies, odd warps use the second 32. Then bins are 256 bytes apart, from a boundary of
// 64 KiB on: the second byte of a counter's address is the key, which __byte_perm inserts.
template <int copies>
struct Copies {
  static_assert(copies == 32 || copies == 64);
  static constexpr bool kPermuted = copies == 64;
  static constexpr unsigned kBytes = kByteBins * copies * sizeof(unsigned);
  // Dynamic shared memory may start anywhere.
  static constexpr unsigned kRoom = kPermuted ? 2 * kBytes : kBytes;

  unsigned* counters;
  unsigned* own;     // the thread's copy of bin 0
  unsigned address;  // of `own`, in shared memory

  __device__ __forceinline__ Copies() : counters(dynamic_shared<unsigned>()) {
#ifdef __CUDACC__
    const auto start = unsigned(__cvta_generic_to_shared(counters));
    if (kPermuted) counters += (-start & (kBytes - 1)) / sizeof(unsigned);
#endif
    own = counters + threadIdx.x % copies;
#ifdef __CUDACC__
    address = unsigned(__cvta_generic_to_shared(own));
    asm("" : "+r"(address));  // or the compiler computes it for each vector
#endif
    auto* quads = reinterpret_cast<uint4*>(counters);
#pragma unroll
    for (unsigned i = 0; i < kBytes / 16; i += kThreads) quads[i + threadIdx.x] = {};
    __syncthreads();
  }
  __device__ __forceinline__ void add(Byte key) { atomicAdd(own + key * copies, 1u); }
  template <int byte>
  __device__ __forceinline__ void add_byte(unsigned word) {
#ifdef __CUDACC__
    if constexpr (kPermuted) {
      asm volatile(
          "red.shared.add.u32 [%0], 1;" ::"r"(__byte_perm(word, address, 0x7604 | byte << 4))
          : "memory");
      return;
    }
#endif
    add(static_cast<Byte>(word >> 8 * byte));
  }
  __device__ __forceinline__ void add_vector(const uint4& v) {
    for (const unsigned word : {v.x, v.y, v.z, v.w})
      add_byte<0>(word), add_byte<1>(word), add_byte<2>(word), add_byte<3>(word);
  }
  // A warp adds eight bins, one sector of the output, in one request.
  __device__ __forceinline__ void merge_into(unsigned* bins) const {
    __syncthreads();
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (unsigned first = 8 * warp; first < kByteBins; first += 8 * kWarps) {
      unsigned mine = 0;
#pragma unroll
      for (unsigned b = 0; b < 8; ++b) {
        unsigned n = counters[(first + b) * copies + lane];
        if (copies == 64) n += counters[(first + b) * copies + 32 + lane];
        n = sum_in_all_lanes(n);
        if (lane == b) mine = n;
      }
      if (mine != 0) atomicAdd(bins + first + lane, mine);  // in eight lanes at most
    }
  }
};

inline __global__ void __launch_bounds__(kThreads)
    lane_copies(const Byte* __restrict__ keys, size_t count, unsigned* __restrict__ bins) {
  Copies<32> copies;
  count_vectors(keys, count, bins, copies);
}

// The first block to arrive zeroes the bins, so none waits for one that has not started. Blocks
// wait for the zeros only after they have counted. The last to arrive again resets the state for
// the next launch.
__device__ __forceinline__ unsigned arrive(Arrivals* arrivals) {
  return threadIdx.x == 0 ? atomicAdd(&arrivals->count, 1u) : 0;
}
__device__ __forceinline__ void zero_if_first(Arrivals* arrivals, unsigned arrival,
                                              unsigned* bins) {
  if (threadIdx.x >= 32 || __shfl_sync(~0u, arrival, 0) != 0) return;
  auto* quads = reinterpret_cast<uint4*>(bins);
#pragma unroll
  for (int i = 0; i < kByteBins / 4; i += 32) quads[i + threadIdx.x] = {};
  __syncwarp();
  if (threadIdx.x == 0) store_release(&arrivals->zeroed, 1);
  __syncwarp();
}
// A warp that polls as one is faster than one lane that the others wait for.
__device__ __forceinline__ void wait_for_zeros(const Arrivals* arrivals) {
  if (threadIdx.x >= 32) return;
  do wait_uncounted(&arrivals->zeroed, 1);
  while (!__all_sync(~0u, load_acquire(&arrivals->zeroed) != 0));
}
__device__ __forceinline__ void reset_if_last(Arrivals* arrivals, unsigned arrival_after) {
  if (threadIdx.x == 0 && arrival_after == 2 * gridDim.x - 1)
    arrivals->count = arrivals->zeroed = 0;
}

// A warp takes `loads` vectors per lane at a time: they are in flight while the vectors before are
// counted, and the first ones while the counters are zeroed.
template <int loads, int copies, bool zeroes>
__global__ void __launch_bounds__(kThreads, 1)
    always_reading(const Byte* keys, size_t count, unsigned* bins, Arrivals* arrivals) {
  constexpr unsigned kVectors = loads * 32;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Vectors vectors(keys, count);
  const auto chunks = unsigned(vectors.count / kVectors), step = gridDim.x * kWarps;
  unsigned chunk = warp * gridDim.x + blockIdx.x;
  uint4 loaded[loads] = {};
  if (chunk < chunks) {
    const uint4* from = vectors.first + size_t{chunk} * kVectors + lane;
#pragma unroll
    for (int j = 0; j < loads; ++j) loaded[j] = load_once(from + 32 * j);
  }
  const unsigned arrival = zeroes ? arrive(arrivals) : 0;
  Copies<copies> counters;
  if constexpr (zeroes) zero_if_first(arrivals, arrival, bins);

  while (chunk < chunks) {
    chunk += step;
    const bool more = chunk < chunks;
    const uint4* from = vectors.first + size_t{chunk} * kVectors + lane;
#ifdef __CUDACC__
    asm("" : "+l"(from));
#endif
#pragma unroll
    for (int j = 0; j < loads; ++j) {
      const uint4 v = loaded[j];
      if (more) loaded[j] = load_once(from + 32 * j);
      counters.add_vector(v);
    }
  }
  if (blockIdx.x == gridDim.x - 1)  // the rest, less than a chunk
    for (size_t i = size_t{chunks} * kVectors + threadIdx.x; i < vectors.count; i += kThreads)
      counters.add_vector(vectors.first[i]);
  count_loose(keys, count, vectors, counters);

  if constexpr (zeroes) wait_for_zeros(arrivals);
  const unsigned arrival_after = zeroes ? arrive(arrivals) : 0;
  counters.merge_into(bins);
  if constexpr (zeroes) reset_if_last(arrivals, arrival_after);
}

// One block per SM, or fewer if some would have no chunk.
template <int loads, int copies, bool zeroes>
Implementation reading() {
  return kernel<ByteHistogram>(
      always_reading<loads, copies, zeroes>,
      [](const Case& c, const Device& device, const void*) {
        const int64_t chunks = ceil_div(c["keys"], loads * 512);
        const auto blocks = unsigned(std::clamp<int64_t>(chunks, 1, device.sms));
        return LaunchPlan{blocks, kThreads, Copies<copies>::kRoom};
      },
      [](ByteHistogram& p) { return std::tuple_cat(p.arguments(), std::tuple(p.arrivals())); });
}

}  // namespace ladders::byte_histogram
