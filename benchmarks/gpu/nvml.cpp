// SPDX-License-Identifier: MIT
#include "gpu/nvml.hpp"

#include <dlfcn.h>

namespace ladders {
namespace {

// Copied from nvml.h, since a CUDA Toolkit may lack it. Functions return 0 (NVML_SUCCESS) or an
// error.
using Handle = struct nvmlDevice_st*;
enum { kSmClock = 1, kMemoryClock = 2 };  // NVML_CLOCK_SM, NVML_CLOCK_MEM
enum { kGpuTemperature = 0 };             // NVML_TEMPERATURE_GPU
enum { kInstantPower = 186 };             // NVML_FI_DEV_POWER_INSTANT, in milliwatts

// nvmlFieldValue_t
struct FieldValue {
  unsigned id, scope;
  long long timestamp, latency;
  int type, status;
  union {
    unsigned as_unsigned;
    unsigned long long as_unsigned_long_long;
  } value;
};

// nvmlClocksEventReason..., which older versions call nvmlClocksThrottleReason...
enum : unsigned long long {
  kSwPowerCap = 0x4,
  kHwSlowdown = 0x8,
  kSyncBoost = 0x10,
  kSwThermal = 0x20,
  kHwThermal = 0x40,
  kHwPowerBrake = 0x80,
  kApplicationClocks = 0x2,
  kDisplayClock = 0x100,
};

class Library {  // libnvidia-ml
 public:
  Library() {
    if (!library_) throw NoNvml("libnvidia-ml.so.1 cannot be loaded");
    call("nvmlInit_v2");
  }
  Library(const Library&) = delete;
  ~Library() {
    if (const auto shutdown = find<>("nvmlShutdown")) shutdown();
  }

  // Null if this driver lacks the function.
  template <class... Arguments>
  auto find(const char* name) const -> int (*)(Arguments...) {
    return reinterpret_cast<int (*)(Arguments...)>(dlsym(library_.get(), name));
  }

  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const auto function = find<Arguments...>(name);
    if (!function) throw NoNvml(std::string("this driver has no ") + name);
    const int status = function(arguments...);
    if (status == 0) return;
    const auto text =
        reinterpret_cast<const char* (*)(int)>(dlsym(library_.get(), "nvmlErrorString"));
    throw NoNvml(std::string(name) + ": " + (text ? text(status) : std::to_string(status)));
  }

 private:
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };
  std::unique_ptr<void, Close> library_{dlopen("libnvidia-ml.so.1", RTLD_NOW)};
};

class NvmlDevice : public Nvml {
 public:
  explicit NvmlDevice(const std::string& pci_bus_id) {
    library_.call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &handle_);
    unsigned mig = 0, pending = 0;
    const auto mig_mode = library_.find<Handle, unsigned*, unsigned*>("nvmlDeviceGetMigMode");
    if (mig_mode && mig_mode(handle_, &mig, &pending) == 0 && mig != 0)
      throw NoNvml("the GPU is in MIG mode, where NVML reports power only for the whole GPU");
    char version[80] = "";
    library_.call("nvmlSystemGetNVMLVersion", static_cast<char*>(version),
                  unsigned{sizeof version});
    version_ = version;
    joules();  // throws if there is no energy counter
    watts();
  }

  std::string description() const override { return "NVML " + version_; }
  double joules() const override {
    return 1e-3 * double(read<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption"));
  }
  double watts() const override {
    FieldValue field{.id = kInstantPower};
    library_.call("nvmlDeviceGetFieldValues", handle_, 1, &field);
    return 1e-3 * (field.status == 0 ? field.value.as_unsigned
                                     : read<unsigned>("nvmlDeviceGetPowerUsage"));
  }
  double watts_limit() const override {
    return 1e-3 * read<unsigned>("nvmlDeviceGetEnforcedPowerLimit");
  }
  double celsius() const override {
    return read<unsigned>("nvmlDeviceGetTemperature", int{kGpuTemperature});
  }
  double sm_clock_hz() const override { return clock_hz(kSmClock); }
  double highest_sm_clock_hz() const override {
    return 1e6 * read<unsigned>("nvmlDeviceGetMaxClockInfo", int{kSmClock});
  }
  double memory_clock_hz() const override { return clock_hz(kMemoryClock); }
  Reasons reasons() const override {
    const auto set = read<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
    return {.power = (set & (kSwPowerCap | kHwPowerBrake)) != 0,
            .heat = (set & (kSwThermal | kHwThermal)) != 0,
            .other = (set & (kSyncBoost | kApplicationClocks | kDisplayClock)) != 0 ||
                     // This bit is also set beside kHwThermal or kHwPowerBrake, which name it.
                     ((set & kHwSlowdown) != 0 && (set & (kHwThermal | kHwPowerBrake)) == 0)};
  }

 private:
  template <class Value, class... Arguments>
  Value read(const char* function, Arguments... arguments) const {
    Value value{};
    library_.call(function, handle_, arguments..., &value);
    return value;
  }
  double clock_hz(int type) const { return 1e6 * read<unsigned>("nvmlDeviceGetClockInfo", type); }

  Library library_;
  Handle handle_ = nullptr;
  std::string version_;
};

}  // namespace

std::unique_ptr<Nvml> open_nvml(const std::string& pci_bus_id) {
  return std::make_unique<NvmlDevice>(pci_bus_id);
}

std::optional<double> try_read(const std::function<double()>& read) try {
  return read();
} catch (const NoNvml&) {
  return {};
}

void ClockReasons::look(Time now) {
  if (!nvml_ || now - last_look_ < std::chrono::milliseconds(20)) return;
  last_look_ = now;
  try {
    const Nvml::Reasons found = nvml_->reasons();
    power_ += found.power, heat_ += found.heat, other_ += found.other, ++looks_;
    any_ += found.power || found.heat || found.other;
  } catch (const NoNvml&) {
    nvml_ = nullptr;
  }
}

std::optional<double> ClockReasons::share() const {
  return looks_ > 0 ? std::optional(double(any_) / looks_) : std::nullopt;
}

void ClockReasons::add_to(std::map<std::string, double>& counters) const {
  if (looks_ == 0) return;
  counters["clock_held_by_power"] = double(power_) / looks_;
  counters["clock_held_by_heat"] = double(heat_) / looks_;
  counters["clock_held_by_others"] = double(other_) / looks_;
}

}  // namespace ladders
