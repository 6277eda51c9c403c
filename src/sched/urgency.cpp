#include "sched/urgency.h"

#include <algorithm>
#include <tuple>

namespace chasqui {
namespace {

// A long prompt is passed by a short one that comes up to this many times its own reading time later.
constexpr double kWorkWeightMax = 8;
// A tenant has had more than another one when its counter is ahead by so much: 64 generated tokens.
constexpr double kServedMore = 128;

}  // namespace

Urgency::Urgency(const SchedulerTargets& targets, Policy policy, const TenantCounters& counters,
                 const Overtaking& overtaking, TimePoint now, Duration backlog, double row_seconds)
    : targets_(targets), policy_(policy), counters_(counters), overtaking_(overtaking), now_(now) {
  // The load is what the backlog is to the time in which the most urgent expect their first token.
  const double load = to_seconds(backlog) / to_seconds(std::max<Duration>(targets.of[0].first_token, milliseconds(1)));
  loaded_ = load > 1;
  work_weight_ = targets.rules.short_work ? std::clamp(load, 0.0, kWorkWeightMax) * row_seconds : 0;
}

ServiceClass Urgency::class_of(const Sequence& sequence) const {
  return targets_.rules.classes ? sequence.request().service_class : ServiceClass::standard;
}

// The class's target, or what the client accepts where that is less.
Duration Urgency::first_token_within(const Sequence& sequence) const {
  const Duration target = targets_.of[static_cast<std::size_t>(sequence.request().service_class)].first_token;
  const Request& request = sequence.request();
  if (sequence.generated() > 0 || request.first_token_deadline == kNever) return target;
  return std::min(target, request.first_token_deadline - request.arrival);
}

double Urgency::score(const Sequence& sequence) const {
  const Request& request = sequence.request();
  if (policy_ == Policy::fcfs) return to_seconds(request.arrival.time_since_epoch());
  const TimePoint due = std::min(sequence.waiting_since() + first_token_within(sequence), request.deadline);
  // What a sequence had computed before it lost its slot is cheap to bring back.
  const TokenCount work = sequence.preemptions() > 0 ? 0 : sequence.left();
  return to_seconds(due.time_since_epoch()) + work_weight_ * work;
}

bool Urgency::slot_before(const Sequence& a, const Sequence& b) const {
  if (policy_ == Policy::chasqui) {
    const bool due_a = passed_often(a);
    const bool due_b = passed_often(b);
    if (due_a != due_b) return due_a;
    // Or else a younger one, whose turn has come as well, would pass an older one once more than the bound says.
    if (due_a && a.waiting_since() != b.waiting_since()) return a.waiting_since() < b.waiting_since();
    if (class_of(a) != class_of(b)) return class_of(a) < class_of(b);
    const double service_a = counters_.of(a.request().tenant);
    const double service_b = counters_.of(b.request().tenant);
    if (targets_.rules.tenants && service_a != service_b) return service_a < service_b;
  }
  return std::tuple(score(a), a.id()) < std::tuple(score(b), b.id());
}

bool Urgency::rows_before(const Sequence& a, const Sequence& b) const {
  if (policy_ == Policy::chasqui) {
    if (class_of(a) != class_of(b)) return class_of(a) < class_of(b);
    if (loaded_ && targets_.rules.shortest_rows && a.left() != b.left()) return a.left() < b.left();
  }
  return std::tuple(score(a), a.id()) < std::tuple(score(b), b.id());
}

bool Urgency::yields_to(const Sequence& running, const Sequence& waiting, Duration slice) const {
  if (policy_ == Policy::fcfs) return false;
  const PolicyRules& rules = targets_.rules;
  const ServiceClass its = class_of(running);
  const ServiceClass others = class_of(waiting);
  if (others < its && rules.class_preempts && !running.holds_on()) return true;
  if (now_ - running.slot_since() < slice) return false;
  if ((others < its && rules.class_preempts) || passed_often(waiting)) return true;
  if (others > its || !rules.slices) return false;
  const Tenant& tenant = running.request().tenant;
  if (tenant.id == waiting.request().tenant.id) return now_ - waiting.waiting_since() >= first_token_within(waiting);
  return rules.tenants && counters_.of(tenant) - counters_.of(waiting.request().tenant) >= kServedMore;
}

bool Urgency::yields_before(const Sequence& a, const Sequence& b) const {
  if (class_of(a) != class_of(b)) return class_of(a) > class_of(b);
  const double service_a = counters_.of(a.request().tenant);
  const double service_b = counters_.of(b.request().tenant);
  if (service_a != service_b) return service_a > service_b;
  return std::tuple(a.slot_since(), a.id()) < std::tuple(b.slot_since(), b.id());
}

}  // namespace chasqui
