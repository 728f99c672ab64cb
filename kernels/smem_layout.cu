// SPDX-License-Identifier: MIT
//
// Shared-memory layout: a block writes a tile in one order and reads it in another, and the rungs
// are named in that order: row_column is written along rows and read down columns.
//
// Shared memory has 32 banks of one 4-byte word a clock. A warp's request costs as many wavefronts
// as the busiest bank has different words to give: 1 along a row, 32 down a column of a tile 32
// words wide, since all of it lies in one bank. A warp of a 32 x 16 tile takes two columns of 16.
// Columns that are one word apart in bank number (a row padded by one) are free of that. Stores
// and loads are repeated until neither launch nor DRAM shows, and the wavefronts predicted from
// the very functions that index the tile stand beside the time in each row.

#include "catalogue.hpp"
#include "device.cuh"
#include "verify.cuh"

namespace ladders {
namespace {

enum Order { row, column };

// A tile of height x 32 words, each row followed by `pad` spare words, in a block of as many
// threads: which word thread number i touches in either order.
constexpr int kWidth = 32;
template <int height, int pad, Order write_order, Order read_order>
struct Layout {
  static constexpr int kHeight = height;
  static constexpr int kThreads = height * kWidth;
  static constexpr int kWords = height * (kWidth + pad);
  static constexpr Order kWrite = write_order, kRead = read_order;

  __host__ __device__ static constexpr int word(Order order, int i) {
    return order == row ? i / kWidth * (kWidth + pad) + i % kWidth
                        : i % height * (kWidth + pad) + i / height;
  }
  // Wavefronts of one request: the most different words that any bank is asked for, over warps.
  static constexpr int wavefronts(Order order) {
    int worst = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) {
      int in_bank[32] = {};  // each lane has a word of its own, so lanes count as words
      for (int lane = 0; lane < 32; ++lane) {
        const int count = ++in_bank[word(order, warp * 32 + lane) % 32];
        worst = count > worst ? count : worst;
      }
    }
    return worst;
  }
};

// volatile: each repetition is an instruction, though it stores and loads the same word again.
template <class Layout>
__device__ __forceinline__ void exercise(int* tile, int* out, int repetitions) {
  const int i = threadIdx.y * kWidth + threadIdx.x;
  volatile int* to = tile + Layout::word(Layout::kWrite, i);
  volatile int* from = tile + Layout::word(Layout::kRead, i);
#pragma unroll 16
  for (int r = 0; r < repetitions; ++r) *to = i;
  __syncthreads();
  int sum = 0;
#pragma unroll 16
  for (int r = 0; r < repetitions; ++r) sum += *from;
  out[blockIdx.x * Layout::kThreads + i] = sum;
}

template <class Layout>
__global__ void static_tile(int* out, int repetitions) {
  __shared__ int tile[Layout::kWords];
  exercise<Layout>(tile, out, repetitions);
}

template <class Layout>
__global__ void dynamic_tile(int* out, int repetitions) {
  exercise<Layout>(dynamic_shared<int>(), out, repetitions);
}

// Threads of a launch: as many blocks of 1024 as the device holds, for every rung.
int threads_on(const Device& device) { return device.sms * (device.threads_per_sm / 1024) * 1024; }

class Tiles : public Problem {
 public:
  Tiles(const Case& c, const Device& device)
      : repetitions_(static_cast<int>(c["repetitions"])), out_(threads_on(device)) {}
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(out_.data(), repetitions_); }

  // Thread i of a block adds up, again and again, the number of the thread that wrote its word.
  template <class Layout>
  Verdict compare() const {
    std::vector<int> writer(Layout::kWords);
    for (int i = 0; i < Layout::kThreads; ++i) writer[Layout::word(Layout::kWrite, i)] = i;
    const std::vector<int> sums = to_host(out_.data(), out_.size());
    for (size_t thread = 0; thread < sums.size(); ++thread) {
      const int i = static_cast<int>(thread % Layout::kThreads);
      if (sums[thread] != repetitions_ * writer[Layout::word(Layout::kRead, i)])
        return {.wrong = "thread " + std::to_string(i) + " of block " +
                         std::to_string(thread / Layout::kThreads)};
    }
    return {};
  }

 private:
  int repetitions_;
  DeviceBuffer<int> out_;
};

template <class Layout>
LaunchPlan plan(const Case&, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(threads_on(device) / Layout::kThreads),
          .block = dim3(kWidth, Layout::kHeight)};
}

template <class Layout>
LaunchPlan plan_dynamic(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan result = plan<Layout>(c, device, kernel);
  result.shared_bytes = Layout::kWords * sizeof(int);
  return result;
}

// `moves` where it is not the side that conflicts, or else the loads.
template <class Layout>
Rung rung(std::string name, std::string idea, bool dynamic = false, std::string moves = "") {
  if (moves.empty())
    moves = Layout::wavefronts(Layout::kRead) > 1 || Layout::wavefronts(Layout::kWrite) == 1
                ? "shared_load_wavefronts_per_request"
                : "shared_store_wavefronts_per_request";
  return {.name = std::move(name),
          .idea = std::move(idea),
          .implementation =
              checked<Tiles>(dynamic ? kernel<Tiles>(dynamic_tile<Layout>, plan_dynamic<Layout>)
                                     : kernel<Tiles>(static_tile<Layout>, plan<Layout>),
                             [](const Tiles& tiles) { return tiles.compare<Layout>(); }),
          .moves = std::move(moves),
          .predictions = {{"predicted_store_wavefronts", Layout::wavefronts(Layout::kWrite)},
                          {"predicted_load_wavefronts", Layout::wavefronts(Layout::kRead)}}};
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
      .measured = {{4096}},
      .small = {{16}},
      .tested = {{1}, {3}, {64}},
      .headline = {4096},
      .small_headline = {16},
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
                  "row_column", "Written along rows, read down columns: the loads conflict.", false,
                  "shared_store_wavefronts_per_request"),
              rung<Layout<32, 0, column, row>>(
                  "column_row", "Written down columns, read along rows: the stores conflict."),
              rung<Layout<32, 0, row, column>>("row_column_dynamic",
                                               "The same with the tile sized at launch: banks do "
                                               "not care how memory was declared.",
                                               true),
              rung<Layout<32, 1, row, column>>("row_column_padded",
                                               "A spare word a row moves each row on by one bank."),
              rung<Layout<32, 1, row, column>>("row_column_dynamic_padded",
                                               "The same padding in memory sized at launch.", true),
              rung<Layout<16, 0, row, row>>("rectangle_row_row",
                                            "A tile of 16 rows, along rows: no conflicts."),
              rung<Layout<16, 0, row, column>>("rectangle_row_column",
                                               "Read down columns a warp takes two columns of 16: "
                                               "16-way conflicts."),
              rung<Layout<16, 0, row, column>>("rectangle_dynamic",
                                               "The same with the tile sized at launch.", true),
              rung<Layout<16, 1, row, column>>(
                  "rectangle_padded",
                  "One spare word a row: the two columns still overlap, 2-way."),
              rung<Layout<16, 2, row, column>>("rectangle_padded_two",
                                               "Two spare words a row: one column takes the even "
                                               "banks, the next the odd ones."),
              rung<Layout<16, 1, row, column>>("rectangle_dynamic_padded",
                                               "One spare word in memory sized at launch.", true),
          },
  };
}

}  // namespace ladders
