// SPDX-License-Identifier: MIT
//
// Functions of the device, called from the host for rows of arguments.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "support.hpp"

namespace emulator {

template <class R, class... A>
__global__ void apply(R* out, R (*function)(A...), const std::tuple<A...>* rows, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = std::apply(function, rows[i]);
}
/// The results of `function`, a row of arguments each.
template <class R, class... A>
std::vector<R> on_device(R (*function)(A...), const std::vector<std::tuple<A...>>& rows) {
  const DeviceArray<std::tuple<A...>> in(rows);
  const DeviceArray<R> out(rows.size());
  const int n = static_cast<int>(rows.size());
  EXPECT_TRUE(
      runs(launch({static_cast<unsigned>(n + 63) / 64, 64}, apply<R, A...>, out, function, in, n)));
  return out.values();
}
/// Its result for one row.
template <class R, class... A>
R once(R (*function)(A...), std::type_identity_t<A>... arguments) {
  return on_device(function, {std::tuple<A...>(arguments...)})[0];
}
/// All pairs of the values, or all triples.
template <class... A>
std::vector<std::tuple<A...>> pairs_of(
    const std::vector<std::tuple_element_t<0, std::tuple<A...>>>& v) {
  std::vector<std::tuple<A...>> rows;
  for (const auto a : v)
    for (const auto b : v) {
      if constexpr (sizeof...(A) == 2) rows.emplace_back(a, b);
      if constexpr (sizeof...(A) == 3)
        for (const auto c : v) rows.emplace_back(a, b, c);
    }
  return rows;
}
/// Rows of one value.
template <class T>
std::vector<std::tuple<T>> singles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace emulator
