#include "base/energy_meter.h"

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

EnergyMeter::Package::~Package() {
  if (file_ >= 0) ::close(file_);
}

std::int64_t EnergyMeter::Package::gained() {
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

std::unique_ptr<EnergyMeter> EnergyMeter::open(const std::string& folder, TimePoint now) {
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
  return std::unique_ptr<EnergyMeter>(new EnergyMeter(std::move(packages), now));
}

EnergyMeter::EnergyMeter(std::vector<Package> packages, TimePoint now)
    : packages_(std::move(packages)),
      early_readings_(kEarlyReadings),
      packages_left_(packages_.size()),
      read_at_(now.time_since_epoch().count()) {}

void EnergyMeter::read(TimePoint now, bool of_requests) {
  if (reading_.test_and_set(std::memory_order_acquire)) return;
  const Duration since(now.time_since_epoch().count() - read_at_.load());
  const bool early = of_requests && power_.load() <= 0 && early_readings_ > 0 && since >= kEarlyAfter;
  if (since >= kEvery || early) {
    if (early) --early_readings_;
    std::int64_t gained = 0;
    std::size_t left = 0;
    for (Package& package : packages_) {
      gained += package.gained();
      left += package.open() ? 1 : 0;
    }
    if (left < packages_left_.exchange(left))
      log_warning("a counter of energy cannot be read any more", {{"left", left}});
    // An idle machine tells nothing of what a step takes.
    if (of_requests && gained > 0) power_.store(static_cast<double>(gained) / to_seconds(since));
    measured_.fetch_add(gained);
    read_at_.store(now.time_since_epoch().count());
  }
  reading_.clear(std::memory_order_release);
}

std::int64_t EnergyMeter::take_microjoules(TimePoint now, bool of_requests) {
  if (!tells()) return 0;
  read(now, of_requests);
  // However late the next reading is, it is never far from what was measured, also where another thread reads now.
  const Duration since(now.time_since_epoch().count() - read_at_.load());
  const double ahead = power_.load() * to_seconds(std::clamp(since, Duration::zero(), kEvery));
  const std::int64_t so_far = measured_.load() + static_cast<std::int64_t>(ahead);
  std::int64_t before = taken_.load();
  while (so_far > before && !taken_.compare_exchange_weak(before, so_far)) {
  }
  return std::max<std::int64_t>(so_far - before, 0);
}

double EnergyMeter::take(TimePoint now) {
  constexpr double kJoule = 1e-6;
  const std::int64_t mine = take_microjoules(now, true);
  const std::int64_t all = for_requests_.fetch_add(mine) + mine;
  metrics_.joules.set(static_cast<double>(all) * kJoule);
  return static_cast<double>(mine) * kJoule;
}

void EnergyMeter::skip(TimePoint now) { take_microjoules(now, false); }

}  // namespace chasqui
