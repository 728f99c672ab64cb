// SPDX-License-Identifier: MIT
//
// The table, the indices, and the reference.
#pragma once

#include "common/distribution.cuh"
#include "common/verify.cuh"

namespace ladders::lookup {
struct Lookups {
  const int* index;  // each below `entries`
  size_t count;
  const unsigned* table;
  unsigned entries;
  unsigned* out;
  unsigned* ticket;  // at zero between launches
};

class Lookup : public Problem {
 public:
  Lookup(const Case& c, const Device& device)
      : Problem(device), index_(c["lookups"]), table_(c["entries"]), out_(c["lookups"]) {
    generate_keys(index_.data(), index_.size(), int(table_.size()),
                  Distribution(c["distribution"]));
    prepare(0);
  }
  Memory output() const override { return {out_.data(), out_.bytes()}; }
  auto arguments() const { return std::tuple(lookups()); }
  Lookups lookups() const {
    return {index_.data(),           index_.size(), table_.data(),
            unsigned(table_.size()), out_.data(),   ticket_.data()};
  }

  // Two tables: a rung that keeps what an earlier launch staged gives wrong values.
  int inputs() const override { return 2; }
  void prepare(int input) override {
    seed_ = 2 - input;
    generate(table_.data(), table_.size(),
             [seed = seed_] __device__(size_t entry) { return random_bits(entry, seed); });
  }

  Verdict compare() override {
    const auto right = [index = index_.data(), seed = seed_] __device__(size_t i) {
      return random_bits(index[i], seed);
    };
    return {.wrong = first_difference("lookup", out_.data(), out_.size(), right)};
  }

 private:
  DeviceBuffer<int> index_;
  DeviceBuffer<unsigned> table_, out_, ticket_ = zeros<unsigned>(1);
  int seed_ = 0;
};

}  // namespace ladders::lookup
