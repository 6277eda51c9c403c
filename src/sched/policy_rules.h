// The rules of the policy, each of which can be left out, so that `chasqui simulate --ablate` measures what each of
// them is worth (docs/decisions/policy_rules.md). A server runs with all of them. Plain values, constant after start.
#pragma once

namespace chasqui {

struct PolicyRules {
  // Slots: sched/urgency, sched/fair_policy
  bool classes = true;         // more urgent classes go first, for slots and rows
  bool tenants = true;         // of a class, the tenant that was served least goes first
  bool short_work = true;      // under load a long prompt lets short ones pass that come a little later
  bool overtaking = true;      // a request that was passed often goes first
  bool class_preempts = true;  // a more urgent class takes a slot at once
  bool slices = true;          // a slot goes to another tenant, or to an equal that waits, after a slice
  // Rows: sched/fair_policy, sched/step_plan
  bool shortest_rows = true;     // under load the shortest prompt is prefilled first
  bool reading_turns = true;     // every third prefill step goes to the prompt that has gone without rows for longest
  bool targets = true;           // a chunk is as long as the streams beside it can wait
  bool efficient_chunks = true;  // … but never so small that its rows cost much more than they have to
  bool stretch = true;           // … and streams wait for some passes or decode steps at least
  bool step_cuts = true;         // an arrival cuts a long step of prefill
  // Passes: scheduler_holes.cpp, sched/step_plan
  bool dense_slots = true;   // decoding sequences are brought into adjacent slots
  bool hole_rows = true;     // a prompt between decoding sequences gives a row to their step
  bool pad_decode = true;    // decode steps are padded to fours where that is quicker
  bool join_prompts = true;  // neighbours of about the same length are prefilled together
  // What steps take: sched/step_time
  bool slowdown = true;  // when two steps take longer than expected, all are expected to
  // Copies: sched/reuse
  bool prefix_waits = true;  // a request waits for its prefix that another computes
};

}  // namespace chasqui
