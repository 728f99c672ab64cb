// SPDX-License-Identifier: MIT
#include "symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "emulator/language.hpp"

extern "C" {
// The linker's names for the start of the program's image, of what can be written there, and its
// end; and for the ends of the sections of __constant__ and __managed__ variables, null if there
// are none.
extern char __executable_start[], __data_start[], _end[];
extern char __start_emulator_constant[] __attribute__((weak));
extern char __stop_emulator_constant[] __attribute__((weak));
extern char __start_emulator_managed[] __attribute__((weak));
extern char __stop_emulator_managed[] __attribute__((weak));

// Of libbacktrace. Declared here, since clang finds gcc's library but not its header.
struct backtrace_state;
typedef void backtrace_error(void*, const char*, int);
backtrace_state* backtrace_create_state(const char* program, int threaded, backtrace_error*, void*);
int backtrace_pcinfo(backtrace_state*, std::uintptr_t pc,
                     int (*)(void*, std::uintptr_t, const char*, int, const char*),
                     backtrace_error*, void*);
}

namespace emulator {
namespace {

// Of the program itself; shared libraries hold no kernels.
dl_phdr_info program_info() {
  dl_phdr_info result{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<dl_phdr_info*>(out) = *info;
        return 1;  // the first is the program
      },
      &result);
  return result;
}

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // a global variable; alone, "s" would be a short
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

// Whether that is a header of the emulator's or the system's.
bool is_own(const std::string& path) {
  return path.starts_with(EMULATOR_DIRECTORY) || path.starts_with("/usr/include/");
}

}  // namespace

std::string Variable::name() const {
  const std::string text = demangled(symbol);
  return text.substr(text.rfind(':') + 1);
}

const Symbols& Symbols::get() {
  static const Symbols symbols;
  return symbols;
}

Symbols::Symbols() {
  const std::uintptr_t base = program_info().dlpi_addr;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (bytes.size() < sizeof(Elf64_Ehdr)) return;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = bytes.data() + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[i].sh_offset);
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const Elf64_Sym& symbol = symbols[s];
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const char* name = names + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        functions.emplace(base + symbol.st_value, name);
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_size > 0)  // no linker's mark
        shared.emplace(symbol.st_value, Variable{symbol.st_value, symbol.st_size, name});
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_size > 0)
        global.emplace(base + symbol.st_value,
                       Variable{base + symbol.st_value, symbol.st_size, name});
    }
  }
}

std::string Symbols::function(const void* address) const {
  const auto found = functions.find(reinterpret_cast<std::uintptr_t>(address));
  return found == functions.end() ? "" : found->second;
}

std::string kernel_name(const std::string& symbol) {
  std::string text = demangled(symbol);
  for (std::size_t at; (at = text.find("(anonymous namespace)::")) != std::string::npos;)
    text.erase(at, 23);
  // Up to the parameter list; template arguments may hold parentheses of their own.
  std::size_t start = 0, end = 0, depth = 0;
  for (; end < text.size() && !(depth == 0 && text[end] == '('); ++end) {
    if (text[end] == '<') ++depth;
    if (text[end] == '>') --depth;
    if (depth == 0 && (text[end] == ' ' || text[end] == ':')) start = end + 1;
  }
  return text.substr(start, end - start);
}

std::string SourceLine::text() const {
  return file.empty() ? "an unknown line" : file + ":" + std::to_string(line);
}

SourceLine source_line(std::uintptr_t return_address) {
  static std::mutex mutex;
  static std::unordered_map<std::uintptr_t, SourceLine> known;  // looking one up takes time
  const auto ignore = [](void*, const char*, int) {};           // an error: the line is not known
  const std::lock_guard lock(mutex);
  static backtrace_state* const state = backtrace_create_state(nullptr, 0, ignore, nullptr);
  const auto [at, fresh] = known.try_emplace(return_address);
  if (!fresh) return at->second;
  const auto take = [](void* found, std::uintptr_t, const char* file, int line, const char*) {
    if (!file || is_own(file)) return 0;  // go on with where this was inlined
    *static_cast<SourceLine*>(found) = {std::filesystem::path(file).filename(), line};
    return 1;
  };
  backtrace_pcinfo(state, return_address - 1, take, ignore, &at->second);
  return at->second;
}

std::span<char> thread_storage() {
  const dl_phdr_info info = program_info();
  const std::span headers(info.dlpi_phdr, info.dlpi_phnum);
  const auto storage = std::ranges::find(headers, PT_TLS, &ElfW(Phdr)::p_type);
  if (storage == headers.end() || !info.dlpi_tls_data) return {};
  return {static_cast<char*>(info.dlpi_tls_data), storage->p_memsz};
}

// See __launch_bounds__. What aligns functions may end in a nop more.
unsigned launch_bound(const void* kernel) {
  constexpr unsigned kMark = nops_of(0), kMost = 1024;
  const auto* code = static_cast<const unsigned char*>(kernel);
  unsigned nops = 0;
  while (nops < nops_of(kMost) && *--code == 0x90) ++nops;
  return nops < kMark ? kMost : (nops - kMark) / 2;
}

static bool is_between(const char* start, std::uintptr_t address, const char* end) {
  return address >= (std::uintptr_t)start && address < (std::uintptr_t)end;
}

std::uintptr_t image_offset(std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(__executable_start);
}
bool in_image(std::uintptr_t address) { return is_between(__executable_start, address, _end); }
bool is_compilers_own(std::uintptr_t address) {
  return is_between(__executable_start, address, __data_start);
}
bool is_constant(std::uintptr_t address) {
  return is_between(__start_emulator_constant, address, __stop_emulator_constant) ||
         is_compilers_own(address);
}
bool is_managed(std::uintptr_t address) {
  return is_between(__start_emulator_managed, address, __stop_emulator_managed);
}

}  // namespace emulator
