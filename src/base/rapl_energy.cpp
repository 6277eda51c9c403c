#include "base/rapl_energy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system_text.h"

namespace chasqui {
namespace {

namespace fs = std::filesystem;

// "intel-rapl:0", and no part of it, as "intel-rapl:0:1". The name is the same for processors of AMD.
bool is_domain(const std::string& name) {
  constexpr std::string_view kPrefix = "intel-rapl:";
  return name.starts_with(kPrefix) && name.find(':', kPrefix.size()) == std::string::npos;
}

std::vector<fs::path> packages_below(const std::string& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_domain(entry->path().filename().string())) continue;
    // Others, as "psys", count the packages again.
    if (system_text((entry->path() / "name").string()).starts_with("package-")) out.push_back(entry->path());
  }
  return out;
}

// Readings until the power is known, in the first steps.
constexpr int kEarlyReadings = 10;
constexpr Duration kEarlyAfter = milliseconds(1);

}  // namespace

RaplEnergy::Package::~Package() {
  if (file_ >= 0) ::close(file_);
}

std::int64_t RaplEnergy::Package::gained() {
  if (file_ < 0) return 0;
  std::array<char, 32> text{};
  const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
  std::uint64_t now = 0;
  const char* const end = text.data() + std::max<ssize_t>(size, 0);
  if (std::from_chars(text.data(), end, now).ec != std::errc()) {
    ::close(std::exchange(file_, -1));
    return 0;
  }
  const std::uint64_t before = std::exchange(last_, now);
  if (now >= before) return static_cast<std::int64_t>(now - before);
  return range_ >= before ? static_cast<std::int64_t>(range_ - before + now) : 0;
}

std::unique_ptr<RaplEnergy> RaplEnergy::open(const std::string& folder, TimePoint now) {
  std::vector<Package> packages;
  for (const fs::path& one : packages_below(folder)) {
    const int file = ::open((one / "energy_uj").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const auto range = leading_number<std::uint64_t>(system_text((one / "max_energy_range_uj").string()));
    Package package(file, range.value_or(0));
    package.gained();  // until now
    if (package.open()) packages.push_back(std::move(package));
  }
  if (packages.empty()) return nullptr;
  return std::unique_ptr<RaplEnergy>(new RaplEnergy(std::move(packages), now));
}

RaplEnergy::RaplEnergy(std::vector<Package> packages, TimePoint now)
    : packages_(std::move(packages)), early_readings_(kEarlyReadings), packages_left_(packages_.size()), tally_(now) {}

void RaplEnergy::read(TimePoint now, bool of_requests) {
  if (reading_.test_and_set(std::memory_order_acquire)) return;
  const Duration since = tally_.since_reading(now);
  const bool early = of_requests && !tally_.knows_power() && early_readings_ > 0 && since >= kEarlyAfter;
  if (since >= EnergyTally::kEvery || early) {
    if (early) --early_readings_;
    std::int64_t gained = 0;
    std::size_t left = 0;
    for (Package& package : packages_) {
      gained += package.gained();
      left += package.open() ? 1 : 0;
    }
    if (left < packages_left_.exchange(left))
      log_warning("a counter of energy cannot be read any more", {{"left", left}});
    tally_.add(gained, now, of_requests);
  }
  reading_.clear(std::memory_order_release);
}

std::int64_t RaplEnergy::take(TimePoint now, bool of_requests) {
  if (!tells()) return 0;
  read(now, of_requests);
  return tally_.take(now);
}

}  // namespace chasqui
