// SPDX-License-Identifier: MIT
//
// Source lines, of many instructions at once and in copies of a program.
#include <sys/wait.h>
#include <unistd.h>

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
  return "source_lines_test.cpp:" + std::to_string(marked_lines(__FILE__, function, mark).at(0)) +
         ";";
}
#define EXPECT_RIGHT(n) EXPECT_EQ(place_of(stores<n>), marked("stores", "here"))

#define TEN_OF(x) x x x x x x x x x x
__global__ void stores_often(int* data) {
  volatile int& mine = data[threadIdx.x];
  TEN_OF(TEN_OF(TEN_OF(mine = 1; mine = 2; mine = 3;)))  // often
}
TEST(SourceLines, AreOneForManyInstructions) {
  EXPECT_EQ(place_of(stores_often), marked("stores_often", "often"));
}

TEST(SourceLines, AreKnownInACopyOfTheProgramAndAfterwards) {
  EXPECT_RIGHT(0);
  const pid_t copy = fork();
  if (copy == 0) {
    alarm(120);  // hanging is wrong too
    EXPECT_RIGHT(0);
    EXPECT_RIGHT(1);
    _exit(::testing::Test::HasFailure());
  }
  int status = -1;
  waitpid(copy, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_RIGHT(1);
}

}  // namespace
}  // namespace emulator
