// Who came first goes first, and keeps its slot to the end, but for want of cells. No older one that could start is
// passed by, so that none is starved.
#include <tuple>

#include "sched/slot_policy.h"

namespace chasqui {
namespace {

bool came_before(const Standing& a, const Standing& b) {
  return std::tuple(a.arrival, a.id) < std::tuple(b.arrival, b.id);
}

class FirstComePolicy final : public SlotPolicy {
 public:
  bool slot_before(const Standing& a, const Standing& b, const PolicyStep&) const override { return came_before(a, b); }
  bool rows_before(const Standing& a, const Standing& b, const PolicyStep&) const override { return came_before(a, b); }
  bool yields_to(const Standing&, const Standing&, Duration, const PolicyStep&) const override { return false; }
  bool takes_turns(const PolicyRules&) const override { return false; }
};

}  // namespace

const SlotPolicy& first_come_policy() {
  static const FirstComePolicy policy;
  return policy;
}

}  // namespace chasqui
