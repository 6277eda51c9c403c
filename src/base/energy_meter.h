// The energy of the machine's processor packages, as the system counts it: RAPL, in files below /sys/class/powercap
// that often only root may read. Of all processes of the machine together; memory and GPUs are not in it.
//
// The files are read at most every kEvery. In between the power is taken to be what it was, and the next reading sets
// it right, so that no energy is taken twice and none is lost: short steps have their part as long ones do.
//
// Any thread, without locks: of several that would read at the same time one does. Owned by the CpuAccount.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metric_set.h"

namespace chasqui {

struct EnergyMetrics : MetricSet {
  FloatGauge joules{*this,
                    {"chasqui_energy_joules_total",
                     "Energy of the processor packages (RAPL) while requests were computed, where the machine tells."}};
};

class EnergyMeter {
 public:
  static constexpr Duration kEvery = milliseconds(100);

  // Of the packages below `folder`; null: none can be read.
  static std::unique_ptr<EnergyMeter> open(const std::string& folder, TimePoint now);

  // Joules since any thread last took or skipped them, for requests.
  double take(TimePoint now);
  // What was used until now is no request's.
  void skip(TimePoint now);
  // There is a package yet that can be read.
  bool tells() const { return packages_left_.load(std::memory_order_relaxed) > 0; }

  const EnergyMetrics& metrics() const { return metrics_; }

 private:
  // One file with microjoules, which begin at zero again after `range`.
  class Package {
   public:
    Package(int file, std::uint64_t range) : file_(file), range_(range) {}
    ~Package();
    Package(Package&& other) noexcept
        : file_(std::exchange(other.file_, -1)), range_(other.range_), last_(other.last_) {}
    Package(const Package&) = delete;
    Package& operator=(const Package&) = delete;

    // Since the last time; nothing more once the file cannot be read.
    std::int64_t gained();
    bool open() const { return file_ >= 0; }

   private:
    int file_;
    std::uint64_t range_;
    std::uint64_t last_ = 0;
  };

  EnergyMeter(std::vector<Package> packages, TimePoint now);
  void read(TimePoint now, bool of_requests);
  std::int64_t take_microjoules(TimePoint now, bool of_requests);

  std::vector<Package> packages_;  // of the thread that reads
  int early_readings_;             // … that may come sooner, until the power is known
  std::atomic_flag reading_ = ATOMIC_FLAG_INIT;
  std::atomic<std::size_t> packages_left_;
  std::atomic<TimePoint::rep> read_at_;
  std::atomic<std::int64_t> measured_{0};  // microjoules until then
  std::atomic<double> power_{0};           // microjoules a second, while requests were computed
  std::atomic<std::int64_t> taken_{0};
  std::atomic<std::int64_t> for_requests_{0};
  EnergyMetrics metrics_;
};

}  // namespace chasqui
