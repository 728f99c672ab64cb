// SPDX-License-Identifier: MIT
//
// Figures of divergent warps: loads of `a` are counted by a model on the host.
#include <algorithm>
#include <random>

#include "figures.hpp"

namespace emulator {
namespace {

std::vector<int> random_numbers(std::size_t count, int bound) {
  std::mt19937 random(1);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random() % static_cast<unsigned>(bound));
  return values;
}

// Requests and lanes of the loads of one warp: every call is one instruction, for the lanes whose
// flag is set.
struct Model {
  std::uint64_t requests = 0, lanes = 0;
  template <class F>
  std::vector<bool> instruction(F active) {
    std::vector<bool> flags(32);
    for (int t = 0; t < 32; ++t) flags[t] = active(t);
    const auto count = std::ranges::count(flags, true);
    requests += count > 0;
    lanes += static_cast<std::uint64_t>(count);
    return flags;
  }
};
void expect_loads(const Report& report, const Model& model) {
  const Traffic loads = report.total(kGlobal, kLoad);
  EXPECT_EQ(loads.requests, model.requests);
  EXPECT_EQ(loads.lanes, model.lanes);
}

__global__ void sparse_rows(const int* starts, const float* values, const float* x, float* y,
                            int rows) {
  const int row = threadIdx.x;
  if (row >= rows) return;
  const int end = starts[row + 1];
  float sum = 0;
  for (int j = starts[row]; j < end; ++j) sum += values[j] * x[j % 64];
  y[row] = sum;
}
TEST(Divergence, SparseRows) {
  std::vector<int> starts(33);
  const std::vector<int> lengths = random_numbers(32, 9);
  for (int i = 0; i < 32; ++i) starts[i + 1] = starts[i] + lengths[i];
  const DeviceArray<int> device_starts(starts);
  const DeviceArray<float> values(300), x(64), y(32);
  const Report report = counted_launch({1, 32}, sparse_rows, device_starts, values, x, y, 28);
  Model model;
  for (int i = 0; i < 2; ++i) model.instruction([](int t) { return t < 28; });
  for (int j = 0; j < 9; ++j)
    for (int i = 0; i < 2; ++i) model.instruction([&](int t) { return t < 28 && j < lengths[t]; });
  expect_loads(report, model);
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
  EXPECT_EQ(report.total(kGlobal, kStore).lanes, 28u);
}

__global__ void binary_search(const int* a, const int* keys, int* out, int n) {
  const int t = threadIdx.x, key = keys[t];
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2, value = a[middle];
    if (value == key) {
      low = middle;
      break;
    }
    if (value < key)
      low = middle + 1;
    else
      high = middle;
  }
  out[t] = low;
}
TEST(Divergence, BinarySearch) {
  std::vector<int> sorted(1000);
  for (int i = 0; i < 1000; ++i) sorted[i] = 3 * i;
  const std::vector<int> keys = random_numbers(32, 3000);
  std::vector<int> steps(32);
  for (int t = 0; t < 32; ++t)
    for (int low = 0, high = 1000; low < high;) {
      ++steps[t];
      const int middle = (low + high) / 2;
      if (sorted[middle] == keys[t]) break;
      (sorted[middle] < keys[t] ? low : high) = middle + (sorted[middle] < keys[t]);
    }
  Model model;
  model.instruction([](int) { return true; });
  for (int i = 0; i < 10; ++i) model.instruction([&](int t) { return i < steps[t]; });
  const DeviceArray<int> a(sorted), device_keys(keys), out(32);
  const Report report = counted_launch({1, 32}, binary_search, a, device_keys, out, 1000);
  expect_loads(report, model);
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
}

__global__ void nested_loops(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < (t & 3) + 1; ++i) {
    sum += a[i];
    for (int j = 0; j < ((t + i) & 7); ++j) {
      if (a[64 + j * 32 + t] == 3) continue;
      sum += a[j];
    }
    sum ^= a[t + i];
  }
  out[t] = sum;
}
TEST(Divergence, NestedLoops) {
  const std::vector<int> a = random_numbers(1024, 6);
  Model model;
  for (int i = 0; i < 4; ++i) {
    const auto in_outer = [&](int t) { return i < (t & 3) + 1; };
    model.instruction(in_outer);
    for (int j = 0; j < 8; ++j) {
      const auto in_inner = [&](int t) { return in_outer(t) && j < ((t + i) & 7); };
      model.instruction(in_inner);
      model.instruction([&](int t) { return in_inner(t) && a[64 + j * 32 + t] != 3; });
    }
    model.instruction(in_outer);
  }
  const DeviceArray<int> device_a(a), out(32);
  expect_loads(counted_launch({1, 32}, nested_loops, device_a, out), model);
}

__global__ void switch_in_a_loop(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 8; ++i) {
    switch ((t + i) & 3) {
      case 0:
        sum += a[t];
        break;
      case 1:
        sum -= a[t + 32];
        break;
      case 2:
        sum ^= a[t + 64];
        break;
      default:
        sum += 3;
    }
    sum += a[i + 96];
  }
  out[t] = sum;
}
TEST(Divergence, SwitchInALoop) {
  const DeviceArray<int> a(random_numbers(128, 6)), out(32);
  const Report report = counted_launch({1, 32}, switch_in_a_loop, a, out);
  expect_loads(report, {.requests = 8 * 4, .lanes = 8 * (3 * 8 + 32)});
}

__global__ void short_circuit(const int* a, int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 16; ++i)
    if (a[t + i] > 2 && (a[t + i + 64] > 3 || a[t + i + 128] < 2)) sum += a[i + 192];
  out[t] = sum;
}
TEST(Divergence, ShortCircuit) {
  const std::vector<int> a = random_numbers(256, 6);
  Model model;
  for (int i = 0; i < 16; ++i) {
    const auto first = [&](int t) { return a[t + i] > 2; };
    const auto second = [&](int t) { return a[t + i + 64] > 3; };
    const auto third = [&](int t) { return a[t + i + 128] < 2; };
    model.instruction([](int) { return true; });
    model.instruction(first);
    model.instruction([&](int t) { return first(t) && !second(t); });
    // The body belongs to both ways into it: they meet behind it, not before.
    model.instruction([&](int t) { return first(t) && second(t); });
    model.instruction([&](int t) { return first(t) && !second(t) && third(t); });
  }
  const DeviceArray<int> device_a(a), out(32);
  expect_loads(counted_launch({1, 32}, short_circuit, device_a, out), model);
}

__global__ void several_returns(const int* a, int* out) {
  const int t = threadIdx.x;
  if (t < 8) {
    out[t] = a[t];
    return;
  }
  int sum = a[t + 32];
  if (t & 1) {
    sum += a[t + 64];
    out[t] = sum;
    return;
  }
  out[t] = sum + a[96];
}
TEST(Divergence, SeveralReturns) {
  const DeviceArray<int> a(random_numbers(128, 6)), out(32);
  const Report report = counted_launch({1, 32}, several_returns, a, out);
  EXPECT_EQ(text_of(report), text_of({{kGlobal, kLoad, 4, 1, 8, 1},
                                      {kGlobal, kLoad, 4, 1, 24, 3},
                                      {kGlobal, kLoad, 4, 1, 12, 3},
                                      {kGlobal, kLoad, 4, 1, 12, 1},
                                      {kGlobal, kStore, 4, 1, 8, 1},
                                      {kGlobal, kStore, 4, 2, 24, 6}}));
}

// The log of a lane holds a few thousand records: what is longer is replayed piece by piece.
__global__ void long_divergent_loop(const int* a, int* out) {
  const int t = threadIdx.x, rounds = t < 8 ? 20000 : 100;
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum += a[(i + t) % 64];
  out[t] = sum;
}
TEST(Divergence, LongLoop) {
  const DeviceArray<int> a(64), out(32);
  const Report report = counted_launch({1, 32}, long_divergent_loop, a, out);
  expect_loads(report, {.requests = 20000, .lanes = 8 * 20000 + 24 * 100});
  EXPECT_EQ(report.total(kGlobal, kStore).requests, 1u);
}

__global__ void half_of_the_lanes(float* g, int rounds) {
  float value = threadIdx.x;
  if (threadIdx.x % 2 == 0)
    for (int i = 0; i < rounds; ++i) {
      value = value * value;
      g[threadIdx.x] = value;
    }
}
TEST(Divergence, ActiveLanes) {
  const DeviceArray<float> g(32);
  EXPECT_NEAR(counted_launch({1, 32}, half_of_the_lanes, g, 1000).active_lanes(), 16, 1);
}

}  // namespace
}  // namespace emulator
