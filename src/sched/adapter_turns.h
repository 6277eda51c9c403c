// Whose turn it is, where running sequences want different adapters: libllama applies one set to the whole context, so
// each step belongs to one set. Sets take turns, each of about the same time; all turns together are about as long as
// the most demanding stream waits for its next token, so that streams of every set keep their promise while the machine
// is fast enough. To change the set costs time (libllama makes its graphs anew), which is learned, and a turn is long
// enough for that not to matter. Owned by the Scheduler; pure.
//
// progress: a turn has an end, and the next is that of the set that has waited longest. Only a late stream of a more
// urgent class than any of the set whose turn it is comes before that, and not before the turn had a step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/adapter_set.h"
#include "core/batch.h"
#include "sched/step_plan.h"
#include "sched/targets.h"

namespace chasqui {

class AdapterTurns {
 public:
  explicit AdapterTurns(const SchedulerTargets& targets) : targets_(targets) {}

  // Whose rows the next step computes; null: the model alone. Lives as long as the sequence that wants it.
  // REQUIRES: a sequence runs
  const AdapterSet* next(const RunningSequences& running, TimePoint now);
  // That step took so long, which was predicted or, zero, not. Returns the time without the change of the set.
  Duration computed(Duration took, Duration predicted);

  // More than one set is wanted by running sequences.
  bool several() const { return groups_.size() > 1; }
  // Steps that had another set than the one before, so far.
  std::uint64_t switches() const { return switches_; }
  // What such a step takes longer; zero while it is not known.
  Duration switch_time() const { return switch_time_; }

 private:
  struct Group {
    AdapterSetPtr adapters;
    ServiceClass best = ServiceClass::background;
    TimePoint due = kNever;  // the next token of a stream of the best class
    TimePoint served{};      // when its last turn ended; before the first, when it came
    bool wanted = false;
  };

  void survey(const RunningSequences& running, TimePoint now);
  void note(Group& group, const Sequence& sequence);
  Group& group_of(const AdapterSetPtr& adapters, TimePoint now);
  Duration turn_length() const;
  bool turn_over(TimePoint now) const { return now - turn_began_ >= turn_length(); }
  std::size_t pressing(const Group& current, TimePoint now) const;
  std::size_t longest_waiting() const;

  const SchedulerTargets targets_;
  std::vector<Group> groups_;  // those that requests want, by when they came
  AdapterSetPtr current_;
  bool any_ = false;  // current_ means something
  TimePoint turn_began_{};
  Duration period_{};  // in which all should have had a turn
  bool switched_ = false;
  Duration switch_time_{};
  Duration before_{};  // what the step with the change before took longer
  std::uint64_t switches_ = 0;
};

}  // namespace chasqui
