// SPDX-License-Identifier: MIT
#include "requests.hpp"

#include <algorithm>
#include <bit>

namespace emulator {
namespace {

struct Cost {
  unsigned transactions, ideal;
};

// The most different words that one bank has to give to the lanes in `mask`, `words` each; for
// lanes that take turns the most words.
unsigned busiest_bank(const Request& request, std::uint32_t mask, unsigned words) {
  std::uint64_t seen[32][32];  // [bank][nth word]: a lane asks a bank for one word at most
  unsigned char count[32] = {};
  unsigned busiest = 1;
  for_each_lane(mask, [&](unsigned lane) {
    for (unsigned k = 0; k < words; ++k) {
      const std::uint64_t word = request.addresses[lane] / 4 + k;
      const unsigned bank = word % 32;
      const auto* end = seen[bank] + count[bank];
      if (!request.queues && std::find(seen[bank], const_cast<std::uint64_t*>(end), word) != end)
        continue;
      seen[bank][count[bank]++] = word;
      busiest = std::max<unsigned>(busiest, count[bank]);
    }
  });
  return busiest;
}

// Whether every lane of the request whose neighbour `distance` away takes part too has the same
// address as that.
bool paired(const Request& request, int distance) {
  return lanes_where(request.mask, [&](unsigned lane) {
           return request.mask >> (lane ^ distance) & 1 &&
                  request.addresses[lane] != request.addresses[lane ^ distance];
         }) == 0;
}

// Calls f(address, how many lanes point at it) for each address.
template <class F>
void for_each_address(const Request& request, F f) {
  struct {
    std::uint64_t address;
    unsigned lanes = 0;
  } table[64];  // twice as many as lanes: a place is soon found
  for_each_lane(request.mask, [&](unsigned lane) {
    const std::uint64_t address = request.addresses[lane];
    std::size_t at = address * 0x9E3779B97F4A7C15 >> 58;
    while (table[at].lanes > 0 && table[at].address != address) at = (at + 1) % 64;
    table[at].address = address;
    ++table[at].lanes;
  });
  for (const auto& [address, lanes] : table)
    if (lanes > 0) f(address, lanes);
}

// Wavefronts of shared memory: 32 banks, each of which gives one 4-byte word per wavefront, to all
// lanes that want it. 8-byte accesses are served by half warps and 16-byte ones by quarter warps;
// lanes that read the same address in pairs count as one. Increments of a word by several lanes
// are one, too; lanes of other atomics on it take turns. `ideal` is without bank conflicts.
Cost shared_cost(const Request& request, bool load) {
  if (request.bytes <= 4) return {busiest_bank(request, request.mask, 1), 1};
  const unsigned words = request.bytes / 4;
  unsigned phases = words;  // half warps for 8 bytes, quarter warps for 16
  if (load && (paired(request, 1) || paired(request, 2))) phases /= 2;
  const unsigned lanes = 32 / phases;
  Cost cost{0, 0};
  for (unsigned phase = 0; phase < phases; ++phase) {
    const std::uint32_t all = lanes == 32 ? ~0u : (1u << lanes) - 1;
    const std::uint32_t mask = request.mask & (all << (phase * lanes));
    if (mask == 0) continue;
    cost.transactions += busiest_bank(request, mask, words);
    ++cost.ideal;
  }
  return cost;
}

// 32-byte sectors of global memory. `ideal` is what as many bytes side by side would take.
Cost global_cost(const Request& request) {
  std::uint64_t seen[32];
  unsigned count = 0;
  for_each_lane(request.mask, [&](unsigned lane) {
    const std::uint64_t sector = request.addresses[lane] / 32;  // the only one: it is aligned
    unsigned i = count;  // the newest first, since neighbours share sectors
    while (i > 0 && seen[i - 1] != sector) --i;
    if (i == 0) seen[count++] = sector;
  });
  const unsigned lanes = static_cast<unsigned>(std::popcount(request.mask));
  return {count, std::min(count, (lanes * request.bytes + 31) / 32)};
}

// The same for atomics: lanes on one address take turns, and each turn touches its sectors again.
// So a sector takes as many turns as there are lanes on its busiest address.
Cost global_atomic_cost(const Request& request) {
  struct Sector {
    std::uint64_t number;
    unsigned turns;
  } sectors[32];
  unsigned count = 0;
  for_each_address(request, [&](std::uint64_t address, unsigned lanes) {
    const auto same = [&](const Sector& s) { return s.number == address / 32; };
    Sector* const found = std::find_if(sectors, sectors + count, same);
    if (found == sectors + count) sectors[count++] = {address / 32, 0};
    found->turns = std::max(found->turns, lanes);
  });
  Cost cost{0, global_cost(request).ideal};
  for (unsigned i = 0; i < count; ++i) cost.transactions += sectors[i].turns;
  return cost;
}

}  // namespace

Traffic traffic_of(const Request& request, Space space, Operation operation) {
  const bool atomic = operation == Operation::atomic;
  const Cost cost = space == Space::constant ? Cost{1, 1}
                    : space == Space::shared ? shared_cost(request, operation == Operation::load)
                    : atomic                 ? global_atomic_cost(request)
                                             : global_cost(request);
  const auto lanes = static_cast<unsigned>(std::popcount(request.mask));
  Traffic traffic{.requests = 1,
                  .lanes = lanes,
                  .bytes = std::uint64_t{lanes} * request.bytes,
                  .transactions = cost.transactions,
                  .ideal = cost.ideal,
                  .worst = cost.transactions};
  if (atomic)
    for_each_address(request, [&](std::uint64_t, unsigned on_one) {
      traffic.serialised = std::max<std::uint64_t>(traffic.serialised, on_one);
    });
  return traffic;
}

}  // namespace emulator
