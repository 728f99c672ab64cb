// SPDX-License-Identifier: MIT
#include "shared_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>

#include "global_memory.hpp"
#include "lane.hpp"
#include "requests.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

// Dynamic shared memory is given out with the alignment that kernels may ask for at most.
constexpr std::size_t kAlignment = 1024;
static_assert(kDynamicBytes % kAlignment == 0);

std::mutex kernels_mutex;
std::set<std::string>& kernels() {  // prefixes of the mangled names of their variables
  static std::set<std::string> known;
  return known;
}

// A variable of function _Zf is _ZZfE and its own name.
std::string variable_prefix(const std::string& function) { return "_Z" + function.substr(1) + "E"; }

const Variable* find(std::size_t offset) {
  const Variable* variable = last_before(Symbols::get().shared, offset);
  return variable && offset < variable->offset + variable->bytes ? variable : nullptr;
}

bool belongs_to_another(const Variable& variable, const std::string& kernel) {
  if (variable.symbol.starts_with(variable_prefix(kernel))) return false;
  const std::lock_guard lock(kernels_mutex);
  return std::ranges::any_of(
      kernels(), [&](const std::string& prefix) { return variable.symbol.starts_with(prefix); });
}

}  // namespace

void register_kernel(const std::string& symbol) {
  const std::lock_guard lock(kernels_mutex);
  if (!symbol.empty()) kernels().insert(variable_prefix(symbol));
}

std::size_t static_shared_bytes(const std::string& kernel) {
  if (kernel.empty()) return 0;
  std::size_t sum = 0;
  for (const auto& [offset, variable] : Symbols::get().shared)
    if (variable.symbol.starts_with(variable_prefix(kernel))) sum += variable.bytes;
  return sum;
}

SharedMemory::SharedMemory()
    : dynamic_(static_cast<char*>(std::aligned_alloc(kAlignment, kDynamicBytes)), &std::free) {
  if (!dynamic_) throw std::bad_alloc();
}

void SharedMemory::attach(const std::string& kernel) {
  kernel_ = kernel;
  foreign_.clear();
  const std::span<char> storage = thread_storage();
  static_start_ = address_of(storage.data());
  static_bytes_ = storage.size();
  // Those of device functions may be any kernel's. A file's own are left as they are.
  own_.clear();
  for (const auto& [offset, variable] : Symbols::get().shared) {
    if (!variable.symbol.starts_with("_ZZ")) continue;
    const std::span<char> place = storage.subspan(offset, variable.bytes);
    std::ranges::fill(place, kUnwritten);
    if (!kernel.empty() && variable.symbol.starts_with(variable_prefix(kernel)))
      own_.push_back(place);
  }
  if (written_) return;
  constexpr std::size_t kBeyond = 16;  // an access that starts at the last byte
  written_.reset(static_cast<std::uint32_t*>(
      std::calloc(static_span() + kDynamicBytes + kBeyond, sizeof(std::uint32_t))));
  if (!written_) throw std::bad_alloc();
}

void SharedMemory::start(std::size_t dynamic_bytes) {
  dynamic_bytes_ = dynamic_bytes;
  for (const std::span<char> place : own_) std::ranges::fill(place, kUnwritten);
  std::fill_n(dynamic(), dynamic_bytes, kUnwritten);
  ++block_;
}

void* SharedMemory::in(const SharedMemory& other, void* address) const {
  const auto a = address_of(address);
  if (is_dynamic(a)) return other.dynamic() + (a - dynamic_start());
  return reinterpret_cast<void*>(a - static_start_ + other.static_start_);
}

std::size_t SharedMemory::offset_in_variable(std::size_t offset) const {
  if (offset >= static_span()) return offset - static_span();
  const Variable* variable = find(offset);
  return variable ? offset - variable->offset : offset;
}

std::string SharedMemory::out_of_bounds(std::uintptr_t address, unsigned bytes) {
  if (is_dynamic(address)) {
    const std::size_t at = address - dynamic_start();
    return at + bytes <= dynamic_bytes_
               ? ""
               : text("at byte ", at, " of ", dynamic_bytes_, " bytes of dynamic shared memory");
  }
  if (Symbols::get().shared.empty()) return "";  // a stripped program
  const std::size_t offset = address - static_start_;
  const Variable* variable = find(offset);
  if (!variable) return "beyond any variable";
  if (offset + bytes > variable->offset + variable->bytes)
    return "at the end of " + variable->name();
  // A variable of a device function is anyone's; that of another kernel lies next to one's own by
  // chance.
  const auto [foreign, fresh] = foreign_.try_emplace(variable);
  if (fresh) foreign->second = !kernel_.empty() && belongs_to_another(*variable, kernel_);
  return foreign->second ? "beyond the kernel's own variables" : "";
}

std::string SharedMemory::variable(std::uintptr_t address) const {
  if (is_dynamic(address)) return "dynamic shared memory";
  const Variable* variable = find(address - static_start_);
  return variable ? variable->name() : "shared memory";
}

}  // namespace emulator
