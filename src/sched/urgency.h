// Where sequences stand in a step, and what the policy (SlotPolicy) makes of it: the order of those that wait for a
// slot, and for the rows of a prefill step, and who gives up a slot for whom. A value made for one step; pure.
//
//   score    when the first token is due, by the request's target or its class's, or by its limit where that is sooner,
//            plus the work left, which weighs more as the load grows: for a slot, a long prompt lets short ones pass
//            that arrive within a few times its own reading time, and no others
#pragma once

#include "core/sequence.h"
#include "sched/group_counters.h"
#include "sched/overtaking.h"
#include "sched/slot_policy.h"
#include "sched/targets.h"
#include "sched/tenant_counters.h"

namespace chasqui {

class Urgency {
 public:
  // `backlog`: time that it takes to prefill all prompts that wait for it; `row_seconds`: for one token of them.
  Urgency(const SchedulerTargets& targets, const SlotPolicy& policy, const TenantCounters& counters,
          const GroupCounters& groups, const Overtaking& overtaking, TimePoint now, Duration backlog,
          double row_seconds);

  Standing of(const Sequence& sequence) const;
  // … of a request that comes now. `service`: what its tenant has received.
  Standing of_newcomer(ServiceClass service_class, std::uint32_t tenant, double service, TokenCount rows) const;
  // … of a sequence that loses its slot now.
  Standing without_slot(const Standing& running) const;
  TimePoint now() const { return step_.now; }
  // The same at another time.
  Urgency at(TimePoint now) const {
    Urgency then = *this;
    then.step_.now = now;
    return then;
  }

  // See SlotPolicy.
  bool slot_before(const Standing& a, const Standing& b) const { return policy_.slot_before(a, b, step_); }
  bool slot_before(const Sequence& a, const Sequence& b) const { return slot_before(of(a), of(b)); }
  bool rows_before(const Standing& a, const Standing& b) const { return policy_.rows_before(a, b, step_); }
  bool rows_before(const Sequence& a, const Sequence& b) const { return rows_before(of(a), of(b)); }
  bool takes_turns() const { return policy_.takes_turns(step_.rules); }
  bool yields_to(const Standing& running, const Standing& waiting, Duration slice) const {
    return policy_.yields_to(running, waiting, slice, step_);
  }
  bool yields_to(const Sequence& running, const Sequence& waiting, Duration slice) const {
    return yields_to(of(running), of(waiting), slice);
  }
  // Of two that give up their slots: whether `a` goes before `b`.
  bool yields_before(const Standing& a, const Standing& b) const;
  bool yields_before(const Sequence& a, const Sequence& b) const { return yields_before(of(a), of(b)); }

 private:
  ServiceClass class_of(ServiceClass service_class) const {
    return targets_.rules.classes ? service_class : ServiceClass::standard;
  }
  Duration first_token_within(const Sequence& sequence) const;
  double score(TimePoint due, TokenCount work) const;

  const SchedulerTargets& targets_;
  const SlotPolicy& policy_;
  const TenantCounters& counters_;
  const GroupCounters& groups_;
  const Overtaking& overtaking_;
  PolicyStep step_;
  double work_weight_ = 0;  // seconds of score for each token left
};

}  // namespace chasqui
