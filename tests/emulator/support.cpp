// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace emulator {
namespace {

// Every field, so that two reports are equal if their texts are.
std::string all_of(const Report& report) {
  std::ostringstream out;
  out << report.launches << " launches, " << report.blocks << " blocks, " << report.threads
      << " threads, " << report.barriers << " + " << report.cluster_barriers << " barriers, "
      << report.warp_operations << " warp operations, " << report.lane_steps << " / "
      << report.warp_steps << " steps, " << report.compulsory_read << " + "
      << report.compulsory_written << " bytes\n";
  for (const Line& line : report.lines) {
    const Traffic& t = line.traffic;
    out << line.kernel << " " << line.file << ":" << line.line << " " << name(line.space) << " "
        << name(line.operation) << " " << line.bytes << " B: " << t.requests << " requests, "
        << t.lanes << " lanes, " << t.bytes << " bytes, " << t.transactions << " transactions, "
        << t.ideal << " ideal, " << t.worst << " worst, " << t.serialised << " serialised, at";
    for (const std::int64_t address : line.worst) out << " " << address;
    out << "\n";
  }
  return out.str();
}

// What a test leaves must not be the next one's.
class NoFaultIsLeft : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "a fault is left: " << last_fault();
    clear_fault();
    cudaGetLastError();
  }
};
const bool kListening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new NoFaultIsLeft);
  return true;
}();

}  // namespace

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
  EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemset(data_, 0, bytes), cudaSuccess);
}
DeviceBytes::~DeviceBytes() { cudaFree(data_); }
void DeviceBytes::copy_from(const void* host) {
  EXPECT_EQ(cudaMemcpy(data_, host, bytes_, cudaMemcpyHostToDevice), cudaSuccess);
}
void DeviceBytes::copy_to(void* host) const {
  EXPECT_EQ(cudaMemcpy(host, data_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
}

Settings::Settings(const Options& wanted) : saved_(options()) { options() = wanted; }
Settings::~Settings() { options() = saved_; }

::testing::AssertionResult runs(cudaError_t launched) {
  if (launched == cudaSuccess) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << cudaGetErrorName(launched) << ": " << last_fault();
}

const char* name(Order order) {
  static constexpr const char* kNames[] = {"forward", "reverse", "random"};
  return kNames[static_cast<int>(order)];
}

void everywhere(const std::function<void()>& body, Same same) {
  std::string first;
  for (const Order order : kOrders)
    for (const int workers : {1, 2, 3, 7}) {
      SCOPED_TRACE(std::string(name(order)) + ", " + std::to_string(workers) + " workers");
      const Settings settings({.order = order, .workers = workers, .check = true});
      const Recording recording;
      body();
      if (::testing::Test::HasFailure()) return;
      const std::string report = all_of(recording.report());
      if (first.empty()) first = report;
      if (same == Same::results) continue;
      ASSERT_EQ(report, first);
    }
}

std::vector<int> marked_lines(const char* path, const std::string& function,
                              const std::string& mark) {
  std::ifstream source(path);
  std::vector<int> lines;
  bool inside = false;
  std::string text;
  for (int line = 1; std::getline(source, text); ++line) {
    if (text.find(" " + function + "(") != text.npos) inside = true;
    if (inside && text.ends_with("// " + mark)) lines.push_back(line);
    if (inside && text == "}") break;
  }
  return lines;
}

void expect_planted(const char* path, const std::string& kernel, const Planted& planted,
                    Named named, const std::function<cudaError_t()>& launch) {
  for (const Order order : kOrders) {
    SCOPED_TRACE(name(order));
    const Settings settings({.order = order, .check = true});
    const cudaError_t error = launch();
    EXPECT_EQ(cudaGetLastError(), error);
    clear_fault();
    cudaGetLastError();
    ASSERT_EQ(error, cudaErrorLaunchFailure) << kernel << " was accepted";
    const std::string text = cudaGetErrorString(error);
    EXPECT_EQ(text, last_fault());
    EXPECT_TRUE(std::regex_search(text, std::regex(planted.what))) << text;
    EXPECT_NE(text.find("kernel " + kernel), std::string::npos) << text;
    EXPECT_TRUE(std::regex_search(text, std::regex(planted.who))) << text;
    const std::vector<int> lines = marked_lines(path, kernel, "fault");
    if (named == Named::no_line) continue;
    ASSERT_FALSE(lines.empty());
    std::size_t found = 0;
    for (const int line : lines) {
      const std::string place =
          std::filesystem::path(path).filename().string() + ":" + std::to_string(line);
      const bool one = text.find("kernel " + kernel + " at " + place + ", block (") != text.npos;
      found += named == Named::one_line ? one : text.find(place + " (first block (") != text.npos;
    }
    EXPECT_EQ(found, named == Named::one_line ? 1 : lines.size()) << text;
  }
}

}  // namespace emulator
