// SPDX-License-Identifier: MIT
//
// What the program's own symbol table and debug information say.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>

namespace emulator {

/// A variable of the program.
struct Variable {
  std::size_t offset, bytes;  ///< in the block's static shared memory, or its address
  std::string symbol;         ///< mangled: _ZZ, the function it is in, E, its name
  std::string name() const;   ///< the last part of that
};
/// The last value of a map whose key is not beyond `key`; null if there is none.
auto* last_before(auto& map, auto key) {
  const auto after = map.upper_bound(key);
  return after == map.begin() ? nullptr : &std::prev(after)->second;
}

struct Symbols {
  static const Symbols& get();
  /// The mangled name of the function at `address`; empty if the program is stripped.
  std::string function(const void* address) const;

  std::map<std::uintptr_t, std::string> functions;
  std::map<std::size_t, Variable> shared;     ///< the __shared__ ones, thread-local, by offset
  std::map<std::uintptr_t, Variable> global;  ///< the others, by address

 private:
  Symbols();
};

/// "tiled<unsigned int, 1>" for a mangled kernel name: without namespaces, result and parameters.
std::string kernel_name(const std::string& symbol);

struct SourceLine {
  std::string file;  ///< without directories; empty if not known
  int line = 0;
  std::string text() const;  ///< "transpose.cu:118"
  bool operator==(const SourceLine&) const = default;
};

/// The line that the instruction before `return_address` comes from; where code was inlined, the
/// innermost that is not the emulator's own.
SourceLine source_line(std::uintptr_t return_address);

/// The range of this thread's copy of the program's thread-local storage.
std::span<char> thread_storage();

/// Where `address` lies in the program's own image: the same in every run.
std::uintptr_t image_offset(std::uintptr_t address);
/// The threads that a kernel's __launch_bounds__ allows in a block; 1024 if it has none.
unsigned launch_bound(const void* kernel);
/// Whether `address` lies in the program's own image (__device__ variables, constants).
bool in_image(std::uintptr_t address);
/// Whether it lies there and cannot be written, or is a __constant__.
bool is_constant(std::uintptr_t address);
/// Whether it lies in a __managed__ variable.
bool is_managed(std::uintptr_t address);
/// Whether it lies there, cannot be written, and is no __constant__.
bool is_compilers_own(std::uintptr_t address);

}  // namespace emulator
