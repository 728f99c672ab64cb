// SPDX-License-Identifier: MIT
//
// What is read of the driver, and what is said where it refuses; the driver is fake.cpp.
#include "gpu/nvml.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ladders {
namespace {

constexpr char kBus[] = "0000:01:00.0";

struct Refusing {
  explicit Refusing(const char* what) { setenv("FAKE_NVML", what, 1); }
  ~Refusing() { unsetenv("FAKE_NVML"); }
};

std::string complaint(const char* refused, const std::string& bus = kBus) {
  const Refusing driver(refused);
  try {
    open_nvml(bus);
  } catch (const NoNvml& reason) {
    return reason.what();
  }
  return "";
}

TEST(Nvml, ReadsInBaseUnits) {
  const auto nvml = open_nvml(kBus);
  EXPECT_EQ(nvml->description(), "NVML 13.1");
  EXPECT_DOUBLE_EQ(nvml->joules(), 12.345);
  EXPECT_DOUBLE_EQ(nvml->watts(), 650);
  EXPECT_DOUBLE_EQ(nvml->watts_limit(), 700);
  EXPECT_DOUBLE_EQ(nvml->celsius(), 48);
  EXPECT_DOUBLE_EQ(nvml->sm_clock_hz(), 1.5e9);
  EXPECT_DOUBLE_EQ(nvml->highest_sm_clock_hz(), 1.98e9);
  EXPECT_DOUBLE_EQ(nvml->memory_clock_hz(), 3.201e9);
}

TEST(Nvml, TakesTheAverageWhereThereIsNoInstantPower) {
  const Refusing driver("instant power");
  EXPECT_DOUBLE_EQ(open_nvml(kBus)->watts(), 600);
}

TEST(Nvml, SaysInOneLineWhyThereIsNothingToRead) {
  EXPECT_EQ(complaint("nothing"), "");
  EXPECT_EQ(complaint("init"), "nvmlInit_v2: Driver Not Loaded");
  EXPECT_EQ(complaint("nothing", "0000:02:00.0"), "nvmlDeviceGetHandleByPciBusId_v2: Not Found");
  EXPECT_EQ(complaint("energy"), "nvmlDeviceGetTotalEnergyConsumption: Not Supported");
  EXPECT_EQ(complaint("energy for users"),
            "nvmlDeviceGetTotalEnergyConsumption: Insufficient Permissions");
  EXPECT_EQ(complaint("whole GPU"),
            "the GPU is in MIG mode, where NVML reports power only for the whole GPU");
}

TEST(Nvml, ThrowsWhereOneReadingIsRefused) {
  const auto nvml = open_nvml(kBus);
  const Refusing driver("reasons");
  try {
    nvml->reasons();
    FAIL() << "no exception";
  } catch (const NoNvml& reason) {
    EXPECT_STREQ(reason.what(),
                 "nvmlDeviceGetCurrentClocksThrottleReasons: Insufficient Permissions");
  }
}

TEST(Nvml, ReasonsForALowerClockAreOfThreeKinds) {
  const auto nvml = open_nvml(kBus);
  const auto told = [&](const char* bits) {
    setenv("FAKE_REASONS", bits, 1);
    const Nvml::Reasons found = nvml->reasons();
    unsetenv("FAKE_REASONS");
    return std::string(found.power ? "power " : "") + (found.heat ? "heat " : "") +
           (found.other ? "other " : "");
  };
  EXPECT_EQ(told("0"), "");
  EXPECT_EQ(told("1"), "");  // idle
  EXPECT_EQ(told("2"), "other ");
  EXPECT_EQ(told("4"), "power ");
  EXPECT_EQ(told("8"), "other ");   // a slowdown without a name
  EXPECT_EQ(told("88"), "power ");  // its name
  EXPECT_EQ(told("20"), "heat ");
  EXPECT_EQ(told("48"), "heat ");
  EXPECT_EQ(told("24"), "power heat ");
}

TEST(ClockReasons, AreFractionsOfTheLooks) {
  const auto nvml = open_nvml(kBus);
  ClockReasons reasons(nvml.get());
  std::map<std::string, double> counters;
  reasons.add_to(counters);
  EXPECT_TRUE(counters.empty());  // nobody has looked
  EXPECT_FALSE(reasons.share());
  const auto start = std::chrono::steady_clock::now();
  const auto look = [&](const char* bits, int milliseconds) {
    setenv("FAKE_REASONS", bits, 1);
    reasons.look(start + std::chrono::milliseconds(milliseconds));
    unsetenv("FAKE_REASONS");
  };
  look("0", 0);
  EXPECT_EQ(reasons.share(), 0);
  look("4", 20);
  look("40", 39);  // too soon to ask again
  look("24", 40);
  look("2", 60);
  reasons.add_to(counters);
  EXPECT_EQ(counters, (std::map<std::string, double>{{"clock_held_by_power", 0.5},
                                                     {"clock_held_by_heat", 0.25},
                                                     {"clock_held_by_others", 0.25}}));
  EXPECT_EQ(reasons.share(), 0.75);
}

TEST(ClockReasons, AreNotAskedForOnceTheDriverRefuses) {
  const auto nvml = open_nvml(kBus);
  ClockReasons reasons(nvml.get());
  {
    const Refusing driver("reasons");
    reasons.look();
  }
  reasons.look(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  ClockReasons without_driver(nullptr);
  without_driver.look();
  std::map<std::string, double> counters;
  reasons.add_to(counters);
  without_driver.add_to(counters);
  EXPECT_TRUE(counters.empty());
}

}  // namespace
}  // namespace ladders
