// SPDX-License-Identifier: MIT
//
// As much of a JSON writer as the result files need.
#pragma once

#include <cstdio>
#include <string>

namespace ladders {

inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= ' ') {
      result += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      result += escape;
    }
  }
  return result + '"';
}

/// An array of what `element` makes of each item.
template <class Range, class F>
std::string array(const Range& range, F element) {
  std::string result = "[";
  for (const auto& item : range) {
    if (result.size() > 1) result += ',';
    result += element(item);
  }
  return result + ']';
}

}  // namespace ladders
