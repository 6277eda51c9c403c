// The part of the Scheduler that lets answers go on where their context is full: tokens behind those that are kept are
// forgotten, and the rest moves up, as llama-server's context shift does it. So do texts that a sequence begins with,
// for requests that ask for it (MovedText).
#include "sched/scheduler.h"

namespace chasqui {

// Before cells are reserved for the next rows.
void Scheduler::shift_full(TimePoint now, Batch& batch) {
  for (const auto& sequence : running_) {
    TokenCount gone = 0;
    while (const TokenCount tokens = sequence->to_remove()) {
      sequence->shift(tokens);
      gone += tokens;
    }
    const Request& request = sequence->request();
    if (request.shift_at > 0 && sequence->length() > request.shift_at) {
      finish(*sequence, FinishReason::length, now);  // nothing that was computed is left to forget
      events_.back().usage.truncated = true;
    } else if (gone > 0) {
      batch.shifts.push_back({request.id, sequence->slot(), request.keep, request.keep + gone});
    }
    if (gone == 0) continue;
    ledger_.unuse(sequence->slot(), gone);
    reuse_.shifted(*sequence);
    speculation_.shifted(request.id);
  }
  retire_finished(Keep::nothing);
}

// Where the moves of the step bring them.
void Scheduler::place_shifts(Batch& batch) {
  for (SlotShift& shift : batch.shifts) shift.slot = find_running(shift.request)->slot();
}

// The step was not computed: the slots hold what they held before.
void Scheduler::undo_shifts(const Batch& batch) {
  for (const SlotShift& shift : batch.shifts) {
    Sequence* sequence = find_running(shift.request);
    CHECK(sequence != nullptr, "a sequence left between next_batch() and commit()");
    if (sequence->computed() == 0) continue;  // it has several
    ledger_.unuse(sequence->slot());
    to_trim_.push_back(sequence->slot());
    sequence->not_restored();
  }
}

}  // namespace chasqui
