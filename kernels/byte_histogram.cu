// SPDX-License-Identifier: MIT
//
// Histogram of bytes: bins[key] counts the keys of 8 bits, in 256 counters of 32 bits.
//
// At the rate of reading DRAM four times as many keys arrive as of an int: 19 a clock and SM (an
// H200's). Shared memory increments 32 counters a clock if no two of them are in one bank; 32
// random ones take 3.4 clocks on average, which is half of what is needed. So each lane counts in
// its own bank. What is then left is to keep the loads coming, few instructions a key, and, where
// there are few keys, the time that a launch takes to begin and to end. Zeroing and merging are
// inside the time.

#include <algorithm>

#include "byte_histogram_count.cuh"
#include "byte_histogram_problem.cuh"
#include "catalogue.hpp"
#include "device.cuh"
#include "peers.hpp"

namespace ladders {
namespace {

// One atomic in L2 for each key: all of them in 32 sectors.
__global__ void bytes_global(const Byte* __restrict__ keys, size_t count,
                             unsigned* __restrict__ bins) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride)
    atomicAdd(&bins[keys[i]], 1u);
}

// A histogram a block in its own shared memory, merged once at the end.
struct OneCopy {
  unsigned* counters;
  __device__ OneCopy(unsigned* counters) : counters(counters) {
    for (unsigned b = threadIdx.x; b < kByteBins; b += blockDim.x) counters[b] = 0;
    __syncthreads();
  }
  __device__ void add(Byte key) { atomicAdd(&counters[key], 1u); }
  __device__ void merge_into(unsigned* bins) {
    __syncthreads();
    for (unsigned b = threadIdx.x; b < kByteBins; b += blockDim.x)
      if (counters[b] != 0) atomicAdd(&bins[b], counters[b]);
  }
};

__global__ void bytes_shared(const Byte* __restrict__ keys, size_t count,
                             unsigned* __restrict__ bins) {
  __shared__ unsigned counters[kByteBins];
  OneCopy mine(counters);
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride)
    mine.add(keys[i]);
  mine.merge_into(bins);
}

// 16 keys a load: a warp's load of one byte a lane is a request for a single sector.
__global__ void bytes_vectorized(const Byte* __restrict__ keys, size_t count,
                                 unsigned* __restrict__ bins) {
  __shared__ unsigned counters[kByteBins];
  OneCopy mine(counters);
  const Vectors vectors(keys, count);
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < vectors.count; i += stride) {
    const uint4 v = vectors.first[i];
    for (const unsigned word : {v.x, v.y, v.z, v.w})
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) mine.add(static_cast<Byte>(word >> 8 * byte));
  }
  count_loose(keys, count, vectors, [&](Byte key) { mine.add(key); });
  mine.merge_into(bins);
}

// The kernels that reach the roof are in byte_histogram_count.cuh.

LaunchPlan resident_blocks(const Case&, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads}, kernel, device);
}

LaunchPlan resident_copies(const Case&, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads, .shared_bytes = Copies<32>::kRoom}, kernel, device);
}

// A block an SM, none without a chunk for a warp.
template <int loads, int copies>
LaunchPlan block_an_sm(const Case& c, const Device& device, const void*) {
  const int64_t chunks = ceil_div<int64_t>(c["keys"], loads * 512);
  return {.grid = static_cast<unsigned>(std::clamp<int64_t>(chunks, 1, device.sms)),
          .block = kThreads,
          .shared_bytes = Copies<copies>::kRoom};
}

template <int loads, int copies, bool zeroes>
Implementation reading() {
  return kernel<ByteHistogram>(always_reading<loads, copies, zeroes>, block_an_sm<loads, copies>,
                               [](ByteHistogram& problem) {
                                 return std::tuple_cat(problem.arguments(),
                                                       std::tuple(problem.meeting()));
                               });
}

// Few keys are spread over more warps, each with fewer loads to wait for and fewer keys to count:
// measured at 2^22 keys, where it is worth 1.5 %, and at 2^26, where it costs 1 %.
Implementation fastest_at(const Case& c) {
  if (current_gpu().shared_bytes_per_block < Copies<64>::kRoom) return reading<4, 32, true>();
  return c["keys"] < 1 << 24 ? reading<2, 64, true>() : reading<4, 64, true>();
}

constexpr int64_t kMost = int64_t{1} << 30;

}  // namespace

Ladder byte_histogram() {
  using P = ByteHistogram;
  std::vector<Shape> measured;
  for (const int64_t keys : {int64_t{1} << 22, int64_t{1} << 26, int64_t{1} << 28, kMost})
    for (const int64_t d : {bytes_uniform, bytes_constant, bytes_zipf, bytes_sorted, bytes_few})
      if (keys == kMost || d == bytes_uniform || d == bytes_constant) measured.push_back({keys, d});
  return {
      .name = "byte_histogram",
      .title = "Histogram of bytes",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_read",
      .input = "as the distribution says; zipf has exponent 1, few keys are 0, 85, 170 and 255",
      .error_unit = "exact",
      .axes = {{"keys"},
               {.name = "distribution",
                .labels = {"uniform", "constant", "zipf", "sorted", "few"},
                .facet = true}},
      .measured = measured,
      .small = {{1 << 20, bytes_uniform}, {1 << 20, bytes_constant}, {1 << 20, bytes_zipf}},
      .tested = {{0, bytes_uniform},
                 {1, bytes_constant},
                 {15, bytes_uniform},
                 {17, bytes_few},
                 {4095, bytes_sorted},
                 {16384, bytes_uniform},
                 {100003, bytes_zipf},
                 {(1 << 18) + 511, bytes_constant},
                 {(1 << 19) + 8177, bytes_sorted},
                 {1 << 20, bytes_few}},
      .headline = {kMost, bytes_uniform},
      .small_headline = {1 << 20, bytes_uniform},
      .work =
          [](const Case& c, const Device&) {
            return Work{.bytes_read = double(c["keys"]),
                        .bytes_written = sizeof(unsigned) * kByteBins};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<P>(c); },
      .rungs =
          {
              {.name = "global",
               .idea = "One atomic in L2 for each key: they queue up at 32 sectors.",
               .implementation = kernel<P>(bytes_global, resident_blocks),
               .zero_output = true,
               .moves = "global_atomic_requests",
               .measured =
                   [](const Case& c) {
                     return c["keys"] < kMost || c["distribution"] == bytes_uniform;
                   }},
              {.name = "shared",
               .idea = "A histogram a block in shared memory, merged at the end: increments stay "
                       "on the SM.",
               .implementation = kernel<P>(bytes_shared, resident_blocks),
               .zero_output = true,
               .moves = "global_atomic_requests"},
              {.name = "vectorized",
               .idea = "Sixteen keys a load: a request of a warp is 16 sectors instead of one.",
               .implementation = kernel<P>(bytes_vectorized, resident_blocks),
               .zero_output = true,
               .moves = "global_load_sectors_per_request"},
              {.name = "lane_copies",
               .idea = "A copy of the bins for each lane, in a bank of its own: no two lanes meet, "
                       "whatever the keys.",
               .implementation = kernel<P>(lane_copies, resident_copies),
               .zero_output = true,
               .moves = "shared_atomic_wavefronts_per_request"},
              {.name = "in_flight",
               .idea = "A block an SM with four loads always on their way to each thread, whatever "
                       "it is counting.",
               .implementation = reading<4, 32, false>(),
               .zero_output = true},
              {.name = "permuted",
               .idea = "Bins 256 bytes apart: the key becomes the second byte of its address, by "
                       "one instruction instead of three.",
               .implementation = reading<4, 64, false>(),
               .zero_output = true,
               .moves = "warp_instructions"},
              {.name = "one_launch",
               .idea = "The first block to come zeroes the output while all are counting: no "
                       "kernel or memset before.",
               .implementation = reading<4, 64, true>()},
              {.name = "fastest",
               .idea = "Two loads a thread below 2^24 keys, else four; bins 128 bytes apart where "
                       "more take more room than there is.",
               .choose = fastest_at},
              {.name = "cub",
               .idea = "cub::DeviceHistogram::HistogramEven on samples of 8 bits.",
               .implementation = library<P>([](P& problem, cudaStream_t stream) {
                 std::apply([&](auto... a) { peers::cub_histogram(problem, a..., stream); },
                            problem.arguments());
               }),
               .role = Role::peer},
          },
  };
}

}  // namespace ladders
