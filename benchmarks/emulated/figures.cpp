// SPDX-License-Identifier: MIT
#include "emulated/figures.hpp"

#include <cstdio>
#include <initializer_list>

#include "json.hpp"

namespace ladders {
namespace {

using emulator::Line;
using emulator::Operation;
using emulator::Report;
using emulator::Space;
using emulator::Traffic;

constexpr Operation kOperations[] = {Operation::load, Operation::store, Operation::atomic};

// What Traffic::transactions are called in a space.
const char* transactions(Space space) {
  return space == Space::shared ? "wavefronts" : space == Space::constant ? "requests" : "sectors";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", value);
  return text;
}

std::string object(std::initializer_list<std::pair<const char*, std::string>> members) {
  std::string json;
  for (const auto& [name, value] : members) {
    json += json.empty() ? '{' : ',';
    json += quoted(name) + ':' + value;
  }
  return json + '}';
}

std::string json_of(const Line& line, const std::string& row) {
  const Traffic& t = line.traffic;
  return object({{"row", quoted(row)},
                 {"kernel", quoted(line.kernel)},
                 {"file", quoted(line.file)},
                 {"line", number(line.line)},
                 {"space", quoted(std::string(name(line.space)))},
                 {"operation", quoted(std::string(name(line.operation)))},
                 {"bytes", number(line.bytes)},
                 {"requests", number(double(t.requests))},
                 {"lanes", number(double(t.lanes))},
                 {"transactions", number(double(t.transactions))},
                 {"ideal", number(double(t.ideal))},
                 {"worst", number(double(t.worst))},
                 {"worst_request", array(line.worst, [](int64_t offset) {
                    return offset < 0 ? "null" : std::to_string(offset);
                  })}});
}

std::string text_of(const Line& line) {
  const Traffic& t = line.traffic;
  const auto per_request = [&](uint64_t value) { return double(value) / double(t.requests); };
  const std::string place =
      line.file.empty() ? line.kernel : line.file + ":" + std::to_string(line.line);
  char text[256];
  std::snprintf(
      text, sizeof(text),
      "    %-24s %-11s %-6s %2d B  %10llu requests  %6.2f %s each, ideal %.2f, worst %llu\n",
      place.c_str(), std::string(name(line.space)).c_str(),
      std::string(name(line.operation)).c_str(), line.bytes,
      static_cast<unsigned long long>(t.requests), per_request(t.transactions),
      line.space == Space::constant ? "transactions" : transactions(line.space),
      per_request(t.ideal), static_cast<unsigned long long>(t.worst));
  return text;
}

struct Block {
  int threads, registers;
  size_t shared_bytes;
};

std::string point(const emulator::Gpu& gpu, const char* axis, double value, const Block& block) {
  const auto limits =
      emulator::occupancy_limits(gpu, block.threads, block.registers, block.shared_bytes);
  const int blocks = limits.blocks_per_sm();
  return object({{axis, number(value)},
                 {"blocks", number(blocks)},
                 {"occupancy", number(double(blocks) * block.threads / gpu.threads_per_sm)},
                 {"limiter", quoted(std::string(limits.limiter()))}});
}

Block block_of(const Subject& subject) {
  const dim3 block = subject.plan->block;
  return {static_cast<int>(block.x * block.y * block.z), subject.occupancy->registers,
          subject.occupancy->static_shared_bytes + subject.plan->shared_bytes};
}

std::string occupancy_json(const emulator::Gpu& gpu, const Subject& subject) {
  constexpr size_t kStep = 1024;
  const Block block = block_of(subject);
  std::vector<int> threads;
  for (int t = 32; t <= 1024; t += 32) threads.push_back(t);
  std::vector<size_t> shared;
  for (size_t bytes = 0; bytes <= gpu.shared_bytes_per_block; bytes += kStep)
    shared.push_back(bytes);
  return object({{"row", quoted(subject.row)},
                 {"registers", number(block.registers)},
                 {"static_shared_bytes", number(double(subject.occupancy->static_shared_bytes))},
                 {"block_threads", number(block.threads)},
                 {"dynamic_shared_bytes", number(double(subject.plan->shared_bytes))},
                 {"by_block", array(threads,
                                    [&](int t) {
                                      return point(gpu, "threads", t,
                                                   {t, block.registers, block.shared_bytes});
                                    })},
                 {"by_shared", array(shared, [&](size_t bytes) {
                    return point(gpu, "bytes", double(bytes),
                                 {block.threads, block.registers, bytes});
                  })}});
}

}  // namespace

std::map<std::string, double> counters_of(const Report& report) {
  std::map<std::string, double> counters;
  double global_bytes = 0;
  Traffic distributed;
  for (const Operation operation : kOperations) {
    for (const Space space : {Space::shared, Space::global}) {
      const Traffic t = report.total(space, operation);
      if (t.requests == 0) continue;
      const std::string kind = std::string(name(space)) + "_" + std::string(name(operation)) + "_";
      const std::string what = kind + transactions(space);
      counters[kind + "requests"] = double(t.requests);
      counters[what] = double(t.transactions);
      counters[what + "_ideal"] = double(t.ideal);
      counters[what + "_per_request"] = double(t.transactions) / double(t.requests);
      if (operation == Operation::atomic)
        counters[kind + "serialised"] = double(t.serialised) / double(t.requests);
      if (space == Space::global) global_bytes += double(t.bytes);
    }
    distributed += report.total(Space::distributed, operation);
  }
  if (distributed.requests > 0) {
    counters["distributed_requests"] = double(distributed.requests);
    counters["distributed_sectors"] = double(distributed.transactions);
    counters["distributed_sectors_per_request"] =
        double(distributed.transactions) / double(distributed.requests);
    counters["distributed_accesses"] = double(distributed.lanes);
    counters["distributed_bytes"] = double(distributed.bytes);
  }
  if (const Traffic t = report.total(Space::constant, Operation::load); t.requests > 0)
    counters["constant_requests"] = double(t.requests);
  counters["global_bytes"] = global_bytes;
  counters["compulsory_bytes"] = double(report.compulsory_read + report.compulsory_written);
  counters["active_lanes"] = report.active_lanes();
  counters["barriers"] = double(report.barriers);
  counters["cluster_barriers"] = double(report.cluster_barriers);
  counters["warp_operations"] = double(report.warp_operations);
  return counters;
}

std::map<std::string, double> limits_of(const emulator::Gpu& gpu, const Subject& subject) {
  const Block block = block_of(subject);
  if (block.registers == 0) return {};  // not known: nvcc has not seen the kernel
  const auto limits =
      emulator::occupancy_limits(gpu, block.threads, block.registers, block.shared_bytes);
  return {{"occupancy_limit_blocks", limits.blocks},
          {"occupancy_limit_warps", limits.warps},
          {"occupancy_limit_registers", limits.registers},
          {"occupancy_limit_shared", limits.shared}};
}

std::vector<std::string> figure_names() {
  // A report with a request of every kind has every counter.
  Report all;
  for (const Space space : {Space::global, Space::shared, Space::distributed, Space::constant})
    for (const Operation operation : kOperations)
      all.lines.push_back({.space = space, .operation = operation, .traffic = {.requests = 1}});
  std::vector<std::string> names;
  for (const auto& [counter, value] : counters_of(all)) names.push_back(counter);
  const Subject subject{.plan = LaunchPlan{}, .occupancy = Occupancy{.registers = 1}};
  for (const auto& [counter, value] : limits_of(*emulator::options().gpu, subject))
    names.push_back(counter);
  return names;
}

Details details_of(const Report& report, const emulator::Gpu& gpu, const Subject& subject) {
  Details details;
  for (const Line& line : report.lines) {
    details.text += text_of(line);
    details.lines.push_back(json_of(line, subject.row));
  }
  if (subject.plan && subject.occupancy->registers > 0)
    details.occupancy = occupancy_json(gpu, subject);
  return details;
}

}  // namespace ladders
