// Who gets a slot, who gives it up for whom, and whose prompt is prefilled first: what a policy decides. A policy is a
// file, and a row of slot_policies(). It is constant, lives as long as the process, and knows of a server what it is
// handed; any thread.
#pragma once

#include <map>
#include <string>

#include "sched/policy_rules.h"
#include "sched/standing.h"

namespace chasqui {

// What counts beside the two sequences that are compared.
struct PolicyStep {
  const PolicyRules& rules;
  TimePoint now{};
  bool loaded = false;  // more is to be prefilled than the most urgent class can wait for
};

class SlotPolicy {
 public:
  virtual ~SlotPolicy() = default;

  // Total orders: of those that wait for a slot, and of prompts that have one. Those that are Standing::starved have
  // been passed by as many younger ones as may be: they come first for slots, or the bound on that does not hold.
  virtual bool slot_before(const Standing& a, const Standing& b, const PolicyStep& step) const = 0;
  virtual bool rows_before(const Standing& a, const Standing& b, const PolicyStep& step) const = 0;
  // Whether `running` gives its slot to `waiting`. `slice`: how long it may keep it at least.
  virtual bool yields_to(const Standing& running, const Standing& waiting, Duration slice,
                         const PolicyStep& step) const = 0;
  // Prompts that rows_before() puts behind others get rows now and then.
  virtual bool takes_turns(const PolicyRules& rules) const = 0;
};

const SlotPolicy& fair_policy();        // what a server runs with
const SlotPolicy& first_come_policy();  // what to compare with

// All of them, by their names in flags and reports.
const std::map<std::string, const SlotPolicy*>& slot_policies();

}  // namespace chasqui
