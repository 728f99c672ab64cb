// SPDX-License-Identifier: MIT
//
// Shared-memory layout, an experiment: a block writes a tile in one order and reads it in another;
// row_column is written along rows and read down columns.
//
// Shared memory has 32 banks, each of which delivers one 4-byte word per cycle. A warp's request
// takes as many wavefronts as there are different words in the busiest bank: 1 along a row, 32 down
// a column of a tile 32 words wide, 16 if a warp takes two columns of 16. Padding each row by a
// word, or XORing the column with the row, spreads a column over all banks. Vectors of 8 bytes are
// served per half warp, those of 16 per quarter warp. Lanes that read the same word share a
// wavefront.
//
// Memory of another block of the cluster arrives over a network in sectors of 32 bytes: their
// number predicts the cost, banks do not.
//
// Repetition hides launch and DRAM. The functions that index the tile (01_layout.cuh) also make the
// predictions in each row.

#include "model/ladder.hpp"
#include "smem_layout/02_tiles.cuh"

namespace ladders::smem_layout {
namespace {

constexpr const char* kLoads = "shared_load_wavefronts_per_request";
constexpr const char* kStores = "shared_store_wavefronts_per_request";
constexpr const char* kRequests = "shared_load_requests";

template <int height, int pad, Order written, Order read, int bytes = 4,
          TileMemory memory = static_memory>
Rung rung(std::string name, std::string idea, std::string target = kLoads) {
  using L = Layout<height, pad, written, read, bytes>;
  static const char* const kOrders[] = {"row", "column", "one_word", "two_banks", "one_bank"};
  static const char* const kMemory[] = {"static", "dynamic", "other_block"};
  Rung rung = {.name = std::move(name),
               .idea = std::move(idea),
               .implementation = on_tile<L, memory>(),
               .target = std::move(target),
               .factors = {{"written", kOrders[L::kWrite]},
                           {"read", kOrders[L::kRead]},
                           {"padding", L::kPad == swizzled ? "swizzled" : std::to_string(L::kPad)},
                           {"bytes", std::to_string(L::kBytes)},
                           {"threads", std::to_string(L::kThreads)},
                           {"memory", kMemory[memory]}}};
  if constexpr (memory == remote_memory) {
    rung.target = "distributed_sectors_per_request";
    rung.needs = kClusters;
    rung.ceiling = Ceiling{.rung = "roof/distributed_shared_memory"};
    rung.predictions = {{"predicted_distributed_sectors_per_request", L::pieces(L::kRead, 32)}};
    // Each word that a warp requests counts once: copies for lanes may be made after the network.
    rung.work = [](const Case& c, const Device& device) {
      const double words = double(c["repetitions"]) * threads_on(device) / L::kWarp;
      return Work{.bytes_read = 4 * words * L::pieces(L::kRead, L::kBytes)};
    };
  } else {
    const int stores = L::wavefronts(L::kWrite), loads = L::wavefronts(L::kRead);
    // Mean register traffic of a wavefront: 128 without conflicts.
    const double mean = 2. * L::kWarp * L::kWords * sizeof(unsigned) / (stores + loads);
    rung.predictions = {{"predicted_store_wavefronts", stores},
                        {"predicted_load_wavefronts", loads},
                        {"predicted_bytes_per_wavefront", mean}};
  }
  return rung;
}

std::vector<Rung> rungs() {
  return {
      // 01_layout.cuh, 02_tiles.cuh
      rung<32, 0, row, row>("row_row", "Written and read along rows: no conflicts."),
      rung<32, 0, column, column>("column_column",
                                  "Written and read down columns: 32-way conflicts."),
      rung<32, 0, row, column>("row_column", "Read down columns: the loads conflict.", kStores),
      rung<32, 0, column, row>("column_row", "Written down columns: the stores conflict.", kStores),
      rung<32, 0, row, column, 4, dynamic_memory>("row_column_dynamic",
                                                  "Dynamic memory has the same conflicts."),
      rung<32, 1, row, column>("row_column_padded",
                               "A spare word per row shifts each row by one bank."),
      rung<32, 1, row, column, 4, dynamic_memory>("row_column_dynamic_padded",
                                                  "The same padding in dynamic memory."),
      rung<32, swizzled, row, column>("row_column_swizzled",
                                      "Columns XORed with the row: no conflicts, no spare memory."),
      rung<16, 0, row, row>("rectangle_row_row", "A tile of 16 rows, along rows."),
      rung<16, 0, row, column>("rectangle_row_column",
                               "A warp reads two columns of 16: 16-way conflicts."),
      rung<16, 0, row, column, 4, dynamic_memory>("rectangle_dynamic",
                                                  "The tile of 16 rows in dynamic memory."),
      rung<16, 1, row, column>("rectangle_padded",
                               "One spare word per row: the two columns overlap, 2-way."),
      rung<16, 2, row, column>("rectangle_padded_two",
                               "Two spare words: one column in even banks, one in odd ones."),
      rung<16, 1, row, column, 4, dynamic_memory>("rectangle_dynamic_padded",
                                                  "One spare word per row in dynamic memory."),

      rung<64, 0, row, row, 8>("row_row_8_bytes",
                               "Half as many requests, half a warp per wavefront.", kRequests),
      rung<64, 0, row, column, 8>(
          "row_column_8_bytes",
          "Each half warp hits two banks: 32 wavefronts for twice the bytes."),
      rung<64, 1, row, column, 8>("row_column_8_bytes_padded",
                                  "A spare vector per row: 16 rows cover all 32 banks."),
      rung<128, 0, row, row, 16>("row_row_16_bytes",
                                 "A quarter of the requests, a quarter warp per wavefront.",
                                 kRequests),
      rung<128, 0, row, column, 16>("row_column_16_bytes",
                                    "Each quarter warp hits four banks: four times the bytes."),
      rung<128, 1, row, column, 16>("row_column_16_bytes_padded",
                                    "A spare vector per row: 8 rows cover all 32 banks."),
      rung<128, swizzled, row, column, 16>("row_column_16_bytes_swizzled",
                                           "The 128-byte swizzle of TMA: no spare memory."),

      rung<32, 0, row, one_word>("broadcast", "All lanes of a warp read one word: one wavefront."),
      rung<32, 0, row, two_banks>("broadcast_two_banks",
                                  "Two words in different banks: still one wavefront."),
      rung<32, 0, row, one_bank>("broadcast_one_bank", "Two words in one bank: two wavefronts."),

      rung<32, 0, row, row, 4, remote_memory>(
          "remote_row", "Another block's tile along rows: four sectors per request."),
      rung<32, 0, row, column, 4, remote_memory>("remote_column",
                                                 "Another block's columns: one sector per lane."),
      rung<32, 1, row, column, 4, remote_memory>(
          "remote_column_padded", "Padding changes banks, not the number of sectors."),
      rung<128, 0, row, row, 16, remote_memory>("remote_row_16_bytes",
                                                "As many sectors, a quarter of the requests."),
      rung<128, 0, row, column, 16, remote_memory>(
          "remote_column_16_bytes", "Columns of 16-byte vectors use half of each sector."),
      rung<32, 0, row, one_word, 4, remote_memory>(
          "remote_broadcast", "All lanes read one word of the other block: one sector."),
  };
}

}  // namespace

Ladder ladder() {
  return {
      .name = "smem_layout",
      .title = "Shared-memory layout",
      .ceiling = "roof/shared_memory",
      .input = "thread numbers",
      .axes = {{.name = "repetitions", .least = 1, .most = 1 << 20}},
      .factors = {"written", "read", "padding", "bytes", "threads", "memory"},
      .measured = {{8192}},
      .small = {{16}},
      .tested = {{1}, {3}, {64}},
      .headline = {8192},
      .small_headline = {16},
      // Register traffic, also where all lanes read one word.
      .work =
          [](const Case& c, const Device& device) {
            const double bytes = 4. * threads_on(device) * double(c["repetitions"]);
            return Work{.bytes_read = bytes, .bytes_written = bytes};
          },
      .problem = problem_of<Tiles>,
      .rungs = rungs(),
  };
}

}  // namespace ladders::smem_layout
