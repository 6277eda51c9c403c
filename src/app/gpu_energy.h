// Reads how much energy the GPUs use that have a part of a model, on a thread of its own ("gpu-energy"): a call of
// their driver may take milliseconds, for which no worker waits. It reads at most every EnergyTally::kEvery while
// requests are computed, and sleeps otherwise. Owned by app/serve, which destroys it after the workers.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/cpu_account.h"
#include "base/mailbox.h"
#include "base/nvml_energy.h"

namespace chasqui {

class GpuEnergy {
 public:
  // Both outlive it; `energy` is a source of the account's meter.
  GpuEnergy(NvmlEnergy& energy, const CpuAccount& account);
  // Joins the thread, which ends NVML.
  ~GpuEnergy();
  GpuEnergy(const GpuEnergy&) = delete;
  GpuEnergy& operator=(const GpuEnergy&) = delete;

  // GPUs that have a part of a model now, by their addresses on the PCI bus. They count from soon on, for as long as
  // the process runs. Any thread; does not wait for the driver.
  void use(const std::vector<std::string>& addresses);

 private:
  struct Order {
    std::string gpu{};
    bool ends = false;
  };

  void run();
  bool needed() const;
  bool take_orders();
  void wait(TimePoint until);

  NvmlEnergy& energy_;
  const CpuAccount& account_;
  const RealClock clock_;
  Mailbox<Order> inbox_;  // one item for each GPU
  std::thread thread_;
};

}  // namespace chasqui
