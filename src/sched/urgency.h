// The order of those that wait for a slot, and for the rows of a prefill step, and who gives up a slot for whom. A
// value made for one step; pure.
//
//   slots    those that were passed often enough (Overtaking); class; the tenant that was served least; score
//   rows     class; under load the shortest, else score; StepPlan gives the others their turns
//   score    when the first token is due, by the class's target or by the request's own limit where that is sooner,
//            plus the work left, which weighs more as the load grows: for a slot, a long prompt lets short ones pass
//            that arrive within a few times its own reading time, and no others
//   slices   a sequence has its slot for a slice at least. Then it gives it up for one of a tenant that was served
//            less, for one of its own tenant that has waited for longer than its target, and for one that was passed
//            often enough. To a more urgent class it gives its slot at once.
#pragma once

#include "core/sequence.h"
#include "sched/overtaking.h"
#include "sched/standing.h"
#include "sched/targets.h"
#include "sched/tenant_counters.h"

namespace chasqui {

class Urgency {
 public:
  // `backlog`: time that it takes to read all prompts that are not read yet; `row_seconds`: for one token of them.
  Urgency(const SchedulerTargets& targets, Policy policy, const TenantCounters& counters, const Overtaking& overtaking,
          TimePoint now, Duration backlog, double row_seconds);

  Standing of(const Sequence& sequence) const;
  // … of a request that comes now. `service`: what its tenant has received.
  Standing of_newcomer(ServiceClass service_class, std::uint32_t tenant, double service, TokenCount rows) const;
  // … of a sequence that loses its slot now.
  Standing without_slot(const Standing& running) const;
  TimePoint now() const { return now_; }
  // The same at another time.
  Urgency at(TimePoint now) const { return {*this, now}; }

  // Total orders.
  bool slot_before(const Standing& a, const Standing& b) const;
  bool slot_before(const Sequence& a, const Sequence& b) const { return slot_before(of(a), of(b)); }
  bool rows_before(const Standing& a, const Standing& b) const;
  bool rows_before(const Sequence& a, const Sequence& b) const { return rows_before(of(a), of(b)); }
  // Prompts that are not the most urgent get rows now and then.
  bool takes_turns() const { return policy_ == Policy::chasqui && targets_.rules.reading_turns; }
  // Whether `running` gives its slot to `waiting`. `slice`: how long it may keep it at least.
  bool yields_to(const Standing& running, const Standing& waiting, Duration slice) const;
  bool yields_to(const Sequence& running, const Sequence& waiting, Duration slice) const {
    return yields_to(of(running), of(waiting), slice);
  }
  // Of a slot: the smaller one goes first, other things being equal.
  double score(const Sequence& sequence) const;
  // More is to be read than the most urgent class can wait for, so the shortest prompts go first.
  bool loaded() const { return loaded_; }
  // Whether its turn has come, whatever else is true.
  bool passed_often(const Sequence& sequence) const {
    return policy_ == Policy::chasqui && targets_.rules.overtaking && overtaking_.is_due(sequence);
  }
  // Of two that give up their slots: whether `a` goes before `b`.
  bool yields_before(const Standing& a, const Standing& b) const;
  bool yields_before(const Sequence& a, const Sequence& b) const { return yields_before(of(a), of(b)); }

 private:
  Urgency(const Urgency& other, TimePoint now)
      : targets_(other.targets_),
        policy_(other.policy_),
        counters_(other.counters_),
        overtaking_(other.overtaking_),
        now_(now),
        loaded_(other.loaded_),
        work_weight_(other.work_weight_) {}

  ServiceClass class_of(ServiceClass service_class) const {
    return targets_.rules.classes ? service_class : ServiceClass::standard;
  }
  Duration first_token_within(const Sequence& sequence) const;
  double score(TimePoint due, TokenCount work) const;

  const SchedulerTargets& targets_;
  const Policy policy_;
  const TenantCounters& counters_;
  const Overtaking& overtaking_;
  const TimePoint now_;
  bool loaded_ = false;     // more to read than the most urgent class can wait for
  double work_weight_ = 0;  // seconds of score for each token left
};

}  // namespace chasqui
