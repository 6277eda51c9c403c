// Who goes first: to a slot, and to the rows of a prefill step. A value made for one step; pure.
//
//   class    interactive, standard, background
//   tenant   (slots only) who has been served least
//   score    for slots: when the first token is due, plus the work left as the load grows, so that long prompts let
//            short ones pass for a while; for rows: when it is due, and under load the work left
#pragma once

#include "core/sequence.h"
#include "sched/targets.h"
#include "sched/tenant_counters.h"

namespace chasqui {

class Urgency {
 public:
  // `backlog`: time that it takes to read all prompts that are not read yet; `row_seconds`: for one token of them.
  Urgency(const SchedulerTargets& targets, Policy policy, const TenantCounters& counters, TimePoint now,
          Duration backlog, double row_seconds);

  // The class as a number, 0 the most urgent, and one better for each time that the patience of the sequence has run
  // out, so that it does not starve once it has a slot. Not for slots: the queue of whoever floods us is always old.
  int level(const Sequence& sequence) const;
  // It has waited for a slot for longer than anybody of its class should.
  bool out_of_patience(const Sequence& sequence) const;
  // Those who are not the most urgent get something now and then.
  bool takes_turns() const { return policy_ == Policy::chasqui; }
  // Total orders.
  bool slot_before(const Sequence& a, const Sequence& b) const;
  bool rows_before(const Sequence& a, const Sequence& b) const;
  // Whether `sequence` may be put aside for `other`: only background work is, unless it is out of patience.
  bool yields_to(const Sequence& sequence, const Sequence& other) const;

 private:
  double score(const Sequence& sequence) const;
  Duration patience(const Sequence& sequence) const;
  const ClassTarget& target(const Sequence& sequence) const;

  const SchedulerTargets& targets_;
  const Policy policy_;
  const TenantCounters& counters_;
  const TimePoint now_;
  bool loaded_ = false;     // more to read than anybody wants to wait for
  double work_weight_ = 0;  // seconds of score for each token left
};

}  // namespace chasqui
