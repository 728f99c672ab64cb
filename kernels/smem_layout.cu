// SPDX-License-Identifier: MIT
//
// Shared-memory layout: a block writes a tile in one order and reads it in another, and the rungs
// are named in that order: row_column is written along rows and read down columns.
//
// Shared memory has 32 banks of one 4-byte word a clock. A warp's request costs as many wavefronts
// as the busiest bank has different words to give: 1 along a row, 32 down a column of a tile 32
// words wide, since all of it lies in one bank. A warp of a 32 x 16 tile takes two columns of 16.
// Columns that are one word apart in bank number (a row padded by one, or columns XORed with the
// row) are free of that. Vectors go by half warps (8 bytes a lane) or quarter warps (16 bytes), and
// each part by the same rule. Lanes that want one word get it in one wavefront.
//
// Memory of another block of the cluster comes over a network, in sectors of 32 bytes, and banks
// are no longer what counts: the model for it is the number of sectors that a request touches.
//
// Stores and loads are repeated until neither launch nor DRAM shows, and what is predicted from the
// very functions that index the tile (smem_layout_tile.cuh) stands beside the time in each row.

#include "smem_layout_tile.cuh"

#include <cooperative_groups.h>

#include "catalogue.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

// `repetitions` is in words, so that vectors move the same bytes in fewer requests.
template <class Layout>
__host__ __device__ constexpr int requests(int repetitions) {
  return ceil_div(repetitions, Layout::kWords);
}

template <class Layout>
__device__ __forceinline__ auto my_words() {
  return numbered<Vector<Layout::kBytes>>(Layout::kWords *
                                          (blockIdx.x * Layout::kThreads + threadIdx.x));
}

template <class Layout>
__device__ __forceinline__ void exercise(unsigned* tile, unsigned* out, int repetitions) {
  constexpr int kWords = Layout::kWords;
  const unsigned i = threadIdx.x;
  const auto mine = my_words<Layout>();
  unsigned* to = tile + kWords * Layout::vector(Layout::kWrite, i);
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r) store_again<Layout::kBytes>(to, mine);
  __syncthreads();
  const unsigned* from = tile + kWords * Layout::vector(Layout::kRead, i);
  unsigned sum = 0;
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r) sum += load_again<Layout::kBytes>(from);
  out[blockIdx.x * Layout::kThreads + i] = sum;
}

template <class Layout>
__global__ void static_tile(unsigned* out, int repetitions) {
  __shared__ __align__(128) unsigned tile[Layout::kTile];
  exercise<Layout>(tile, out, repetitions);
}

template <class Layout>
__global__ void dynamic_tile(unsigned* out, int repetitions) {
  exercise<Layout>(dynamic_shared<unsigned>(), out, repetitions);
}

// Two blocks a cluster: each writes its own tile once, then reads the other's again and again.
template <class Layout>
__global__ void remote_tile(unsigned* out, int repetitions) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // there are no clusters before
  constexpr int kWords = Layout::kWords;
  __shared__ __align__(128) unsigned tile[Layout::kTile];
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned i = threadIdx.x;
  store_again<Layout::kBytes>(tile + kWords * Layout::vector(Layout::kWrite, i),
                              my_words<Layout>());
  cluster.sync();
  const unsigned* from = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1) +
                         kWords * Layout::vector(Layout::kRead, i);
  unsigned sum = 0;
#pragma unroll(Layout::kUnroll)
  for (int r = 0; r < requests<Layout>(repetitions); ++r)
    sum += load_again_from_cluster<Layout::kBytes>(from);
  cluster.sync();  // the memory of a block that has ended is nobody's to read
  out[blockIdx.x * Layout::kThreads + i] = sum;
#endif
}

// Threads of a launch: as many blocks of 1024 as the device holds, in pairs, for every rung.
int threads_on(const Device& device) {
  return ceil_div(device.sms * (device.threads_per_sm / 1024), 2) * 2048;
}

class Tiles : public Problem {
 public:
  Tiles(const Case& c, const Device& device)
      : repetitions_(static_cast<int>(c["repetitions"])), out_(threads_on(device)) {}
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(out_.data(), repetitions_); }

  // A thread adds up, again and again, the numbers of the words that it reads.
  template <class Layout, bool from_neighbour>
  Verdict compare() const {
    constexpr int kThreads = Layout::kThreads;
    std::vector<int> writer(Layout::kTile);
    for (int i = 0; i < kThreads; ++i) writer[Layout::vector(Layout::kWrite, i)] = i;
    const std::vector<unsigned> sums = to_host(out_.data(), out_.size());
    for (size_t thread = 0; thread < sums.size(); ++thread) {
      const int block = static_cast<int>(thread / kThreads),
                i = static_cast<int>(thread % kThreads);
      const unsigned from = (from_neighbour ? block ^ 1 : block) * kThreads +
                            writer[Layout::vector(Layout::kRead, i)];
      if (sums[thread] !=
          requests<Layout>(repetitions_) * numbered_sum<Layout::kBytes>(Layout::kWords * from))
        return {.wrong = "thread " + std::to_string(i) + " of block " + std::to_string(block)};
    }
    return {};
  }

 private:
  int repetitions_;
  DeviceBuffer<unsigned> out_;
};

template <class Layout>
LaunchPlan plan(const Case&, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(threads_on(device) / Layout::kThreads),
          .block = Layout::kThreads};
}

template <class Layout>
LaunchPlan plan_dynamic(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan result = plan<Layout>(c, device, kernel);
  result.shared_bytes = Layout::kTile * sizeof(unsigned);
  return result;
}

template <class Layout>
LaunchPlan plan_pairs(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan result = plan<Layout>(c, device, kernel);
  result.cluster = 2;
  return result;
}

enum Where { declared, at_launch, in_neighbour };

template <class Layout, Where where>
Implementation on_tile() {
  const auto tile = [] {
    if constexpr (where == declared) return kernel<Tiles>(static_tile<Layout>, plan<Layout>);
    if constexpr (where == at_launch)
      return kernel<Tiles>(dynamic_tile<Layout>, plan_dynamic<Layout>);
    if constexpr (where == in_neighbour)
      return kernel<Tiles>(remote_tile<Layout>, plan_pairs<Layout>);
  };
  return checked<Tiles>(
      tile(), [](const Tiles& tiles) { return tiles.compare<Layout, where == in_neighbour>(); });
}

constexpr const char* kLoads = "shared_load_wavefronts_per_request";
constexpr const char* kStores = "shared_store_wavefronts_per_request";
constexpr const char* kRequests = "shared_load_requests";

template <class Layout, Where where = declared>
Rung rung(std::string name, std::string idea, std::string moves = kLoads) {
  const int stores = Layout::wavefronts(Layout::kWrite), loads = Layout::wavefronts(Layout::kRead);
  // What registers give or get in each wavefront, on average: 128 without conflicts.
  const double bytes = 2. * Layout::kWarp * Layout::kWords * sizeof(unsigned) / (stores + loads);
  return {.name = std::move(name),
          .idea = std::move(idea),
          .implementation = on_tile<Layout, where>(),
          .moves = std::move(moves),
          .predictions = {{"predicted_store_wavefronts", stores},
                          {"predicted_load_wavefronts", loads},
                          {"predicted_bytes_per_wavefront", bytes}}};
}

// Of another block's memory each word counts once that a warp asks for: the lanes' copies of a word
// may be made on this side of the network.
template <class Layout>
Rung remote(std::string name, std::string idea) {
  return {.name = std::move(name),
          .idea = std::move(idea),
          .implementation = on_tile<Layout, in_neighbour>(),
          .moves = "distributed_sectors_per_request",
          .compute_capability = 90,
          .ceiling = "roof/distributed_shared_memory",
          .predictions = {{"predicted_distributed_sectors_per_request",
                           Layout::sectors(Layout::kRead)}},
          .work = [](const Case& c, const Device& device) {
            const double words = double(c["repetitions"]) * threads_on(device) / Layout::kWarp;
            return Work{.bytes_read = 4 * words * Layout::words(Layout::kRead) / Layout::kWords};
          }};
}

}  // namespace

Ladder smem_layout() {
  return {
      .name = "smem_layout",
      .title = "Shared-memory layout",
      .quantity = Quantity::bytes,
      .ceiling = "roof/shared_memory",
      .input = "thread numbers",
      .error_unit = "exact",
      .axes = {{"repetitions"}},
      .measured = {{8192}},
      .small = {{16}},
      .tested = {{1}, {3}, {64}},
      .headline = {8192},
      .small_headline = {16},
      // What threads store and load, be it one word for all: a wavefront hands lanes 128 bytes.
      .work =
          [](const Case& c, const Device& device) {
            const double bytes = 4. * threads_on(device) * double(c["repetitions"]);
            return Work{.bytes_read = bytes, .bytes_written = bytes};
          },
      .problem = [](const Case& c,
                    const Device& device) { return std::make_unique<Tiles>(c, device); },
      .rungs =
          {
              rung<Layout<32, 0, row, row>>(
                  "row_row", "Written and read along rows: every lane has a bank of its own."),
              rung<Layout<32, 0, column, column>>(
                  "column_column", "Written and read down columns: both sides 32-way conflicts."),
              rung<Layout<32, 0, row, column>>(
                  "row_column", "Written along rows, read down columns: the loads conflict.",
                  kStores),
              rung<Layout<32, 0, column, row>>(
                  "column_row", "Written down columns, read along rows: the stores conflict.",
                  kStores),
              rung<Layout<32, 0, row, column>, at_launch>(
                  "row_column_dynamic",
                  "The same with the tile sized at launch: banks do "
                  "not care how memory was declared."),
              rung<Layout<32, 1, row, column>>("row_column_padded",
                                               "A spare word a row moves each row on by one bank."),
              rung<Layout<32, 1, row, column>, at_launch>(
                  "row_column_dynamic_padded", "The same padding in memory sized at launch."),
              rung<Layout<32, swizzled, row, column>>(
                  "row_column_swizzled",
                  "Columns XORed with the row: as free of conflicts, and no word is spare."),
              rung<Layout<16, 0, row, row>>("rectangle_row_row",
                                            "A tile of 16 rows, along rows: no conflicts."),
              rung<Layout<16, 0, row, column>>("rectangle_row_column",
                                               "Read down columns a warp takes two columns of 16: "
                                               "16-way conflicts."),
              rung<Layout<16, 0, row, column>, at_launch>(
                  "rectangle_dynamic", "The same with the tile sized at launch."),
              rung<Layout<16, 1, row, column>>(
                  "rectangle_padded",
                  "One spare word a row: the two columns still overlap, 2-way."),
              rung<Layout<16, 2, row, column>>("rectangle_padded_two",
                                               "Two spare words a row: one column takes the even "
                                               "banks, the next the odd ones."),
              rung<Layout<16, 1, row, column>, at_launch>(
                  "rectangle_dynamic_padded", "One spare word in memory sized at launch."),

              rung<Layout<64, 0, row, row, 8>>(
                  "row_row_8_bytes",
                  "Half as many requests of two words a lane, half a warp a wavefront.", kRequests),
              rung<Layout<64, 0, row, column, 8>>(
                  "row_column_8_bytes",
                  "Down columns each half warp lies in two banks, 16-way: 32 wavefronts a request, "
                  "but for twice the bytes."),
              rung<Layout<64, 1, row, column, 8>>(
                  "row_column_8_bytes_padded",
                  "A spare vector a row moves each row on by two banks: 16 rows take all 32."),
              rung<Layout<128, 0, row, row, 16>>(
                  "row_row_16_bytes",
                  "A quarter of the requests of four words a lane, a quarter warp a wavefront.",
                  kRequests),
              rung<Layout<128, 0, row, column, 16>>(
                  "row_column_16_bytes",
                  "Down columns each quarter warp lies in four banks, 8-way: 32 wavefronts for "
                  "four times the bytes."),
              rung<Layout<128, 1, row, column, 16>>(
                  "row_column_16_bytes_padded",
                  "A spare vector a row moves each row on by four banks: 8 rows take all 32."),
              rung<Layout<128, swizzled, row, column, 16>>(
                  "row_column_16_bytes_swizzled",
                  "Vectors XORed with the row modulo 8, the 128-byte swizzle of TMA: none is "
                  "spare."),

              rung<Layout<32, 0, row, one_word>>(
                  "broadcast", "All lanes of a warp read one word: its bank gives it once."),
              rung<Layout<32, 0, row, two_banks>>(
                  "broadcast_two_banks",
                  "Lanes read either of two words in different banks: still one wavefront."),
              rung<Layout<32, 0, row, one_bank>>("broadcast_one_bank",
                                                 "Both words lie in one bank: two wavefronts."),

              remote<Layout<32, 0, row, row>>(
                  "remote_row",
                  "Another block's tile, read along rows over the SM-to-SM network: four sectors "
                  "a request."),
              remote<Layout<32, 0, row, column>>(
                  "remote_column", "Down its columns each lane's word is a sector of its own."),
              remote<Layout<32, 1, row, column>>(
                  "remote_column_padded",
                  "Padding spreads the column over the banks, but not over fewer sectors."),
              remote<Layout<128, 0, row, row, 16>>(
                  "remote_row_16_bytes",
                  "Along rows with 16 bytes a lane: as many sectors, a quarter of the requests."),
              remote<Layout<128, 0, row, column, 16>>(
                  "remote_column_16_bytes",
                  "Down columns with 16 bytes a lane: half of each sector is wanted."),
              remote<Layout<32, 0, row, one_word>>(
                  "remote_broadcast",
                  "All lanes of a warp read one word of the other block: one sector."),
          },
  };
}

}  // namespace ladders
