#include "sched/urgency.h"

#include <algorithm>
#include <tuple>

namespace chasqui {
namespace {

// So many times its target is what a sequence bears before it is treated better.
constexpr int kPatience = 4;
// A long prompt is passed by a short one that comes up to this many times its own reading time later.
constexpr double kWorkWeightMax = 8;

}  // namespace

Urgency::Urgency(const SchedulerTargets& targets, Policy policy, const TenantCounters& counters, TimePoint now,
                 Duration backlog, double row_seconds)
    : targets_(targets), policy_(policy), counters_(counters), now_(now) {
  // The load is what the backlog is to the time in which the most urgent expect their first token.
  const double load = to_seconds(backlog) / to_seconds(std::max<Duration>(targets.of[0].first_token, milliseconds(1)));
  loaded_ = load > 1;
  work_weight_ = std::clamp(load, 0.0, kWorkWeightMax) * row_seconds;
}

const ClassTarget& Urgency::target(const Sequence& sequence) const {
  return targets_.of[static_cast<std::size_t>(sequence.request().service_class)];
}

int Urgency::level(const Sequence& sequence) const {
  if (policy_ == Policy::fcfs) return 0;
  const auto promotions = (now_ - sequence.request().arrival) / patience(sequence);
  const auto level = static_cast<std::int64_t>(sequence.request().service_class) - promotions;
  return static_cast<int>(std::max<std::int64_t>(level, 0));
}

Duration Urgency::patience(const Sequence& sequence) const {
  return std::max<Duration>(kPatience * target(sequence).first_token, milliseconds(1));
}

bool Urgency::out_of_patience(const Sequence& sequence) const {
  return now_ - sequence.request().arrival >= patience(sequence);
}

double Urgency::score(const Sequence& sequence) const {
  const Request& request = sequence.request();
  if (policy_ == Policy::fcfs) return to_seconds(request.arrival.time_since_epoch());
  const TimePoint due = std::min(request.arrival + target(sequence).first_token, request.deadline);
  return to_seconds(due.time_since_epoch()) + work_weight_ * sequence.left();
}

bool Urgency::slot_before(const Sequence& a, const Sequence& b) const {
  if (policy_ == Policy::chasqui) {
    if (a.request().service_class != b.request().service_class) {
      return a.request().service_class < b.request().service_class;
    }
    const double service_a = counters_.of(a.request().tenant);
    const double service_b = counters_.of(b.request().tenant);
    if (service_a != service_b) return service_a < service_b;
  }
  return std::tuple(score(a), a.id()) < std::tuple(score(b), b.id());
}

bool Urgency::rows_before(const Sequence& a, const Sequence& b) const {
  if (policy_ == Policy::chasqui) {
    if (a.request().service_class != b.request().service_class) {
      return a.request().service_class < b.request().service_class;
    }
    if (loaded_ && a.left() != b.left()) return a.left() < b.left();
  }
  return std::tuple(score(a), a.id()) < std::tuple(score(b), b.id());
}

bool Urgency::yields_to(const Sequence& sequence, const Sequence& other) const {
  if (policy_ == Policy::fcfs || sequence.request().service_class != ServiceClass::background) return false;
  return other.request().service_class != ServiceClass::background && !out_of_patience(sequence);
}

}  // namespace chasqui
