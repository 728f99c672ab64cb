// SPDX-License-Identifier: MIT
//
// What the driver's management library (NVML) knows of a GPU: power, energy, clocks. It is loaded
// at run time, since it comes with the driver and not with the CUDA Toolkit.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace ladders {

/// Nothing can be read; what() says in one line why.
struct NoNvml : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Readings of one GPU. Each throws NoNvml where the driver refuses it.
class Nvml {
 public:
  virtual ~Nvml() = default;

  /// "NVML 13.580.159.04", for the results.
  virtual std::string description() const = 0;

  /// Energy of the board since the driver was loaded. Hopper's counter moves every 100 ms, and a
  /// call takes 3 ms.
  virtual double joules() const = 0;
  /// Power of the board at the driver's last reading (every 100 ms on Hopper); where it tells only
  /// an average over a second, that.
  virtual double watts() const = 0;
  /// The power that the board may take.
  virtual double watts_limit() const = 0;
  virtual double celsius() const = 0;
  virtual double sm_clock_hz() const = 0;
  virtual double highest_sm_clock_hz() const = 0;
  virtual double memory_clock_hz() const = 0;

  /// Why the clock is lower than it could be at this moment.
  struct Reasons {
    bool power = false;  ///< a power limit: of the software, or a brake of the hardware
    bool heat = false;   ///< a temperature limit, of the software or the hardware
    bool other = false;  ///< a clock that a user or another GPU has set, an unnamed slowdown
  };
  virtual Reasons reasons() const = 0;
};

/// The GPU at an address of the PCI bus, as CUDA writes it. Throws NoNvml: no library, no such GPU,
/// no permission, no counter of energy, or one of several parts of a GPU (MIG).
std::unique_ptr<Nvml> open_nvml(const std::string& pci_bus_id);

/// How often the driver held the clock down, of all the times it was asked. Without a driver, or
/// once it refuses, it is not asked.
class ClockReasons {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit ClockReasons(const Nvml* nvml) : nvml_(nvml) {}
  /// Asks, but at most every 20 ms, since the host has other things to do.
  void look(Time now = std::chrono::steady_clock::now());
  /// Adds clock_held_by_power, _heat and _others: fractions of the looks, absent if there are none.
  void add_to(std::map<std::string, double>& counters) const;

 private:
  const Nvml* nvml_;
  Time looked_ = {};
  int looks_ = 0, power_ = 0, heat_ = 0, other_ = 0;
};

}  // namespace ladders
