// SPDX-License-Identifier: MIT
//
// The meter of ladder_bench_emulated: counts what a launch does, and times nothing.
#include "measure/meter.hpp"

#include <algorithm>
#include <cstdio>

#include "emulator/report.hpp"
#include "program/json.hpp"
#include "program/options.hpp"

namespace ladders {
namespace {

using emulator::Line;
using emulator::Operation;
using emulator::Report;
using emulator::Space;
using emulator::Traffic;

// The unit of Traffic::transactions in a space.
const char* transactions(Space space) {
  return space == Space::shared ? "wavefronts" : space == Space::constant ? "requests" : "sectors";
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
                 {"requests", number(t.requests)},
                 {"lanes", number(t.lanes)},
                 {"transactions", number(t.transactions)},
                 {"ideal", number(t.ideal)},
                 {"worst", number(t.worst)},
                 {"worst_request", array(line.worst, [](int64_t offset) {
                    return offset < 0 ? "null" : std::to_string(offset);
                  })}});
}

std::string text_of(const Line& line) {
  const Traffic& t = line.traffic;
  const std::string place =
      line.file.empty() ? line.kernel : line.file + ":" + std::to_string(line.line);
  char text[256];
  std::snprintf(
      text, sizeof(text),
      "    %-24s %-11s %-6s %2d B  %10llu requests  %6.2f %s each, ideal %.2f, worst %llu\n",
      place.c_str(), name(line.space).data(), name(line.operation).data(), line.bytes,
      static_cast<unsigned long long>(t.requests), double(t.transactions) / double(t.requests),
      line.space == Space::constant ? "transactions" : transactions(line.space),
      double(t.ideal) / double(t.requests), static_cast<unsigned long long>(t.worst));
  return text;
}

// The counters of one launch; those of a kind of request are absent where there was none.
std::map<std::string, double> counters_of(const Report& report) {
  std::map<std::string, double> counters = {
      {"compulsory_bytes", double(report.compulsory_read + report.compulsory_written)},
      {"active_lanes", report.active_lanes()},
      {"barriers", double(report.barriers)},
      {"cluster_barriers", double(report.cluster_barriers)},
      {"warp_operations", double(report.warp_operations)}};
  const auto add = [&counters](const std::string& kind, const std::string& unit, const Traffic& t) {
    counters[kind + "requests"] = double(t.requests);
    counters[kind + unit] = double(t.transactions);
    counters[kind + unit + "_per_request"] = double(t.transactions) / double(t.requests);
  };
  double& global_bytes = counters["global_bytes"];
  Traffic distributed;
  for (const Operation operation : {Operation::load, Operation::store, Operation::atomic}) {
    for (const Space space : {Space::shared, Space::global}) {
      const Traffic t = report.total(space, operation);
      if (t.requests == 0) continue;
      const std::string kind = std::string(name(space)) + "_" + std::string(name(operation)) + "_";
      add(kind, transactions(space), t);
      counters[kind + transactions(space) + "_ideal"] = double(t.ideal);
      if (operation == Operation::atomic)
        counters[kind + "serialised"] = double(t.serialised) / double(t.requests);
      if (space == Space::global) global_bytes += double(t.bytes);
    }
    distributed += report.total(Space::distributed, operation);
    const Traffic bulk = report.total(Space::bulk, operation);
    global_bytes += double(bulk.bytes);
    if (operation == Operation::load && bulk.requests > 0)
      counters["bulk_copy_bytes"] = double(bulk.bytes);
  }
  if (distributed.requests > 0) {
    add("distributed_", "sectors", distributed);
    counters["distributed_accesses"] = double(distributed.lanes);
    counters["distributed_bytes"] = double(distributed.bytes);
  }
  if (const Traffic t = report.total(Space::constant, Operation::load); t.requests > 0)
    counters["constant_requests"] = double(t.requests);
  return counters;
}

// The occupancy of a row's kernel with other blocks and with other shared memory.
std::string occupancy_json(const emulator::Gpu& gpu, const Subject& subject, int threads,
                           size_t shared_bytes) {
  const int registers = subject.occupancy->registers;
  const auto point = [&](const char* axis, double value, int threads, size_t shared_bytes) {
    const auto limits = emulator::occupancy_limits(gpu, threads, registers, shared_bytes);
    const int blocks = limits.blocks_per_sm();
    return object({{axis, number(value)},
                   {"blocks", number(blocks)},
                   {"occupancy", number(double(blocks) * threads / gpu.threads_per_sm)},
                   {"limiter", quoted(std::string(limits.limiter()))}});
  };
  std::vector<std::string> by_block, by_shared;
  for (int t = 32; t <= 1024; t += 32) by_block.push_back(point("threads", t, t, shared_bytes));
  for (size_t bytes = 0; bytes <= gpu.shared_bytes_per_block; bytes += 1024)
    by_shared.push_back(point("bytes", double(bytes), threads, bytes));
  return object({{"row", quoted(subject.row)},
                 {"registers", number(registers)},
                 {"static_shared_bytes", number(subject.occupancy->static_shared_bytes)},
                 {"block_threads", number(threads)},
                 {"dynamic_shared_bytes", number(subject.plan->shared_bytes)},
                 {"by_block", array(by_block, std::identity{})},
                 {"by_shared", array(by_shared, std::identity{})}});
}

class Counter : public Meter {
 public:
  // One launch is enough, since all count the same.
  Samples sample(const Subject& subject, const Sampling&) override {
    const emulator::Recording recording;
    const auto start = std::chrono::steady_clock::now();
    subject.launch(nullptr);
    check(cudaDeviceSynchronize(), "kernel");
    Samples result;
    result.host_seconds = std::max(seconds_since(start), 1e-9);
    result.counters["verified"] = 1;  // or there would be no measurement
    if (!subject.implementation.kernel) return result;
    const Report report = recording.report();
    if (emulator::counted()) result.counters.merge(counters_of(report));
    for (const Line& line : report.lines) {
      result.details.text += text_of(line);
      result.details.lines.push_back(json_of(line, subject.row));
    }
    const auto& plan = *subject.plan;
    const auto& occupancy = *subject.occupancy;
    if (occupancy.registers == 0) return result;  // not known: nvcc has not seen the kernel
    const emulator::Gpu& gpu = *emulator::options().gpu;
    const auto threads = static_cast<int>(plan.block.x * plan.block.y * plan.block.z);
    const size_t shared_bytes = occupancy.static_shared_bytes + plan.shared_bytes;
    const auto limits = emulator::occupancy_limits(gpu, threads, occupancy.registers, shared_bytes);
    result.counters.insert({{"occupancy_limit_blocks", limits.blocks},
                            {"occupancy_limit_warps", limits.warps},
                            {"occupancy_limit_registers", limits.registers},
                            {"occupancy_limit_shared", limits.shared}});
    result.details.occupancy = occupancy_json(gpu, subject, threads, shared_bytes);
    return result;
  }

  std::string hardware_counters() override { return "none: nothing is measured here"; }
};

}  // namespace

const bool kEmulated = true;

std::unique_ptr<Meter> make_meter(const Device&) { return std::make_unique<Counter>(); }

std::vector<std::pair<const char*, std::string>> origins() {
  const int capability = emulator::options().gpu->compute_capability;
  return {{"registers_from", std::string(emulator::resources_origin(capability))}};
}

void configure(const Options& options) {
  using emulator::Order;
  emulator::Options& settings = emulator::options();
  settings.gpu = emulator::find_gpu(options.gpu);
  if (!settings.gpu) {
    std::string names;
    for (const emulator::Gpu& gpu : emulator::gpus())
      names += (names.empty() ? "" : ", ") + std::string(gpu.name);
    settings.gpu = emulator::Options{}.gpu;
    throw UsageError("--gpu=" + options.gpu + ": not one of " + names);
  }
  settings.order = options.order == "forward"   ? Order::forward
                   : options.order == "reverse" ? Order::reverse
                                                : Order::random;
  settings.workers = options.workers;
  settings.check = options.check;
}

}  // namespace ladders
