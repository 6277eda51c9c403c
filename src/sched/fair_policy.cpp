//   slots    those that were passed often enough (Overtaking); class; the tenant that was served least, and the one of
//            its groups that was; score
//   rows     class; under load the shortest, else score; StepPlan gives the others their turns
//   slices   a sequence has its slot for a slice at least. Then it gives it up for one of a tenant that was served
//            less, for one of its own tenant that has waited for longer than its target, or whose group was served
//            less, and for one that was passed often enough. To a more urgent class it gives its slot at once, unless
//            it got this slot because it was passed often enough (Standing::holds_on): then after its slice, too.
#include <tuple>

#include "sched/slot_policy.h"
#include "sched/slot_rules.h"

namespace chasqui {
namespace {

bool scores_before(const Standing& a, const Standing& b) {
  return std::tuple(a.score, a.id) < std::tuple(b.score, b.id);
}

class FairPolicy final : public SlotPolicy {
 public:
  bool slot_before(const Standing& a, const Standing& b, const PolicyStep& step) const override {
    if (a.starved != b.starved) return a.starved;
    // Or else a younger one, whose turn has come as well, would pass an older one once more than the bound says.
    if (a.starved && a.waiting_since != b.waiting_since) return a.waiting_since < b.waiting_since;
    if (a.service_class != b.service_class) return a.service_class < b.service_class;
    if (step.rules.tenants && a.service != b.service) return a.service < b.service;
    // Also of two tenants that have had the same: else this were no order.
    if (step.rules.tenants && a.group_service != b.group_service) return a.group_service < b.group_service;
    return scores_before(a, b);
  }

  bool rows_before(const Standing& a, const Standing& b, const PolicyStep& step) const override {
    if (a.service_class != b.service_class) return a.service_class < b.service_class;
    if (step.loaded && step.rules.shortest_rows && a.left != b.left) return a.left < b.left;
    return scores_before(a, b);
  }

  bool yields_to(const Standing& running, const Standing& waiting, Duration slice,
                 const PolicyStep& step) const override {
    const bool more_urgent = waiting.service_class < running.service_class && step.rules.class_preempts;
    if (more_urgent && !running.holds_on) return true;
    if (step.now - running.slot_since < slice) return false;
    if (more_urgent || waiting.starved) return true;
    if (waiting.service_class > running.service_class || !step.rules.slices) return false;
    if (running.tenant == waiting.tenant) {
      return step.now - waiting.waiting_since >= waiting.first_token_within ||
             (step.rules.tenants && running.group_service - waiting.group_service >= kServedMore);
    }
    return step.rules.tenants && running.service - waiting.service >= kServedMore;
  }

  bool takes_turns(const PolicyRules& rules) const override { return rules.reading_turns; }
};

}  // namespace

const SlotPolicy& fair_policy() {
  static const FairPolicy policy;
  return policy;
}

}  // namespace chasqui
