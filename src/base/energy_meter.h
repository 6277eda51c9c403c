// How much energy requests have used, in joules: what all sources of this machine tell. The part of each request is
// found by base/cpu_account, which owns the meter.
//
// Any thread, without locks, and without waiting for a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/energy_source.h"
#include "base/metric_set.h"

namespace chasqui {

struct EnergyMetrics : MetricSet {
  FloatGauge joules{
      *this,
      {"chasqui_energy_joules_total",
       "Energy of the processor packages (RAPL), and of the NVIDIA GPUs that compute models (NVML), while "
       "requests were computed; where the machine tells."}};
};

class EnergyMeter {
 public:
  explicit EnergyMeter(std::vector<std::unique_ptr<EnergySource>> sources) : sources_(std::move(sources)) {}

  // Joules since any thread last took or skipped them, for requests.
  double take(TimePoint now);
  // What was used until now is no request's.
  void skip(TimePoint now);
  // There is a source yet that tells.
  bool tells() const;

  const EnergyMetrics& metrics() const { return metrics_; }

 private:
  const std::vector<std::unique_ptr<EnergySource>> sources_;
  std::atomic<std::int64_t> for_requests_{0};  // microjoules
  EnergyMetrics metrics_;
};

}  // namespace chasqui
