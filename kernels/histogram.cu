// SPDX-License-Identifier: MIT
//
// Histogram: bins[key] counts the int keys, keys outside clamped to the first and last bin.
//
// Each key is read once, so the rate of reading DRAM is the limit; what stands in the way is the
// increment. An atomic on global memory is done in L2, one after the other where keys are equal. An
// atomic on shared memory is done on the SM, but its 227 KiB hold 58 112 counters. The shared
// memory of a cluster of up to 16 blocks holds more, each block owning a part of the bins, at the
// price that most increments cross the SM-to-SM network. Zeroing and merging are inside the time.

#include <cooperative_groups.h>

#include "catalogue.hpp"
#include "device.cuh"
#include "inputs.cuh"
#include "peers.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

enum Distribution { uniform, constant, zipf, sorted, out_of_range };

// The key at place i. Zipf's law with exponent 1: bin b is hit in proportion to 1 / (b + 1), drawn
// by searching a uniform number in the cumulative sums.
struct Key {
  Distribution distribution;
  size_t count;
  int bins;
  const double* cumulative;

  __device__ int operator()(size_t i) const {
    const double unit = random_unit(i);
    switch (distribution) {
      case constant:
        return bins / 2;
      case sorted:
        return static_cast<int>(static_cast<double>(i) * bins / count);
      case out_of_range:
        return static_cast<int>((2 * unit - 0.5) * bins);
      case zipf:
        return search(unit * cumulative[bins - 1]);
      default:
        return static_cast<int>(unit * bins);
    }
  }
  __device__ int search(double target) const {
    int low = 0, high = bins - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (cumulative[middle] < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

__host__ __device__ inline int bin_of(int key, int bins) {
  return key < 0 ? 0 : key >= bins ? bins - 1 : key;
}

// The reference: one atomic a key with no shared memory and no tricks, in 64 bits. The tests hold
// it against a loop on the host.
__global__ void reference(const int* keys, size_t count, unsigned long long* bins, int bin_count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x)
    atomicAdd(&bins[bin_of(keys[i], bin_count)], 1ull);
}

class Histogram : public Problem {
 public:
  explicit Histogram(const Case& c) : keys_(c["keys"]), bins_(c["bins"]), expected_(c["bins"]) {
    fill(static_cast<Distribution>(c["distribution"]));
    const int bins = static_cast<int>(bins_.size());
    check(cudaMemset(expected_.data(), 0, expected_.bytes()), "cudaMemset");
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(keys_.size(), 256), 1024));
    launch({.grid = blocks, .block = 256}, nullptr, reference, keys_.data(), keys_.size(),
           expected_.data(), bins);
  }
  Memory output() const override { return {bins_.data(), bins_.bytes()}; }
  auto arguments() const {
    return std::tuple(keys_.data(), keys_.size(), bins_.data(), static_cast<int>(bins_.size()));
  }

  const unsigned long long* expected() const { return expected_.data(); }

  Verdict compare() override {
    const unsigned* bins = bins_.data();
    const unsigned long long* expected = this->expected();
    if (const auto wrong =
            first_wrong(bins_.size(), [=] __device__(size_t i) { return bins[i] == expected[i]; }))
      return {.wrong = "bin " + std::to_string(*wrong) + " of " + std::to_string(bins_.size())};
    return {};
  }

 private:
  void fill(Distribution distribution) {
    std::vector<double> cumulative(bins_.size());
    double sum = 0;
    for (size_t b = 0; b < cumulative.size(); ++b) cumulative[b] = sum += 1.0 / double(b + 1);
    DeviceBuffer<double> on_device(cumulative.size());
    check(
        cudaMemcpy(on_device.data(), cumulative.data(), on_device.bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
    generate(keys_.data(), keys_.size(),
             Key{distribution, keys_.size(), static_cast<int>(bins_.size()), on_device.data()});
    check(cudaDeviceSynchronize(), "keys");  // before the cumulative sums are freed
  }

  DeviceBuffer<int> keys_;
  DeviceBuffer<unsigned> bins_;
  DeviceBuffer<unsigned long long> expected_;
};

// One atomic in L2 for each key. Equal keys queue up at one address.
__global__ void global(const int* __restrict__ keys, size_t count, unsigned* __restrict__ bins,
                       int bin_count) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride)
    atomicAdd(&bins[bin_of(keys[i], bin_count)], 1u);
}

// A histogram a block in its own shared memory, merged once at the end: increments stay on the SM,
// and the global atomics fall from one a key to one a bin and block.
__global__ void shared(const int* __restrict__ keys, size_t count, unsigned* __restrict__ bins,
                       int bin_count) {
  auto* mine = dynamic_shared<unsigned>();
  for (int b = threadIdx.x; b < bin_count; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride)
    atomicAdd(&mine[bin_of(keys[i], bin_count)], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < bin_count; b += blockDim.x)
    if (mine[b] != 0) atomicAdd(&bins[b], mine[b]);
}

// A histogram a cluster: each block holds a part of the bins and adds to the parts of the others
// over the SM-to-SM network. More bins fit, and every block's increments now travel.
__global__ void distributed(const int* __restrict__ keys, size_t count, unsigned* __restrict__ bins,
                            int bin_count) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  const auto cluster = cooperative_groups::this_cluster();
  const int part = ceil_div<int>(bin_count, cluster.num_blocks());
  auto* mine = dynamic_shared<unsigned>();
  for (int b = threadIdx.x; b < part; b += blockDim.x) mine[b] = 0;
  cluster.sync();  // every part exists and is zero before anyone adds to it
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += stride) {
    const int bin = bin_of(keys[i], bin_count);
    atomicAdd(cluster.map_shared_rank(mine, bin / part) + bin % part, 1u);
  }
  cluster.sync();  // nobody's part goes away while another block still adds to it
  const int first = static_cast<int>(cluster.block_rank()) * part;
  for (int b = threadIdx.x; b < part && first + b < bin_count; b += blockDim.x)
    if (mine[b] != 0) atomicAdd(&bins[first + b], mine[b]);
#endif
}

constexpr unsigned kThreads = 1024;

LaunchPlan resident(const Case&, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads}, kernel, device);
}

LaunchPlan resident_with_bins(const Case& c, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads, .shared_bytes = sizeof(unsigned) * c["bins"]}, kernel,
                     device);
}

size_t part_bytes(const Case& c) { return sizeof(unsigned) * ceil_div(c["bins"], c["cluster"]); }

LaunchPlan resident_clusters(const Case& c, const Device& device, const void* kernel) {
  return fill_device({.block = kThreads,
                      .shared_bytes = part_bytes(c),
                      .cluster = static_cast<unsigned>(c["cluster"])},
                     kernel, device);
}

std::string too_large(size_t bytes, const Device& device) {
  return bytes <= device.shared_bytes_per_block
             ? ""
             : "does not fit: " + std::to_string(bytes) + " bytes of shared memory a block, " +
                   std::to_string(device.shared_bytes_per_block) + " at most";
}

}  // namespace

Ladder histogram() {
  using P = Histogram;
  const std::vector<int64_t> bins = {32, 256, 4096, 16384, 57344, 65536, 131072, 458752};
  std::vector<Shape> measured;
  for (const Distribution d : {uniform, constant, zipf, sorted})
    for (const int64_t b : bins) measured.push_back({b, 1 << 28, d});
  return {
      .name = "histogram",
      .title = "Histogram",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_read",
      .input = "as the distribution says; zipf has exponent 1",
      .error_unit = "exact",
      .axes = {{"bins"},
               {"keys"},
               {.name = "distribution",
                .labels = {"uniform", "constant", "zipf", "sorted", "out_of_range"},
                .facet = true}},
      .measured = measured,
      .small = {{256, 1 << 20, uniform},
                {4096, 1 << 20, uniform},
                {57344, 1 << 20, uniform},
                {458752, 1 << 20, uniform},
                {256, 1 << 20, constant},
                {4096, 1 << 20, constant},
                {256, 1 << 20, zipf},
                {4096, 1 << 20, zipf}},
      .tested = {{1, 1000, uniform},
                 {32, 0, uniform},
                 {33, 1, uniform},
                 {256, 100003, zipf},
                 {257, 65537, sorted},
                 {1000, 99991, out_of_range},
                 {4099, 50021, constant},
                 {16411, 1 << 18, zipf},
                 {57344, 1 << 18, uniform},
                 {65537, 1 << 18, uniform},
                 {458752, 1 << 19, sorted}},
      .headline = {256, 1 << 28, uniform},
      .small_headline = {256, 1 << 20, uniform},
      .work =
          [](const Case& c, const Device&) {
            return Work{.bytes_read = 4. * double(c["keys"]),
                        .bytes_written = 4. * double(c["bins"])};
          },
      .problem = [](const Case& c, const Device&) { return std::make_unique<Histogram>(c); },
      .rungs =
          {
              {.name = "global",
               .idea = "One atomic in L2 for each key: equal keys queue up at one address.",
               .implementation = kernel<P>(global, resident),
               .zero_output = true,
               .moves = "global_atomic_requests"},
              {.name = "shared",
               .idea = "A histogram a block in shared memory, merged at the end: increments stay "
                       "on the SM.",
               .implementation = kernel<P>(shared, resident_with_bins),
               .zero_output = true,
               .moves = "global_atomic_requests",
               .skip = [](const Case& c,
                          const Device& d) { return too_large(sizeof(unsigned) * c["bins"], d); }},
              {.name = "distributed",
               .idea = "A histogram a cluster, each block holding a part of the bins: more fit, "
                       "and increments cross the SM-to-SM network.",
               .implementation = kernel<P>(distributed, resident_clusters),
               .zero_output = true,
               .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {1, 2, 3, 8, 16}}},
               .moves = "distributed_requests",
               .compute_capability = 90,
               .skip = [](const Case& c, const Device& d) { return too_large(part_bytes(c), d); }},
              {.name = "cub",
               .idea = "cub::DeviceHistogram::HistogramEven.",
               .implementation = library<P>([](P& problem, cudaStream_t stream) {
                 std::apply([&](auto... a) { peers::cub_histogram(problem, a..., stream); },
                            problem.arguments());
               }),
               .role = Role::peer,
               .skip =
                   [](const Case& c, const Device&) {
                     return c["distribution"] == out_of_range
                                ? "CUB drops keys that are out of range"
                                : "";
                   }},
          },
  };
}

}  // namespace ladders
