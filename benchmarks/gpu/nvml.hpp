// SPDX-License-Identifier: MIT
//
// Power, energy, temperature and clocks of a GPU, from NVML. The library comes with the driver and
// not with the CUDA Toolkit, so it is loaded at run time.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace ladders {

/// NVML, or one of its values, cannot be used; what() says in one line why.
struct NoNvml : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One GPU as NVML sees it. Each function but description() throws NoNvml where the driver does not
/// support the value or denies it.
class Nvml {
 public:
  virtual ~Nvml() = default;

  /// The version of NVML for the results: "NVML 13.580.159.04".
  virtual std::string description() const = 0;

  /// Energy of the board since the driver was loaded (nvmlDeviceGetTotalEnergyConsumption). On
  /// Hopper the value is updated every 100 ms, and a call takes 3 ms.
  virtual double joules() const = 0;
  /// Power of the board at the driver's last reading (NVML_FI_DEV_POWER_INSTANT), which is updated
  /// every 100 ms on Hopper. A driver without it gives nvmlDeviceGetPowerUsage, which may be an
  /// average over a second.
  virtual double watts() const = 0;
  /// The power limit of the board (nvmlDeviceGetEnforcedPowerLimit).
  virtual double watts_limit() const = 0;
  /// The temperature of the GPU (nvmlDeviceGetTemperature).
  virtual double celsius() const = 0;
  /// Current clocks (nvmlDeviceGetClockInfo).
  virtual double sm_clock_hz() const = 0;
  virtual double memory_clock_hz() const = 0;
  /// The highest SM clock that the GPU supports (nvmlDeviceGetMaxClockInfo).
  virtual double highest_sm_clock_hz() const = 0;

  /// What lowers the clocks at this moment (nvmlDeviceGetCurrentClocksThrottleReasons).
  struct Reasons {
    bool power = false;  ///< a power limit in software, or the power brake in hardware
    bool heat = false;   ///< a temperature limit, in software or hardware
    bool other = false;  ///< clocks set by a user or another GPU, or an unspecified slowdown
  };
  virtual Reasons reasons() const = 0;
};

/// Opens the GPU with this PCI bus ID, as cudaDeviceGetPCIBusId() writes it. Throws NoNvml: no
/// library, no such GPU, no permission, no energy counter, or a GPU in MIG mode.
std::unique_ptr<Nvml> open_nvml(const std::string& pci_bus_id);

/// Returns read(), or nothing if it throws NoNvml: for values that results can do without.
std::optional<double> try_read(const std::function<double()>& read);

/// Counts how often the driver names each kind of reason for a lower clock. It is not asked without
/// NVML, nor after it has once refused.
class ClockReasons {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `nvml` may be null, and must outlive this object.
  explicit ClockReasons(const Nvml* nvml) : nvml_(nvml) {}
  /// Asks the driver, but only if the last time was at least 20 ms ago: a call costs host time.
  void look(Time now = std::chrono::steady_clock::now());
  /// Adds clock_held_by_power, clock_held_by_heat and clock_held_by_others: the fraction of the
  /// looks at which the driver named that reason. Adds nothing if there were no looks.
  void add_to(std::map<std::string, double>& counters) const;
  /// The fraction of the looks at which the driver named any reason; nothing if there were no
  /// looks.
  std::optional<double> share() const;

 private:
  const Nvml* nvml_;
  Time last_look_ = {};
  int looks_ = 0, power_ = 0, heat_ = 0, other_ = 0, any_ = 0;
};

}  // namespace ladders
