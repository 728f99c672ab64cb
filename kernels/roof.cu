// SPDX-License-Identifier: MIT
//
// Roofs: what this GPU can do at most, measured. The other ladders are drawn against these, since
// a datasheet's peak is nobody's to reach and a measured one is.

#include <bit>

#include "catalogue.hpp"
#include "device.cuh"
#include "inputs.cuh"
#include "verify.cuh"

namespace ladders {
namespace {

struct Bits {
  __device__ unsigned operator()(size_t i) const { return random_bits(i); }
};

class Roof : public Problem {
 public:
  Roof(const Case& c, const Device& device)
      : in(size_t(c["size"]) << 18),
        out(std::max(in.size(), size_t(device.sms) * device.threads_per_sm)),
        threads(size_t(device.sms) * device.threads_per_sm),
        iterations(static_cast<int>(4 * c["size"])) {
    generate(in.data(), in.size(), Bits{});
  }
  Memory output() const override { return {out.data(), out.bytes()}; }

  const DeviceBuffer<unsigned> in, out;
  const size_t threads;  // that the device can hold at once: each of them has an output
  const int iterations;
};

void copy(Roof& roof, cudaStream_t stream) {
  check(cudaMemcpyAsync(roof.out.data(), roof.in.data(), roof.in.bytes(), cudaMemcpyDeviceToDevice,
                        stream),
        "cudaMemcpyAsync");
}

Verdict check_copy(const Roof& roof) {
  const unsigned* out = roof.out.data();
  const auto wrong =
      first_wrong(roof.in.size(), [=] __device__(size_t i) { return out[i] == Bits{}(i); });
  return {.wrong = wrong ? "word " + std::to_string(*wrong) : ""};
}

// 16-byte loads, four in flight, as at the top of the reduction: nothing is left but reading. The
// sum of each thread goes out, so that no load can be dropped.
__global__ void dram_read(const unsigned* __restrict__ in, size_t words,
                          unsigned* __restrict__ sums) {
  constexpr int kFlight = 4;
  const auto* wide = reinterpret_cast<const uint4*>(in);
  const size_t thread = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  const size_t count = words / 4, stride = size_t{gridDim.x} * blockDim.x;
  unsigned sum = 0;
  size_t i = thread;
  for (; i + (kFlight - 1) * stride < count; i += kFlight * stride) {
    uint4 v[kFlight];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) v[j] = wide[i + j * stride];
#pragma unroll
    for (int j = 0; j < kFlight; ++j) sum += v[j].x + v[j].y + v[j].z + v[j].w;
  }
  for (; i < count; i += stride) {
    const uint4 v = wide[i];
    sum += v.x + v.y + v.z + v.w;
  }
  sums[thread] = sum;
}

Verdict check_read(const Roof& roof) {
  const unsigned *in = roof.in.data(), *sums = roof.out.data();
  // Halves of words add up exactly in FP64; whole ones would not.
  const auto sum_of = [](const unsigned* words, size_t n) {
    const double low =
        fold(n, [=] __device__(size_t i) { return static_cast<double>(words[i] & 0xFFFF); }).sum;
    const double high =
        fold(n, [=] __device__(size_t i) { return static_cast<double>(words[i] >> 16); }).sum;
    return static_cast<uint32_t>(static_cast<uint64_t>(low) + (static_cast<uint64_t>(high) << 16));
  };
  if (sum_of(in, roof.in.size()) != sum_of(sums, roof.threads))
    return {.wrong = "sum of all words"};
  return {};
}

// Every warp loads 32 neighbouring words again and again: one wavefront of 128 bytes a request.
constexpr unsigned kBlock = 512;
__global__ void shared_memory(unsigned* out, int iterations) {
  __shared__ unsigned words[kBlock];
  volatile unsigned* mine = words + threadIdx.x;
  *mine = threadIdx.x;
  unsigned sum = 0;
#pragma unroll 32
  for (int i = 0; i < iterations; ++i) sum += *mine;
  out[blockIdx.x * kBlock + threadIdx.x] = sum;
}

Verdict check_shared(const Roof& roof) {
  const std::vector<unsigned> sums = to_host(roof.out.data(), roof.threads);
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != unsigned(roof.iterations) * (i % kBlock))
      return {.wrong = "thread " + std::to_string(i)};
  return {};
}

// 16 independent chains of multiply-adds a thread: no memory, and none waits for the one before.
// x = b - x alternates between two numbers of full mantissas: it stays finite, and the multipliers
// toggle, as a constant's would not. Each thread starts elsewhere, or the compiler for Blackwell
// would do the work once a warp, on the uniform datapath.
constexpr int kChains = 16;
constexpr float kFactor = -1.0f, kTerm = 1.2345678f;
__global__ void fma(float* out, int iterations, float a, float b) {
  float x[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
#pragma unroll 8
  for (int i = 0; i < iterations; ++i)
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], a, b);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) sum += x[c];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

Verdict check_fma(const Roof& roof) {
  std::vector<float> expected(kBlock);
  for (unsigned thread = 0; thread < kBlock; ++thread)
    for (unsigned c = 0; c < kChains; ++c) {
      float x = static_cast<float>(thread + c);
      for (int i = 0; i < roof.iterations; ++i) x = std::fma(x, kFactor, kTerm);
      expected[thread] += x;
    }
  const std::vector<unsigned> sums = to_host(roof.out.data(), roof.threads);
  for (size_t i = 0; i < sums.size(); ++i)
    if (const float sum = std::bit_cast<float>(sums[i]); sum != expected[i % kBlock])
      return {.wrong = std::to_string(sum) + " instead of " + std::to_string(expected[i % kBlock]) +
                       " in thread " + std::to_string(i)};
  return {};
}

LaunchPlan all_threads(const Case&, const Device& device, const void*) {
  return {.grid = static_cast<unsigned>(device.sms * device.threads_per_sm) / kBlock,
          .block = kBlock};
}

double threads(const Device& device) { return double(device.sms) * device.threads_per_sm; }

}  // namespace

// One axis says how much: MiB a buffer for DRAM, a quarter of the iterations for the loops on chip.
Ladder roof() {
  return {
      .name = "roof",
      .title = "Measured roofs",
      .quantity = Quantity::bytes,
      .input = "random bits",
      .error_unit = "exact",
      .axes = {{"size"}},
      .measured = {{2048}},
      .small = {{2}},
      .tested = {{2}, {8}},
      .headline = {2048},
      .small_headline = {2},
      .problem = [](const Case& c,
                    const Device& device) { return std::make_unique<Roof>(c, device); },
      .rungs =
          {
              {.name = "dram_copy",
               .idea = "cudaMemcpy from device to device, bytes read and written.",
               .implementation = checked(library<Roof>(copy), check_copy),
               .role = Role::ceiling,
               .work =
                   [](const Case& c, const Device&) {
                     const double bytes = double(c["size"]) * (1 << 20);
                     return Work{.bytes_read = bytes, .bytes_written = bytes};
                   }},
              {.name = "dram_read",
               .idea = "16-byte loads, four in flight a thread, nothing written but one sum each.",
               .implementation = checked(kernel<Roof>(dram_read, all_threads,
                                                      [](Roof& r) {
                                                        return std::tuple(r.in.data(), r.in.size(),
                                                                          r.out.data());
                                                      }),
                                         check_read),
               .role = Role::ceiling,
               .work =
                   [](const Case& c, const Device&) {
                     return Work{.bytes_read = double(c["size"]) * (1 << 20)};
                   }},
              {.name = "shared_memory",
               .idea = "Each warp loads 32 neighbouring words again and again: 128 bytes a "
                       "wavefront.",
               .implementation = checked(
                   kernel<Roof>(shared_memory, all_threads,
                                [](Roof& r) { return std::tuple(r.out.data(), r.iterations); }),
                   check_shared),
               .role = Role::ceiling,
               .work =
                   [](const Case& c, const Device& device) {
                     return Work{.bytes_read = 4 * threads(device) * 4 * double(c["size"])};
                   }},
              {.name = "fma",
               .idea = "16 independent chains of FP32 multiply-adds a thread, no memory.",
               .implementation = checked(kernel<Roof>(fma, all_threads,
                                                      [](Roof& r) {
                                                        return std::tuple(
                                                            reinterpret_cast<float*>(r.out.data()),
                                                            r.iterations, kFactor, kTerm);
                                                      }),
                                         check_fma),
               .role = Role::ceiling,
               .work =
                   [](const Case& c, const Device& device) {
                     return Work{.flops = 2. * kChains * threads(device) * 4 * double(c["size"])};
                   }},
          },
  };
}

}  // namespace ladders
