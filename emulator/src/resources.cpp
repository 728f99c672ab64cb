// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "emulator/gpu.hpp"

namespace emulator {
namespace {

// kTable: the committed table as text (see CMakeLists.txt).
#include "kernel_resources.inc"

// Resources of kernels by architecture, as cmake/kernel_resources.cmake writes them.
class Table {
 public:
  explicit Table(std::string csv) : csv_(std::move(csv)) {
    for (std::string_view rest = csv_; !rest.empty();) {
      const std::string_view line = next(rest, '\n');
      if (line.starts_with("# "))
        origin = line.substr(2);
      else if (line.starts_with("_Z"))
        add(line);
    }
  }

  Table(const Table&) = delete;  // rows view the text

  // Whether it has kernels of GPUs of this generation.
  bool covers(int compute_capability) const {
    return std::ranges::any_of(
        rows_, [=](const Row& row) { return row.architecture / 10 == compute_capability / 10; });
  }

  // Code runs on later minor versions of the major version that it was compiled for.
  std::optional<KernelResources> find(std::string_view symbol, int compute_capability) const {
    const Row* best = nullptr;
    for (const Row& row : rows_)
      if (row.symbol == symbol && row.architecture <= compute_capability &&
          row.architecture / 10 == compute_capability / 10 &&
          (best == nullptr || best->architecture < row.architecture))
        best = &row;
    if (best == nullptr) return std::nullopt;
    return best->resources;
  }

  std::string_view origin;

 private:
  struct Row {
    std::string_view symbol;
    int architecture;
    KernelResources resources;
  };

  static std::string_view next(std::string_view& rest, char separator) {
    const std::string_view found = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(found.size() + 1, rest.size()));
    return found;
  }

  void add(std::string_view line) {
    Row row = {.symbol = next(line, ',')};
    auto& [registers, shared, local, spilled] = row.resources;
    const auto read = [&](auto& value) {
      const std::string_view field = next(line, ',');
      return std::from_chars(field.data(), field.data() + field.size(), value).ec == std::errc();
    };
    if (read(row.architecture) && read(registers) && read(shared) && read(local) && read(spilled))
      rows_.push_back(row);
  }

  std::string csv_;
  std::vector<Row> rows_;
};

std::string built_here() {
  std::ostringstream text;
  if (std::ifstream file(KERNEL_RESOURCES_CSV); file) text << file.rdbuf();
  return text.str();
}

// That of this build tree, if nvcc made it for such GPUs, or the committed one. Read at run time,
// so that building an emulated program takes no nvcc.
const Table& table_for(int compute_capability) {
  static const Table built(built_here()), committed(kTable);
  return built.covers(compute_capability) ? built : committed;
}

}  // namespace

std::optional<KernelResources> resources(std::string_view symbol, int compute_capability) {
  return table_for(compute_capability).find(symbol, compute_capability);
}

std::string_view resources_origin(int compute_capability) {
  return table_for(compute_capability).origin;
}

}  // namespace emulator
