// The energy of the machine's processor packages, as the system counts it: RAPL, in files below /sys/class/powercap
// that often only root may read. Memory and GPUs are not in it.
//
// The thread that takes reads the files, which takes microseconds, at most every EnergyTally::kEvery; of several that
// would read at the same time one does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/energy_source.h"
#include "base/energy_tally.h"

namespace chasqui {

class RaplEnergy final : public EnergySource {
 public:
  // Of the packages below `folder`; null: none can be read.
  static std::unique_ptr<RaplEnergy> open(const std::string& folder, TimePoint now);

  std::int64_t take(TimePoint now, bool of_requests) override;
  bool tells() const override { return packages_left_.load(std::memory_order_relaxed) > 0; }

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

  RaplEnergy(std::vector<Package> packages, TimePoint now);
  void read(TimePoint now, bool of_requests);

  std::vector<Package> packages_;  // of the thread that reads
  int early_readings_;             // … that may come sooner, until the power is known
  std::atomic_flag reading_ = ATOMIC_FLAG_INIT;
  std::atomic<std::size_t> packages_left_;
  EnergyTally tally_;
};

}  // namespace chasqui
