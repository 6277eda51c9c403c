// The energy of NVIDIA's GPUs, as their driver counts it (NVML): of those that have a part of a model, whichever
// process uses them.
//
// One thread reads the counters (app/gpu_energy), since a call of the driver may take milliseconds, and longer where a
// GPU is busy or lost. Threads that take, a worker at the end of its step among them, have what that thread has read,
// and the power since then: for them a GPU is a few atomics. While no request is computed the reader rests; the first
// thread to take after that wakes it, which costs a write to an eventfd.
//
// take(), tells(), rests(): any thread, without locks. Everything else: the reader, which is the only one to call NVML.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/energy_source.h"
#include "base/energy_tally.h"
#include "base/error.h"
#include "base/nvml_library.h"
#include "base/wakeup.h"

namespace chasqui {

class NvmlEnergy final : public EnergySource {
 public:
  // Of no GPU yet. `library`: a name, or a path.
  explicit NvmlEnergy(TimePoint now, std::string library = NvmlLibrary::kName);
  ~NvmlEnergy() override { close(); }
  NvmlEnergy(const NvmlEnergy&) = delete;
  NvmlEnergy& operator=(const NvmlEnergy&) = delete;

  std::int64_t take(TimePoint now, bool of_requests) override;
  bool tells() const override { return devices_left_.load(std::memory_order_relaxed) > 0; }

  // The GPU at this address of the PCI bus counts from now on; once for each. Errors say why it does not. The first
  // call loads NVML.
  Result<void> count(const std::string& address);
  // A GPU that can no longer be read is left out, with a line in the log. `of_requests`: since the last reading.
  void read(TimePoint now, bool of_requests);
  // A step of theirs has ended since the last call.
  bool used_by_requests() { return used_.exchange(false); }
  // The next thread to take signals the wake-up.
  void rest() { resting_.store(true); }
  void resume() { resting_.store(false); }
  bool rests() const { return resting_.load(); }
  Wakeup& wakeup() { return wakeup_; }
  // No GPU counts any more, and NVML ends.
  void close();

 private:
  struct Device {
    std::string address;
    NvmlDevice* handle = nullptr;
    unsigned long long last = 0;  // millijoules
  };

  const std::string name_;
  std::atomic<std::size_t> devices_left_{0};
  std::atomic<bool> used_{false};
  std::atomic<bool> resting_{false};
  EnergyTally tally_;
  Wakeup wakeup_;
  // The reader's.
  std::optional<Result<NvmlLibrary>> library_;  // none: nothing has asked for it
  std::vector<std::string> addresses_;          // of all that were to count
  std::vector<Device> devices_;
};

}  // namespace chasqui
