// SPDX-License-Identifier: MIT
//
// Transpose: out[column][row] = in[row][column], row major, any rows x columns.
//
// Nothing is computed, so a copy of the same bytes is the limit. A warp's 32 accesses travel in
// 32-byte sectors: neighbouring lanes that access neighbouring 4-byte elements fill 4 sectors per
// request; lanes a row apart touch 32 and waste most of each. One side must be strided, unless the
// transpose happens in shared memory, which has banks instead of sectors. After that, speed takes
// enough bytes in flight from few instructions, a good order of tiles, and whole sectors for
// unaligned rows.

#include "transpose/ladder.hpp"

#include "transpose/01_tiled.cuh"
#include "transpose/02_vectorized.cuh"
#include "transpose/03_bulk_copies.cuh"
#include "transpose/04_shifted.cuh"
#include "transpose/05_few_rows_or_columns.cuh"
#include "transpose/06_in_place.cuh"

namespace ladders::transpose {
namespace {

template <class T>
void copy(Transpose<T>& problem, cudaStream_t stream) {
  const auto [out, in, rows, columns] = problem.arguments();
  check(cudaMemcpyAsync(out, in, sizeof(T) * rows * columns, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}

double bytes(const Case& c) {
  return double(c["rows"]) * double(c["columns"]) * double(c["element"]);
}

template <class T>
Implementation swizzled() {
  return kernel<Transpose<T>>(coarsened<T, Swizzled>, tiles("columns", "rows", 8));
}

constexpr double kSmall = 0.01;  // share of the L2 below which the launch takes most of the time

template <class T>
Implementation fastest_at(const Case& c, const Device& device) {
  if (share_of_l2(c, device) < kSmall) return chosen("swizzled", swizzled<T>());
  const bool few = share_of_l2(c, device) < 2 * kSmall;
  if (c["columns"] <= (few ? kNarrowColumns / 4 : kNarrowColumns))
    return chosen("narrow", kernel<Transpose<T>>(narrow<T>, narrow_pieces<T>));
  if (c["rows"] <= (aligned(c) ? kThinRows / 2 : kThinRows))
    return chosen("thin", kernel<Transpose<T>>(thin<T>, thin_pieces));
  if (!kWideFrom.reached(c, device) || !aligned(c))
    return chosen("shifted", shifted_at<T>(c, device));
  if (sizeof(T) == 4 && !kVectorsFrom.reached(c, device)) return chosen("swizzled", swizzled<T>());
  if (!kBandsFrom.reached(c, device))
    return chosen("small_tiles", vectorized_in<T, Order::rows, 8>());
  return chosen("banded", vectorized_in<T, Order::bands>());
}

bool not_so_narrow(const Case& c) { return !is_narrow(c); }

template <class T>
std::vector<Rung> rungs() {
  using P = Transpose<T>;
  return {
      {.name = "copy",
       .idea = "The same bytes copied with cudaMemcpy: the limit of any transpose.",
       .implementation = checked<P>(library<P>(copy<T>), P::check_copy),
       .role = Role::ceiling},
      // 01_tiled.cuh
      {.name = "naive_coalesced_reads",
       .idea = "One element per thread: loads fill sectors, stores touch 32.",
       .implementation = kernel<P>(naive_coalesced_reads<T>, tiles("columns", "rows")),
       .target = "global_load_sectors_per_request"},
      {.name = "naive_coalesced_writes",
       .idea = "Coalesced stores: caches handle strided loads better than strided stores.",
       .implementation = kernel<P>(naive_coalesced_writes<T>, tiles("rows", "columns")),
       .builds_on = "naive_coalesced_reads",
       .meant_for = not_so_narrow,
       .target = "global_store_sectors_per_request"},
      {.name = "tiled",
       .idea = "A 32x32 shared tile coalesces both sides, but its columns lie in one bank.",
       .implementation = kernel<P>(tiled<T, 0>, tiles("columns", "rows")),
       .builds_on = "naive_coalesced_reads",
       .meant_for = not_so_narrow,
       .target = "global_store_sectors_per_request"},
      {.name = "padded",
       .idea = "A spare column shifts each row of the tile by one bank: no conflicts.",
       .implementation = kernel<P>(tiled<T, 1>, tiles("columns", "rows")),
       .builds_on = "tiled",
       .target = "shared_load_wavefronts_per_request"},
      {.name = "coarsened",
       .idea = "32x8 threads move four elements each: four loads in flight per thread.",
       .implementation = kernel<P>(coarsened<T, Padded>, tiles("columns", "rows", 8)),
       .builds_on = "padded",
       .target = "warp_instructions"},
      {.name = "swizzled",
       .idea = "Columns XORed with the row: no conflicts, no spare memory.",
       .implementation = swizzled<T>(),
       .builds_on = "coarsened",
       .shows = "Swizzling is as fast as padding and needs no spare memory.",
       .target = "static_shared_bytes"},
      // 02_vectorized.cuh
      {.name = "vectorized",
       .idea = "16 bytes per access: squares of vectors are transposed in registers.",
       .implementation = vectorized_in<T, Order::rows>(),
       .builds_on = "swizzled",
       .meant_for = [](const Case& c) { return c["rows"] * c["columns"] > 1 << 22; },
       .target = "warp_instructions",
       .skip = unaligned},
      {.name = "small_tiles",
       .idea = "Tiles of a quarter of the area: more blocks for small matrices.",
       .implementation = vectorized_in<T, Order::rows, 8>(),
       .builds_on = "vectorized",
       .meant_for = [](const Case& c) { return c["rows"] <= 2048 && c["columns"] <= 2048; },
       .skip = unaligned,
       .measured = [](const Case& c) { return c["rows"] <= 4096 && c["columns"] <= 4096; }},
      {.name = "banded",
       .idea = "Bands two tiles wide: concurrent blocks write long pieces of the same rows.",
       .implementation = vectorized_in<T, Order::bands>(),
       .builds_on = "vectorized",
       .skip = unaligned},
      // 03_bulk_copies.cuh
      {.name = "bulk_copies",
       .idea = "TMA loads and stores swizzled boxes; each warp transposes its own.",
       .implementation = boxes<T>(),
       .builds_on = "banded",
       .shows =
           "As few instructions as with 16-byte accesses, and no more speed: DRAM is the limit.",
       .target = "warp_instructions",
       .needs = kTma,
       .skip = no_boxes},
      // 04_shifted.cuh
      {.name = "shifted",
       .idea = "Unaligned rows: tiles shifted to sector boundaries, so stores fill sectors.",
       .builds_on = "coarsened",
       .meant_for = [](const Case& c) { return !aligned(c) && !is_narrow(c); },
       .target = "global_store_sectors_per_request",
       .choose = shifted_at<T>},
      // 05_few_rows_or_columns.cuh
      {.name = "thin",
       .idea = "Few rows: 128 columns are contiguous in the output, stored 16 bytes at a time "
               "if the number of rows is odd.",
       .implementation = kernel<P>(thin<T>, thin_pieces),
       .builds_on = "shifted",
       .target = "global_store_sectors_per_request",
       .skip = not_thin,
       .measured = [](const Case& c) { return c["rows"] <= kThinRows; }},
      {.name = "narrow",
       .idea = "Few columns: the rows of a block are contiguous in the input, loaded in vectors.",
       .implementation = kernel<P>(narrow<T>, narrow_pieces<T>),
       .builds_on = "shifted",
       .target = "global_load_requests",
       .skip = not_narrow,
       .measured = is_narrow},
      // 06_in_place.cuh
      {.name = "in_place",
       .idea = "A square in place: each block swaps two mirrored tiles.",
       .builds_on = "vectorized",
       .shows = "In place takes half the memory and costs a few percent of the speed.",
       .by_name_only = true,
       .skip = not_square,
       .choose = in_place_at<T>},
      // ladder.cu
      {.name = "fastest",
       .idea = "The measured choice for the shape and the element.",
       .role = Role::choice,
       .choose = fastest_at<T>},
  };
}

Shape shape(int64_t rows, int64_t columns, int64_t element = 4) { return {rows, columns, element}; }

}  // namespace

Ladder ladder() {
  return {
      .name = "transpose",
      .title = "Matrix transpose",
      .ceiling = "transpose/copy",
      .input = "random integers, stored as float or double (of 2 bytes: random bits)",
      .axes = {{"rows"}, {"columns"}, {.name = "element", .facet = true, .only = {2, 4, 8}}},
      .measured = {shape(1024, 1024), shape(2048, 2048), shape(4096, 4096), shape(8192, 8192),
                   shape(8224,
                         8224),  // not a power of two: columns spread over all memory channels
                   shape(16384, 16384), shape(10000, 3000), shape(4095, 4097), shape(31, 1000003),
                   shape(1000003, 31), shape(30000000, 2), shape(100000000, 1),
                   shape(8192, 8192, 2), shape(8192, 8192, 8)},
      .small = {shape(1024, 1024), shape(1000, 777), shape(512, 512, 2), shape(512, 512, 8)},
      .tested = {shape(1, 1), shape(1, 1, 8), shape(31, 31), shape(33, 65), shape(65, 33, 2),
                 shape(127, 257, 8), shape(1, 1000), shape(1000, 1, 2), shape(256, 128),
                 // Whole vectors, but partial tiles and bands: of one tile and of several.
                 shape(4, 4), shape(72, 200), shape(136, 264, 2), shape(98, 34, 8),
                 shape(264, 264, 2), shape(132, 132), shape(64, 64, 8),
                 // Whole shifted tiles, thin ones of both kinds, squares of any length.
                 shape(121, 64), shape(24, 301, 2), shape(32, 130, 8), shape(31, 129, 8),
                 shape(301, 31, 2), shape(66, 66), shape(97, 97, 2), shape(35, 35, 8),
                 shape(3, 70000, 2), shape(2100001, 3), shape(0, 5), shape(5, 0),
                 // Narrow ones: of several pieces, of odd and even columns, of each element.
                 shape(5000, 16, 2), shape(4099, 7, 2), shape(3001, 12), shape(2049, 1),
                 shape(1037, 9, 8), shape(999, 16, 8)},
      .headline = shape(8192, 8192),
      .small_headline = shape(1024, 1024),
      .work = [](const Case& c,
                 const Device&) { return Work{.bytes_read = bytes(c), .bytes_written = bytes(c)}; },
      .problem =
          [](const Case& c, const Device& device) {
            return (c["element"] == 2   ? problem_of<Transpose<uint16_t>>
                    : c["element"] == 4 ? problem_of<Transpose<uint32_t>>
                                        : problem_of<Transpose<uint64_t>>)(c, device);
          },
      .crossovers = {kWideFrom, kVectorsFrom, kBandsFrom},
      .rungs = joined(
          by_axis("element", {2, 4, 8}, {rungs<uint16_t>(), rungs<uint32_t>(), rungs<uint64_t>()}),
          peers()),
  };
}

}  // namespace ladders::transpose
