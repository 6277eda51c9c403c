#include "sched/slot_policy.h"

namespace chasqui {

const std::map<std::string, const SlotPolicy*>& slot_policies() {
  static const std::map<std::string, const SlotPolicy*> kPolicies = {
      {"fair", &fair_policy()},
      {"fcfs", &first_come_policy()},
  };
  return kPolicies;
}

}  // namespace chasqui
