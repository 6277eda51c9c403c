#include "sched/urgency.h"

#include <algorithm>
#include <tuple>

namespace chasqui {
namespace {

// A long prompt is passed by a short one that comes up to this many times its own reading time later.
constexpr double kWorkWeightMax = 8;

}  // namespace

Urgency::Urgency(const SchedulerTargets& targets, const SlotPolicy& policy, const TenantCounters& counters,
                 const GroupCounters& groups, const Overtaking& overtaking, TimePoint now, Duration backlog,
                 double row_seconds)
    : targets_(targets),
      policy_(policy),
      counters_(counters),
      groups_(groups),
      overtaking_(overtaking),
      step_{targets.rules, now} {
  // The load is what the backlog is to the time in which the most urgent expect their first token.
  const double load = to_seconds(backlog) / to_seconds(std::max<Duration>(targets.of[0].first_token, milliseconds(1)));
  step_.loaded = load > 1;
  work_weight_ = targets.rules.short_work ? std::clamp(load, 0.0, kWorkWeightMax) * row_seconds : 0;
}

// The request's target or its class's, or what the client accepts where that is less.
Duration Urgency::first_token_within(const Sequence& sequence) const {
  const Request& request = sequence.request();
  const Duration target = request.ttft_target > Duration::zero()
                              ? request.ttft_target
                              : targets_.of[static_cast<std::size_t>(request.service_class)].first_token;
  if (sequence.has_spoken() || request.first_token_deadline == kNever) return target;
  return std::min(target, request.first_token_deadline - request.arrival);
}

double Urgency::score(TimePoint due, TokenCount work) const {
  return to_seconds(due.time_since_epoch()) + work_weight_ * work;
}

Standing Urgency::of(const Sequence& sequence) const {
  const Request& request = sequence.request();
  Standing standing;
  standing.id = request.id;
  standing.service_class = class_of(request.service_class);
  standing.tenant = request.tenant.id;
  standing.service = counters_.of(request.tenant);
  standing.group_service = groups_.of(request);
  standing.starved = targets_.rules.overtaking && overtaking_.is_starved(sequence);
  standing.arrival = request.arrival;
  standing.waiting_since = sequence.waiting_since();
  standing.first_token_within = first_token_within(sequence);
  const TimePoint due = std::min(standing.waiting_since + standing.first_token_within, request.deadline);
  // What a sequence had computed before it lost its slot is cheap to bring back.
  standing.score = score(due, sequence.preemptions() > 0 ? 0 : sequence.left());
  standing.left = sequence.left();
  standing.slot_since = sequence.slot_since();
  standing.holds_on = sequence.holds_on();
  return standing;
}

Standing Urgency::of_newcomer(ServiceClass service_class, std::uint32_t tenant, double service, TokenCount rows) const {
  Standing standing;
  standing.id = RequestId{UINT64_MAX};
  standing.service_class = class_of(service_class);
  standing.tenant = tenant;
  standing.service = service;
  standing.arrival = standing.waiting_since = now();
  standing.first_token_within = targets_.of[static_cast<std::size_t>(service_class)].first_token;
  standing.score = score(now() + standing.first_token_within, rows);
  standing.left = rows;
  return standing;
}

Standing Urgency::without_slot(const Standing& running) const {
  Standing standing = running;
  standing.waiting_since = now();
  standing.score = score(now() + standing.first_token_within, 0);
  standing.slot_since = kNever;
  standing.holds_on = false;
  return standing;
}

bool Urgency::yields_before(const Standing& a, const Standing& b) const {
  if (a.service_class != b.service_class) return a.service_class > b.service_class;
  if (a.service != b.service) return a.service > b.service;
  if (a.group_service != b.group_service) return a.group_service > b.group_service;
  return std::tuple(a.slot_since, a.id) < std::tuple(b.slot_since, b.id);
}

}  // namespace chasqui
