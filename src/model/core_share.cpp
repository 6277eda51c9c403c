#include "model/core_share.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kIdle = kFree + 1;
constexpr std::int64_t kComputing = std::numeric_limits<std::int64_t>::max();

std::int64_t ticks(TimePoint now) { return now.time_since_epoch().count(); }

}  // namespace

CoreShare::CoreShare(std::int32_t cores, std::size_t contexts) : cores_(std::max(cores, 1)), until_(contexts) {
  for (auto& until : until_) until.store(kFree, std::memory_order_relaxed);
}

std::int32_t CoreShare::computing(TimePoint now) const {
  const std::int64_t at = ticks(now);
  const auto counts = [at](const auto& until) { return until.load(std::memory_order_relaxed) > at; };
  return static_cast<std::int32_t>(std::ranges::count_if(until_, counts));
}

std::int32_t CoreShare::part(TimePoint now) const {
  const std::int32_t left = cores_ - taken_.load(std::memory_order_relaxed);
  return std::max(1, left / std::max(1, computing(now)));
}

std::int32_t CoreShare::spare(TimePoint now) const {
  if (computing(now) > 0) return 1;
  const std::int32_t left = cores_ - taken_.load(std::memory_order_relaxed);
  return std::max(1, left / std::max(1, beside_.load(std::memory_order_relaxed)));
}

std::atomic<std::int64_t>& CoreShare::free_place() {
  for (auto& until : until_) {
    std::int64_t free = kFree;
    if (until.compare_exchange_strong(free, kIdle)) return until;
  }
  CHECK(false, "more contexts than places share the cores");
  return until_.front();
}

CoreShare::Place::Place(CoreShare& share) : until_(share.free_place()) {}
CoreShare::Place::~Place() { until_.store(kFree); }

void CoreShare::Place::begin_decode() { until_.store(kComputing, std::memory_order_relaxed); }

void CoreShare::Place::end_decode(TimePoint now) { until_.store(ticks(now + kLinger), std::memory_order_relaxed); }

}  // namespace chasqui
