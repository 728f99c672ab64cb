// SPDX-License-Identifier: MIT
//
// Reduction: the sum of squares of ints (modulo 2^64), and the sum of floats.
//
// Each element is read once and used once, so the rate of reading DRAM is the limit, and a rung is
// good when nothing else shows. What can show: atomics on one address, which the L2 takes one at a
// time; lanes that idle while others add (divergence); bank conflicts; barriers; and too few bytes
// in flight, about 40 KB an SM (latency x bandwidth), which only wide and independent loads reach.
//
// The atomic that ends each block sets a floor of its own: on one address an H200 takes 1.8 ns for
// each float, which hides the trees of the float sum altogether. Look at the integers for the
// trees.

#include "catalogue.hpp"
#include "device.cuh"
#include "inputs.cuh"
#include "peers.hpp"
#include "verify.cuh"

namespace ladders {
namespace {

struct SumOfSquares {
  using Value = int;
  using Vector = int4;
  using Result = unsigned long long;
  // Sign-extended first: the square of an int needs 63 bits.
  __host__ __device__ static Result map(int x) {
    return static_cast<Result>(static_cast<long long>(x) * x);
  }
};

struct Sum {
  using Value = float;
  using Vector = float4;
  using Result = float;
  __host__ __device__ static float map(float x) { return x; }
};

// The inputs that are timed: any bits; and floats whose sum stays near zero, since one
// accumulator that grows past 2^24 elements would swallow what is added to it.
struct RandomInput {
  __device__ void operator()(size_t i, int& x) const { x = static_cast<int>(random_bits(i)); }
  __device__ void operator()(size_t i, float& x) const { x = random_float(i); }
};

// Inputs whose sum is exact in any order of summation, so that one element lost or counted twice
// shows: i % 10, whose squares have a known sum; and odd multiples of 1/128 around zero, whose
// partial sums fit the 24 bits of a float.
struct ExactInput {
  __device__ void operator()(size_t i, int& x) const { x = static_cast<int>(i % 10); }
  __device__ void operator()(size_t i, float& x) const {
    x = static_cast<float>(2 * static_cast<int>(random_bits(i, 1) >> 25) - 127) / 128;
  }
};

template <class T, class Input>
struct Fill {
  __device__ T operator()(size_t i) const {
    T x;
    Input{}(i, x);
    return x;
  }
};

// The reference: 64-bit integers or FP64, a partial sum a thread, added up on the host.
template <class T, class Wide>
struct Partial {
  Wide sum;
  double magnitude;  // sum of |x|
};
template <class Op, class Wide>
__global__ void reference(const typename Op::Value* in, size_t count,
                          Partial<typename Op::Value, Wide>* out) {
  const size_t first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  Partial<typename Op::Value, Wide> mine{};
  for (size_t i = first; i < count; i += size_t{gridDim.x} * blockDim.x) {
    mine.sum += static_cast<Wide>(Op::map(in[i]));
    mine.magnitude += fabs(static_cast<double>(in[i]));
  }
  out[first] = mine;
}

template <class Op>
class Reduction : public Problem {
 public:
  using Value = typename Op::Value;
  using Result = typename Op::Result;
  static constexpr bool kExact = std::is_integral_v<Value>;
  using Wide = std::conditional_t<kExact, unsigned long long, double>;

  explicit Reduction(const Case& c) : in_(c["elements"]), result_(1) { fill<RandomInput>(); }
  Memory output() const override { return {result_.data(), result_.bytes()}; }
  auto arguments() const { return std::tuple(in_.data(), in_.size(), result_.data()); }

  int inputs() const override { return 2; }
  void prepare(int input) override {
    exact_ = input == 0;
    exact_ ? fill<ExactInput>() : fill<RandomInput>();
  }
  void poison() override {
    Problem::poison();
    on_host_.reset();
  }

  Result result() const { return on_host_ ? *on_host_ : to_host(result_.data(), 1).front(); }

  // Floats: the error relative to the sum of magnitudes, which bounds what rounding can do; the
  // sum itself is near zero, and relative to it any order of summation is far off.
  Verdict compare() override {
    const auto [expected, magnitude] = expectation();
    const Result result = this->result();
    if constexpr (kExact) {
      if (result == expected) return {};
      return {.wrong = std::to_string(result) + " instead of " + std::to_string(expected)};
    } else {
      const double error = std::abs(result - expected);
      if (exact_ && error != 0) return {.wrong = "a sum that is exact in any order is off"};
      return {.relative_error = error == 0 ? 0 : error / magnitude};
    }
  }

  std::pair<Wide, double> expectation() const {
    constexpr unsigned kThreads = 256;
    const auto blocks =
        static_cast<unsigned>(std::min<size_t>(ceil_div<size_t>(in_.size(), kThreads), 512));
    using Part = Partial<Value, Wide>;
    DeviceBuffer<Part> parts(blocks * kThreads);
    launch({.grid = blocks, .block = kThreads}, nullptr, reference<Op, Wide>, in_.data(),
           in_.size(), parts.data());
    std::pair<Wide, double> total{};
    for (const Part& part : to_host(parts.data(), parts.size())) {
      total.first += part.sum;
      total.second += part.magnitude;
    }
    return total;
  }

  template <class Input>
  void fill() {
    generate(in_.data(), in_.size(), Fill<Value, Input>{});
    host_.clear();
  }

  // The serial rung: its input is copied once, its result stays on the host.
  void sum_on_host() {
    if (host_.size() != in_.size()) host_ = to_host(in_.data(), in_.size());
    Result sum{};
    for (const Value x : host_) sum += Op::map(x);
    on_host_ = sum;
  }

 private:
  DeviceBuffer<Value> in_;
  DeviceBuffer<Result> result_;
  std::vector<Value> host_;
  std::optional<Result> on_host_;
  bool exact_ = false;  // whether the input is the exact one
};

constexpr int kThreads = 256;

template <class Op>
__device__ typename Op::Result load(const typename Op::Value* in, size_t i, size_t count) {
  return i < count ? Op::map(in[i]) : 0;
}

// An atomic a thread, all on one address: the L2 adds them one after the other. (For a 32-bit
// integer the compiler would add up each warp first; for 64 bits and floats it does not.)
template <class Op>
__global__ void global_atomic(const typename Op::Value* __restrict__ in, size_t count,
                              typename Op::Result* result) {
  const size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (i < count) atomicAdd(result, Op::map(in[i]));
}

// A tree in shared memory, one atomic a block. Pairs are neighbours, so half of the lanes idle at
// the first level, three quarters at the second, in every warp.
template <class Op>
__global__ void interleaved_modulo(const typename Op::Value* __restrict__ in, size_t count,
                                   typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  for (unsigned stride = 1; stride < kThreads; stride *= 2) {
    if (threadIdx.x % (2 * stride) == 0) sums[threadIdx.x] += sums[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The same pairs, but by the first threads: whole warps retire together. Now lanes lie 2, 4, 8 ...
// words apart, and the banks conflict.
template <class Op>
__global__ void interleaved_strided(const typename Op::Value* __restrict__ in, size_t count,
                                    typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  for (unsigned stride = 1; stride < kThreads; stride *= 2) {
    const unsigned i = 2 * stride * threadIdx.x;
    if (i < kThreads) sums[i] += sums[i + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The tree of the next three rungs: upper half onto lower half, lanes on neighbouring words.
template <class Result>
__device__ __forceinline__ void fold_block(Result* sums) {
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
}

// Sequential addressing: no conflicts, no divergence above one warp.
template <class Op>
__global__ void sequential(const typename Op::Value* __restrict__ in, size_t count,
                           typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The same with shared memory sized at launch: nothing else changes, neither should the time.
template <class Op>
__global__ void sequential_dynamic(const typename Op::Value* __restrict__ in, size_t count,
                                   typename Op::Result* result) {
  auto* sums = dynamic_shared<typename Op::Result>();
  sums[threadIdx.x] = load<Op>(in, blockIdx.x * size_t{kThreads} + threadIdx.x, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// A block takes two blocks' elements and adds the first pair on the way in: half the blocks, trees
// and atomics, and no thread that only loads.
template <class Op>
__global__ void first_add_on_load(const typename Op::Value* __restrict__ in, size_t count,
                                  typename Op::Result* result) {
  __shared__ typename Op::Result sums[kThreads];
  const size_t i = blockIdx.x * size_t{2 * kThreads} + threadIdx.x;
  sums[threadIdx.x] = load<Op>(in, i, count) + load<Op>(in, i + kThreads, count);
  __syncthreads();
  fold_block(sums);
  if (threadIdx.x == 0) atomicAdd(result, sums[0]);
}

// The sum of a warp in lane 0, register to register.
template <class Result>
__device__ __forceinline__ Result fold_warp(Result sum) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  return sum;
}

// A block's sum by shuffles, added to the result: one word a warp and one barrier.
template <class Result>
__device__ __forceinline__ void add_block(Result sum, Result* result) {
  __shared__ Result warps[kThreads / 32];
  sum = fold_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = fold_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : Result{});
    if (threadIdx.x == 0) atomicAdd(result, sum);
  }
}

// Shuffles instead of the tree: one barrier instead of nine, hardly any shared memory. Blocks end
// sooner, and at 2^28 elements their atomics queue up: with a plain store in place of the atomic
// this fold takes 0.7 of the tree's time, with it 1.2.
template <class Op>
__global__ void warp_shuffle(const typename Op::Value* __restrict__ in, size_t count,
                             typename Op::Result* result) {
  const size_t i = blockIdx.x * size_t{2 * kThreads} + threadIdx.x;
  add_block(load<Op>(in, i, count) + load<Op>(in, i + kThreads, count), result);
}

// As many blocks as are resident, each striding over the whole input: the fold and the atomic are
// paid once a resident block instead of once every 512 elements.
template <class Op>
__global__ void grid_stride(const typename Op::Value* __restrict__ in, size_t count,
                            typename Op::Result* result) {
  typename Op::Result sum{};
  const size_t stride = size_t{gridDim.x} * kThreads;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count; i += stride)
    sum += Op::map(in[i]);
  add_block(sum, result);
}

// 16 bytes a load and four loads in flight, each into its own accumulator: enough bytes under way
// to cover the latency of DRAM.
template <class Op>
__global__ void vectorized(const typename Op::Value* __restrict__ in, size_t count,
                           typename Op::Result* result) {
  constexpr int kFlight = 4;
  using Vector = typename Op::Vector;
  typename Op::Result sums[kFlight] = {};
  const size_t vectors = count / 4, stride = size_t{gridDim.x} * kThreads;
  const auto* wide = reinterpret_cast<const Vector*>(in);
  const size_t first = blockIdx.x * size_t{kThreads} + threadIdx.x;
  size_t i = first;
  for (; i + (kFlight - 1) * stride < vectors; i += kFlight * stride) {
    Vector loaded[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) loaded[j] = wide[i + j * stride];
#pragma unroll
    for (int j = 0; j < kFlight; ++j)
      sums[j] += (Op::map(loaded[j].x) + Op::map(loaded[j].y)) +
                 (Op::map(loaded[j].z) + Op::map(loaded[j].w));
  }
  for (; i < vectors; i += stride) {
    const Vector v = wide[i];
    sums[0] += (Op::map(v.x) + Op::map(v.y)) + (Op::map(v.z) + Op::map(v.w));
  }
  if (first < count % 4) sums[1] += Op::map(in[4 * vectors + first]);
  add_block((sums[0] + sums[1]) + (sums[2] + sums[3]), result);
}

// A thread for each element, or for each `per_thread` of them. No elements, no blocks.
template <int per_thread>
LaunchPlan thread_an_element(const Case& c, const Device&, const void*) {
  return {.grid = static_cast<unsigned>(
              ceil_div<int64_t>(c["elements"], int64_t{kThreads} * per_thread)),
          .block = kThreads};
}

template <class Op>
LaunchPlan with_dynamic(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = thread_an_element<1>(c, device, kernel);
  plan.shared_bytes = kThreads * sizeof(typename Op::Result);
  return plan;
}

// The resident blocks, but no more than have `per_thread` elements for each thread.
template <int per_thread>
LaunchPlan resident(const Case& c, const Device& device, const void* kernel) {
  LaunchPlan plan = fill_device({.block = kThreads}, kernel, device);
  plan.grid.x = std::min(plan.grid.x, thread_an_element<per_thread>(c, device, kernel).grid.x);
  return plan;
}

void cub(Reduction<SumOfSquares>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  peers::cub_sum_of_squares(problem, in, count, result, stream);
}
void cub(Reduction<Sum>& problem, cudaStream_t stream) {
  const auto [in, count, result] = problem.arguments();
  peers::cub_sum(problem, in, count, result, stream);
}

template <class Op>
std::vector<Rung> rungs() {
  using P = Reduction<Op>;
  return {
      {.name = "serial_cpu",
       .idea = "One CPU core in a plain loop over host memory, for scale.",
       .implementation = on_host<P>([](P& problem) { problem.sum_on_host(); }),
       .skip =
           [](const Case& c, const Device&) {
             const int64_t n = c["elements"];
             const bool measured = n <= 1 << 12 || n == 1 << 20 || n == 1 << 28;
             return measured ? "" : "for scale, at 2^20 and 2^28 elements only";
           }},
      {.name = "global_atomic",
       .idea = "Every thread adds its element to one address: the atomics queue up in L2.",
       .implementation = kernel<P>(global_atomic<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "global_atomic_requests"},
      {.name = "interleaved_modulo",
       .idea = "A tree in shared memory and one atomic a block; neighbours pair up, so lanes of "
               "every warp idle.",
       .implementation = kernel<P>(interleaved_modulo<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "global_atomic_requests"},
      {.name = "interleaved_strided",
       .idea = "The first threads do the adding: no divergence, but strides of 2, 4, 8 words make "
               "banks conflict.",
       .implementation = kernel<P>(interleaved_strided<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "shared_load_requests"},
      {.name = "sequential",
       .idea = "The upper half is folded onto the lower: neighbouring lanes, neighbouring banks.",
       .implementation = kernel<P>(sequential<Op>, thread_an_element<1>),
       .zero_output = true,
       .moves = "shared_load_wavefronts_per_request"},
      {.name = "sequential_dynamic",
       .idea = "The same with shared memory sized at launch: no difference to expect.",
       .implementation = kernel<P>(sequential_dynamic<Op>, with_dynamic<Op>),
       .zero_output = true},
      {.name = "first_add_on_load",
       .idea = "Each thread adds two elements on the way in: half the blocks, trees and atomics.",
       .implementation = kernel<P>(first_add_on_load<Op>, thread_an_element<2>),
       .zero_output = true,
       .moves = "global_atomic_requests"},
      {.name = "warp_shuffle",
       .idea = "Shuffles fold a warp in registers: one barrier a block instead of nine.",
       .implementation = kernel<P>(warp_shuffle<Op>, thread_an_element<2>),
       .zero_output = true,
       .moves = "shared_load_requests"},
      {.name = "grid_stride",
       .idea = "Resident blocks stride over the input: one fold and one atomic for each of them.",
       .implementation = kernel<P>(grid_stride<Op>, resident<1>),
       .zero_output = true,
       .moves = "global_atomic_requests"},
      {.name = "vectorized",
       .idea = "16-byte loads, four in flight into four accumulators: enough bytes under way to "
               "cover DRAM's latency.",
       .implementation = kernel<P>(vectorized<Op>, resident<16>),
       .zero_output = true,
       .moves = "global_load_sectors_per_request"},
      {.name = "cub",
       .idea = "cub::DeviceReduce: Sum, or TransformReduce for the squares.",
       .implementation = library<P>([](P& problem, cudaStream_t s) { cub(problem, s); }),
       .role = Role::peer},
  };
}

}  // namespace

Ladder reduction() {
  return {
      .name = "reduction",
      .title = "Reduction",
      .quantity = Quantity::bytes,
      .ceiling = "roof/dram_read",
      .input = "sum_of_squares: random 32-bit ints; sum: uniform in [-1, 1)",
      .error_unit = "sum of magnitudes",
      .error_limit = 1e-6,
      .axes = {{"elements"},
               {.name = "operation", .labels = {"sum_of_squares", "sum"}, .facet = true}},
      // Below 2^16 there is nothing to see but a launch.
      .measured = {{1 << 16, 0},
                   {1 << 20, 0},
                   {1 << 22, 0},
                   {1 << 24, 0},
                   {1 << 26, 0},
                   {1 << 28, 0},
                   {1 << 16, 1},
                   {1 << 20, 1},
                   {1 << 22, 1},
                   {1 << 24, 1},
                   {1 << 26, 1},
                   {1 << 28, 1}},
      .small = {{1 << 20, 0}, {1 << 20, 1}},
      .tested = {{0, 0},
                 {1, 0},
                 {31, 0},
                 {255, 0},
                 {257, 0},
                 {1021, 0},
                 {65537, 0},
                 {1 << 20, 0},
                 {0, 1},
                 {1, 1},
                 {33, 1},
                 {511, 1},
                 {4099, 1},
                 {999983, 1}},
      .headline = {1 << 28, 0},
      .small_headline = {1 << 20, 0},
      .work =
          [](const Case& c, const Device&) {
            const double elements = double(c["elements"]);
            const bool floats = c["operation"] == 1;
            return Work{.flops = floats ? elements : 0,
                        .bytes_read = 4 * elements,
                        .bytes_written = floats ? 4. : 8.};
          },
      .problem = [](const Case& c, const Device&) -> std::unique_ptr<Problem> {
        if (c["operation"] == 0) return std::make_unique<Reduction<SumOfSquares>>(c);
        return std::make_unique<Reduction<Sum>>(c);
      },
      .rungs = by_axis("operation", {0, 1}, {rungs<SumOfSquares>(), rungs<Sum>()}),
  };
}

}  // namespace ladders
