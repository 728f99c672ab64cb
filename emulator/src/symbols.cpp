// SPDX-License-Identifier: MIT
#include "symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>

// The linker's names for the ends of the sections of __constant__ and __managed__ variables; null
// if there are none.
extern "C" {
extern char __start_emulator_constant[] __attribute__((weak));
extern char __stop_emulator_constant[] __attribute__((weak));
extern char __start_emulator_managed[] __attribute__((weak));
extern char __stop_emulator_managed[] __attribute__((weak));
}

namespace emulator {
namespace {

struct Segment {
  std::uintptr_t start, end;
  bool writable;
};

// The program's own image; shared libraries hold no kernels.
struct Image {
  std::uintptr_t base = 0;
  std::size_t thread_storage_bytes = 0;
  std::vector<Segment> segments;
};

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

const Image& image() {
  static const Image found = [] {
    const dl_phdr_info info = program_info();
    Image result{.base = info.dlpi_addr};
    for (const auto& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
      const std::uintptr_t start = info.dlpi_addr + header.p_vaddr, end = start + header.p_memsz;
      if (header.p_type == PT_LOAD)
        result.segments.push_back({start, end, (header.p_flags & PF_W) != 0});
      // Relocated constants, such as tables of pointers.
      if (header.p_type == PT_GNU_RELRO) result.segments.push_back({start, end, false});
      if (header.p_type == PT_TLS) result.thread_storage_bytes = header.p_memsz;
    }
    return result;
  }();
  return found;
}

const std::string& program() {
  static const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  return path;
}

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // a global variable; alone, "s" would be a short
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

// "/a/b.cu:12" or "/a/b.cu:12 (discriminator 3)"; "??:0", the emulator's headers and the system's
// give none.
SourceLine parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || text[0] == '?') return {};
  const std::filesystem::path path(text.substr(0, colon));
  for (const char* own : {"emulator/include/", "emulator/cuda/", "/usr/include/"})
    if (path.native().find(own) != std::string::npos) return {};
  return {path.filename(), std::atoi(text.c_str() + colon + 1)};
}

}  // namespace

const Variable* last_before(std::span<const Variable> variables, std::size_t offset) {
  const auto after = std::ranges::upper_bound(variables, offset, {}, &Variable::offset);
  return after == variables.begin() ? nullptr : &*std::prev(after);
}

std::string Variable::name() const {
  const std::string text = demangled(symbol);
  return text.substr(text.rfind(':') + 1);
}

const Symbols& Symbols::get() {
  static const Symbols symbols;
  return symbols;
}

Symbols::Symbols() {
  std::ifstream file(program(), std::ios::binary);
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
        functions_.emplace(image().base + symbol.st_value, name);
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_size > 0)  // no linker's mark
        shared_.push_back({symbol.st_value, symbol.st_size, name});
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_size > 0)
        global_.push_back({image().base + symbol.st_value, symbol.st_size, name});
    }
  }
  std::ranges::sort(shared_, {}, &Variable::offset);
  std::ranges::sort(global_, {}, &Variable::offset);
}

std::string Symbols::function(const void* address) const {
  const auto found = functions_.find(reinterpret_cast<std::uintptr_t>(address));
  return found == functions_.end() ? "" : found->second;
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

namespace {

// addr2line, which takes long to read a program's debug information: it is started once, and
// answers as it is asked. A process that was forked from this one starts its own.
class Addr2line {
 public:
  std::vector<SourceLine> lines(std::span<const std::uintptr_t> return_addresses) {
    if (owner_ != getpid()) start();
    std::vector<SourceLine> found;
    for (std::size_t first = 0; answers_ && first < return_addresses.size(); first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, return_addresses.size() - first);
      ask(return_addresses.subspan(first, count), found);
      found.resize(first + count);
    }
    found.resize(return_addresses.size());
    return found;
  }

 private:
  static constexpr std::size_t kAtOnce = 500;  // so that a question always fits into the socket

  void start() {
    owner_ = getpid();
    answers_ = nullptr;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
      posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const char* arguments[] = {"addr2line", "-a", "-i", "-e", program().c_str(), nullptr};
    pid_t child;
    const bool started = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                      const_cast<char**>(arguments), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (started) answers_ = fdopen(ends[0], "r");
  }

  // An address is answered by itself and lines; that of 0, which has none, comes last.
  void ask(std::span<const std::uintptr_t> return_addresses, std::vector<SourceLine>& found) {
    std::ostringstream question;
    question << std::hex;
    for (const std::uintptr_t address : return_addresses)
      question << address - 1 - image().base << '\n';
    question << "0\n";
    const std::string text = question.str();
    if (send(fileno(answers_), text.data(), text.size(), MSG_NOSIGNAL) != ssize_t(text.size()))
      return;
    char buffer[4096];
    bool last = false;
    while (std::fgets(buffer, sizeof(buffer), answers_)) {
      std::string line(buffer);
      line.erase(line.find_last_not_of("\n") + 1);
      if (last) return;
      if (line.starts_with("0x")) {
        last = std::strtoull(line.c_str(), nullptr, 16) == 0;
        found.emplace_back();
      } else if (!found.empty() && found.back().file.empty()) {
        found.back() = parse(line);
      }
    }
  }

  pid_t owner_ = 0;
  FILE* answers_ = nullptr;
};

}  // namespace

// Remembered, since looking them up takes long.
std::vector<SourceLine> source_lines(std::span<const std::uintptr_t> return_addresses) {
  static std::mutex mutex;
  static Addr2line addr2line;
  static std::unordered_map<std::uintptr_t, SourceLine> known;
  const std::lock_guard lock(mutex);
  std::vector<std::uintptr_t> unknown;
  for (const std::uintptr_t address : return_addresses)
    if (!known.contains(address)) unknown.push_back(address);
  const std::vector<SourceLine> found = addr2line.lines(unknown);
  for (std::size_t i = 0; i < unknown.size(); ++i) known[unknown[i]] = found[i];
  std::vector<SourceLine> lines;
  for (const std::uintptr_t address : return_addresses) lines.push_back(known[address]);
  return lines;
}

SourceLine source_line(std::uintptr_t return_address) {
  return source_lines({&return_address, 1}).front();
}

std::span<char> thread_storage() {
  auto* start = static_cast<char*>(program_info().dlpi_tls_data);
  return {start, start ? image().thread_storage_bytes : 0};
}

std::uintptr_t image_offset(std::uintptr_t address) { return address - image().base; }

// See __launch_bounds__. What aligns functions may end in a nop more.
unsigned launch_bound(const void* kernel) {
  constexpr unsigned kMark = 64, kMost = 1024;
  const auto* code = static_cast<const unsigned char*>(kernel);
  unsigned nops = 0;
  while (nops < kMark + 2 * kMost && *--code == 0x90) ++nops;
  return nops < kMark ? kMost : (nops - kMark) / 2;
}

static bool is_between(auto start, std::uintptr_t address, auto end) {
  return address >= (std::uintptr_t)start && address < (std::uintptr_t)end;
}
static bool in_segment(std::uintptr_t address, bool writable_too) {
  return std::ranges::any_of(image().segments, [&](const Segment& s) {
    return s.writable <= writable_too && is_between(s.start, address, s.end);
  });
}

bool in_image(std::uintptr_t address) { return in_segment(address, true); }
bool is_compilers_own(std::uintptr_t address) { return in_segment(address, false); }
bool is_constant(std::uintptr_t address) {
  return is_between(__start_emulator_constant, address, __stop_emulator_constant) ||
         is_compilers_own(address);
}
bool is_managed(std::uintptr_t address) {
  return is_between(__start_emulator_managed, address, __stop_emulator_managed);
}

}  // namespace emulator
