// SPDX-License-Identifier: MIT
#include "model/ladder.hpp"

#include <algorithm>
#include <regex>
#include <set>

#include "model/catalogue.hpp"

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
  Case result = *this;
  result.entries_.push_back(Case({axis}, {value}).entries_.front());
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

std::vector<Shape> every(const std::vector<std::vector<int64_t>>& values) {
  std::vector<Shape> shapes = {{}};
  for (const std::vector<int64_t>& axis : values) {
    std::vector<Shape> longer;
    for (const Shape& shape : shapes)
      for (const int64_t value : axis) {
        longer.push_back(shape);
        longer.back().push_back(value);
      }
    shapes = longer;
  }
  return shapes;
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
    merged[i].choose = [axis, of](const Case& point, const Device& device) {
      return of.at(point[axis]).at(point, device);
    };
  }
  return merged;
}

std::vector<Rung> joined(std::vector<Rung> rungs, std::vector<Rung> more) {
  rungs.insert(rungs.end(), more.begin(), more.end());
  return rungs;
}

void check_ladder(const Ladder& ladder) {
  static const std::regex words("[a-z][a-z0-9]*(_[a-z0-9]+)*"), ascii("[ -~]{1,140}");
  bool first_step = true;
  for (const Rung& rung : ladder.rungs) {
    const auto refuse_if = [&](bool refused, const std::string& why) {
      if (refused) throw std::invalid_argument(ladder.name + "/" + rung.name + ": " + why);
    };
    refuse_if(!std::regex_match(rung.name, words), "the name of a rung is lower_case_words");
    const std::string sentence = " is one sentence of ASCII, 140 characters at most";
    refuse_if(!std::regex_match(rung.idea, ascii), "an idea" + sentence);
    refuse_if(!rung.shows.empty() && !std::regex_match(rung.shows, ascii),
              "what a rung shows" + sentence);
    refuse_if(find_rung(ladder, rung.name) != &rung, "two rungs have this name");
    const bool in_tree = rung.role == Role::step && ladder.factors.empty();
    if (!rung.builds_on.empty()) {
      const Rung* parent = find_rung(ladder, rung.builds_on);
      const std::string builds_on = "builds on " + rung.builds_on + ", which ";
      refuse_if(!in_tree, "only a step of a ladder builds on another");
      refuse_if(!parent, builds_on + "does not exist");
      refuse_if(parent >= &rung, builds_on + "stands later");
      refuse_if(parent->role != Role::step, builds_on + "is no step");
    } else {
      refuse_if(in_tree && !first_step,
                "names no rung that it builds on, and is not the first step");
    }
    first_step &= !in_tree;
    refuse_if(rung.meant_for && meant_for(ladder, rung).empty(), "is meant for no measured shape");
    refuse_if(rung.role == Role::step && rung.factors.size() != ladder.factors.size(),
              "needs a level of each factor of the experiment");
    for (const auto& [factor, level] : rung.factors)
      refuse_if(std::ranges::find(ladder.factors, factor) == ladder.factors.end(),
                factor + " is no factor of the experiment");
  }
}

void check_catalogue(const std::vector<Ladder>& ladders) {
  std::set<std::string> ceilings;
  for (const Ladder& ladder : ladders)
    for (const Rung& rung : ladder.rungs)
      if (rung.role == Role::ceiling) ceilings.insert(ladder.name + "/" + rung.name);
  for (const Ladder& ladder : ladders) {
    check_ladder(ladder);
    const auto refuse_if = [&](bool refused, const std::string& why) {
      if (refused) throw std::invalid_argument(ladder.name + ": " + why);
    };
    const auto lacks = [](const std::vector<Shape>& shapes, const Shape& shape) {
      return std::ranges::find(shapes, shape) == shapes.end();
    };
    refuse_if(lacks(ladder.measured, ladder.headline), "the headline is no measured shape");
    refuse_if(lacks(ladder.small, ladder.small_headline), "the small headline is no small shape");
    for (const Rung& rung : ladder.rungs)
      for (const Ceiling& ceiling : ceilings_of(ladder, rung))
        refuse_if(!ceilings.contains(ceiling.rung),
                  rung.name + " has the ceiling " + ceiling.rung + ", which is none");
  }
}

const Rung* find_rung(const Ladder& ladder, std::string_view name) {
  const auto found = std::ranges::find(ladder.rungs, name, &Rung::name);
  return found == ladder.rungs.end() ? nullptr : &*found;
}

std::vector<const Rung*> path_to_root(const Ladder& ladder, const Rung& rung) {
  std::vector<const Rung*> path;
  for (const Rung* at = &rung; at; at = find_rung(ladder, at->builds_on)) path.push_back(at);
  return path;
}

std::vector<Ceiling> ceilings_of(const Ladder& ladder, const Rung& rung) {
  if (!rung.precision.empty() || rung.role == Role::choice) return {};
  if (rung.ceiling) return {*rung.ceiling};
  std::vector<Ceiling> ceilings;
  if (!ladder.ceiling.empty()) ceilings.push_back({.rung = ladder.ceiling});
  if (!ladder.other_ceiling.empty())
    ceilings.push_back({.rung = ladder.other_ceiling, .other_quantity = true});
  return ceilings;
}

const std::vector<Ladder>& catalogue() {
#define CALL(name) name::ladder(),
  static const std::vector<Ladder> ladders = {LADDERS(CALL)};
#undef CALL
  return ladders;
}

std::string Row::name() const {
  const std::string axes = point.name();
  return ladder->name + "/" + rung->name + (axes.empty() ? "" : "/" + axes);
}

std::vector<Row> rows(const Ladder& ladder, Shapes shapes) {
  const auto of = [shapes](const auto& measured, const auto& small, const auto& tested) {
    return shapes == Shapes::measured ? measured : shapes == Shapes::small ? small : tested;
  };
  std::vector<Row> result;
  for (const Shape& values : of(ladder.measured, ladder.small, ladder.tested)) {
    const Case shape(ladder.axes, values);
    for (const Rung& rung : ladder.rungs) {
      if (shapes == Shapes::measured && rung.measured && !rung.measured(shape)) continue;
      std::vector<Case> points = {shape};
      for (const Sweep& sweep : rung.sweeps) {
        const auto& small = sweep.small.empty() ? sweep.measured : sweep.small;
        std::vector<Case> longer;
        for (const Case& point : points)
          for (const int64_t value : of(sweep.measured, small, sweep.tested))
            longer.push_back(point.with(sweep.axis, value));
        points = longer;
      }
      for (const Case& point : points) result.push_back({&ladder, &rung, shape, point});
    }
  }
  return result;
}

std::vector<std::string> meant_for(const Ladder& ladder, const Rung& rung) {
  std::vector<std::string> names;
  if (!rung.meant_for) return names;
  for (const Shape& values : ladder.measured)
    if (const Case shape(ladder.axes, values); rung.meant_for(shape)) names.push_back(shape.name());
  return names;
}

std::string skip_reason(const Row& row, const Device& device) {
  const int needed = row.rung->needs.compute_capability;
  if (device.compute_capability < needed)
    return "needs compute capability " + dotted(needed / 10, needed % 10);
  const std::string_view only_there = row.rung->needs.only_there;
  if (!only_there.empty() && device.compute_capability / 10 != needed / 10)
    return "not ported beyond " + std::to_string(needed / 10) + ".x: uses " +
           std::string(only_there);
  if (kEmulated && !row.rung->needs.hardware_only.empty())
    return "needs " + std::string(row.rung->needs.hardware_only) + ": not emulated";
  const std::string reason = row.rung->skip ? row.rung->skip(row.point, device) : "";
  if (!kEmulated || !reason.empty()) return reason;
  const Implementation implementation = row.rung->at(row.point, device);
  if (!implementation.kernel && !implementation.on_host) return "a library call: needs a GPU";
  return "";
}

double memory(const Ladder& ladder, const Case& shape, const Device& device) {
  if (ladder.memory) return ladder.memory(shape);
  return ladder.work ? ladder.work(shape, device).bytes() : 0;
}

Work work(const Row& row, const Device& device) {
  return (row.rung->work ? row.rung->work : row.ladder->work)(row.point, device);
}

}  // namespace ladders
