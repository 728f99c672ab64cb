// SPDX-License-Identifier: MIT
#include "catalogue.hpp"

namespace ladders {

const std::vector<Ladder>& catalogue() {
#define CALL(name) name(),
  static const std::vector<Ladder> ladders = {LADDERS(CALL)};
#undef CALL
  return ladders;
}

}  // namespace ladders
