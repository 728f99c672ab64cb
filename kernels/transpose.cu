// SPDX-License-Identifier: MIT
//
// Transpose: out[column][row] = in[row][column], row major, any rows x columns.
//
// Nothing is computed, so the copy of the same bytes is the limit. A warp's 32 accesses travel as
// 32-byte sectors: neighbouring lanes on neighbouring elements fill them (4 sectors a request of
// 4-byte elements), lanes a row apart touch one sector each and waste the rest of it (32). Rows
// read are columns written, so one side must stride, unless the turn is made in shared memory,
// which has banks instead of sectors. Above that it is a matter of enough bytes under way in few
// instructions, of the order in which memory sees them, and of rows that start between sectors.

#include "catalogue.hpp"
#include "peers.hpp"
#include "transpose_boxes.cuh"
#include "transpose_problem.cuh"
#include "transpose_unaligned.cuh"
#include "transpose_vectorized.cuh"

namespace ladders {
namespace {

constexpr int kTile = 32;  // a side of the tile, and the lanes of a warp

// One element a thread, neighbouring lanes along a row of the input: 4 sectors a load, 32 a store.
template <class T>
__global__ void naive_coalesced_reads(T* __restrict__ out, const T* __restrict__ in, int rows,
                                      int columns) {
  const int column = blockIdx.x * kTile + threadIdx.x;
  for (int row = blockIdx.y * kTile + threadIdx.y; row < rows; row += gridDim.y * kTile)
    if (column < columns) out[at(column, row, rows)] = in[at(row, column, columns)];
}

// Neighbouring lanes along a row of the output: the stride moves to the loads, which the L1 and L2
// caches serve again to the next warps, while stores had to be merged in L2.
template <class T>
__global__ void naive_coalesced_writes(T* __restrict__ out, const T* __restrict__ in, int rows,
                                       int columns) {
  const int row = blockIdx.x * kTile + threadIdx.x;
  for (int column = blockIdx.y * kTile + threadIdx.y; column < columns; column += gridDim.y * kTile)
    if (row < rows) out[at(column, row, rows)] = in[at(row, column, columns)];
}

// The turn is made in a shared-memory tile, so both sides are coalesced: 4 sectors and 4. With
// Pad = 0 a column of 4-byte elements lies in one bank and its load takes 32 wavefronts; a spare
// column (Pad = 1) shifts each row by a bank, and it takes one.
template <class T, int Pad>
__global__ void tiled(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  __shared__ T tile[kTile][kTile + Pad];
  const int column0 = blockIdx.x * kTile;
  for (int row0 = blockIdx.y * kTile; row0 < rows; row0 += gridDim.y * kTile) {
    const int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
    if (row < rows && column < columns)
      tile[threadIdx.y][threadIdx.x] = in[at(row, column, columns)];
    __syncthreads();
    const int out_row = column0 + threadIdx.y, out_column = row0 + threadIdx.x;
    if (out_row < columns && out_column < rows)
      out[at(out_row, out_column, rows)] = tile[threadIdx.x][threadIdx.y];
    __syncthreads();  // before the next tile overwrites this one
  }
}

// Where element (row, column) of the tile lies: with a spare column, or with the column number
// XORed with the row, which spreads a column over all banks and wastes no memory.
struct Padded {
  static constexpr int kStride = kTile + 1;
  __device__ static int at(int row, int column) { return row * kStride + column; }
};
struct Swizzled {
  static constexpr int kStride = kTile;
  __device__ static int at(int row, int column) { return row * kStride + (column ^ row); }
};

// 32 x 8 threads, four elements each: a quarter of the threads wait at the same two barriers, and
// each has four loads in flight before the first is needed.
template <class T, class Layout>
__global__ void coarsened(T* __restrict__ out, const T* __restrict__ in, int rows, int columns) {
  constexpr int kStep = 8;
  __shared__ T tile[kTile * Layout::kStride];
  const int column0 = blockIdx.x * kTile;
  for (int row0 = blockIdx.y * kTile; row0 < rows; row0 += gridDim.y * kTile) {
    const int column = column0 + threadIdx.x, out_column = row0 + threadIdx.x;
#pragma unroll
    for (int step = 0; step < kTile; step += kStep) {
      const int y = threadIdx.y + step;
      if (row0 + y < rows && column < columns)
        tile[Layout::at(y, threadIdx.x)] = in[at(row0 + y, column, columns)];
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kTile; step += kStep) {
      const int y = threadIdx.y + step;
      if (column0 + y < columns && out_column < rows)
        out[at(column0 + y, out_column, rows)] = tile[Layout::at(threadIdx.x, y)];
    }
    __syncthreads();
  }
}

// One block a tile along both sides. The grid's y is limited to 65535 blocks, beyond which a block
// goes on to further tiles.
LaunchPlan tiles(int64_t x, int64_t y, unsigned threads_y) {
  return {
      .grid = dim3(static_cast<unsigned>(ceil_div<int64_t>(x, kTile)),
                   static_cast<unsigned>(std::min<int64_t>(ceil_div<int64_t>(y, kTile), 65535))),
      .block = dim3(kTile, threads_y)};
}
LaunchPlan input_tiles(const Case& c, const Device&, const void*) {
  return tiles(c["columns"], c["rows"], kTile);
}
LaunchPlan output_tiles(const Case& c, const Device&, const void*) {
  return tiles(c["rows"], c["columns"], kTile);
}
LaunchPlan coarse_tiles(const Case& c, const Device&, const void*) {
  return tiles(c["columns"], c["rows"], 8);
}

// One block a tile of 16-byte vectors.
template <class T, Order order, int across = 16>
Implementation vectorized_in() {
  return kernel<Transpose<T>>(
      vectorized<T, order, across>, [](const Case& c, const Device&, const void*) {
        using S = Squares<T, across>;
        return tiles_in_order<order>(ceil_div<int64_t>(c["columns"], S::kSide),
                                     ceil_div<int64_t>(c["rows"], S::kSide), S::kThreads);
      });
}

bool aligned(const Case& c) {
  return c["rows"] * c["element"] % 16 == 0 && c["columns"] * c["element"] % 16 == 0;
}
std::string unaligned(const Case& c, const Device&) {
  return aligned(c) ? "" : "needs rows that start on 16 bytes, on both sides";
}

template <class T>
Implementation boxes() {
  using B = Box<T>;
  return kernel<Transpose<T>>(
      bulk_copies<T>,
      [](const Case& c, const Device&, const void*) {
        LaunchPlan plan = tiles_in_order<Order::bands>(
            ceil_div<int64_t>(c["columns"], B::kTileSide),
            ceil_div<int64_t>(c["rows"], B::kTileSide), 32 * B::kWarps);
        plan.shared_bytes = B::kWarps * B::kBytes;
        return plan;
      },
      [](Transpose<T>& problem) {
        const auto [out, in, rows, columns] = problem.arguments();
        return std::tuple(B::map(in, rows, columns), B::map(out, columns, rows), rows, columns);
      });
}
std::string no_boxes(const Case& c, const Device& device) {
  if (c["rows"] * c["columns"] == 0) return "TMA takes no empty matrices";
  return unaligned(c, device);
}

template <class T, int columns_a_tile>
Implementation shifted_by() {
  return kernel<Transpose<T>>(shifted<T, columns_a_tile>, [](const Case& c, const Device&,
                                                             const void*) {
    using S = Shifted<T, columns_a_tile>;
    return tiles_in_order<S::kOrder>(S::tiles_x(c["columns"]), S::tiles_y(c["rows"]), S::kThreads);
  });
}
template <class T>
Implementation shifted_at(const Case& c) {
  return c["columns"] <= 32 ? shifted_by<T, 32>() : shifted_by<T, 64>();
}

LaunchPlan pieces(const Case& c, const Device&, const void*) {
  const int64_t elements = kThinColumns * c["rows"];
  return {.grid = static_cast<unsigned>(ceil_div<int64_t>(c["columns"], kThinColumns)),
          .block = kThinColumns,
          .shared_bytes = size_t(c["element"] * (elements + elements / 32))};
}
std::string not_thin(const Case& c, const Device&) {
  return c["rows"] <= kThinRows ? "" : "for at most " + std::to_string(kThinRows) + " rows";
}

// Transposing twice gives the input again: right once on what fill() has left, and timed in turns.
template <class T>
Implementation in_place_at(const Case& c) {
  const auto plan = [](int64_t side, unsigned threads, size_t shared_bytes) {
    return [=](const Case& c, const Device&, const void*) {
      const int tiles = static_cast<int>(ceil_div(c["rows"], side));
      return LaunchPlan{.grid = static_cast<unsigned>(mirrored_pairs(tiles)),
                        .block = threads,
                        .shared_bytes = shared_bytes};
    };
  };
  using P = Transpose<T>;
  using S = Squares<T>;
  const auto square = [](P& problem) { return problem.square(); };
  Implementation result =
      aligned(c)
          ? kernel<P>(vectorized_in_place<T>,
                      plan(S::kSide, S::kThreads, 2 * S::kVectors * sizeof(Vector<T>)), square)
          : kernel<P>(elements_in_place<T>, plan(32, 256, 0), square);
  result.fill = [](Problem& problem) { static_cast<P&>(problem).fill_output(); };
  result.adds = true;
  return result;
}
std::string not_square(const Case& c, const Device&) {
  if (c["rows"] != c["columns"]) return "the transpose has another shape";
  return c["rows"] == 1 ? "one element is its own transpose" : "";
}

// As measured on an H200. In its L2 of 60 MB both matrices may fit: then bands bring nothing.
template <class T>
Implementation fastest_at(const Case& c) {
  if (c["rows"] <= kThinRows) return kernel<Transpose<T>>(thin<T>, pieces);
  if (c["columns"] <= 32 || !aligned(c)) return shifted_at<T>(c);
  return 2 * c["rows"] * c["columns"] * c["element"] <= 60'000'000
             ? vectorized_in<T, Order::rows, 8>()
             : vectorized_in<T, Order::bands>();
}

template <class T>
void copy(Transpose<T>& problem, cudaStream_t stream) {
  const auto [out, in, rows, columns] = problem.arguments();
  check(cudaMemcpyAsync(out, in, sizeof(T) * rows * columns, cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}

template <class T>
void geam(Transpose<T>& problem, cudaStream_t stream) {
  const auto [out, in, rows, columns] = problem.arguments();
  if constexpr (sizeof(T) == 4)
    peers::cublas_transpose(reinterpret_cast<float*>(out), reinterpret_cast<const float*>(in), rows,
                            columns, stream);
  if constexpr (sizeof(T) == 8)
    peers::cublas_transpose(reinterpret_cast<double*>(out), reinterpret_cast<const double*>(in),
                            rows, columns, stream);
}

template <class T>
std::vector<Rung> rungs() {
  using P = Transpose<T>;
  return {
      {.name = "copy",
       .idea = "The same bytes copied with cudaMemcpy: what any transpose is measured against.",
       .implementation = checked(library<P>(copy<T>), P::check_copy),
       .role = Role::ceiling},
      {.name = "naive_coalesced_reads",
       .idea = "One element a thread, lanes along the input's rows: loads fill their sectors, "
               "stores touch 32.",
       .implementation = kernel<P>(naive_coalesced_reads<T>, input_tiles),
       .moves = "global_load_sectors_per_request"},
      {.name = "naive_coalesced_writes",
       .idea = "Lanes along the output's rows: the stride moves to the loads, which caches forgive "
               "more.",
       .implementation = kernel<P>(naive_coalesced_writes<T>, output_tiles),
       .moves = "global_store_sectors_per_request"},
      {.name = "tiled",
       .idea = "The turn is made in a 32x32 shared tile: both sides coalesced, but a column of the "
               "tile lies in one bank.",
       .implementation = kernel<P>(tiled<T, 0>, input_tiles),
       .moves = "global_load_sectors_per_request"},
      {.name = "padded",
       .idea = "A spare column shifts each row of the tile by one bank: no conflicts.",
       .implementation = kernel<P>(tiled<T, 1>, input_tiles),
       .moves = "shared_load_wavefronts_per_request"},
      {.name = "coarsened",
       .idea = "32x8 threads move four rows each: four loads in flight a thread, a quarter of the "
               "threads at each barrier.",
       .implementation = kernel<P>(coarsened<T, Padded>, coarse_tiles),
       .moves = "warp_instructions"},
      {.name = "swizzled",
       .idea = "Columns XORed with the row instead of a spare column: no conflicts and no wasted "
               "memory.",
       .implementation = kernel<P>(coarsened<T, Swizzled>, coarse_tiles),
       .moves = "static_shared_bytes"},
      {.name = "vectorized",
       .idea = "16 bytes an access on both sides: squares of such vectors are turned in registers "
               "on their way to the tile.",
       .implementation = vectorized_in<T, Order::rows>(),
       .moves = "warp_instructions",
       .skip = unaligned},
      {.name = "small_tiles",
       .idea = "8 x 8 squares a tile, inputs first to leave the L2: matrices that it holds are "
               "shared out evenly, and outputs stay.",
       .implementation = vectorized_in<T, Order::rows, 8>(),
       .skip = unaligned,
       .measured = [](const Case& c) { return c["rows"] <= 4096 && c["columns"] <= 4096; }},
      {.name = "banded",
       .idea = "Blocks go down bands two tiles wide: those at work together write long pieces of "
               "the same rows.",
       .implementation = vectorized_in<T, Order::bands>(),
       .skip = unaligned},
      {.name = "bulk_copies",
       .idea = "The tensor memory accelerator brings swizzled boxes and takes them away; a warp "
               "turns its own where it lies.",
       .implementation = boxes<T>(),
       .moves = "warp_instructions",
       .compute_capability = 90,
       .hardware_only = "TMA",
       .skip = no_boxes},
      {.name = "shifted",
       .idea = "Rows that start anywhere: tiles are moved to where a sector of each output row "
               "begins, so that stores fill it.",
       .moves = "global_store_sectors_per_request",
       .choose = shifted_at<T>},
      {.name = "thin",
       .idea = "Few rows: 128 columns are one piece of the output, stored 16 bytes at a time "
               "whatever their length.",
       .implementation = kernel<P>(thin<T>, pieces),
       .moves = "global_store_sectors_per_request",
       .skip = not_thin},
      {.name = "in_place",
       .idea = "A square in its own memory: a block loads two tiles that mirror each other, and "
               "stores each where the other was.",
       .skip = not_square,
       .choose = in_place_at<T>},
      {.name = "fastest",
       .idea = "The fastest of these for the shape and the element, as measured.",
       .choose = fastest_at<T>},
      {.name = "cublas_geam",
       .idea = "cublasSgeam (8-byte elements: cublasDgeam) with alpha 1 and beta 0.",
       .implementation = library<P>(geam<T>),
       .role = Role::peer,
       .skip =
           [](const Case& c, const Device&) {
             return c["element"] == 2 ? "cuBLAS has no geam for 2-byte elements" : "";
           }},
  };
}

}  // namespace

Ladder transpose() {
  return {
      .name = "transpose",
      .title = "Matrix transpose",
      .quantity = Quantity::bytes,
      .ceiling = "transpose/copy",
      .input = "random bits",
      .error_unit = "exact",
      .axes = {{"rows"}, {"columns"}, {.name = "element", .facet = true}},
      .measured = {{1024, 1024, 4},
                   {2048, 2048, 4},
                   {4096, 4096, 4},
                   {8192, 8192, 4},
                   {8224, 8224, 4},  // not a power of two: no camping on memory channels
                   {16384, 16384, 4},
                   {10000, 3000, 4},
                   {4095, 4097, 4},
                   {31, 1000003, 4},
                   {1000003, 31, 4},
                   {8192, 8192, 2},
                   {8192, 8192, 8}},
      .small = {{1024, 1024, 4}, {1000, 777, 4}, {512, 512, 2}, {512, 512, 8}},
      .tested = {{1, 1, 4},
                 {1, 1, 8},
                 {31, 31, 4},
                 {33, 65, 4},
                 {65, 33, 2},
                 {127, 257, 8},
                 {1, 1000, 4},
                 {1000, 1, 2},
                 {256, 128, 4},
                 // Whole vectors, but not whole tiles or bands: of one tile, and of several.
                 {4, 4, 4},
                 {72, 200, 4},
                 {136, 264, 2},
                 {98, 34, 8},
                 {264, 264, 2},
                 {132, 132, 4},
                 {64, 64, 8},
                 // Whole tiles of shifted, thin ones of either kind, squares of any length.
                 {121, 64, 4},
                 {24, 301, 2},
                 {32, 130, 8},
                 {31, 129, 8},
                 {301, 31, 2},
                 {66, 66, 4},
                 {97, 97, 2},
                 {35, 35, 8},
                 {3, 70000, 2},
                 {2100001, 3, 4},
                 {0, 5, 4}},
      .headline = {8192, 8192, 4},
      .small_headline = {1024, 1024, 4},
      .work =
          [](const Case& c, const Device&) {
            const double bytes = double(c["rows"]) * double(c["columns"]) * double(c["element"]);
            return Work{.bytes_read = bytes, .bytes_written = bytes};
          },
      .problem = [](const Case& c, const Device&) -> std::unique_ptr<Problem> {
        if (c["element"] == 2) return std::make_unique<Transpose<uint16_t>>(c);
        if (c["element"] == 4) return std::make_unique<Transpose<uint32_t>>(c);
        return std::make_unique<Transpose<uint64_t>>(c);
      },
      .rungs =
          by_axis("element", {2, 4, 8}, {rungs<uint16_t>(), rungs<uint32_t>(), rungs<uint64_t>()}),
  };
}

}  // namespace ladders
