// SPDX-License-Identifier: MIT
#include "symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "emulator/language.hpp"

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

int addr2line = -1;  // a socket to the running process; -1 if there is none

void close_addr2line() {
  if (addr2line != -1) close(addr2line);
  addr2line = -1;
}

// The process ends when the socket is closed. A shell starts it and ends, so that it is no child of
// this program, which may wait for all of its children.
void start_addr2line() {
  // A copy of this program starts its own: their answers would get mixed up.
  [[maybe_unused]] static const int at_fork = pthread_atfork(nullptr, nullptr, close_addr2line);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
#if __GLIBC_MINOR__ >= 34
  // Who waits for the end of a pipe of this program must not wait for addr2line too.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  // A shell gives what runs in the background an empty stdin, unless that is another descriptor.
  const char* const arguments[] = {"sh", "-c",
                                   "exec 3<&0; addr2line -a -i -e \"$0\" <&3 3<&- 2>/dev/null &",
                                   program().c_str(), nullptr};
  pid_t shell;
  const int error = posix_spawn(&shell, "/bin/sh", &actions, nullptr,
                                const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  addr2line = ends[0];
  if (error != 0) return close_addr2line();
  (void)TEMP_FAILURE_RETRY(waitpid(shell, nullptr, 0));
}

// Asked last: no program has code there, so the line after its echo ends the answer.
constexpr std::string_view kNowhere = "0x8000000000000000\n";

// None if addr2line fails or answers something else; else also one for kNowhere.
std::vector<SourceLine> ask_addr2line(std::span<const std::uintptr_t> return_addresses) {
  if (addr2line == -1) start_addr2line();
  std::ostringstream question, echo;
  for (const std::uintptr_t address : return_addresses)
    question << "0x" << std::hex << address - 1 - image().base << '\n';
  question << kNowhere;
  const std::string asked = question.str();
  if (TEMP_FAILURE_RETRY(send(addr2line, asked.data(), asked.size(), MSG_NOSIGNAL)) !=
      static_cast<ssize_t>(asked.size()))
    return {};

  std::string answer;
  for (std::size_t last; (last = answer.find(kNowhere)) == std::string::npos ||
                         answer.find('\n', last + kNowhere.size()) == std::string::npos;) {
    char buffer[4096];
    const ssize_t bytes = TEMP_FAILURE_RETRY(read(addr2line, buffer, sizeof(buffer)));
    if (bytes <= 0) return {};
    answer.append(buffer, bytes);
  }
  std::vector<SourceLine> lines;
  std::istringstream texts(answer);
  for (std::string text; std::getline(texts, text);) {
    if (text.starts_with("0x")) {  // with zeros before the number
      echo << "0x" << std::hex << std::strtoull(text.c_str(), nullptr, 16) << '\n';
      lines.emplace_back();
    } else if (!lines.empty() && lines.back().file.empty()) {
      lines.back() = parse(text);
    }
  }
  return echo.str() == asked ? lines : std::vector<SourceLine>();
}

std::vector<SourceLine> look_up(std::span<const std::uintptr_t> return_addresses) {
  constexpr std::size_t kAtOnce = 100;  // fits into the socket before any of it is read
  std::vector<SourceLine> lines;
  for (std::size_t first = 0; first < return_addresses.size(); first += kAtOnce) {
    const auto part =
        return_addresses.subspan(first, std::min(kAtOnce, return_addresses.size() - first));
    std::vector<SourceLine> found = ask_addr2line(part);
    if (found.empty()) {  // it may have been killed
      close_addr2line();
      found = ask_addr2line(part);
    }
    found.resize(part.size());
    lines.insert(lines.end(), found.begin(), found.end());
  }
  return lines;
}

}  // namespace

// Remembered, since looking them up takes time.
std::vector<SourceLine> source_lines(std::span<const std::uintptr_t> return_addresses) {
  static std::mutex mutex;
  static std::unordered_map<std::uintptr_t, SourceLine> known;
  const std::lock_guard lock(mutex);
  std::vector<std::uintptr_t> unknown;
  for (const std::uintptr_t address : return_addresses)
    if (!known.contains(address)) unknown.push_back(address);
  const std::vector<SourceLine> found = look_up(unknown);
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
  constexpr unsigned kMark = nops_of(0), kMost = 1024;
  const auto* code = static_cast<const unsigned char*>(kernel);
  unsigned nops = 0;
  while (nops < nops_of(kMost) && *--code == 0x90) ++nops;
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
