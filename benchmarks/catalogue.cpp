// SPDX-License-Identifier: MIT
#include "catalogue.hpp"

namespace ladders {

const std::vector<Ladder>& catalogue() {
  static const std::vector<Ladder> ladders = {transpose(), sgemm(),       reduction(),
                                              histogram(), smem_layout(), roof()};
  return ladders;
}

}  // namespace ladders
