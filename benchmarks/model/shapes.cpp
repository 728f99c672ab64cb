// SPDX-License-Identifier: MIT
#include "model/shapes.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace ladders {
namespace {

constexpr size_t kMostShapes = 1000;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text + at);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::string listed(const auto& items, auto name) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + name(item);
  return text;
}

// "4096" or "2^12".
int64_t integer(const std::string& text) {
  const auto parse = [&](std::string_view digits) {
    int64_t value = 0;
    const char* end = digits.data() + digits.size();
    if (const auto [at, error] = std::from_chars(digits.data(), end, value);
        error != std::errc() || at != end)
      refuse("'" + text + "' is no integer");
    return value;
  };
  if (!text.starts_with("2^")) return parse(text);
  const int64_t exponent = parse(std::string_view(text).substr(2));
  if (exponent < 0 || exponent > 62) refuse("'" + text + "' is too large");
  return int64_t{1} << exponent;
}

// What an axis takes, for messages.
std::string range_of(const Axis& axis) {
  if (!axis.labels.empty()) return listed(axis.labels, [](const std::string& l) { return l; });
  if (!axis.only.empty()) return listed(axis.only, [](int64_t v) { return std::to_string(v); });
  return std::to_string(axis.least) + " to " + std::to_string(axis.most);
}

int64_t checked(const Axis& axis, int64_t value) {
  const bool in_range = axis.only.empty() ? axis.least <= value && value <= axis.most
                                          : std::ranges::count(axis.only, value) > 0;
  if (!in_range)
    refuse(axis.name + "=" + std::to_string(value) + ": " + axis.name + " takes " + range_of(axis));
  return value;
}

// The values of one item of a list: a label, an integer, or "first..last*factor" and the like.
std::vector<int64_t> values(const Axis& axis, const std::string& item) {
  if (!axis.labels.empty()) {
    const auto found = std::ranges::find(axis.labels, item);
    if (found == axis.labels.end())
      refuse(axis.name + "=" + item + ": " + axis.name + " takes " + range_of(axis));
    return {found - axis.labels.begin()};
  }
  const size_t dots = item.find("..");
  if (dots == item.npos) return {checked(axis, integer(item))};
  const size_t sign = item.find_first_of("*+", dots);
  if (sign == item.npos)
    refuse("'" + item + "' needs a step, as in " + item + "*2 or " + item + "+100");
  const int64_t first = checked(axis, integer(item.substr(0, dots))),
                last = checked(axis, integer(item.substr(dots + 2, sign - dots - 2))),
                step = integer(item.substr(sign + 1));
  const bool times = item[sign] == '*';
  if (step < (times ? 2 : 1) || first > last || (times && first < 1))
    refuse("'" + item + "' is no range" + (times ? ", as 1..8*2 is" : ", as 0..100+10 is"));
  std::vector<int64_t> found;
  for (int64_t value = first;; value = times ? value * step : value + step) {
    found.push_back(checked(axis, value));
    if (found.size() > kMostShapes) refuse("'" + item + "': more than 1000 values");
    if (times ? value > last / step : value > last - step) return found;
  }
}

// "m=n=k=512,1024,distribution=zipf": a part without "=" is one more value of the axes before it.
std::vector<Shape> parse(const Ladder& ladder, const std::string& text, const Shape& otherwise) {
  struct Choice {
    std::vector<size_t> axes;
    std::vector<int64_t> values;
  };
  std::vector<Choice> choices;
  std::vector<bool> named(ladder.axes.size());
  for (const std::string& part : split(text, ',')) {
    std::vector<std::string> names = split(part, '=');
    const std::string item = names.back();
    names.pop_back();
    if (!names.empty()) choices.emplace_back();
    if (text.empty())
      refuse(ladder.name + ": needs axes, such as " + ladder.axes.front().name + "=7");
    if (item.empty()) refuse("a value is missing in '" + text + "'");
    if (choices.empty()) refuse("'" + part + "' names no axis, as m=4096 does");
    for (const std::string& name : names) {
      const auto axis = std::ranges::find(ladder.axes, name, &Axis::name);
      if (axis == ladder.axes.end())
        refuse(ladder.name + " has no axis '" + name + "': it has " +
               listed(ladder.axes, [](const Axis& a) { return a.name; }));
      const size_t index = axis - ladder.axes.begin();
      if (named[index]) refuse("the axis " + name + " is given twice");
      named[index] = true;
      choices.back().axes.push_back(index);
    }
    for (const size_t axis : choices.back().axes) {
      const std::vector<int64_t> found = values(ladder.axes[axis], item);
      if (axis == choices.back().axes.front())
        choices.back().values.insert(choices.back().values.end(), found.begin(), found.end());
    }
  }
  std::vector<Shape> shapes = {otherwise};
  for (const Choice& choice : choices) {
    std::vector<Shape> more;
    for (const Shape& shape : shapes)
      for (const int64_t value : choice.values) {
        more.push_back(shape);
        for (const size_t axis : choice.axes) more.back()[axis] = value;
      }
    shapes = more;
    if (shapes.size() > kMostShapes) refuse("more than 1000 shapes");
  }
  return shapes;
}

}  // namespace

std::vector<Ladder> at_shapes(const std::vector<Ladder>& ladders,
                              const std::vector<std::string>& texts, Shapes cases) {
  std::vector<Ladder> result = ladders;
  for (Ladder& ladder : result) ladder.measured.clear(), ladder.small.clear();
  for (const std::string& text : texts) {
    const std::string name = text.substr(0, text.find(':'));
    const auto ladder = std::ranges::find(result, name, &Ladder::name);
    if (ladder == result.end() || name.size() == text.size())
      refuse("'" + text + "' must be LADDER:AXIS=VALUE, as sgemm:m=4096 is; ladders are " +
             listed(ladders, [](const Ladder& l) { return l.name; }));
    const Shape& otherwise = cases == Shapes::small ? ladder->small_headline : ladder->headline;
    for (const Shape& shape : parse(*ladder, text.substr(name.size() + 1), otherwise))
      if (!std::ranges::count(ladder->measured, shape)) ladder->measured.push_back(shape);
    for (Rung& rung : ladder->rungs) rung.measured = {};
  }
  for (Ladder& ladder : result) {
    ladder.small = ladder.measured;
    for (Shape* headline : {&ladder.headline, &ladder.small_headline})
      if (!ladder.measured.empty() && !std::ranges::count(ladder.measured, *headline))
        *headline = ladder.measured.back();
  }
  return result;
}

std::string too_large(const std::vector<Ladder>& ladders, Shapes cases, const Device& device,
                      size_t bytes) {
  for (const Ladder& ladder : ladders)
    for (const Shape& shape : cases == Shapes::small ? ladder.small : ladder.measured) {
      const Case point(ladder.axes, shape);
      const double needed = memory(ladder, point, device);
      if (needed <= double(bytes)) continue;
      char text[80];
      std::snprintf(text, sizeof(text), " needs %.3g GB of memory, and %.3g GB are free",
                    needed * 1e-9, double(bytes) * 1e-9);
      return ladder.name + "/" + point.name() + text;
    }
  return "";
}

std::string takes_long(const std::vector<Ladder>& ladders, Shapes cases, const Device& device) {
  constexpr double kFlops = 1e9, kBytes = 2e9;  // about what the emulator does in a minute
  double most = 1;
  std::string found;
  for (const Ladder& ladder : ladders)
    for (const Shape& shape : cases == Shapes::small ? ladder.small : ladder.measured) {
      const Case point(ladder.axes, shape);
      const Work work = ladder.work ? ladder.work(point, device) : Work{};
      const double minutes = std::max(work.flops / kFlops, work.bytes() / kBytes);
      if (minutes <= most) continue;
      most = minutes;
      char text[80];
      std::snprintf(text, sizeof(text),
                    " may take the emulator %.0f minutes per row: use a GPU for such shapes",
                    minutes);
      found = ladder.name + "/" + point.name() + text;
    }
  return found;
}

}  // namespace ladders
