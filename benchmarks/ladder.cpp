// SPDX-License-Identifier: MIT
#include "ladder.hpp"

#include <stdexcept>
#include <utility>

#include "cuda_check.hpp"
#include "program.hpp"

namespace ladders {

Case::Case(const std::vector<Axis>& axes, const Shape& shape) {
  if (axes.size() != shape.size())
    throw std::invalid_argument("a shape needs a value for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto& labels = axes[i].labels;
    entries_.push_back(
        {axes[i].name, labels.empty() ? std::to_string(shape[i]) : labels.at(shape[i]), shape[i]});
  }
}

Case Case::with(const Axis& axis, int64_t value) const {
  const Case added({axis}, {value});
  Case result = *this;
  result.entries_.push_back(added.entries_.front());
  return result;
}

int64_t Case::operator[](std::string_view axis) const {
  for (const Entry& entry : entries_)
    if (entry.axis == axis) return entry.value;
  throw std::out_of_range("no axis " + std::string(axis));
}

std::string Case::name() const {
  std::string name;
  for (const Entry& entry : entries_)
    name += (name.empty() ? "" : "/") + entry.axis + ":" + entry.text;
  return name;
}

Verdict Problem::compare() {
  throw std::logic_error("neither the rung nor its problem can be verified");
}

void Problem::poison() {
  const Memory memory = output();
  if (memory.bytes > 0) check(cudaMemset(memory.data, 0xFF, memory.bytes), "poison");
}

std::vector<Rung> by_axis(const std::string& axis, const std::vector<int64_t>& values,
                          std::vector<std::vector<Rung>> instantiations) {
  std::vector<Rung> merged = instantiations.front();
  for (size_t i = 0; i < merged.size(); ++i) {
    std::map<int64_t, Rung> of;
    for (size_t v = 0; v < values.size(); ++v) {
      const Rung& rung = instantiations[v].at(i);
      if (rung.name != merged[i].name) throw std::logic_error("by_axis: rungs out of step");
      of.emplace(values[v], rung);
    }
    merged[i].choose = [axis, of](const Case& point) { return of.at(point[axis]).at(point); };
  }
  return merged;
}

std::string skip_reason(const Row& row, const Device& device) {
  const int needed = row.rung->compute_capability;
  if (device.compute_capability < needed)
    return "needs compute capability " + std::to_string(needed / 10) + "." +
           std::to_string(needed % 10);
  if (kEmulated && !row.rung->hardware_only.empty()) return row.rung->hardware_only;
  if (row.rung->skip)
    if (const std::string reason = row.rung->skip(row.point, device); !reason.empty())
      return reason;
  if (!kEmulated) return "";
  const Implementation implementation = row.rung->at(row.point);
  if (!implementation.kernel && !implementation.on_host) return "a library call: needs a GPU";
  return "";
}

Work work(const Row& row, const Device& device) {
  return (row.rung->work ? row.rung->work : row.ladder->work)(row.point, device);
}

std::string Row::name() const {
  const std::string axes = point.name();
  return ladder->name + "/" + rung->name + (axes.empty() ? "" : "/" + axes);
}

namespace {

// `shape` with every combination of the values that a rung sweeps.
std::vector<Case> swept(const Case& shape, const Rung& rung, Shapes shapes) {
  std::vector<Case> points = {shape};
  for (const Sweep& sweep : rung.sweeps) {
    const auto& values = shapes == Shapes::tested                          ? sweep.tested
                         : shapes == Shapes::small && !sweep.small.empty() ? sweep.small
                                                                           : sweep.measured;
    std::vector<Case> longer;
    for (const Case& point : points)
      for (const int64_t value : values) longer.push_back(point.with(sweep.axis, value));
    points = longer;
  }
  return points;
}

}  // namespace

std::vector<Row> rows(const Ladder& ladder, Shapes shapes) {
  std::vector<Row> result;
  const auto& all = shapes == Shapes::measured ? ladder.measured
                    : shapes == Shapes::small  ? ladder.small
                                               : ladder.tested;
  for (const Shape& values : all) {
    const Case shape(ladder.axes, values);
    for (const Rung& rung : ladder.rungs) {
      if (shapes == Shapes::measured && rung.measured && !rung.measured(shape)) continue;
      for (const Case& point : swept(shape, rung, shapes))
        result.push_back({&ladder, &rung, shape, point});
    }
  }
  return result;
}

}  // namespace ladders
