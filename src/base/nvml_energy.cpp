#include "base/nvml_energy.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace chasqui {

NvmlEnergy::NvmlEnergy(TimePoint now, std::string library) : name_(std::move(library)), tally_(now) {}

std::int64_t NvmlEnergy::take(TimePoint now, bool of_requests) {
  if (!tells()) return 0;
  if (of_requests) used_.store(true);
  if (resting_.load() && resting_.exchange(false)) wakeup_.signal();
  return tally_.take(now);
}

Result<void> NvmlEnergy::count(const std::string& address) {
  if (std::ranges::find(addresses_, address) != addresses_.end()) return {};
  addresses_.push_back(address);
  if (!library_) library_ = open_nvml(name_.c_str());
  if (!*library_) return library_->error();
  const NvmlLibrary& nvml = **library_;
  Device device{.address = address};
  int result = nvml.device_at(address.c_str(), &device.handle);
  if (result == NvmlLibrary::kSuccess) result = nvml.energy_of(device.handle, &device.last);
  if (result != NvmlLibrary::kSuccess) {
    return Error{ErrorCode::not_supported, std::string("NVML says: ") + nvml.text_of(result), ""};
  }
  devices_.push_back(std::move(device));
  devices_left_.store(devices_.size());
  return {};
}

void NvmlEnergy::read(TimePoint now, bool of_requests) {
  std::int64_t gained = 0;
  std::erase_if(devices_, [this, &gained](Device& device) {
    const NvmlLibrary& nvml = **library_;
    unsigned long long millijoules = 0;
    const int result = nvml.energy_of(device.handle, &millijoules);
    if (result != NvmlLibrary::kSuccess) {
      log_warning("the energy of a GPU cannot be read any more",
                  {{"gpu", device.address}, {"why", nvml.text_of(result)}});
      return true;
    }
    const unsigned long long before = std::exchange(device.last, millijoules);
    // 64 bits do not overflow: where it counts from another beginning, what it has lost is not known.
    if (millijoules > before) gained += static_cast<std::int64_t>(millijoules - before);
    return false;
  });
  constexpr std::int64_t kMicrojoules = 1000;
  tally_.add(gained * kMicrojoules, now, of_requests);
  devices_left_.store(devices_.size());
}

void NvmlEnergy::close() {
  devices_.clear();
  devices_left_.store(0);
  if (library_ && *library_) (*library_)->shutdown();
  library_.reset();
}

}  // namespace chasqui
