// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace ladders {

inline std::string number(double value, int digits = 15) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    char escape[8] = {c};
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < ' ') std::snprintf(escape, sizeof(escape), "\\u%04x", c);
    result += escape;
  }
  return result + '"';
}

/// An array of `element(item)` for each item.
template <class Range, class F>
std::string array(const Range& range, F element) {
  std::string result = "[";
  for (const auto& item : range) {
    if (result.size() > 1) result += ',';
    result += element(item);
  }
  return result + ']';
}

/// An object of the members whose JSON is not empty.
inline std::string object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string result = "{";
  for (const auto& [name, json] : members) {
    if (json.empty()) continue;
    if (result.size() > 1) result += ',';
    result += quoted(name) + ':' + json;
  }
  return result + '}';
}

}  // namespace ladders
