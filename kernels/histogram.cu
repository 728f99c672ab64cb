// SPDX-License-Identifier: MIT
//
// Histogram: bins[key] counts the int keys, keys outside clamped to the first and last bin.
//
// Each key is read once, so the rate of reading DRAM is the limit; what stands in the way is the
// increment. An atomic on global memory is done in L2, one after the other where keys are equal. An
// atomic on shared memory is done on the SM, but its 227 KiB hold 58 112 counters. The shared
// memory of a cluster of up to 16 blocks holds more, each block owning a part of the bins, at the
// price that most increments cross the SM-to-SM network. Or counters are made narrow, which must
// then be kept from overflowing, and blocks share out the bins and read the keys several times, all
// but once from L2. Zeroing and merging are inside the time.

#include <cooperative_groups.h>

#include <algorithm>
#include <initializer_list>
#include <set>

#include "catalogue.hpp"
#include "device.cuh"
#include "histogram_cluster.cuh"
#include "histogram_count.cuh"
#include "histogram_problem.cuh"
#include "peers.hpp"

namespace ladders {
namespace {

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

// The kernels that reach further are in histogram_count.cuh, and in histogram_cluster.cuh those of
// clusters.

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

// How many bins have room in one block's counters.
template <int bits>
int64_t fitting(size_t shared_bytes) {
  return (static_cast<int64_t>(shared_bytes) - kCountersAt<bits>) / 128 * Counters<bits>::kBinsARow;
}

// A block an SM, none without a chunk for each warp; two groups of them or more if `ranged`.
template <int bits, bool ranged = false>
LaunchPlan block_an_sm(const Case& c, const Device& device, const void*) {
  constexpr int64_t kBinsARow = Counters<bits>::kBinsARow;
  const int64_t bins = c["bins"], fit = fitting<bits>(device.shared_bytes_per_block);
  const int64_t parts = ranged ? std::max<int64_t>(2, ceil_div(bins, fit)) : 1;
  const int64_t rows = ceil_div(ceil_div(bins, parts), kBinsARow);
  const int64_t groups = ceil_div(bins, rows * kBinsARow);
  const int64_t most = std::clamp<int64_t>(device.sms / groups, 1, kMostRows);
  const int64_t blocks =
      std::clamp<int64_t>(ceil_div<int64_t>(c["keys"], kWarps * kChunk), 1, most);
  return {.grid = static_cast<unsigned>(blocks * groups),
          .block = kThreads,
          .shared_bytes = static_cast<size_t>(kCountersAt<bits> + 128 * rows)};
}

template <int bits>
Counting counting(Histogram& problem, const LaunchPlan& plan) {
  const auto [keys, count, bins, bin_count] = problem.arguments();
  Counting c = {.keys = keys, .count = count, .bins = bins, .bin_count = bin_count};
  c.words = static_cast<unsigned>((plan.shared_bytes - kCountersAt<bits>) / 4);
  c.range = static_cast<int>(c.words) * Counters<bits>::kFields;
  c.groups = ceil_div(bin_count, c.range);
  return c;
}

// A kernel after the one before it in the stream, started early where the GPU can: it waits itself.
template <class... Parameters>
void launch_early(const LaunchPlan& plan, cudaStream_t stream, void (*kernel)(Parameters...),
                  const std::type_identity_t<Parameters>&... arguments) {
  launch(plan, {.early = current_gpu().compute_capability >= 90}, stream, kernel, arguments...);
}

template <bool spread>
Implementation merged_by_atomics() {
  return kernel<Histogram>(count_keys<32, spread, false>, block_an_sm<32>,
                           [](Histogram& problem, const LaunchPlan& plan) {
                             return std::tuple(counting<32>(problem, plan));
                           });
}

// A kernel zeroes the output, and counting, which adds to it in the end, begins before that is
// done. `counting(problem, plan)` is what the counting kernel takes.
template <class Of>
Implementation zeroed_meanwhile(void (*count)(Counting),
                                LaunchPlan (*plan)(const Case&, const Device&, const void*),
                                Of counting) {
  return {.kernel = reinterpret_cast<const void*>(count),
          .plan = plan,
          .launch = [=](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            const Counting c = counting(static_cast<Histogram&>(problem), plan);
            const auto blocks = static_cast<unsigned>(ceil_div(c.bin_count, kThreads));
            launch({.grid = blocks, .block = kThreads}, stream, zero_bins, c.bins, c.bin_count);
            launch_early(plan, stream, count, c);
          }};
}

Implementation zeroed_and_merged() {
  return zeroed_meanwhile(count_keys<32, true, false>, block_an_sm<32>, counting<32>);
}

// Two kernels: what has been counted is written down, then added up.
template <int bits, bool hot_keys = false, bool ranged = false>
Implementation written_down() {
  const auto count = count_keys<bits, true, true, hot_keys, ranged>;
  return {.kernel = reinterpret_cast<const void*>(count),
          .plan = block_an_sm<bits, ranged>,
          .launch = [count](const LaunchPlan& plan, Problem& problem, cudaStream_t stream) {
            auto& histogram = static_cast<Histogram&>(problem);
            Counting c = counting<bits>(histogram, plan);
            c.rows = histogram.room_for_counters(size_t{plan.grid.x} * c.words);
            c.credits = histogram.credits();
            launch(plan, stream, count, c);
            launch_early({.grid = c.groups * c.words / 32, .block = 32 * kAdders}, stream,
                         add_rows<bits>, c, plan.grid.x);
          }};
}

// The counters of a block of a cluster and, if they are narrow, the totals behind them.
template <int bits>
Counting counting_in_clusters(int64_t bins, int64_t cluster) {
  Counting c{};
  c.words = static_cast<unsigned>(ceil_div<int64_t>(bins, Counters<bits>::kBinsARow) * 32);
  if (bits < 8) c.totals = ClusterTotals(kCountersAt<bits> + 4 * c.words, bins, cluster);
  return c;
}

template <int bits>
size_t bytes_in_clusters(const Case& c) {
  const Counting counting = counting_in_clusters<bits>(c["bins"], c["cluster"]);
  return kCountersAt<bits> + 4 * counting.words + 2 * counting.totals.part;
}

// A block an SM where clusters find room, none of which is without a chunk for a warp.
template <int bits>
LaunchPlan clusters_of_counters(const Case& c, const Device& device, const void* kernel) {
  const auto cluster = static_cast<unsigned>(c["cluster"]);
  LaunchPlan plan = fill_device(
      {.block = kThreads, .shared_bytes = bytes_in_clusters<bits>(c), .cluster = cluster}, kernel,
      device);
  const int64_t enough = ceil_div<int64_t>(c["keys"], int64_t{kWarps} * kChunk * cluster);
  plan.grid.x = std::min<unsigned>(plan.grid.x, std::max<int64_t>(enough, 1) * cluster);
  return plan;
}

template <int bits, bool hot_keys = true>
Implementation in_clusters() {
  return zeroed_meanwhile(count_in_clusters<bits, hot_keys>, clusters_of_counters<bits>,
                          [](Histogram& problem, const LaunchPlan& plan) {
                            const auto [keys, count, bins, bin_count] = problem.arguments();
                            Counting c = counting_in_clusters<bits>(bin_count, plan.cluster);
                            c.keys = keys;
                            c.count = count;
                            c.bins = c.credits = bins;
                            c.bin_count = bin_count;
                            return c;
                          });
}

size_t shared_bytes() { return current_gpu().shared_bytes_per_block; }

template <bool hot_keys>
Implementation packed_at(const Case& c) {
  return c["bins"] <= fitting<16>(shared_bytes()) ? written_down<16, hot_keys>()
                                                  : written_down<8, hot_keys>();
}

// The widest counters that fit: the wider, the fewer overflow and the less skewed keys cost.
Implementation fastest_at(const Case& c) {
  if (c["bins"] <= fitting<32>(shared_bytes())) return zeroed_and_merged();
  if (c["bins"] <= fitting<8>(shared_bytes())) return packed_at<true>(c);
  return written_down<8, true, true>();
}

Implementation merged_in_clusters_at(const Case& c) {
  if (c["bins"] <= fitting<32>(shared_bytes())) return in_clusters<32, false>();
  if (c["bins"] <= fitting<16>(shared_bytes())) return in_clusters<16>();
  return in_clusters<8>();
}

// A bit more halves what crosses the network, and leaves less room for totals.
Implementation carried_at(const Case& c) {
  if (bytes_in_clusters<4>(c) <= shared_bytes()) return in_clusters<4>();
  if (bytes_in_clusters<2>(c) <= shared_bytes()) return in_clusters<2>();
  return in_clusters<1>();
}

template <int bits>
std::string too_many(const Case& c, const Device& device) {
  return too_large(
      kCountersAt<bits> + ceil_div<int64_t>(c["bins"], Counters<bits>::kBinsARow) * 128, device);
}

// What the study measures of the rungs below the fastest, which is on everything.
bool of(const Case& c, std::initializer_list<Distribution> distributions) {
  return std::ranges::find(distributions, c["distribution"]) != distributions.end();
}
bool all_keys(const Case& c) { return c["keys"] == 1 << 28; }
bool on_skew_at_some(const Case& c) {
  return of(c, {uniform}) || (of(c, {constant, zipf}) && (c["bins"] == 256 || c["bins"] > 400'000));
}
bool on_three(const Case& c) { return of(c, {uniform, constant, zipf}); }
bool on_strides(const Case& c) { return of(c, {uniform, strided}) && all_keys(c); }
// Where clusters win and where they lose.
bool mapped(const Case& c) {
  const std::set<int64_t> bins = {256, 4096, 57344, 114688, 229376, 458752};
  return on_three(c) && bins.contains(c["bins"]);
}
// Where counters of 32 bits fit on an H200, and where those of 8 bits do.
bool fit_whole(const Case& c) { return c["bins"] <= 57344; }
bool fit_narrow(const Case& c) { return c["bins"] <= 229376; }

}  // namespace

Ladder histogram() {
  using P = Histogram;
  const std::vector<int64_t> bins = {32,    256,    4096,   16384,  32768, 57344,
                                     65536, 114688, 131072, 229376, 458752};
  std::vector<Shape> measured;
  for (const Distribution d : kDistributions)
    for (const int64_t b : bins) measured.push_back({b, 1 << 28, d});
  for (const int64_t b : {256, 57344, 458752}) measured.push_back({b, 1 << 24, uniform});
  return {
      .name = "histogram",
      .title = "Histogram",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_read",
      .input = "as the distribution says; zipf has exponent 1, strided keys are 32 apart",
      .error_unit = "exact",
      .axes = {{"bins"}, {"keys"}, kDistributionAxis},
      .measured = measured,
      .small = {{256, 1 << 20, uniform},
                {4096, 1 << 20, uniform},
                {57344, 1 << 20, uniform},
                {458752, 1 << 20, uniform},
                {256, 1 << 20, constant},
                {4096, 1 << 20, constant},
                {256, 1 << 20, zipf},
                {4096, 1 << 20, zipf},
                {4096, 1 << 20, strided}},
      .tested = {{1, 1000, uniform},
                 {32, 0, uniform},
                 {33, 1, uniform},
                 {256, 100003, zipf},
                 {257, 65537, sorted},
                 {1000, 99991, out_of_range},
                 {4099, 50021, constant},
                 {16411, 1 << 18, zipf},
                 {57344, 1 << 18, uniform},
                 {57345, 40000, strided},
                 {65537, 1 << 18, uniform},
                 {114689, (1 << 18) + 511, constant},
                 {131073, 1 << 18, zipf_1_5},
                 {458752, 1 << 19, sorted},
                 {458753, 1 << 18, zipf},
                 {650001, 1 << 17, uniform}},
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
               .moves = "global_atomic_requests",
               .measured = on_skew_at_some},
              {.name = "shared",
               .idea = "A histogram a block in shared memory, merged at the end: increments stay "
                       "on the SM.",
               .implementation = kernel<P>(shared, resident_with_bins),
               .zero_output = true,
               .moves = "global_atomic_requests",
               .skip = [](const Case& c,
                          const Device& d) { return too_large(sizeof(unsigned) * c["bins"], d); },
               .measured = [](const Case& c) { return on_three(c) && fit_whole(c); }},
              {.name = "distributed",
               .idea = "A histogram a cluster, each block holding a part of the bins: more fit, "
                       "and increments cross the SM-to-SM network.",
               .implementation = kernel<P>(distributed, resident_clusters),
               .zero_output = true,
               .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {1, 2, 3, 8, 16}}},
               .moves = "distributed_requests",
               .compute_capability = 90,
               .skip = [](const Case& c, const Device& d) { return too_large(part_bytes(c), d); },
               .measured = mapped},
              {.name = "in_flight",
               .idea = "A block an SM with four loads of 16 bytes always on their way to each "
                       "thread, whatever it is counting.",
               .implementation = merged_by_atomics<false>(),
               .zero_output = true,
               .moves = "global_load_sectors_per_request",
               .skip = too_many<32>,
               .measured = [](const Case& c) { return on_strides(c) && fit_whole(c); }},
              {.name = "spread_banks",
               .idea = "The bank of a bin is a hash of its number: keys a power of two apart no "
                       "longer meet in one bank.",
               .implementation = merged_by_atomics<true>(),
               .zero_output = true,
               .moves = "shared_atomic_wavefronts_per_request",
               .skip = too_many<32>,
               .measured = [](const Case& c) { return on_strides(c) && fit_whole(c); }},
              {.name = "zeroed_meanwhile",
               .idea = "The kernel starts before the one that zeroes the output ends, which it "
                       "waits for when it has counted.",
               .implementation = zeroed_and_merged(),
               .skip = too_many<32>,
               .measured = [](const Case& c) { return on_strides(c) && fit_whole(c); }},
              {.name = "column_sums",
               .idea = "Blocks write their counters down and a second kernel adds up the columns: "
                       "no zeroing, no atomics in L2.",
               .implementation = written_down<32>(),
               .moves = "global_atomic_requests",
               .skip = too_many<32>,
               .measured =
                   [](const Case& c) { return of(c, {uniform}) && all_keys(c) && fit_whole(c); }},
              {.name = "packed",
               .idea = "Two or four counters a word, so that more bins fit: the old value tells "
                       "when one wraps, and the carry is taken back.",
               .skip = too_many<8>,
               .measured =
                   [](const Case& c) {
                     return of(c, {uniform, constant}) && all_keys(c) && !fit_whole(c) &&
                            fit_narrow(c);
                   },
               .choose = packed_at<false>},
              {.name = "hot_key",
               .idea = "A key that a warp meets often is counted in registers: skew neither queues "
                       "at one word nor overflows narrow counters.",
               .moves = "shared_atomic_conflicts",
               .skip = too_many<8>,
               .measured =
                   [](const Case& c) {
                     return on_three(c) && all_keys(c) && !fit_whole(c) && fit_narrow(c);
                   },
               .choose = packed_at<true>},
              {.name = "ranges",
               .idea = "Groups of blocks count a range of the bins each and read all keys: the "
                       "first to come brings them to L2 for the others.",
               .implementation = written_down<8, true, true>(),
               .measured = [](const Case& c) { return on_three(c) && !fit_narrow(c); }},
              {.name = "cluster_merge",
               .idea = "A cluster's blocks add up their counters over the network, each a share of "
                       "the bins: a row a cluster goes to L2.",
               .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {2, 3, 16}}},
               .moves = "global_atomic_requests",
               .compute_capability = 90,
               .skip = too_many<8>,
               .measured = [](const Case& c) { return mapped(c) && fit_narrow(c); },
               .choose = merged_in_clusters_at},
              {.name = "cluster_carries",
               .idea = "Each block has a few bits of every counter; only what they carry crosses "
                       "the network, to totals that the cluster shares.",
               .sweeps = {{{"cluster"}, {1, 2, 4, 8, 16}, {2, 3, 16}}},
               .moves = "distributed_requests",
               .compute_capability = 90,
               .skip = [](const Case& c,
                          const Device& d) { return too_large(bytes_in_clusters<1>(c), d); },
               .measured = [](const Case& c) { return mapped(c) && !fit_narrow(c); },
               .choose = carried_at},
              {.name = "fastest",
               .idea = "The widest counters that fit, in ranges where none do; narrow ones look "
                       "for a hot key, as the data needs it.",
               .choose = fastest_at},
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
                   },
               .measured = on_three},
          },
  };
}

}  // namespace ladders
