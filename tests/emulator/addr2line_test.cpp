// SPDX-License-Identifier: MIT
//
// Source lines come from an addr2line that runs beside the program. Whatever becomes of it the
// lines are right, and the program waits for nothing because of it.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "figures.hpp"

namespace emulator {
namespace {

// Lines are remembered, so each question needs a kernel of its own.
template <int n>
__global__ void stores(int* out) {
  out[threadIdx.x] = n;  // here
}
std::string place_of(void (*kernel)(int*)) {
  const DeviceArray<int> out(32);
  std::string places;
  for (const Line& line : counted_launch({1, 32}, kernel, out.data()).lines)
    places += line.file + ":" + std::to_string(line.line) + ";";
  return places;
}
std::string marked(const char* function, const char* mark) {
  return "addr2line_test.cpp:" + std::to_string(marked_lines(__FILE__, function, mark).at(0)) + ";";
}
#define EXPECT_RIGHT(n) EXPECT_EQ(place_of(stores<n>), marked("stores", "here"))

// A directory that is searched first. In it a script notes its process and becomes addr2line.
class Script {
 public:
  explicit Script(const std::string& before = "") {
    std::filesystem::create_directory(directory_);
    std::ofstream(directory_ / "addr2line")
        << "#!/bin/sh\ncd " << directory_ << "\necho $$ >>log\n"
        << before << "\nPATH=${PATH#*:}\nexec addr2line \"$@\"\n";
    chmod((directory_ / "addr2line").c_str(), 0700);
    setenv("PATH", (directory_.string() + ":" + getenv("PATH")).c_str(), 1);
  }
  ~Script() { std::filesystem::remove_all(directory_); }
  std::vector<pid_t> started() const {
    std::ifstream log(directory_ / "log");
    return {std::istream_iterator<pid_t>(log), {}};
  }

 private:
  const std::filesystem::path directory_ =
      ::testing::TempDir() + std::to_string(getpid()) + "-addr2line";
};

bool is_running(pid_t process) {
  return std::filesystem::exists("/proc/" + std::to_string(process) + "/cwd/log");
}

// In a copy of this program, which may change what it likes.
void in_a_copy(const std::function<void()>& body, int expected_status = 0) {
  const pid_t copy = fork();
  if (copy == 0) {
    alarm(120);  // hanging is wrong too
    body();
    _exit(::testing::Test::HasFailure());
  }
  int status = -1;
  waitpid(copy, &status, 0);
  EXPECT_EQ(status, expected_status);
}

TEST(Addr2line, OneAnswersAll) {
  in_a_copy([] {
    const Script script;
    EXPECT_RIGHT(0);
    EXPECT_RIGHT(1);
    EXPECT_EQ(script.started().size(), 1u);
  });
}

#define TEN_OF(x) x x x x x x x x x x
__global__ void stores_often(int* data) {
  volatile int& mine = data[threadIdx.x];
  TEN_OF(TEN_OF(TEN_OF(mine = 1; mine = 2; mine = 3;)))  // often
}
TEST(Addr2line, AnswersManyQuestions) {
  in_a_copy([] { EXPECT_EQ(place_of(stores_often), marked("stores_often", "often")); });
}

TEST(Addr2line, IsStartedAgainOnceKilled) {
  in_a_copy([] {
    const Script script;
    EXPECT_RIGHT(0);
    kill(script.started().at(0), SIGKILL);
    EXPECT_RIGHT(1);
    EXPECT_EQ(script.started().size(), 2u);
  });
}

TEST(Addr2line, IsStartedAgainIfItAnswersSomethingElse) {
  in_a_copy([] {
    const Script script("[ $(wc -l <log) -gt 1 ] || { read first; printf '0x1\\n/a.cu:1\\n'; }");
    EXPECT_RIGHT(0);
    EXPECT_EQ(script.started().size(), 2u);
  });
}

TEST(Addr2line, MayFail) {
  in_a_copy([] {
    const Script script("exit 1");
    EXPECT_EQ(place_of(stores<0>), ":0;");
    setenv("PATH", "/nowhere", 1);
    EXPECT_EQ(place_of(stores<1>), ":0;");
  });
}

TEST(Addr2line, HasNoneOfTheProgramsPipesAndIsNoChild) {
#if __GLIBC_MINOR__ < 34
  GTEST_SKIP() << "this C library cannot close all descriptors for a new process";
#endif
  in_a_copy([] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_RIGHT(0);
    close(ends[1]);
    char byte;
    EXPECT_EQ(read(ends[0], &byte, 1), 0);
    while (wait(nullptr) > 0) continue;
    EXPECT_EQ(errno, ECHILD);
    EXPECT_RIGHT(1);
  });
}

TEST(Addr2line, IsACopysOwnAndEndsWithIt) {
  in_a_copy([] {
    const Script script;
    EXPECT_RIGHT(0);
    const auto ask_and_die = [] {
      EXPECT_RIGHT(1);
      raise(::testing::Test::HasFailure() ? SIGABRT : SIGKILL);
    };
    in_a_copy(ask_and_die, SIGKILL);
    ASSERT_EQ(script.started().size(), 2u);
    while (is_running(script.started()[1])) usleep(1000);
    EXPECT_RIGHT(2);
    EXPECT_EQ(script.started().size(), 2u);
  });
}

}  // namespace
}  // namespace emulator
