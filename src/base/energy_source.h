// What tells how much energy a part of this machine uses: its processor packages (base/rapl_energy), its GPUs
// (base/nvml_energy). Of all processes of the machine together. Owned by the EnergyMeter, which adds all of them up.
//
// Any thread, without locks, and without waiting for a device.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace chasqui {

class EnergySource {
 public:
  virtual ~EnergySource() = default;

  // Microjoules since any thread last took them. `of_requests`: the machine computed requests meanwhile; else what was
  // used until now is no request's, and the caller leaves it out.
  virtual std::int64_t take(TimePoint now, bool of_requests) = 0;
  // There is a counter yet that can be read.
  virtual bool tells() const = 0;
};

}  // namespace chasqui
