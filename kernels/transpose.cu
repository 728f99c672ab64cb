// SPDX-License-Identifier: MIT
//
// Transpose: out[column][row] = in[row][column], row major, any rows x columns.
//
// Nothing is computed, so the copy of the same bytes is the limit. A warp's 32 accesses travel as
// 32-byte sectors: neighbouring lanes on neighbouring elements fill them (4 sectors a request of
// 4-byte elements), lanes a row apart touch one sector each and waste the rest of it (32). Rows
// read are columns written, so one side must stride, unless the turn is made in shared memory,
// which has banks instead of sectors.

#include "catalogue.hpp"
#include "device.cuh"
#include "inputs.cuh"
#include "peers.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

// The elements are unsigned integers of T's size, but the library's are floating point: small
// integers as floats come through it unchanged, and are random enough.
template <class T>
struct Element {
  __device__ T operator()(size_t i) const {
    const uint32_t bits = random_bits(i);
    if constexpr (sizeof(T) == 4) return __float_as_uint(static_cast<float>(bits >> 8));
    if constexpr (sizeof(T) == 8) return __double_as_longlong(static_cast<double>(bits));
    return static_cast<T>(bits);
  }
};

template <class T>
class Transpose : public Problem {
 public:
  explicit Transpose(const Case& shape)
      : rows_(static_cast<int>(shape["rows"])),
        columns_(static_cast<int>(shape["columns"])),
        in_(shape["rows"] * shape["columns"]),
        out_(in_.size()) {
    generate(in_.data(), in_.size(), Element<T>{});
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(out_.data(), in_.data(), rows_, columns_); }

  Verdict compare() override {
    const T* out = out_.data();
    const size_t rows = rows_, columns = columns_;
    const auto wrong = first_wrong(out_.size(), [=] __device__(size_t i) {
      return out[i] == Element<T>{}(i % rows * columns + i / rows);
    });
    if (wrong) return {.wrong = "element " + std::to_string(*wrong) + " of the transpose"};
    return {};
  }

  // The copy is no transpose, and is right when nothing has moved.
  static Verdict check_copy(const Transpose& problem) {
    const T* out = problem.out_.data();
    const auto wrong = first_wrong(problem.out_.size(),
                                   [=] __device__(size_t i) { return out[i] == Element<T>{}(i); });
    return {.wrong = wrong ? "element " + std::to_string(*wrong) + " of the copy" : ""};
  }

 private:
  int rows_, columns_;
  DeviceBuffer<T> in_, out_;
};

constexpr int kTile = 32;  // a side of the tile, and the lanes of a warp

// Where an element of a row-major matrix lies: beyond 2^31 in the larger cases.
__device__ size_t at(int row, int column, int columns) {
  return static_cast<size_t>(row) * columns + column;
}

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
