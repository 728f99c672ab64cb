// SPDX-License-Identifier: MIT
//
// A libnvidia-ml.so.1 for tests: FAKE_NVML says what this driver refuses.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kOk = 0, kNotSupported = 3, kNoPermission = 4, kNotFound = 6;

bool refuses(const char* what) {
  const char* const told = std::getenv("FAKE_NVML");
  return told && std::strcmp(told, what) == 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return refuses("init") ? 9 : kOk; }
int nvmlShutdown() { return kOk; }
const char* nvmlErrorString(int status) {
  switch (status) {
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    default:
      return "Driver Not Loaded";
  }
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = nullptr;
  return std::strcmp(bus, "0000:01:00.0") == 0 ? kOk : kNotFound;
}
int nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  std::strncpy(version, "13.1", length);
  return kOk;
}
int nvmlDeviceGetMigMode(void*, unsigned* mode, unsigned* pending) {
  *pending = *mode = refuses("whole GPU");
  return kOk;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = 12'345;
  if (refuses("energy for users")) return kNoPermission;
  return refuses("energy") ? kNotSupported : kOk;
}
int nvmlDeviceGetFieldValues(void*, int count, void* values) {
  struct Field {
    unsigned id, scope;
    long long timestamp, latency;
    int type, status;
    unsigned long long value;
  }& field = *static_cast<Field*>(values);
  field.status = count == 1 && field.id == 186 && !refuses("instant power") ? kOk : kNotSupported;
  field.value = 650'000;
  return kOk;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 600'000;
  return refuses("power") ? kNoPermission : kOk;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return *milliwatts = 700'000, kOk;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) { return *degrees = 48, kOk; }
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* megahertz) {
  *megahertz = clock == 1 ? 1500 : 3201;
  return kOk;
}
int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* megahertz) {
  *megahertz = clock == 1 ? 1980 : 3201;
  return kOk;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  const char* const told = std::getenv("FAKE_REASONS");
  *reasons = told ? std::stoull(told, nullptr, 16) : 0;
  return refuses("reasons") ? kNoPermission : kOk;
}

}  // extern "C"
