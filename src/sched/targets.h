// What the scheduler promises each class, and the rules by which it tries. Plain values, constant after start.
#pragma once

#include <array>

#include "base/clock.h"
#include "core/types.h"
#include "sched/policy_rules.h"

namespace chasqui {

struct ClassTarget {
  Duration first_token;  // arrival → first token, while there is capacity
  Duration next_token;   // token → token, while another prompt is prefilled
};

struct SchedulerTargets {
  std::array<ClassTarget, kServiceClasses> of = {{
      {milliseconds(1000), milliseconds(100)},
      {milliseconds(5000), milliseconds(150)},
      {milliseconds(30000), milliseconds(1000)},
  }};
  // A prefill step is not longer than this, or than the smallest efficient chunk; zero: as long as the streams beside
  // it allow, or, where there are none, as StepPlan says. Deterministic requests know no such limit.
  Duration prefill_step{};
  PolicyRules rules;
};

}  // namespace chasqui
