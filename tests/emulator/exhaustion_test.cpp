// SPDX-License-Identifier: MIT
//
// A machine that runs out of memory or threads in the middle of a launch.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "support.hpp"

namespace emulator {
namespace {

__global__ void ids(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = static_cast<int>(blockIdx.x);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}

constexpr unsigned kBlocks = 512;  // so many that most host threads have a turn

rlim_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

enum Outcome { kRan = 10, kSaidWhy = 11, kWrong = 12 };

// In a process of its own: launches with so much more memory than there is at the start.
[[noreturn]] void launch_within(std::size_t more, unsigned cluster, int* out) {
  alarm(60);  // hanging is wrong too
  // Host threads are made in the middle of a launch, too.
  const Settings settings(
      {.workers = 32, .check = true, .schedule = {.kind = Schedule::Kind::random}});
  const rlimit limit{address_space() + more, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(kWrong);
  const cudaError_t error = launch_clusters(cluster, {kBlocks, 64}, ids, out);
  if (error == cudaSuccess) _exit(kRan);
  _exit(error == cudaErrorLaunchFailure && last_fault().find("this machine has no") == 0 ? kSaidWhy
                                                                                         : kWrong);
}

TEST(Exhaustion, EndsTheLaunchWithAnError) {
  const DeviceArray<int> out(kBlocks * 64);
  for (const unsigned cluster : {1u, 8u}) {
    bool failed = false, ran = false;
    for (std::size_t more = 0; more <= std::size_t{64} << 30 && !ran; more += more / 8 + 200000)
      EXPECT_EXIT(
          launch_within(more, cluster, out),
          [&](int status) {
            const int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : kWrong;
            failed |= outcome == kSaidWhy;
            ran |= outcome == kRan;
            return outcome != kWrong;
          },
          "")
          << more << " bytes, clusters of " << cluster;
    EXPECT_TRUE(failed) << "clusters of " << cluster;
    EXPECT_TRUE(ran) << "clusters of " << cluster;
  }
}

}  // namespace
}  // namespace emulator
